/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas, and how many of them have to have a record before it is confirmed. Whether one that
 * lacks it may lead. Asked by whoever has promised more than such a topic can keep; the owner of
 * the topic_admin. */
#include "kafka/topic_weak.h"

#include <string.h>

static const char *const weaknesses[][2] = {
    {"min.insync.replicas", "1"},
    {"unclean.leader.election.enable", "true"},
};

static void add(char *out, size_t size, const char *what, char sign, const char *value)
{
    size_t len = strlen(out);

    snprintf(out + len, size - len, "%s%s%c%s", len > 0 ? ", " : "", what, sign, value);
}

static bool is(struct topic_admin *admin, const char *topic, const char *key, const char *value,
               int64_t timeout_ms)
{
    struct mr_error err = {0};
    char found[32];

    return topic_admin_setting(admin, topic, key, timeout_ms, found, sizeof(found), &err) == 0 &&
           strcmp(found, value) == 0;
}

void topic_weak_describe(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                         char *out, size_t size)
{
    struct mr_error err = {0};
    int replicas;

    out[0] = '\0';
    if (topic_admin_replicas(admin, topic, timeout_ms, &replicas, &err) == 0 && replicas == 1)
        add(out, size, "replication factor", ' ', "1");
    for (size_t i = 0; i < sizeof(weaknesses) / sizeof(weaknesses[0]); i++)
        if (is(admin, topic, weaknesses[i][0], weaknesses[i][1], timeout_ms))
            add(out, size, weaknesses[i][0], '=', weaknesses[i][1]);
}
