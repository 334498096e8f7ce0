/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin keeps for one partition: keys and values as bytes, changes since the last commit,
 * and of them those of the call that runs, which may be taken back. Pure; one owner. */
#ifndef HOST_STATE_TABLE_H
#define HOST_STATE_TABLE_H

#include "base/err.h"

#include <stddef.h>

struct state_table;

struct state_span {
    const void *data; /* NULL: none */
    size_t len;
};

/* bytes: what all tables of a task hold together, and most: how much that may be; both borrowed. */
struct state_table *state_table_new(size_t *bytes, size_t most); /* aborts out of memory */
void state_table_free(struct state_table **t);

/* Borrowed until the next change; data NULL: nothing is kept. */
struct state_span state_table_get(const struct state_table *t, struct state_span key);
/* value.data NULL: forget. MR_ERR_FULL: above `most`; MR_ERR_NOMEM. Nothing has changed then. */
int state_table_set(struct state_table *t, struct state_span key, struct state_span value,
                    struct mr_error *err);
/* As it is in the topic: no change, and nothing to be taken back. */
int state_table_load(struct state_table *t, struct state_span key, struct state_span value,
                     struct mr_error *err);

void state_table_keep(struct state_table *t);      /* the call went well */
void state_table_roll_back(struct state_table *t); /* it did not: as it was before it */

/* Changed keys, and what they have now. Borrowed until the next change. */
size_t state_table_changes(const struct state_table *t);
void state_table_change(const struct state_table *t, size_t i, struct state_span *key,
                        struct state_span *value);
void state_table_committed(struct state_table *t); /* there are none any more */

size_t state_table_count(const struct state_table *t); /* keys that have a value */

#endif
