/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that emits what it reads to topic `to`: what topic-to-topic costs by itself. */
#include <millrace/plugin.h>

struct copy {
    const char *to;
};

static const struct mr_config_key copy_keys[] = {
    {"to", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to emit to"},
    {0},
};

static int copy_start(void *self, struct mr_task *task, struct mr_error *err)
{
    ((struct copy *)self)->to = mr_config_str(task, "to");
    return MR_OK;
}

static int copy_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                      struct mr_error *err)
{
    const struct copy *c = self;

    for (size_t i = 0; i < mr_batch_count(in); i++)
        mr_emit(out, c->to, mr_key(mr_record_at(in, i)), mr_value(mr_record_at(in, i)));
    return MR_OK;
}

MR_SINK(Copy, "1", .keys = copy_keys, .state_size = sizeof(struct copy), .start = copy_start,
        .emits = copy_emits)
