/* SPDX-License-Identifier: Apache-2.0 */
/* Visits: from a web server's lines ("GET /shop/shoes 200", keyed by user) to how often each user
 * came, and where to. From topic to topic, exactly once, whatever crashes. */
#include <millrace/plugin.h>

struct visits {
    const char *to;
};

static const struct mr_config_key visits_keys[] = {
    {"to", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to write to"},
    {0},
};

static int visits_start(void *self, struct mr_task *task, struct mr_error *err)
{
    ((struct visits *)self)->to = mr_config_str(task, "to");
    return MR_OK;
}

/* The path in a line, and its first part. */
static bool parse(struct mr_value line, struct mr_value *path, struct mr_value *section)
{
    const char *text, *from, *to, *slash;
    size_t len;

    if (!mr_as_text(line, &text, &len) || (from = memchr(text, '/', len)) == NULL)
        return false;
    to = memchr(from, ' ', (size_t)(text + len - from));
    to = to == NULL ? text + len : to;
    slash = memchr(from + 1, '/', (size_t)(to - from - 1));
    *path = mr_text(from, (size_t)(to - from));
    *section = mr_text(from + 1, (size_t)((slash == NULL ? to : slash) - from - 1));
    return true;
}

static int visits_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                        struct mr_error *err)
{
    const struct visits *v = self;

    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);
        struct mr_value user = mr_key(rec), path, section, seen = mr_map(out->arena, 3);
        int64_t count = mr_state_long(out, user, 0) + 1;

        if (!parse(mr_value(rec), &path, &section)) {
            mr_reject(in, i, "no path in this line"); /* a dead letter; the rest goes on */
            continue;
        }
        mr_pairs(seen)[0] = (struct mr_pair){mr_str("path"), path};
        mr_pairs(seen)[1] = (struct mr_pair){mr_str("section"), section};
        mr_pairs(seen)[2] = (struct mr_pair){mr_str("visits"), mr_long(count)};
        mr_state_set(out, user, mr_long(count)); /* in the same transaction as ... */
        mr_emit(out, v->to, user, seen);         /* ... this, and as the offsets of what was read */
    }
    return MR_OK;
}

MR_SINK(Visits, "1.0", .keys = visits_keys, .state_size = sizeof(struct visits),
        .start = visits_start, .emits = visits_emits)
