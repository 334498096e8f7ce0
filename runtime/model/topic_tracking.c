/* SPDX-License-Identifier: Apache-2.0 */
/* The two settings of topic tracking, which worker and host read from the same worker
 * configuration: the host to tell of topics at all, the worker to answer. Names are judged where a
 * host's word is taken for one. Pure. */
#include "model/topic_tracking.h"

#include "model/config_def.h"

#include <string.h>

#define NAME_MAX_BYTES 249

/* The worker has refused to start with it. */
static void ignore(void *arg, const char *key, const char *text)
{
    (void)arg;
    (void)key;
    (void)text;
}

static bool is_on(const struct props *worker, const char *name)
{
    const struct mr_config_key key = {.name = name, .type = MR_CFG_BOOLEAN, .fallback = "true"};
    struct config_value value = {0};

    return config_def_check(&key, worker, &value, ignore, NULL) != 0 || value.i != 0;
}

bool topic_tracking_wanted(const struct props *worker)
{
    return is_on(worker, "topic.tracking.enable");
}

bool topic_tracking_resets(const struct props *worker)
{
    return is_on(worker, "topic.tracking.allow.reset");
}

bool topic_tracking_is_topic(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= NAME_MAX_BYTES && name[len] == '\0' && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}
