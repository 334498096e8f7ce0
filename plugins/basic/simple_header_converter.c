/* SPDX-License-Identifier: Apache-2.0 */
/* SimpleHeaderConverter, the plugin: header values in Connect's string form, the default for
 * headers. Stands in for org.apache.kafka.connect.storage.SimpleHeaderConverter; on the task's
 * thread, for each header of each record.
 *
 * Text is borrowed both ways, unless it holds what is no UTF-8 or no character of its own. What is
 * too deep or too long to be parsed, where Java runs out of stack, comes as the bytes it is, and so
 * does what needs a schema when this process may hold no more of them. Those that texts ask for
 * have a small share of the table to themselves: who writes headers can't stop a task, nor fill the
 * table for others. */
#include "simple_header_converter.h"

struct simple_header_converter {
    const struct mr_schema *bytes;
};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    (void)err;
    ((struct simple_header_converter *)self)->bytes = mr_schema_of(task, MR_KIND_BYTES, false);
    return MR_OK;
}

/* A lone half of a surrogate pair, which UTF-8 can't hold, is a question mark in Java. */
static const char *encode(struct mr_arena *arena, const char *text, size_t *len)
{
    char *copy, *to;

    for (size_t i = 0; i + 2 < *len; i++) {
        if ((unsigned char)text[i] != 0xed || (unsigned char)text[i + 1] < 0xa0)
            continue;
        copy = (char *)mr_alloc(arena, *len);
        memcpy(copy, text, i);
        to = copy + i;
        for (; i < *len; i++) {
            bool half = i + 2 < *len && (unsigned char)text[i] == 0xed &&
                        (unsigned char)text[i + 1] >= 0xa0;

            *to++ = half ? '?' : text[i];
            i += half ? 2 : 0;
        }
        *len = (size_t)(to - copy);
        return copy;
    }
    return text;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    size_t made;
    const char *text = mr_value_string(arena, value, &made);

    (void)self;
    (void)topic;
    (void)schema;
    (void)err;
    if (text != NULL && !mr_is_ascii(text, made))
        text = encode(arena, text, &made);
    *data = text;
    *len = text == NULL ? 0 : made;
    return MR_OK;
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    const struct simple_header_converter *c = (const struct simple_header_converter *)self;
    struct mr_value text = data == NULL ? mr_null() : mr_text_from(arena, data, len);
    struct mr_error why;
    int rc;

    (void)topic;
    memset(&why, 0, offsetof(struct mr_error, text) + 1);
    rc = mr_value_parse(arena, mr_is_null(text) ? NULL : (const char *)text.u.p, text.len, schema,
                        value, &why);
    if (rc == MR_ERR_DATA || rc == MR_ERR_FULL) {
        *schema = c->bytes;
        *value = mr_bytes(data, len);
        return MR_OK;
    }
    return rc == MR_OK ? MR_OK : mr_fail(err, rc, "%s", why.text);
}

static const char *const simple_header_aliases[] = {
    "org.apache.kafka.connect.storage.SimpleHeaderConverter", NULL};

const struct mr_converter simple_header_converter_plugin =
    MR_DESCRIPTOR(mr_converter, MR_PLUGIN_HEADER_CONVERTER, "SimpleHeaderConverter", "4.3.1",
                  .aliases = simple_header_aliases, .doc = "Values as text that tells their type",
                  .state_size = sizeof(struct simple_header_converter), .start = start,
                  .from_connect = from_connect, .to_connect = to_connect);
