/* SPDX-License-Identifier: Apache-2.0 */
/* HelloSink: says hello to every record, in the worker's log. */
#include <millrace/plugin.h>

struct hello {
    struct mr_task *task;
    const char *greeting;
};

static const struct mr_config_key hello_keys[] = {
    {"greeting", MR_CFG_STRING, .fallback = "hello", .doc = "What to say"},
    {0},
};

static int hello_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct hello *h = self;

    h->task = task;
    h->greeting = mr_config_str(task, "greeting");
    return MR_OK;
}

static int hello_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    struct hello *h = self;

    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);
        size_t len;
        const char *text = mr_to_text(in->arena, mr_value(rec), &len);

        mr_log(h->task, MR_LOG_INFO, "%s, %.*s", h->greeting, (int)len, text);
    }
    return MR_OK; /* all taken: their offsets may be committed */
}

MR_SINK(HelloSink, "1.0", .keys = hello_keys, .state_size = sizeof(struct hello),
        .start = hello_start, .put = hello_put)
