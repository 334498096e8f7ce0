/* SPDX-License-Identifier: Apache-2.0 */
/* Source partitions and offset keys, interned for the life of the process: equal ones are one
 * pointer. Any thread. */
#ifndef HOST_SOURCE_PARTITION_H
#define HOST_SOURCE_PARTITION_H

#include "base/err.h"

#define SOURCE_PARTITION_MAX 1000000    /* of one process */
#define SOURCE_PARTITION_MAX_TEXT 32768 /* bytes of key and value together */

/* {key: value}. Its content is public to the host, opaque to plugins. */
struct mr_source_partition {
    const char *key;
    const char *value; /* NULL = null */
    size_t index;      /* 0, 1, …: for tables indexed by partition */
    bool storable;     /* both are UTF-8: what is stored is JSON */
};

/* The partition of this pair; NULL when key is NULL, the text is too long, or there are
 * SOURCE_PARTITION_MAX already. Known pairs take no lock. */
const struct mr_source_partition *source_partition_intern(const char *key, const char *value);

/* "{key: value}" for a message, what is not printable as \xHH, at most size - 1 bytes. Gives
 * out. */
const char *source_partition_show(const struct mr_source_partition *part, char *out, size_t size);

/* The interned copy of an offset's key; NULL as above, and when it is not UTF-8. */
const char *source_partition_key(const char *key);

#endif
