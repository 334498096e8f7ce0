/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's properties may ask config providers for values, like connectors' configurations.
 * That is done once, before anything is checked; what was resolved is hidden in the log from then
 * on, and handed to hosts with what stands for it. Providers that plugins bring are started for
 * that. Keys of theirs that lead to nothing are told. Spec:
 * org.apache.kafka.common.config.AbstractConfig.resolveConfigVariables. */
#define LOGGER "worker.config"
#include "worker/worker_references.h"

#include "base/log.h"
#include "base/log_hide.h"
#include "base/nearest.h"
#include "base/provider_kind.h"
#include "base/text.h"
#include "worker/worker_services.h"

#include <stdlib.h>
#include <string.h>

#define PROVIDERS "config.providers."
#define PARAM "param."
#define OWNERS_MAX 64
#define AS_WRITTEN "plugin.path" /* as in Java */

/* --- keys that lead to nothing ---------------------------------------------------------------- */

/* Whose key is this, of what stands below PROVIDERS? NULL: nobody's. */
static const char *owner_of(const struct providers *providers, const char *below)
{
    const char *name;
    bool unset;

    for (size_t i = 0; (name = providers_name(providers, i, &unset)) != NULL; i++)
        if (strncmp(below, name, strlen(name)) == 0 && below[strlen(name)] == '.')
            return name;
    return NULL;
}

static const char *nearest_owner(const struct providers *providers, const char *below)
{
    char *wrong = text_dup_len(below, strcspn(below, "."));
    const char *names[OWNERS_MAX + 1] = {NULL}, *near;
    bool unset;

    for (size_t i = 0; i < OWNERS_MAX; i++)
        if ((names[i] = providers_name(providers, i, &unset)) == NULL)
            break;
    near = nearest_name(wrong, names);
    free(wrong);
    return near;
}

/* What of an owner's keys was meant; NULL: it is one. */
static const char *nearest_part(const struct worker_config *config, const char *owner,
                                const char *part, const char **before)
{
    static const char *const parts[] = {"class", NULL};
    const char *class_name, *param, *near;
    char *key = NULL;

    *before = "";
    if (strcmp(part, "class") == 0)
        return NULL;
    if (strncmp(part, PARAM, sizeof(PARAM) - 1) != 0) {
        near = nearest_name(part, parts);
        *before = near != NULL ? "" : PARAM;
        return near != NULL ? near : part;
    }
    mr_assert(asprintf(&key, PROVIDERS "%s.class", owner) > 0);
    class_name = props_get(&config->props, key);
    param = class_name != NULL ? provider_kind_param(class_name) : NULL;
    free(key);
    *before = PARAM;
    return param != NULL && strcmp(param, part + sizeof(PARAM) - 1) != 0 ? param : NULL;
}

/* A parameter of a plugin's is judged by that (host/service.c). */
static void warn_about(const struct worker_config *config, const char *key)
{
    const char *below = key + sizeof(PROVIDERS) - 1, *before, *near;
    const char *owner = owner_of(config->providers, below);
    char where[512];

    worker_config_where(config, key, where, sizeof(where));
    if (owner == NULL) {
        near = nearest_owner(config->providers, below);
        log_warn("%s%s has no effect: config.providers has no such name%s%s%s", where, key,
                 near != NULL ? ": did you mean " : "", near != NULL ? near : "",
                 near != NULL ? "?" : "");
        return;
    }
    near = nearest_part(config, owner, below + strlen(owner) + 1, &before);
    if (near != NULL)
        log_warn("%sunknown key %s: did you mean " PROVIDERS "%s.%s%s?", where, key, owner, before,
                 near);
}

static void warn(const struct worker_config *config)
{
    const char *name;
    char where[512];
    bool unset;

    worker_config_where(config, "config.providers", where, sizeof(where));
    for (size_t i = 0; (name = providers_name(config->providers, i, &unset)) != NULL; i++)
        if (unset)
            log_warn("%sconfig.providers names %s, but " PROVIDERS
                     "%s.class is not set: references to it stay as they are",
                     where, name, name);
    for (size_t i = 0; i < config->props.count; i++) {
        const char *key = config->props.entries[i].key;

        if (strncmp(key, PROVIDERS, sizeof(PROVIDERS) - 1) == 0 &&
            strcmp(key, PROVIDER_SOCKET_KEY) != 0)
            warn_about(config, key);
    }
}

/* --- values ----------------------------------------------------------------------------------- */

/* Those that lead to nothing are taken as they are written, as in Java. */
static void tell_left(const struct worker_config *config, const struct props *resolved,
                      const struct map *why)
{
    char where[512];

    for (size_t i = 0; i < config->props.count; i++) {
        const struct props_entry *entry = &config->props.entries[i];
        char *left = strcmp(entry->key, AS_WRITTEN) != 0
                         ? providers_left(config->providers, entry->value,
                                          props_get(resolved, entry->key), why)
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
                               .why = map_new()};
    struct props resolved;
    int rc = providers_resolve(config->providers, &job, &resolved, err);

    if (rc != 0) {
        worker_config_where(config, key, where, sizeof(where));
        err_prefix(err, "%s%s", where, key);
    } else {
        tell_left(config, &resolved, job.why);
        props_deinit(&config->props);
        config->props = resolved;
        log_hide(config->secrets);
    }
    map_free(&job.why, free);
    return rc;
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
    warn(config);
    settings_of_services(config, &before);
    rc = resolve(config, err);
    settings_of_services(config, &after);
    if (rc == 0 && !props_equal(&before, &after))
        rc = worker_services_open(config, err);
    props_deinit(&before);
    props_deinit(&after);
    return rc == 0 ? open_providers(config, err) : rc;
}
