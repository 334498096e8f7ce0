/* SPDX-License-Identifier: Apache-2.0 */
/* HelloTransform: a greeting in front of every text; what is no text is left out. */
#include <millrace/plugin.h>

static const struct mr_config_key hello_keys[] = {
    {"greeting", MR_CFG_STRING, .fallback = "hello", .doc = "What to say"},
    {0},
};

struct hello {
    const char *greeting;
};

static int hello_start(void *self, struct mr_task *task, struct mr_error *err)
{
    ((struct hello *)self)->greeting = mr_config_str(task, "greeting");
    return MR_OK;
}

static int hello_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                       struct mr_error *err)
{
    struct hello *h = self;
    size_t front = strlen(h->greeting) + 2, len;
    const char *text;
    char *made;

    if (!mr_as_text(mr_value(rec), &text, &len))
        return MR_DROP;
    made = mr_alloc(arena, front + len + 1); /* lives as long as the record */
    snprintf(made, front + len + 1, "%s, %.*s", h->greeting, (int)len, text);
    mr_record_put_value(rec, rec->value_schema, mr_text(made, front + len));
    return MR_OK;
}

MR_TRANSFORM(HelloTransform, "1.0", .keys = hello_keys, .state_size = sizeof(struct hello),
             .start = hello_start, .apply = hello_apply)
