/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets of a connector, in a table beside its data: connector, topic, partition,
 * next_offset. */
#ifndef PG_OFFSETS_H
#define PG_OFFSETS_H

#include "pg_conn.h"

/* Make the table if there is none. */
int pg_offsets_prepare(struct pg_conn *conn, struct mr_error *err);
/* Fill in what is stored for these partitions. */
int pg_offsets_read(struct pg_conn *conn, const struct mr_partition_list *parts,
                    struct mr_error *err);
/* Within a transaction: what was `stored` becomes `offset`. MR_ERR_STALE: something else is stored;
 * nothing of the transaction may be committed. */
int pg_offsets_move(struct pg_conn *conn, const struct mr_partition_list *offsets,
                    struct mr_error *err);
/* As a user has them changed; all at once or not at all. */
int pg_offsets_alter(struct pg_conn *conn, const struct mr_partition_list *offsets,
                     struct mr_error *err);

#endif
