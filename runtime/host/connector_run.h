/* SPDX-License-Identifier: Apache-2.0 */
/* The connector thread: loads the library, holds the connector's instance, asks it for task
 * configurations. Plugin code may do anything there, so control only queues commands and hears of
 * what came of them. */
#ifndef HOST_CONNECTOR_RUN_H
#define HOST_CONNECTOR_RUN_H

#include "base/json.h"
#include "host/plugin_load.h"
#include "link/black_box.h"
#include "model/state.h"

struct connector_run;

/* All are called on the connector thread, and must only post. */
struct connector_run_events {
    /* The library is open and the configuration fits: tasks may start. Before the first status. */
    void (*loaded)(void *arg, struct connector_run *run, const struct plugin *plugin);
    /* trace, version: NULL none. FAILED before `loaded` means that no task can start. */
    void (*status)(void *arg, struct connector_run *run, enum state state, const char *trace,
                   const char *version);
    /* configs (taken) is an array of objects; else error says why not. */
    void (*task_configs)(void *arg, struct connector_run *run, json_t *configs, const char *error);
    /* What the configuration's references stand for has changed since what runs here was
     * started. */
    void (*stale)(void *arg, struct connector_run *run);
    /* The thread's last act: connector_run_free may be called. Not called while plugin code
     * hangs. */
    void (*ended)(void *arg, struct connector_run *run);
};

struct connector_run_spec {
    const char *name; /* texts and config are copied */
    const char *library;
    const char *class_name;
    const struct props *config;
    const struct props *worker;        /* borrowed for the process's life; NULL: no settings */
    const struct providers *providers; /* the same; NULL: none */
    enum target_state target;
    bool tasks_only; /* open the library for tasks; no status but FAILED before the first target */
    struct black_box *box;
    size_t box_slot;
    const struct connector_run_events *events;
    void *arg;
};

/* The thread runs when this returns. */
struct connector_run *connector_run_new(const struct connector_run_spec *spec,
                                        struct mr_error *err);

/* Queue a command. MR_ERR_FULL: the thread hangs in plugin code and enough is waiting. */
int connector_run_target(struct connector_run *run, enum target_state target);
int connector_run_task_configs(struct connector_run *run, int max); /* answered by task_configs */
void connector_run_end(struct connector_run *run); /* `ended` follows what is queued */

void connector_run_free(struct connector_run **run); /* after `ended` */

#endif
