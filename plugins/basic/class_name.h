/* SPDX-License-Identifier: Apache-2.0 */
/* Java's names of kinds, for Connect's texts. */
#ifndef BASIC_CLASS_NAME_H
#define BASIC_CLASS_NAME_H

#include <millrace/value.h>

static inline const char *class_name(struct mr_value v)
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
        "java.util.HashMap",
        "org.apache.kafka.connect.data.Struct",
        "java.math.BigDecimal",
        "java.util.Date",
        "java.util.Date",
        "java.util.Date",
    };

    return v.kind < sizeof(names) / sizeof(names[0]) ? names[v.kind] : "?";
}

/* Schema.Type of a schema's kind. */
static inline const char *class_type_name(uint8_t kind)
{
    static const char *const names[] = {"?",     "BOOLEAN", "INT8",    "INT16",  "INT32",
                                        "INT64", "FLOAT32", "FLOAT64", "STRING", "BYTES",
                                        "ARRAY", "MAP",     "STRUCT"};

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

#endif
