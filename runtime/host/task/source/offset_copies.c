/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of offsets for the worker's store. A connector whose own Kafka is quick may commit
 * thousands of times while the worker's is away: what is under way stays one request, and what
 * waits is one entry for each offset that the task has (data/source_partition.c caps these). Called
 * by source_commit, source_end; the task's thread. */
#include "host/task/source/offset_copies.h"

#include <stdlib.h>

#define LOGGER "host.task.source"
#include "base/log.h"

void offset_copies_init(struct offset_copies *c, offset_writer_put put, void *arg)
{
    *c = (struct offset_copies){.put = put, .arg = arg, .waiting = json_object()};
    mr_assert(c->waiting != NULL);
}

void offset_copies_deinit(struct offset_copies *c)
{
    json_decref(c->waiting);
    json_decref(c->sent);
    c->waiting = c->sent = NULL;
}

/* The newest of its kind, behind all others; older: there may be a newer one. Without memory it is
 * left out. */
static void merge(struct offset_copies *c, json_t *entry, bool older)
{
    json_t *which = json_pack("[O, s]", json_array_get(entry, 0),
                              json_object_iter_key(json_object_iter(json_array_get(entry, 1))));
    char *name = which != NULL ? json_dumps(which, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (name != NULL && (!older || json_object_get(c->waiting, name) == NULL)) {
        json_object_del(c->waiting, name);
        json_object_set(c->waiting, name, entry);
    }
    free(name);
    json_decref(which);
}

/* The next ones that one request carries. */
static json_t *take_portion(struct offset_copies *c)
{
    json_t *portion = json_array(), *entry;
    size_t bytes = 0;
    const char *name;
    void *next;

    json_object_foreach_safe(c->waiting, next, name, entry)
    {
        if (json_array_size(portion) >= OFFSET_WRITER_PORTION || bytes >= OFFSET_WRITER_BYTES)
            break;
        bytes += strlen(name);
        json_array_append(portion, entry);
        json_object_del(c->waiting, name);
    }
    return portion;
}

/* The copy, since what is put goes to another thread. */
static void hand_over(struct offset_copies *c)
{
    json_t *portion = take_portion(c);

    json_decref(c->sent);
    c->sent = json_deep_copy(portion);
    c->id = c->put(c->arg, portion);
    c->out = c->id >= 0;
}

/* What the worker does not have: an offset that never moves again would be missing there for
 * ever. */
static void take_back(struct offset_copies *c)
{
    json_t *entry;
    size_t i;

    json_array_foreach(c->sent, i, entry)
    {
        merge(c, entry, true);
    }
    json_decref(c->sent);
    c->sent = NULL;
}

static void hand_over_now(struct offset_copies *c)
{
    hand_over(c);
    if (!c->out)
        take_back(c);
}

void offset_copies_add(struct offset_copies *c, json_t *entries)
{
    json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        merge(c, entry, false);
    }
    json_decref(entries);
    if (!c->out && json_object_size(c->waiting) > 0)
        hand_over_now(c);
}

bool offset_copies_answer(struct offset_copies *c, int64_t id, const char *error, const char *topic)
{
    bool refused = error[0] != '\0', again = refused && c->refused;
    bool more = json_object_size(c->waiting) > 0;

    if (!c->out || id != c->id)
        return false;
    c->out = false;
    if (refused && !c->refused)
        log_warn("source offsets stand in topic %s, but not in the worker's as well: %s", topic,
                 error);
    else if (!refused && c->refused)
        log_info("source offsets stand in the worker's topic as well again");
    c->refused = refused;
    if (refused)
        take_back(c);
    if (more && !again) /* else with the next that is added: no request after the other */
        hand_over_now(c);
    return true;
}

void offset_copies_end(struct offset_copies *c)
{
    while (json_object_size(c->waiting) > 0)
        hand_over(c);
}
