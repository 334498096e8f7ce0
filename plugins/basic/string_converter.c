/* SPDX-License-Identifier: Apache-2.0 */
/* StringConverter, the plugin: text of any value on the way out, text from any bytes on the way in.
 * Stands in for org.apache.kafka.connect.storage.StringConverter; on the task's thread.
 *
 * UTF-8 text passes through uncopied both ways. Encodings: converter.encoding sets both directions,
 * but the names of the serializer under it win where they are given for the own side, as in
 * Java. */
#include "string_converter.h"

#include "charset.h"

#include <stdio.h>

struct string_converter {
    struct charset writing;
    struct charset reading;
    const struct mr_schema *schema; /* optional STRING: what is read */
};

static const struct mr_config_key string_keys[] = {
    {.name = "converter.type",
     .flags = MR_CFG_REQUIRED,
     .doc = "How this converter will be used.",
     .choices = "key|value|header"},
    {.name = "converter.encoding",
     .fallback = "UTF-8",
     .doc = "The name of the Java character set to use for encoding strings as byte arrays.",
     .importance = MR_CFG_HIGH,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Encoding"},
    {0},
};

/* The encoding of one direction; direction: "serializer" or "deserializer". */
static const char *encoding_of(const struct mr_task *task, const char *direction)
{
    const char *type = mr_config_str(task, "converter.type");
    bool key = type != NULL && strcmp(type, "key") == 0;
    const char *own;
    char name[64];

    snprintf(name, sizeof(name), "%s.%s.encoding", key ? "key" : "value", direction);
    own = mr_config_raw(task, name);
    return own != NULL ? own : mr_config_str(task, "converter.encoding");
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct string_converter *c = (struct string_converter *)self;
    const char *writing = encoding_of(task, "serializer"),
               *reading = encoding_of(task, "deserializer");
    int rc = charset_open(&c->writing, writing == NULL ? "UTF-8" : writing, err);

    if (rc == MR_OK)
        rc = charset_open(&c->reading, reading == NULL ? "UTF-8" : reading, err);
    c->schema = mr_schema_of(task, MR_KIND_STRING, true);
    return rc;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    struct string_converter *c = (struct string_converter *)self;
    const char *text;
    size_t text_len;

    if (mr_is_null(value)) {
        *data = NULL;
        *len = 0;
        return MR_OK;
    }
    text = mr_to_text(arena, value, &text_len);
    charset_encode(&c->writing, arena, text, text_len, data, len);
    return MR_OK;
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    struct string_converter *c = (struct string_converter *)self;

    *value = data == NULL ? mr_null() : charset_decode(&c->reading, arena, data, len);
    *schema = c->schema;
    return MR_OK;
}

static void stop(void *self)
{
    struct string_converter *c = (struct string_converter *)self;

    charset_close(&c->writing);
    charset_close(&c->reading);
}

static const char *const string_aliases[] = {"org.apache.kafka.connect.storage.StringConverter",
                                             NULL};

const struct mr_converter string_converter_plugin = MR_DESCRIPTOR(
    mr_converter, MR_PLUGIN_CONVERTER, "StringConverter", "4.3.1", .aliases = string_aliases,
    .keys = string_keys, .doc = "Text, in any of Java's character sets",
    .state_size = sizeof(struct string_converter), .start = start, .from_connect = from_connect,
    .to_connect = to_connect, .stop = stop);
