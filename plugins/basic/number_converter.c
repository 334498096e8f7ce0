/* SPDX-License-Identifier: Apache-2.0 */
/* The converters of single numbers and booleans: ShortConverter to DoubleConverter, big-endian as
 * Kafka's serializers write them, and BooleanConverter, one byte. Stand in for
 * org.apache.kafka.connect.converters.*; on the task's thread, without state but the schema of what
 * is read. As keys, values and headers.
 *
 * The number converters look at a value's class alone, never at its schema, and widen nothing, as
 * in Java. The four that write numbers differ in a row of a table, which an instance finds by its
 * slots: each plugin has functions of its own. */
#include "number_converter.h"

/* What a trace shows below the message, as in Java; host/trace.h. */
#define CAUSE "org.apache.kafka.common.errors.SerializationException: "

/* One converter: what it is called in texts, and the kind and bytes of its values. */
struct number {
    const char *word;
    const char *deserializer;
    uint8_t kind;
    uint8_t size;
};

static const struct number numbers[] = {
    [MR_KIND_BOOL] = {"boolean", "BooleanDeserializer", MR_KIND_BOOL, 1},
    [MR_KIND_INT16] = {"short", "ShortDeserializer", MR_KIND_INT16, 2},
    [MR_KIND_INT32] = {"integer", "IntegerDeserializer", MR_KIND_INT32, 4},
    [MR_KIND_INT64] = {"long", "LongDeserializer", MR_KIND_INT64, 8},
    [MR_KIND_FLOAT32] = {"float", "Deserializer", MR_KIND_FLOAT32, 4},
    [MR_KIND_FLOAT64] = {"double", "Deserializer", MR_KIND_FLOAT64, 8},
};

struct number_converter {
    const struct mr_schema *schema; /* optional: what is read */
};

static const struct mr_config_key number_keys[] = {
    {.name = "converter.type",
     .flags = MR_CFG_REQUIRED,
     .doc = "How this converter will be used.",
     .choices = "key|value|header"},
    {0},
};

/* --- bytes ------------------------------------------------------------------------------------ */

static uint64_t bits_of(struct mr_value v)
{
    uint64_t bits = (uint64_t)v.u.i;
    uint32_t half;

    if (v.kind == MR_KIND_FLOAT32) {
        memcpy(&half, &v.u.f, sizeof(half));
        bits = half;
    } else if (v.kind == MR_KIND_FLOAT64) {
        memcpy(&bits, &v.u.d, sizeof(bits));
    }
    return bits;
}

static struct mr_value value_of(const struct number *n, uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    struct mr_value v = mr_make(n->kind, 0);

    switch (n->kind) {
    case MR_KIND_INT16:
        v.u.i = (int16_t)(uint16_t)bits;
        break;
    case MR_KIND_INT32:
        v.u.i = (int32_t)half;
        break;
    case MR_KIND_FLOAT32:
        memcpy(&v.u.f, &half, sizeof(half));
        break;
    case MR_KIND_FLOAT64:
        memcpy(&v.u.d, &bits, sizeof(bits));
        break;
    default:
        v.u.i = (int64_t)bits;
        break;
    }
    return v;
}

static int write_number(const struct number *n, struct mr_arena *arena, struct mr_value value,
                        const void **data, size_t *len, struct mr_error *err)
{
    unsigned char *out;
    uint64_t bits;

    if (mr_is_null(value)) {
        *data = NULL;
        *len = 0;
        return MR_OK;
    }
    if (value.kind != n->kind)
        return mr_fail(err, MR_ERR_DATA, "Failed to serialize to %s (was class %s): ", n->word,
                       mr_java_class(value));
    out = (unsigned char *)mr_alloc(arena, n->size);
    bits = bits_of(value);
    for (size_t i = n->size; i > 0; i--, bits >>= 8)
        out[i - 1] = (unsigned char)bits;
    *data = out;
    *len = n->size;
    return MR_OK;
}

static int read_number(const struct number *n, const void *data, size_t len, struct mr_value *value,
                       struct mr_error *err)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t bits = 0;

    if (data == NULL) {
        *value = mr_null();
        return MR_OK;
    }
    if (len != n->size)
        return mr_caused_by(err, mr_fail(err, MR_ERR_DATA, "Failed to deserialize %s: ", n->word),
                            CAUSE "Size of data received by %s is not %u", n->deserializer,
                            n->size);
    if (n->kind == MR_KIND_BOOL && *p > 1)
        return mr_caused_by(err, mr_fail(err, MR_ERR_DATA, "Failed to deserialize boolean: "),
                            CAUSE "Unexpected byte received by BooleanDeserializer: %d",
                            (int)(signed char)*p);
    for (size_t i = 0; i < len; i++)
        bits = bits << 8 | p[i];
    *value = value_of(n, bits);
    return MR_OK;
}

/* BooleanConverter alone judges the schema too. */
static int check_boolean(const struct mr_schema *schema, struct mr_value value,
                         struct mr_error *err)
{
    if (schema != NULL && schema->kind != MR_KIND_BOOL)
        return mr_fail(err, MR_ERR_DATA, "Invalid schema type for BooleanConverter: %s",
                       mr_java_type(schema->kind));
    if (!mr_is_null(value) && value.kind != MR_KIND_BOOL)
        return mr_fail(err, MR_ERR_DATA,
                       "BooleanConverter is not compatible with objects of type class %s",
                       mr_java_class(value));
    return MR_OK;
}

/* --- the plugins ------------------------------------------------------------------------------ */

/* The slots and the descriptor of one: they differ in the kind only. */
#define NUMBER_CONVERTER(id, kind, class_of_it, text) \
    static int id##_start(void *self, struct mr_task *task, struct mr_error *err) \
    { \
        (void)err; \
        ((struct number_converter *)self)->schema = mr_schema_of(task, kind, true); \
        return MR_OK; \
    } \
    static int id##_write(void *self, struct mr_arena *arena, const char *topic, \
                          const struct mr_schema *schema, struct mr_value value, \
                          const void **data, size_t *len, struct mr_error *err) \
    { \
        int rc = kind == MR_KIND_BOOL ? check_boolean(schema, value, err) : MR_OK; \
\
        (void)self; \
        (void)topic; \
        return rc == MR_OK ? write_number(&numbers[kind], arena, value, data, len, err) : rc; \
    } \
    static int id##_read(void *self, struct mr_arena *arena, const char *topic, const void *data, \
                         size_t len, const struct mr_schema **schema, struct mr_value *value, \
                         struct mr_error *err) \
    { \
        int rc = read_number(&numbers[kind], data, len, value, err); \
\
        (void)arena; \
        (void)topic; \
        if (rc == MR_OK) \
            *schema = ((struct number_converter *)self)->schema; \
        return rc; \
    } \
    static const char *const id##_aliases[] = {"org.apache.kafka.connect.converters." class_of_it, \
                                               NULL}; \
    const struct mr_converter id##_converter_plugin = MR_DESCRIPTOR( \
        mr_converter, MR_PLUGIN_CONVERTER, class_of_it, "4.3.1", .aliases = id##_aliases, \
        .keys = number_keys, .doc = text, .state_size = sizeof(struct number_converter), \
        .start = id##_start, .from_connect = id##_write, .to_connect = id##_read)

NUMBER_CONVERTER(boolean, MR_KIND_BOOL, "BooleanConverter", "One byte, 1 or 0");
NUMBER_CONVERTER(short, MR_KIND_INT16, "ShortConverter", "Two bytes, big-endian");
NUMBER_CONVERTER(integer, MR_KIND_INT32, "IntegerConverter", "Four bytes, big-endian");
NUMBER_CONVERTER(long, MR_KIND_INT64, "LongConverter", "Eight bytes, big-endian");
NUMBER_CONVERTER(float, MR_KIND_FLOAT32, "FloatConverter", "Four bytes of IEEE 754, big-endian");
NUMBER_CONVERTER(double, MR_KIND_FLOAT64, "DoubleConverter", "Eight bytes of IEEE 754, big-endian");
