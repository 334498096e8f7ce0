/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines are written, by logger. log.c asks here before it builds a line; REST lists and sets;
 * a host is given what its worker has.
 *
 * Two atomics stand before the lock: a line below the lowest level of all is dropped, one that
 * reaches the highest is written, so as long as all loggers have one level, which is nearly always,
 * nobody looks anything up. The tree has no links: what lies above a name is found by cutting it at
 * its dots. Part of the logger, so one of the few globals (style 7). */
#include "base/log_levels.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAMES 2

struct logger {
    char *names[NAMES]; /* the second may be NULL */
    enum log_level level;
    int64_t modified_ms;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *by_name; /* under lock: name → struct logger; both names */
static struct logger
    *loggers[LOG_LEVELS_MAX]; /* under lock: in the order in which they came; [0] is root */
static size_t logger_count;
static size_t connector_count; /* of them that are connectors */
static atomic_int lowest = LOG_INFO, highest = LOG_INFO;

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_connector(const char *name)
{
    return strncmp(name, LOG_LEVELS_CONNECTOR, sizeof(LOG_LEVELS_CONNECTOR) - 1) == 0;
}

static struct logger *add(const char *name, enum log_level level)
{
    struct logger *logger = calloc(1, sizeof(*logger));

    mr_assert(logger != NULL && logger_count < LOG_LEVELS_MAX);
    *logger = (struct logger){.names = {text_dup(name)}, .level = level};
    loggers[logger_count++] = logger;
    connector_count += is_connector(name) ? 1 : 0;
    map_set(by_name, name, logger);
    return logger;
}

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
    if (by_name == NULL) {
        by_name = map_new();
        add(LOG_LEVELS_ROOT, (enum log_level)atomic_load(&lowest));
    }
}

static struct logger *find(const char *name)
{
    return strcasecmp(name, LOG_LEVELS_ROOT) == 0 ? loggers[0] : map_get(by_name, name);
}

/* The logger itself, or the nearest above it. A connector's name is no tree. */
static const struct logger *nearest(const char *name)
{
    char above[LOG_LEVELS_NAME_MAX + 1];
    const struct logger *found = map_get(by_name, name);
    char *dot;

    if (found != NULL || is_connector(name) || strlen(name) >= sizeof(above))
        return found != NULL ? found : loggers[0];
    snprintf(above, sizeof(above), "%s", name);
    while (found == NULL && (dot = strrchr(above, '.')) != NULL) {
        *dot = '\0';
        found = map_get(by_name, above);
    }
    return found != NULL ? found : loggers[0];
}

/* --- setting ---------------------------------------------------------------------------------- */

static void set_bounds(void)
{
    int low = LOG_OFF, high = LOG_ALL;

    for (size_t i = 0; i < logger_count && loggers[i] != NULL; i++) {
        int level = loggers[i]->level;

        low = level < low ? level : low;
        high = level > high ? level : high;
    }
    atomic_store(&lowest, low);
    atomic_store(&highest, high);
}

static bool begins(const char *name, const char *prefix)
{
    return name != NULL && strncmp(name, prefix, strlen(prefix)) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Set one; the names of it that were meant are noted if that changed something. */
static size_t change(struct logger *logger, const char *prefix, enum log_level level,
                     const char **changed)
{
    size_t count = 0;

    if (logger->level == level)
        return 0;
    logger->level = level;
    logger->modified_ms = clock_wall_ms();
    for (size_t n = 0; n < NAMES; n++)
        if (logger->names[n] != NULL && (prefix == NULL || begins(logger->names[n], prefix)))
            changed[count++] = logger->names[n];
    return count;
}

static int change_all(const char *prefix, enum log_level level, const char ***changed,
                      size_t *count, struct mr_error *err)
{
    const char **names;
    size_t n = 0;

    if (prefix != NULL && find(prefix) == NULL) {
        if (logger_count >= LOG_LEVELS_MAX)
            return mr_fail(err, MR_ERR_FULL, "There are %d loggers already, and no room for more",
                           LOG_LEVELS_MAX);
        add(prefix, nearest(prefix)->level);
    }
    names = calloc(logger_count * NAMES, sizeof(*names));
    mr_assert(names != NULL);
    for (size_t i = 0; i < logger_count; i++)
        if (prefix == NULL || begins(loggers[i]->names[0], prefix) ||
            begins(loggers[i]->names[1], prefix))
            n += change(loggers[i], prefix, level, names + n);
    qsort(names, n, sizeof(*names), compare_names);
    *changed = names;
    *count = n;
    return 0;
}

/* --- the doors -------------------------------------------------------------------------------- */

void log_levels_declare(const char *name, const char *also_called)
{
    struct logger *logger, *twin;

    take_lock();
    logger = find(name);
    twin = also_called != NULL ? find(also_called) : NULL;
    if (logger == NULL && twin != NULL)
        logger = twin;
    else if (logger == NULL && logger_count < LOG_LEVELS_MAX)
        logger = add(name, nearest(also_called != NULL ? also_called : name)->level);
    if (logger != NULL && logger->names[1] == NULL && logger != loggers[0] &&
        (logger == twin || (also_called != NULL && twin == NULL))) {
        logger->names[1] = text_dup(logger == twin ? name : also_called);
        map_set(by_name, logger->names[1], logger);
    }
    set_bounds();
    pthread_mutex_unlock(&lock);
}

bool log_levels_get(const char *name, struct log_logger *out)
{
    const struct logger *logger;

    take_lock();
    logger = find(name);
    if (logger != NULL)
        *out = (struct log_logger){logger->names[0], logger->level, logger->modified_ms};
    pthread_mutex_unlock(&lock);
    return logger != NULL;
}

static int compare_loggers(const void *a, const void *b)
{
    return strcmp(((const struct log_logger *)a)->name, ((const struct log_logger *)b)->name);
}

struct log_logger *log_levels_list(size_t *count)
{
    struct log_logger *list;
    size_t n = 0;

    take_lock();
    list = calloc(logger_count * NAMES, sizeof(*list));
    mr_assert(list != NULL);
    for (size_t i = 0; i < logger_count; i++)
        for (size_t k = 0; k < NAMES; k++)
            if (loggers[i]->names[k] != NULL)
                list[n++] = (struct log_logger){loggers[i]->names[k], loggers[i]->level,
                                                loggers[i]->modified_ms};
    pthread_mutex_unlock(&lock);
    qsort(list, n, sizeof(*list), compare_loggers);
    *count = n;
    return list;
}

int log_levels_set(const char *prefix, enum log_level level, const char ***changed, size_t *count,
                   struct mr_error *err)
{
    bool all = strcasecmp(prefix, LOG_LEVELS_ROOT) == 0;
    int rc;

    if (strlen(prefix) > LOG_LEVELS_NAME_MAX)
        return mr_fail(err, MR_ERR_TOO_LARGE, "The name of a logger has at most %d bytes",
                       LOG_LEVELS_NAME_MAX);
    take_lock();
    rc = change_all(all ? NULL : prefix, level, changed, count, err);
    set_bounds();
    pthread_mutex_unlock(&lock);
    return rc;
}

void log_levels_give(const char *name, enum log_level level)
{
    struct logger *logger;

    take_lock();
    logger = find(name);
    if (logger == NULL && logger_count < LOG_LEVELS_MAX && strlen(name) <= LOG_LEVELS_NAME_MAX)
        logger = add(name, level);
    if (logger != NULL)
        logger->level = level;
    set_bounds();
    pthread_mutex_unlock(&lock);
}

void log_levels_reset(enum log_level level)
{
    take_lock();
    for (size_t i = 0; i < logger_count; i++) {
        loggers[i]->level = level;
        loggers[i]->modified_ms = 0;
    }
    set_bounds();
    pthread_mutex_unlock(&lock);
}

static enum log_level level_for(const char *logger, const char *connector)
{
    char name[LOG_LEVELS_NAME_MAX + 1];
    const struct logger *found = NULL;

    if (connector != NULL && connector_count > 0 &&
        (size_t)snprintf(name, sizeof(name), LOG_LEVELS_CONNECTOR "%s", connector) < sizeof(name))
        found = map_get(by_name, name);
    return found != NULL ? found->level : nearest(logger)->level;
}

bool log_levels_admit(enum log_level level, const char *logger, const char *connector)
{
    bool admitted;

    if ((int)level < atomic_load(&lowest))
        return false;
    if ((int)level >= atomic_load(&highest))
        return true;
    take_lock();
    admitted = level >= level_for(logger, connector);
    pthread_mutex_unlock(&lock);
    return admitted;
}
