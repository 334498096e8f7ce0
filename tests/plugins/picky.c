/* SPDX-License-Identifier: Apache-2.0 */
/* A transform and a predicate whose check does what their value says: for tests of what becomes of
 * a worker that asks plugin code about a configuration. Records pass untouched. */
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

MR_DEFINE_TRANSFORM(picky, "Picky", "1.0", .keys = keys, .apply = picky_apply,
                    .check = picky_check);
MR_DEFINE_PREDICATE(picky_predicate, "PickyPredicate", "1.0", .keys = keys, .test = picky_test,
                    .check = picky_check);
MR_MODULE(MR_PLUGIN(picky), MR_PLUGIN(picky_predicate))
