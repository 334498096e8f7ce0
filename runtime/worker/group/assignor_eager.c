/* SPDX-License-Identifier: Apache-2.0 */
/* The eager policy, for the "default" protocol: connectors in Java's order go to members by id, in
 * turn; then, with the same turn going on, their tasks. What members held before does not matter:
 * each stopped everything before it joined. */
#include "worker/group/assignor_private.h"

void assignor_eager(struct round_table *table)
{
    size_t turn = 0;

    if (table->count == 0)
        return;
    for (int connectors = 1; connectors >= 0; connectors--)
        for (size_t i = 0; i < table->configured.count; i++)
            if (key_is_connector(table->configured.at[i]) == connectors)
                keys_add(table, &table->workers[turn++ % table->count].next,
                         table->configured.at[i]);
}
