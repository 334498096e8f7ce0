/* SPDX-License-Identifier: Apache-2.0 */
/* The generator source: `count` records of `size` bytes, as fast as they are taken. */
#include <millrace/plugin.h>

#include <string.h>

struct generator {
    const char *topic;
    int64_t next, count, size;
    bool bytes;
    const struct mr_schema *schema;
};

static const struct mr_config_key generator_keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to write to"},
    {"count", MR_CFG_LONG, MR_CFG_REQUIRED, .doc = "How many records"},
    {"size", MR_CFG_INT, .fallback = "100", .doc = "Bytes of each"},
    {"kind", MR_CFG_STRING, .fallback = "text", .doc = "Their values", .choices = "text|bytes"},
    {0},
};

static int generator_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct generator *g = self;
    g->topic = mr_config_str(task, "topic");
    g->count = mr_config_long(task, "count");
    g->size = mr_config_long(task, "size");
    g->bytes = strcmp(mr_config_str(task, "kind"), "bytes") == 0;
    g->schema = mr_schema_of(task, g->bytes ? MR_KIND_BYTES : MR_KIND_STRING, false);
    return mr_offset_long(task, "g", "next", 0, &g->next, err);
}

static int generator_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct generator *g = self;
    void *text = memset(mr_alloc(out->arena, (size_t)g->size), 'x', (size_t)g->size);

    for (struct mr_record *rec; g->next < g->count && !mr_batch_full(out);) {
        rec = mr_batch_add(out, g->topic);
        mr_record_schema(rec, NULL, g->schema);
        mr_record_value(rec, g->bytes ? mr_bytes(text, (size_t)g->size)
                                      : mr_text(text, (size_t)g->size));
        mr_record_offset(rec, "g", "next", ++g->next);
    }
    return g->next < g->count ? MR_OK : mr_again_in(out, 1000);
}

MR_SOURCE(Generator, "1", .keys = generator_keys, .state_size = sizeof(struct generator),
          .start = generator_start, .poll = generator_poll)
