/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered map from text to text (or to null), and the reader of Java properties files.
 * Spec: java.util.Properties.load; golden tables properties.jsonl. */
#ifndef BASE_PROPS_H
#define BASE_PROPS_H

#include "base/err.h"

struct map;

struct props_entry {
    char *key;
    char *value; /* NULL = null */
    int line;    /* of the file it was read from, 0 otherwise */
};

/* Insertion order; setting an existing key keeps its place. Owner: one thread at a time. */
struct props {
    struct props_entry *entries;
    size_t count;
    size_t cap;
    struct map *index; /* private */
};

void props_init(struct props *p);
void props_deinit(struct props *p);
int props_copy(struct props *to, const struct props *from);     /* to is initialised by this */
bool props_equal(const struct props *a, const struct props *b); /* order does not matter */

int props_set(struct props *p, const char *key, const char *value); /* both copied */
void props_remove(struct props *p, const char *key);
const char *props_get(const struct props *p, const char *key); /* NULL: absent or null */
const struct props_entry *props_find(const struct props *p, const char *key);
/* Copy every entry whose key starts with prefix into `to`, without the prefix. */
int props_subset(const struct props *p, const char *prefix, struct props *to);

/* Read a properties file's bytes (ISO-8859-1 with \uXXXX; here also UTF-8 when the bytes are valid
 * UTF-8: say so in the .c). `name` stands in errors: "worker.properties:12: …". Caps: 1 MiB a file,
 * 100 000 keys. */
int props_parse(struct props *p, const char *data, size_t len, const char *name,
                struct mr_error *err);
int props_load(struct props *p, const char *path, struct mr_error *err);

#endif
