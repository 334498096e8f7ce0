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

#include <stdlib.h>
#include <string.h>

static void on_remark(void *arg, const char *text)
{
    (void)arg;
    log_warn("%s", text);
}

int host_references_resolve(const struct providers *providers, const struct props *config,
                            int64_t *ttl_ms, struct props *out, struct mr_error *err)
{
    struct secrets *secrets = secrets_new();
    struct provider_job job = {
        .in = config, .secrets = secrets, .ttl_ms = ttl_ms, .remark = on_remark};
    int rc = providers_resolve(providers, &job, out, err);

    log_hide(secrets); /* also after a failure: some may have been read */
    secrets_free(&secrets);
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
