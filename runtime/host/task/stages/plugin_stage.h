/* SPDX-License-Identifier: Apache-2.0 */
/* One converter, transform or predicate of a task, from start to stop. Owner: the task's thread. */
#ifndef HOST_PLUGIN_STAGE_H
#define HOST_PLUGIN_STAGE_H

#include "host/host_api.h"

/* Zeroed before use. */
struct plugin_stage {
    const struct plugin *plugin; /* NULL: nothing is here */
    struct instance inst;
    bool ready;   /* inst is initialised */
    bool started; /* the plugin's start was called: stop must be */
};

/* Whose it is: for its handle. Borrowed. */
struct stage_owner {
    const char *connector;
    int task;
    int stop_fd;
};

/* Make an instance of plugin by config (its own, without prefix), check it and start it. shown: the
 * prefix of its keys, for texts of its own checks. plugin_stage_stop is due also after a
 * failure. */
int plugin_stage_start(struct plugin_stage *stage, const struct stage_owner *owner,
                       const struct plugin *plugin, const struct props *config, const char *shown,
                       struct mr_error *err);
void plugin_stage_stop(struct plugin_stage *stage);

/* Has it a check of its own? A plugin of any kind. */
bool plugin_stage_checks(const struct plugin *plugin);

/* Has the plugin's own check anything against the value of a key? shown: how its text is to name
 * it. MR_OK also when it has no check, or the key no value. */
int plugin_stage_judge(const struct instance *inst, const char *key, const char *shown,
                       struct mr_error *err);

/* It broke a rule of the host's: MR_ERR_FATAL with what. */
int plugin_stage_check(const struct plugin_stage *stage, struct mr_error *err);

#endif
