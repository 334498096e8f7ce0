/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that begin most transforms, and Java's names of classes and types for the texts that users
 * search for. Called on the task's thread, for each record. */
#include "requirement.h"

const char *requirement_class(struct mr_value v)
{
    static const char *const names[] = {
        "null",
        "java.lang.Boolean",
        "java.lang.Byte",
        "java.lang.Short",
        "java.lang.Integer",
        "java.lang.Long",
        "java.lang.Float",
        "java.lang.Double",
        "java.lang.String",
        "[B",
        "java.util.ArrayList",
        "java.util.LinkedHashMap",
        "org.apache.kafka.connect.data.Struct",
        "java.math.BigDecimal",
        "java.util.Date",
        "java.util.Date",
        "java.util.Date",
    };

    return v.kind < sizeof(names) / sizeof(names[0]) ? names[v.kind] : "?";
}

const char *requirement_type(uint8_t kind)
{
    static const char *const names[] = {"?",     "BOOLEAN", "INT8",    "INT16",  "INT32",
                                        "INT64", "FLOAT32", "FLOAT64", "STRING", "BYTES",
                                        "ARRAY", "MAP",     "STRUCT"};

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

int requirement_map(struct mr_value v, const char *purpose, struct mr_error *err)
{
    if (v.kind == MR_KIND_MAP)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA,
                   "Only Map objects supported in absence of schema for [%s], found: %s", purpose,
                   requirement_class(v));
}

int requirement_struct(const struct mr_schema *schema, struct mr_value v, const char *purpose,
                       struct mr_error *err)
{
    if (v.kind != MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA, "Only Struct objects supported for [%s], found: %s",
                       purpose, requirement_class(v));
    if (((const struct mr_struct *)v.u.p)->schema != schema)
        return mr_fail(err, MR_ERR_DATA, "Struct schemas do not match.");
    return MR_OK;
}

int requirement_fields(const struct mr_schema *schema, struct mr_error *err)
{
    if (schema->kind == MR_KIND_STRUCT)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA, "Cannot list fields on non-struct type");
}
