/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from text to pointer, iterated in insertion order. Grows; never shrinks. One
 * thread. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct map;

struct map *map_new(void);                                 /* aborts out of memory */
void map_free(struct map **m, void (*free_value)(void *)); /* free_value may be NULL */
void *map_get(const struct map *m, const char *key);       /* NULL: absent */
/* key copied; gives the value it replaces, or NULL */
void *map_set(struct map *m, const char *key, void *value);
void *map_remove(struct map *m, const char *key); /* gives the value, or NULL */
size_t map_count(const struct map *m);
/* for (size_t i = 0; map_next(m, &i, &key, &value);) — the current entry may be removed while
 * iterating */
bool map_next(const struct map *m, size_t *cursor, const char **key, void **value);

#endif
