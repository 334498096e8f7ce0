/* SPDX-License-Identifier: Apache-2.0 */
/* Java's names of kinds, for texts that users know from Kafka Connect and search for.
 * Spec: Java's class names; org.apache.kafka.connect.data.Schema.Type. */
#ifndef MILLRACE_JAVA_NAMES_H
#define MILLRACE_JAVA_NAMES_H

#include <millrace/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The class of a value: "java.lang.Byte", … "null"; "?" for a kind that is none. */
static inline const char *mr_java_class(struct mr_value v)
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

/* The type of a schema of this kind: "INT8", …; "?" for what no schema has. */
static inline const char *mr_java_type(uint8_t kind)
{
    static const char *const names[] = {"?",     "BOOLEAN", "INT8",    "INT16",  "INT32",
                                        "INT64", "FLOAT32", "FLOAT64", "STRING", "BYTES",
                                        "ARRAY", "MAP",     "STRUCT"};

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

#ifdef __cplusplus
}
#endif

#endif
