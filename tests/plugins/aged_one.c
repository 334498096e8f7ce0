/* SPDX-License-Identifier: Apache-2.0 */
/* A source and a transform that tell their release: 1.0, or what aged_two.c makes of it. */
#include <millrace/plugin.h>

#include <string.h>

#ifndef AGED
#define AGED "1.0"
#endif

struct aged {
    const char *topic;
    bool told;
};

static const struct mr_config_key aged_keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to write to"}, {0}};
static const struct mr_config_key no_keys[] = {{0}};

static int aged_start(void *self, struct mr_task *task, struct mr_error *err)
{
    (void)err;
    ((struct aged *)self)->topic = mr_config_str(task, "topic");
    return MR_OK;
}

static int aged_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct aged *a = self;

    (void)err;
    if (!a->told)
        mr_record_value(mr_batch_add(out, a->topic), mr_str("source " AGED));
    a->told = true;
    return mr_again_in(out, 1000);
}

/* "source 1.0" becomes "source 1.0, transform 2.0". */
static int grow_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                      struct mr_error *err)
{
    static const char more[] = ", transform " AGED;
    size_t len;
    const char *text = mr_to_text(arena, mr_value(rec), &len);
    char *grown = (char *)mr_alloc(arena, len + sizeof(more));

    (void)self;
    (void)err;
    memcpy(grown, text, len);
    memcpy(grown + len, more, sizeof(more));
    mr_record_put_value(rec, rec->value_schema, mr_str(grown));
    return MR_OK;
}

static const struct mr_source aged_plugin =
    MR_DESCRIPTOR(mr_source, MR_PLUGIN_SOURCE, "Aged", AGED, .keys = aged_keys,
                  .state_size = sizeof(struct aged), .start = aged_start, .poll = aged_poll);
static const struct mr_transform grow_plugin = MR_DESCRIPTOR(
    mr_transform, MR_PLUGIN_TRANSFORM, "Grow", AGED, .keys = no_keys, .apply = grow_apply);

MR_MODULE(MR_PLUGIN(aged), MR_PLUGIN(grow))
