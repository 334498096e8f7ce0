/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what connectors may be told beyond Kafka Connect, which the tasks in the hosts read
 * and the herder's remarks lean on. */
#include "model/conn_extras.h"

#include <stddef.h>
#include <string.h>

const struct conn_extra conn_extras[] = {
    {CONN_EXTRAS_DEAD_LETTERS, CONN_EXTRAS_SOURCE},
    {"errors.deadletterqueue.topic.replication.factor", CONN_EXTRAS_SOURCE},
    {"errors.deadletterqueue.context.headers.enable", CONN_EXTRAS_SOURCE},
    {CONN_EXTRAS_COMMIT_INTERVAL, CONN_EXTRAS_EMITS},
    {CONN_EXTRAS_STATE_MAX, CONN_EXTRAS_EMITS},
    {CONN_EXTRAS_OUT_OF_RANGE, CONN_EXTRAS_STORES},
    {0},
};

const struct conn_extra *conn_extras_find(const char *name)
{
    for (const struct conn_extra *extra = conn_extras; extra->name != NULL; extra++)
        if (strcmp(extra->name, name) == 0)
            return extra;
    return NULL;
}
