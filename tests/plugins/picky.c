/* SPDX-License-Identifier: Apache-2.0 */
/* A transform, a predicate and connectors whose check or alter_offsets does what their value says:
 * for tests of what becomes of a worker that asks plugin code. Records pass untouched; the
 * connectors have none. */
#include <millrace/plugin.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct mr_config_key keys[] = {
    {"mood", MR_CFG_STRING, .fallback = "good",
     .doc = "What the check does: good, bad, mute, print, "
            "exit, crash or hang"},
    {"taste", MR_CFG_STRING, .fallback = NULL, .doc = "Must not be sour"},
    {"number", MR_CFG_INT, .fallback = "1", .doc = "Not checked"},
    {0}};

static int judge_mood(const char *mood, const char *shown, struct mr_error *err)
{
    if (strcmp(mood, "bad") == 0)
        return mr_fail(err, MR_ERR_CONFIG, "Invalid value %s for configuration %s: it is\nbad",
                       mood, shown);
    if (strcmp(mood, "mute") == 0)
        return MR_ERR_CONFIG;
    if (strcmp(mood, "print") == 0)
        printf("{\"end\":true}\n");
    if (strcmp(mood, "exit") == 0)
        _exit(3);
    if (strcmp(mood, "crash") == 0)
        raise(SIGSEGV);
    while (strcmp(mood, "hang") == 0)
        pause();
    fflush(stdout);
    return MR_OK;
}

static int picky_check(const struct mr_task *config, const char *key, const char *shown,
                       struct mr_error *err)
{
    if (strcmp(key, "mood") == 0)
        return judge_mood(mr_config_str(config, key), shown, err);
    if (strcmp(key, "taste") == 0 && strcmp(mr_config_str(config, key), "sour") == 0)
        return mr_fail(err, MR_ERR_CONFIG, "Invalid value sour for configuration %s, with mood %s",
                       shown, mr_config_str(config, "mood"));
    return MR_OK;
}

static int picky_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                       struct mr_error *err)
{
    (void)self;
    (void)arena;
    (void)rec;
    (void)err;
    return MR_OK;
}

static int picky_test(void *self, const struct mr_record *rec, struct mr_error *err)
{
    (void)self;
    (void)rec;
    (void)err;
    return 1;
}

/* What it was given stands in the text of its refusal. */
static int tell_offsets(const struct mr_offset_list *offsets, struct mr_error *err)
{
    char text[500] = "";

    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_offset_change *change = mr_offset_change_at(offsets, i);
        struct mr_value name = mr_null(), next = mr_null();
        bool named = mr_map_find(change->partition, "name", &name);
        int64_t n = -1;

        mr_map_find(change->offset, "next", &next);
        mr_as_long(next, &n);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s=%lld", i > 0 ? ", " : "",
                 named ? (int)name.len : 1, named ? (const char *)name.u.p : "?", (long long)n);
    }
    return mr_fail(err, MR_ERR_DATA, "%s", text);
}

static int source_alter(struct mr_task *connector, const struct mr_offset_list *offsets,
                        struct mr_error *err)
{
    const char *mood = mr_config_str(connector, "mood");

    if (strcmp(mood, "deny") == 0)
        return MR_ERR_UNSUPPORTED;
    return strcmp(mood, "tell") == 0 ? tell_offsets(offsets, err) : judge_mood(mood, "mood", err);
}

static int sink_alter(struct mr_task *connector, const struct mr_partition_list *offsets,
                      struct mr_error *err)
{
    const struct mr_partition *part = mr_partition_at(offsets, 0);

    if (strcmp(mr_config_str(connector, "mood"), "tell") != 0 || offsets->count == 0)
        return judge_mood(mr_config_str(connector, "mood"), "mood", err);
    return mr_fail(err, MR_ERR_DATA, "%zu, the first %s-%d=%lld%s", offsets->count, part->topic,
                   (int)part->partition, (long long)part->offset, offsets->all ? ", all" : "");
}

static int picky_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    (void)self;
    (void)err;
    return mr_again_in(out, 1000);
}

static int picky_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    (void)self;
    (void)in;
    (void)err;
    return MR_OK;
}

MR_DEFINE_SOURCE(picky_source, "PickySource", "1.0", .keys = keys, .poll = picky_poll,
                 .alter_offsets = source_alter);
MR_DEFINE_SINK(picky_sink, "PickySink", "1.0", .keys = keys, .put = picky_put,
               .alter_offsets = sink_alter);
MR_DEFINE_SOURCE(picky_silent, "PickySilent", "1.0", .keys = keys, .poll = picky_poll);
MR_DEFINE_SOURCE(picky_checked, "PickyChecked", "1.0", .keys = keys, .poll = picky_poll,
                 .check = picky_check);
MR_DEFINE_SINK(picky_checked_sink, "PickyCheckedSink", "1.0", .keys = keys, .put = picky_put,
               .check = picky_check);
MR_DEFINE_TRANSFORM(picky, "Picky", "1.0", .keys = keys, .apply = picky_apply,
                    .check = picky_check);
MR_DEFINE_PREDICATE(picky_predicate, "PickyPredicate", "1.0", .keys = keys, .test = picky_test,
                    .check = picky_check);
MR_MODULE(MR_PLUGIN(picky), MR_PLUGIN(picky_predicate), MR_PLUGIN(picky_source),
          MR_PLUGIN(picky_sink), MR_PLUGIN(picky_silent), MR_PLUGIN(picky_checked),
          MR_PLUGIN(picky_checked_sink))
