/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, starts and stops the plugins that a pipeline is made of, whatever their kind. Called by
 * pipeline.c and transform_chain.c at a task's start and end, on its thread; what their slots do in
 * between is theirs to call. */
#include "host/task/stages/plugin_stage.h"

#include "model/config_def.h"

#include <stdlib.h>
#include <string.h>

typedef int (*start_slot)(void *self, struct mr_task *task, struct mr_error *err);
typedef void (*stop_slot)(void *self);
typedef int (*check_slot)(const struct mr_task *config, const char *key, const char *shown,
                          struct mr_error *err);

static start_slot start_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_TRANSFORM   ? plugin->transform.start
           : plugin->kind == MR_PLUGIN_PREDICATE ? plugin->predicate.start
                                                 : plugin->converter.start; /* of either kind */
}

static stop_slot stop_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_TRANSFORM   ? plugin->transform.stop
           : plugin->kind == MR_PLUGIN_PREDICATE ? plugin->predicate.stop
                                                 : plugin->converter.stop;
}

static check_slot check_of(const struct plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_TRANSFORM   ? plugin->transform.check
           : plugin->kind == MR_PLUGIN_PREDICATE ? plugin->predicate.check
           : plugin->kind == MR_PLUGIN_SOURCE    ? plugin->source.check
           : plugin->kind == MR_PLUGIN_SINK      ? plugin->sink.check
                                                 : NULL;
}

bool plugin_stage_checks(const struct plugin *plugin)
{
    return check_of(plugin) != NULL;
}

/* A negative code always has a text. */
static int said(int rc, const char *slot, struct mr_error *err)
{
    if (rc >= 0)
        return MR_OK;
    return err->code != 0 ? rc : err_without_text(err, rc, slot);
}

int plugin_stage_judge(const struct instance *inst, const char *key, const char *shown,
                       struct mr_error *err)
{
    check_slot check = check_of(inst->plugin);

    for (size_t i = 0; check != NULL && i < inst->plugin->key_count; i++)
        if (strcmp(inst->plugin->keys[i].name, key) == 0 &&
            (inst->values[i].present || (inst->plugin->keys[i].flags & MR_CFG_CHECK_NULL) != 0))
            return said(check(&inst->pub, key, shown, err), "check", err);
    return MR_OK;
}

static int check_one(const struct instance *inst, const char *key, const char *prefix,
                     struct mr_error *err)
{
    char *shown = NULL;
    int rc;

    if (asprintf(&shown, "%s%s", prefix, key) < 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for the name of a key");
    rc = plugin_stage_judge(inst, key, shown, err);
    free(shown);
    return rc;
}

static int check_values(const struct instance *inst, const char *prefix, struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; rc == MR_OK && i < inst->plugin->key_count; i++)
        rc = check_one(inst, inst->plugin->keys[i].name, prefix, err);
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
    rc = check_values(&stage->inst, shown, err);
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
