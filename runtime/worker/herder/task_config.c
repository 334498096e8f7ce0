/* SPDX-License-Identifier: Apache-2.0 */
/* Completes task configurations before they are stored, so that a Java worker which takes a task
 * over finds what it expects. Called by whoever stores them (standalone.c,
 * cluster/task_writer.c). Pure. */
#include "worker/herder/task_config.h"

#include "worker/supervisor/catalog.h"

#include <stdlib.h>
#include <string.h>

/* The class of a connector's tasks: nothing reads it here, but it is part of the format. */
static void add_class(const struct catalog_plugin *plugin, struct props *task)
{
    static const char suffix[] = "Connector";
    size_t len = strlen(plugin->java_class), end = sizeof(suffix) - 1;
    char *name = NULL;

    if (len > end && strcmp(plugin->java_class + len - end, suffix) == 0)
        len -= end;
    mr_assert(asprintf(&name, "%.*sTask", (int)len, plugin->java_class) > 0);
    mr_assert(props_set(task, "task.class", name) == 0);
    free(name);
}

static void add_topics(const struct props *connector, struct props *task)
{
    static const char *const keys[] = {"topics", "topics.regex"};

    for (size_t i = 0; i < 2; i++) {
        const char *value = props_get(connector, keys[i]);

        if (value != NULL)
            mr_assert(props_set(task, keys[i], value) == 0);
    }
}

void task_config_complete(struct props *task, const struct catalog_plugin *plugin,
                          const struct props *connector)
{
    add_class(plugin, task);
    if (plugin->kind == MR_PLUGIN_SINK)
        add_topics(connector, task);
}
