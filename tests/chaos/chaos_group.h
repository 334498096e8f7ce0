/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a consumer group from outside: a member is made to leave, a stranger comes and
 * goes; and who leads a group of workers. */
#ifndef TESTS_CHAOS_GROUP_H
#define TESTS_CHAOS_GROUP_H

#include "chaos/chaos.h"

struct chaos_group {
    const char *id;
    const char *topics;   /* with commas between */
    const char *assignor; /* of its members, as librdkafka calls it */
    const char *doze;     /* a file: the next call of one of them lasts until <doze>.now is gone */
};

/* How many members it has, whatever it does now. */
int chaos_group_members(const char *servers, const char *id);

/* As an administrator would: one of its members, by chance, is out of it. false: it has none. */
bool chaos_group_throw_out(const char *servers, const struct chaos_group *group);

/* A consumer joins, reads what it is given for so long, commits nothing and leaves. It waits at
 * most wait_ms for partitions; how many it was given. */
int chaos_group_visit(const char *servers, const struct chaos_group *group, int wait_ms,
                      int stay_ms);

/* Which of its workers leads, by what the group's coordinator keeps; -1: not known now. */
int chaos_group_leading(const struct chaos_cluster *c);

#endif
