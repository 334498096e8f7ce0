/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the plugins behind what is not built in of config.providers.*.class and
 * rest.extension.classes, and has them served: filters first, so that no provider can take the name
 * of one. The worker's own properties may ask them for values, so a worker with such a plugin looks
 * at all plugins before everything else is read, and keeps what it found (config->found).
 * plugin.path is taken as it is written, as in Java. */
#define LOGGER "worker.config"
#include "worker/worker_services.h"

#include "base/log.h"
#include "base/provider_kind.h"
#include "base/text.h"
#include "model/config_def.h"
#include "worker/rest/rest_auth.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/services.h"

#include <stdlib.h>

#define EXE "/proc/self/exe" /* right also after an upgrade replaced the file */
#define PATIENCE_KEY "millrace.services.timeout.ms"
#define PATIENCE_MS 10000
#define SPECS_MAX 96

/* What is gathered for services_new. */
struct gathering {
    struct worker_config *config;
    const struct catalog *catalog;
    struct services_spec specs[SPECS_MAX];
    struct props params[SPECS_MAX];
    size_t count;
    int rc;
    struct mr_error *err;
};

/* In the words for a class that is not built in either. */
static int refuse_provider(const struct gathering *g, const char *name, const char *class_name)
{
    struct mr_error why = {0};
    struct props none;
    char where[512], *key = NULL;
    struct provider *provider;

    props_init(&none);
    provider = provider_kind_new(class_name, &none, false, &why);
    mr_assert(provider == NULL && asprintf(&key, "config.providers.%s.class", name) > 0);
    worker_config_where(g->config, key, where, sizeof(where));
    mr_fail(g->err, MR_ERR_CONFIG, "%sInvalid value %.200s for configuration %s: %s", where,
            class_name, key, why.text);
    free(key);
    return MR_ERR_CONFIG;
}

static bool is_named_before(const struct gathering *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->specs[i].name, name) == 0)
            return true;
    return false;
}

/* name, what: taken. */
static void add_take(struct gathering *g, char *name, char *what, const char *prefix,
                     const struct catalog_plugin *plugin)
{
    props_init(&g->params[g->count]);
    mr_assert(props_subset(&g->config->props, prefix, &g->params[g->count]) == 0);
    g->specs[g->count] = (struct services_spec){.name = name,
                                                .what = what,
                                                .library = plugin->library,
                                                .class_name = plugin->name,
                                                .kind = plugin->kind,
                                                .params = &g->params[g->count]};
    g->count++;
}

static void gather_provider(void *arg, const char *name, const char *class_name)
{
    struct gathering *g = arg;
    const struct catalog_plugin *plugin =
        catalog_find(g->catalog, MR_PLUGIN_CONFIG_PROVIDER, class_name);
    char *prefix = NULL, *what = NULL;

    if (g->rc != 0 || g->count == SPECS_MAX || is_named_before(g, name))
        return;
    if (plugin == NULL) {
        g->rc = refuse_provider(g, name, class_name);
        return;
    }
    mr_assert(asprintf(&prefix, "config.providers.%s.param.", name) > 0 &&
              asprintf(&what, "config provider %s", name) > 0);
    add_take(g, text_dup(name), what, prefix, plugin);
    free(prefix);
}

static int refuse_filter(const struct gathering *g, const char *class_name)
{
    char where[512];

    worker_config_where(g->config, "rest.extension.classes", where, sizeof(where));
    return mr_fail(g->err, MR_ERR_CONFIG,
                   "%sInvalid value %.200s for configuration rest.extension.classes: no plugin in "
                   "plugin.path is a REST filter of this name, and built in is "
                   "org.apache.kafka.connect.rest.basic.auth.extension."
                   "BasicAuthSecurityRestExtension",
                   where, class_name);
}

static void gather_filter(void *arg, const char *class_name)
{
    struct gathering *g = arg;
    const struct catalog_plugin *plugin =
        catalog_find(g->catalog, MR_PLUGIN_REST_FILTER, class_name);
    char *name = NULL, *what = NULL;

    if (g->rc != 0 || g->count == SPECS_MAX)
        return;
    if (plugin == NULL) {
        g->rc = refuse_filter(g, class_name);
        return;
    }
    mr_assert(asprintf(&name, REST_AUTH_FILTER "%s", class_name) > 0 &&
              asprintf(&what, "REST filter %s", class_name) > 0);
    if (is_named_before(g, name)) {
        free(name);
        free(what);
    } else {
        add_take(g, name, what, "millrace.rest.filter.", plugin);
    }
}

static void count_filter(void *arg, const char *class_name)
{
    (void)class_name;
    ++*(size_t *)arg;
}

static void free_gathering(struct gathering *g)
{
    for (size_t i = 0; i < g->count; i++) {
        free((char *)(uintptr_t)g->specs[i].name);
        free((char *)(uintptr_t)g->specs[i].what);
        props_deinit(&g->params[i]);
    }
}

/* A value that is wrong is told with all others, once the file is checked. */
static int64_t patience_ms(const struct props *props)
{
    static const struct mr_config_key key = {PATIENCE_KEY, MR_CFG_LONG, .fallback = NULL};
    struct config_value value = {0};
    int64_t ms = PATIENCE_MS;

    if (config_def_check(&key, props, &value, NULL, NULL) == 0 && value.present && value.i > 0)
        ms = value.i;
    config_value_deinit(&value);
    return ms;
}

static int serve(struct gathering *g, struct mr_error *err)
{
    struct worker_config *config = g->config;

    config->services =
        services_new(&(struct services_options){.exe = EXE,
                                                .specs = g->specs,
                                                .count = g->count,
                                                .patience_ms = patience_ms(&config->props)},
                     err);
    if (config->services == NULL)
        return MR_ERR_IO;
    mr_assert(props_set(&config->props, PROVIDER_SOCKET_KEY, services_socket(config->services)) ==
              0);
    return 0;
}

int worker_services_open(struct worker_config *config, struct mr_error *err)
{
    struct gathering g = {.config = config, .err = err};
    size_t filters = 0;

    services_free(&config->services);
    props_remove(&config->props, PROVIDER_SOCKET_KEY);
    rest_auth_filters(&config->props, count_filter, &filters);
    if (filters == 0 && !providers_foreign(&config->props, NULL, NULL))
        return 0;
    if (config->found == NULL)
        config->found = catalog_scan(EXE, (const char *const *)config->plugin_path, -1, err);
    if (config->found == NULL)
        return err->code;
    g.catalog = config->found;
    rest_auth_filters(&config->props, gather_filter, &g);
    providers_foreign(&config->props, gather_provider, &g);
    if (g.rc == 0)
        g.rc = serve(&g, err);
    free_gathering(&g);
    return g.rc;
}
