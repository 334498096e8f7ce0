/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations come to a host as they are stored, with references; here they become values, as
 * late as may be and in no other process. On the way back (task configurations, which are stored
 * and shown) values become references again. Spec: WorkerConfigTransformer.transform, ConnectUtils
 * / AbstractHerder.reverseTransform. */
#define LOGGER "host.control"
#include "host/host_references.h"

#include "base/config_ref.h"
#include "base/log.h"
#include "base/log_hide.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 1000

/* What was told already: the same configuration is resolved for the connector and for each of its
 * tasks, and a refusal is one line. Global, as the process is one connector's. */
static struct {
    pthread_mutex_t lock;
    struct map *texts;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_news(const char *key, const char *text)
{
    bool news = true;
    char *line = NULL;

    mr_assert(asprintf(&line, "%s %s", key, text) > 0);
    pthread_mutex_lock(&told.lock);
    if (told.texts == NULL)
        told.texts = map_new();
    news = map_get(told.texts, line) == NULL;
    if (news && map_count(told.texts) < TOLD_MAX)
        map_set(told.texts, line, told.texts);
    pthread_mutex_unlock(&told.lock);
    free(line);
    return news;
}

/* The environment may be another than when the connector was created. */
static void tell_left(const struct host_references *of, const struct props *resolved,
                      const struct map *why)
{
    for (size_t i = 0; i < of->config->count; i++) {
        const struct props_entry *entry = &of->config->entries[i];
        const char *value = props_get(resolved, entry->key);
        char *left = providers_left(of->providers, entry->value, value, why);

        if (left != NULL && is_news(entry->key, left))
            log_warn("%s %s", entry->key, left);
        free(left);
    }
}

int host_references_resolve(const struct host_references *of, struct props *out,
                            struct mr_error *err)
{
    struct secrets *secrets = secrets_new();
    struct provider_job job = {
        .in = of->config, .secrets = secrets, .ttl_ms = of->ttl_ms, .why = map_new()};
    int rc = providers_resolve(of->providers, &job, out, err);

    log_hide(secrets); /* also after a failure: some may have been read */
    secrets_free(&secrets);
    if (rc == 0 && of->tell)
        tell_left(of, out, job.why);
    map_free(&job.why, free);
    return rc;
}

static void restore(const struct props *raw, struct props *task, const struct props_entry *entry)
{
    const struct props_entry *own = props_find(raw, entry->key);
    char *hidden;

    if (own != NULL && config_ref_any(own->value)) {
        mr_assert(props_set(task, entry->key, own->value) == 0);
    } else if (entry->value != NULL &&
               (own == NULL || own->value == NULL || strcmp(own->value, entry->value) != 0)) {
        hidden = log_hidden(entry->value);
        if (hidden != NULL)
            mr_assert(props_set(task, entry->key, hidden) == 0);
        free(hidden);
    }
}

void host_references_restore(const struct props *raw, struct props *task)
{
    for (size_t i = 0; i < task->count; i++)
        restore(raw, task, &task->entries[i]);
}
