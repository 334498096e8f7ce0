/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's properties may ask config providers for values, like connectors' configurations.
 * That is done once, before anything is checked; what was resolved is hidden in the log from then
 * on, and handed to hosts with what stands for it. Providers that plugins bring are started for
 * that. Spec:
 * org.apache.kafka.common.config.AbstractConfig.resolveConfigVariables. */
#define LOGGER "worker.config"
#include "worker/worker_references.h"

#include "base/log.h"
#include "base/log_hide.h"
#include "worker/worker_services.h"

#include <stdlib.h>
#include <string.h>

#define AS_WRITTEN "plugin.path" /* as in Java */

static void on_remark(void *arg, const char *text)
{
    const struct worker_config *config = arg;

    log_warn("%s: %s", config->path, text);
}

/* Those that lead to nothing are taken as they are written, as in Java. */
static void tell_left(const struct worker_config *config, const struct props *resolved)
{
    char where[512];

    for (size_t i = 0; i < config->props.count; i++) {
        const struct props_entry *entry = &config->props.entries[i];
        char *left =
            strcmp(entry->key, AS_WRITTEN) != 0
                ? providers_left(config->providers, entry->value, props_get(resolved, entry->key))
                : NULL;

        if (left != NULL) {
            worker_config_where(config, entry->key, where, sizeof(where));
            log_warn("%s%s %s", where, entry->key, left);
        }
        free(left);
    }
}

static int resolve(struct worker_config *config, struct mr_error *err)
{
    const char *key = NULL;
    char where[512];
    struct provider_job job = {.in = &config->props,
                               .except = AS_WRITTEN,
                               .secrets = config->secrets,
                               .failed = &key,
                               .remark = on_remark,
                               .arg = config};
    struct props resolved;
    int rc = providers_resolve(config->providers, &job, &resolved, err);

    if (rc != 0) {
        worker_config_where(config, key, where, sizeof(where));
        err_prefix(err, "%s%s", where, key);
        return rc;
    }
    tell_left(config, &resolved);
    props_deinit(&config->props);
    config->props = resolved;
    log_hide(config->secrets);
    return 0;
}

static int open_providers(struct worker_config *config, struct mr_error *err)
{
    struct mr_error why = {0};
    char where[512], *key = NULL;
    int rc = 0;

    providers_free(&config->providers);
    config->providers = providers_new(&config->props, true, &key, &why);
    if (config->providers == NULL) {
        worker_config_where(config, key != NULL ? key : "config.providers", where, sizeof(where));
        rc = mr_fail(err, MR_ERR_CONFIG, "%s%s", where, why.text);
    }
    free(key);
    return rc;
}

/* What services are made of. */
static void settings_of_services(const struct worker_config *config, struct props *out)
{
    props_init(out);
    mr_assert(props_subset(&config->props, "config.providers", out) == 0 &&
              props_subset(&config->props, "rest.extension.", out) == 0 &&
              props_subset(&config->props, "millrace.rest.filter", out) == 0);
}

/* A provider's own parameters may come from another one, so those that connectors have are made
 * anew, and services where these have changed. */
int worker_references_resolve(struct worker_config *config, struct mr_error *err)
{
    struct props before, after;
    int rc = worker_services_open(config, err);

    if (rc == 0)
        rc = open_providers(config, err);
    if (rc != 0)
        return rc;
    settings_of_services(config, &before);
    rc = resolve(config, err);
    settings_of_services(config, &after);
    if (rc == 0 && !props_equal(&before, &after))
        rc = worker_services_open(config, err);
    props_deinit(&before);
    props_deinit(&after);
    return rc == 0 ? open_providers(config, err) : rc;
}
