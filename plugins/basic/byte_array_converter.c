/* SPDX-License-Identifier: Apache-2.0 */
/* ByteArrayConverter, the plugin: bytes as they are, uncopied both ways. Stands in for
 * org.apache.kafka.connect.converters.ByteArrayConverter; on the task's thread. Also the module of
 * this folder, with the other converters beside it. */
#include "number_converter.h"
#include "simple_header_converter.h"
#include "string_converter.h"

struct byte_array_converter {
    const struct mr_schema *schema; /* optional BYTES: what is read */
};

static const struct mr_config_key byte_array_keys[] = {
    {.name = "converter.type",
     .flags = MR_CFG_REQUIRED,
     .doc = "How this converter will be used.",
     .choices = "key|value|header"},
    {0},
};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct byte_array_converter *c = (struct byte_array_converter *)self;

    c->schema = mr_schema_of(task, MR_KIND_BYTES, true);
    return MR_OK;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    if (schema != NULL && schema->kind != MR_KIND_BYTES)
        return mr_fail(err, MR_ERR_DATA, "Invalid schema type for ByteArrayConverter: %s",
                       mr_java_type(schema->kind));
    if (!mr_is_null(value) && value.kind != MR_KIND_BYTES)
        return mr_fail(err, MR_ERR_DATA,
                       "ByteArrayConverter is not compatible with objects of type class %s",
                       mr_java_class(value));
    *data = mr_is_null(value) ? NULL : value.len == 0 && value.u.p == NULL ? "" : value.u.p;
    *len = value.len;
    return MR_OK;
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    struct byte_array_converter *c = (struct byte_array_converter *)self;

    *value = data == NULL ? mr_null() : mr_bytes(data, len);
    *schema = c->schema;
    return MR_OK;
}

static const char *const byte_array_aliases[] = {
    "org.apache.kafka.connect.converters.ByteArrayConverter", NULL};

MR_DEFINE_CONVERTER(byte_array, "ByteArrayConverter", "4.3.1", .aliases = byte_array_aliases,
                    .keys = byte_array_keys, .doc = "Bytes as they are",
                    .state_size = sizeof(struct byte_array_converter), .start = start,
                    .from_connect = from_connect, .to_connect = to_connect);
MR_MODULE(MR_PLUGIN(string_converter), MR_PLUGIN(byte_array), MR_PLUGIN(boolean_converter),
          MR_PLUGIN(short_converter), MR_PLUGIN(integer_converter), MR_PLUGIN(long_converter),
          MR_PLUGIN(float_converter), MR_PLUGIN(double_converter),
          MR_PLUGIN(simple_header_converter))
