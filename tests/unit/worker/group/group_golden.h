/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of the Java worker's group protocol, tests/data/group/: one JSON object a line. */
#ifndef TESTS_GROUP_GOLDEN_H
#define TESTS_GROUP_GOLDEN_H

#include "base/buf.h"
#include "worker/group/work_list.h"

#include <jansson.h>

/* Call fn for every line of the file; fails the test when it can't be read. Gives the number of
 * lines. */
int golden_each(const char *name, void (*fn)(const json_t *line, void *arg), void *arg);

const char *golden_text(const json_t *object, const char *key); /* NULL: absent */
int64_t golden_int(const json_t *object, const char *key, int64_t absent);
void golden_hex(const json_t *object, const char *key, struct buf *out); /* appended */

/* {"c0":[-1,0]}: appended in the order of the text. NULL or null: nothing. */
void golden_list(const json_t *object, struct work_list *out);
void golden_assert_same(const char *where, const json_t *expected, const struct work_list *got);

#endif
