/* SPDX-License-Identifier: Apache-2.0 */
/* Levels by the names of loggers, as one tree: a logger without a level of its own has that of the
 * nearest name above it ("a.b" of "a.b.c"), at last root's. A logger may have two names, the one
 * that its lines show and one that others know it by; a level that is set by either holds for both.
 * The logger "connector.NAME", once it was given a level, decides by itself for all lines that are
 * about that connector. Any thread; a lock of its own, held for moments. Loggers are never removed.
 * Spec: org.apache.kafka.connect.runtime.Loggers. */
#ifndef BASE_LOG_LEVELS_H
#define BASE_LOG_LEVELS_H

#include "base/log.h"

#define LOG_LEVELS_ROOT "root"            /* in any case */
#define LOG_LEVELS_CONNECTOR "connector." /* and the connector's name */
#define LOG_LEVELS_MAX 4096               /* loggers */
#define LOG_LEVELS_NAME_MAX 1024          /* bytes of a name */

/* One name of a logger. name: valid for the process's life. modified_ms: wall clock, when
 * log_levels_set last changed it; 0 never. */
struct log_logger {
    const char *name;
    enum log_level level;
    int64_t modified_ms;
};

/* There is such a logger; its level is what it inherits. Copied; also_called: NULL none. Again:
 * nothing new. */
void log_levels_declare(const char *name, const char *also_called);

bool log_levels_get(const char *name, struct log_logger *out); /* false: no such logger */

/* All names, in order. Free the array. Aborts out of memory. */
struct log_logger *log_levels_list(size_t *count);

/* Every logger of which a name begins with prefix (any text, not only whole parts), and one of just
 * that name, which is made where there is none; root means all. *changed: the names whose level is
 * another now, in order; the caller frees the array. MR_ERR_FULL, MR_ERR_TOO_LARGE (the name):
 * nothing was set. */
int log_levels_set(const char *prefix, enum log_level level, const char ***changed, size_t *count,
                   struct mr_error *err);

/* One logger by its name, made if need be: what a worker tells its hosts. What does not fit is left
 * out. */
void log_levels_give(const char *name, enum log_level level);

void log_levels_reset(enum log_level level); /* all of them, as if never modified: the start */

/* Is a line of this level to be written? connector: NULL none. */
bool log_levels_admit(enum log_level level, const char *logger, const char *connector);

#endif
