/* SPDX-License-Identifier: Apache-2.0 */
/* REST and the config topic set levels of loggers: both come here, on the loop. The levels
 * themselves are base/log_levels.c's; each host is sent all of them after a change, and has them
 * from its birth. */
#define LOGGER "worker.herder"
#include "base/log_levels.h"
#include "worker/herder/log_control.h"

#include <stdlib.h>
#include <string.h>

static json_t *show(const struct log_logger *logger)
{
    return json_pack("{s:s, s:o}", "level", log_level_name(logger->level), "last_modified",
                     logger->modified_ms > 0 ? json_integer(logger->modified_ms) : json_null());
}

json_t *log_control_list(void)
{
    size_t count = 0;
    struct log_logger *list = log_levels_list(&count);
    json_t *out = json_object();

    for (size_t i = 0; i < count; i++)
        json_object_set_new(out, list[i].name, show(&list[i]));
    free(list);
    return out;
}

json_t *log_control_get(const char *name)
{
    struct log_logger logger;

    return log_levels_get(name, &logger) ? show(&logger) : NULL;
}

json_t *log_control_set(struct supervisor *sup, const char *name, enum log_level level,
                        struct mr_error *err)
{
    const char **changed = NULL;
    size_t count = 0;
    json_t *out;

    if (log_levels_set(name, level, &changed, &count, err) != 0)
        return NULL;
    out = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(out, json_string(changed[i]));
    free(changed);
    log_info("level %s for %s and what begins with it; loggers changed: %zu", log_level_name(level),
             name, count);
    if (count > 0)
        supervisor_log_levels(sup);
    return out;
}

void log_control_heard(struct supervisor *sup, const char *name, const char *level)
{
    enum log_level parsed;
    struct mr_error err = {0};

    if (!log_control_level(level, &parsed))
        mr_fail(&err, MR_ERR_DATA, "no such level");
    else
        json_decref(log_control_set(sup, name, parsed, &err));
    if (err.code != 0)
        log_error("the config topic asks for level %s of logger %s: %s", level, name, err.text);
}

bool log_control_level(const char *text, enum log_level *out)
{
    char name[16];
    size_t len;

    while (*text != '\0' && (unsigned char)*text <= ' ')
        text++;
    for (len = strlen(text); len > 0 && (unsigned char)text[len - 1] <= ' '; len--)
        ;
    if (len >= sizeof(name))
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    return log_level_from(name, out);
}
