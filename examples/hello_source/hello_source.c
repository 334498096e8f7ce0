/* SPDX-License-Identifier: Apache-2.0 */
/* HelloSource: greets once in a while, and remembers how often it has. */
#include <millrace/plugin.h>

struct hello {
    const char *topic, *whom;
    int64_t count, pause_ms;
};

static const struct mr_config_key hello_keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY, .doc = "Topic to write to"},
    {"whom", MR_CFG_STRING, .fallback = "world", .doc = "Whom to greet"},
    {"pause.ms", MR_CFG_LONG, .fallback = "1000", .has_range = true, .min = 1, .max = 3600000,
     .doc = "Milliseconds between greetings"},
    {0},
};

static int hello_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct hello *h = self;

    h->topic = mr_config_str(task, "topic");
    h->whom = mr_config_str(task, "whom");
    h->pause_ms = mr_config_long(task, "pause.ms");
    return mr_offset_long(task, h->whom, "count", 0, &h->count, err); /* where the last run was */
}

static int hello_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct hello *h = self;
    struct mr_record *rec = mr_batch_add(out, h->topic);

    mr_record_key(rec, mr_str(h->whom));
    mr_record_value(rec, mr_long(++h->count));
    mr_record_offset(rec, h->whom, "count", h->count);
    return mr_again_in(out, h->pause_ms);
}

MR_SOURCE(HelloSource, "1.0", .keys = hello_keys, .state_size = sizeof(struct hello),
          .start = hello_start, .poll = hello_poll, .exactly_once = "")
