/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of loggers as REST sets them: here, and in every host of this worker. Loop thread.
 * Spec: org.apache.kafka.connect.runtime.Herder.workerLoggers and what follows there. */
#ifndef WORKER_LOG_CONTROL_H
#define WORKER_LOG_CONTROL_H

#include "base/json.h"
#include "base/log.h"
#include "worker/supervisor/supervisor.h"

/* {"root": {"level", "last_modified"}, …}, sorted; new reference. */
json_t *log_control_list(void);
json_t *log_control_get(const char *name); /* {"level", "last_modified"}; NULL: no such logger */

/* Names of those whose level is another now, sorted; NULL with err. */
json_t *log_control_set(struct supervisor *sup, const char *name, enum log_level level,
                        struct mr_error *err);
/* The same for what a record of the config topic says; a level that is none is logged. */
void log_control_heard(struct supervisor *sup, const char *name, const char *level);

/* "debug", " WARN ": a level as Java reads it. */
bool log_control_level(const char *text, enum log_level *out);

#endif
