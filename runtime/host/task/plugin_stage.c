/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, starts and stops the plugins that a pipeline is made of, whatever their kind. Called by pipeline.c and transform_chain.c
 * at a task's start and end, on its thread; what their slots do in between is theirs to call. */
#include "host/task/plugin_stage.h"

#include <stdlib.h>

typedef int (*start_slot)(void *self, struct mr_task *task, struct mr_error *err);
typedef void (*stop_slot)(void *self);
typedef int (*check_slot)(const struct mr_host *host, const char *key, const char *shown,
                          const char *value, struct mr_error *err);

static start_slot start_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_CONVERTER   ? plugin->converter.start
           : plugin->kind == MR_PLUGIN_TRANSFORM ? plugin->transform.start
                                                 : plugin->predicate.start;
}

static stop_slot stop_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_CONVERTER   ? plugin->converter.stop
           : plugin->kind == MR_PLUGIN_TRANSFORM ? plugin->transform.stop
                                                 : plugin->predicate.stop;
}

static check_slot check_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_TRANSFORM   ? plugin->transform.check
           : plugin->kind == MR_PLUGIN_PREDICATE ? plugin->predicate.check
                                                 : NULL;
}

/* A negative code always has a text. */
static int said(int rc, const char *slot, struct mr_error *err)
{
    if (rc >= 0)
        return MR_OK;
    if (err->code != 0)
        return rc;
    return mr_fail(err, rc, "%s() failed with %s and no text", slot, err_code_name(rc));
}

static int check_one(check_slot check, const struct mr_config_key *key, const char *value,
                     const char *shown, struct mr_error *err)
{
    char *name = NULL;
    int rc;

    if (asprintf(&name, "%s%s", shown, key->name) < 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for the name of a key");
    rc = said(check(&host_api_table, key->name, name, value, err), "check", err);
    free(name);
    return rc;
}

static int check_values(const struct plugin *plugin, const struct props *config, const char *shown,
                        struct mr_error *err)
{
    check_slot check = check_of(plugin);
    int rc = MR_OK;

    for (size_t i = 0; check != NULL && rc == MR_OK && i < plugin->key_count; i++) {
        const char *value = props_get(config, plugin->keys[i].name);

        if (value == NULL)
            value = plugin->keys[i].fallback;
        if (value != NULL)
            rc = check_one(check, &plugin->keys[i], value, shown, err);
    }
    return rc;
}

int plugin_stage_check(const struct plugin_stage *stage, struct mr_error *err)
{
    if (!stage->ready || stage->inst.misuse.code == 0)
        return MR_OK;
    err_clear(err);
    return mr_fail(err, MR_ERR_FATAL, "%s", stage->inst.misuse.text);
}

int plugin_stage_start(struct plugin_stage *stage, const struct stage_owner *owner,
                       const struct plugin *plugin, const struct props *config, const char *shown,
                       struct mr_error *err)
{
    start_slot start = start_of(plugin);
    int rc = instance_init(&stage->inst, plugin, config, err);

    if (rc != MR_OK)
        return rc;
    stage->plugin = plugin;
    stage->ready = true;
    stage->inst.stop_fd = owner->stop_fd;
    stage->inst.connector = owner->connector;
    stage->inst.task = owner->task;
    rc = check_values(plugin, config, shown, err);
    if (rc != MR_OK)
        return rc;
    stage->started = true; /* stop is called also when start fails */
    if (start != NULL)
        rc = said(start(stage->inst.self, &stage->inst.pub, err), "start", err);
    return stage->inst.misuse.code != 0 ? plugin_stage_check(stage, err) : rc;
}

void plugin_stage_stop(struct plugin_stage *stage)
{
    if (stage->started && stop_of(stage->plugin) != NULL)
        stop_of(stage->plugin)(stage->inst.self);
    if (stage->ready)
        instance_deinit(&stage->inst);
    *stage = (struct plugin_stage){0};
}
