/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that emits what it reads, as it is, to the same partition of topic `to`. With `times` each
 * record so often; with `tally` in place of it the last letter of its value as key, and how many
 * records it has seen with that; `pause.ms` before each call ends, so that it may be killed in
 * one. */
#include <millrace/plugin.h>

#include <errno.h>
#include <time.h>

struct relay {
    const char *to;
    int64_t times;
    int64_t pause_ms;
    bool tally;
};

static const struct mr_config_key relay_keys[] = {
    {"to", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to emit to"},
    {"times", MR_CFG_LONG, .fallback = "1", .doc = "How often"},
    {"tally", MR_CFG_BOOLEAN, .fallback = "false", .doc = "Count by last letters"},
    {"pause.ms", MR_CFG_LONG, .fallback = "0", .doc = "How long each call takes"},
    {0},
};

static int relay_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct relay *r = self;

    r->to = mr_config_str(task, "to");
    r->times = mr_config_long(task, "times");
    r->tally = mr_config_bool(task, "tally");
    r->pause_ms = mr_config_long(task, "pause.ms");
    return MR_OK;
}

static void tally(struct mr_emitter *out, struct mr_record *made, const struct mr_record *rec)
{
    struct mr_value letter = mr_null();
    const char *text;
    int64_t count;
    size_t len;

    if (mr_as_text(mr_value(rec), &text, &len) && len > 0)
        letter = mr_text(text + len - 1, 1);
    count = mr_state_long(out, letter, 0) + 1;
    mr_state_set(out, letter, mr_long(count));
    mr_record_key(made, letter);
    mr_record_value(made, mr_long(count));
}

static int relay_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                       struct mr_error *err)
{
    const struct relay *r = self;
    struct timespec pause = {r->pause_ms / 1000, r->pause_ms % 1000 * 1000000};

    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);

        for (int64_t n = 0; n < r->times; n++) {
            struct mr_record *made = mr_emit_add(out, r->to);

            made->partition = rec->partition;
            if (r->tally) {
                tally(out, made, rec);
                continue;
            }
            mr_record_schema(made, rec->key_schema, rec->value_schema);
            mr_record_key(made, mr_key(rec));
            mr_record_value(made, mr_value(rec));
        }
    }
    if (r->pause_ms > 0)
        nanosleep(&pause, NULL);
    return MR_OK;
}

MR_SINK(Relay, "1.0", .keys = relay_keys, .state_size = sizeof(struct relay), .start = relay_start,
        .emits = relay_emits)
