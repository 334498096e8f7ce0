/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. This worker's own memory is ahead of what comes back from the other workers'
 * topic, and behind it where a task has been elsewhere: a successor is given both. Called by
 * herder.c and host_desk.c; loop thread. */
#include "worker/herder/sink_members.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static char *name_of(const char *conn, int task)
{
    char *name;

    mr_assert(asprintf(&name, "%s-%d", conn, task) > 0);
    return name;
}

void sink_members_joined(struct map *members, struct conn_source *source, const char *conn,
                         int task, const char *member)
{
    char *name = name_of(conn, task), *copy = text_dup(member);

    free(map_remove(members, name));
    if (map_count(members) < SINK_MEMBERS_MAX)
        map_set(members, name, copy);
    else
        free(copy);
    if (source->joined != NULL)
        source->joined(source, name, member);
    free(name);
}

json_t *sink_members_left(const struct map *members, const struct conn_source *source,
                          const char *conn, int task)
{
    char *name = name_of(conn, task);
    const char *here = map_get(members, name),
               *told = source->member != NULL ? source->member(source, name) : NULL;
    json_t *left = here != NULL || told != NULL ? json_array() : NULL;

    if (here != NULL)
        json_array_append_new(left, json_string(here));
    if (told != NULL && (here == NULL || strcmp(here, told) != 0))
        json_array_append_new(left, json_string(told));
    free(name);
    return left;
}
