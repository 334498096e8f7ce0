/* SPDX-License-Identifier: Apache-2.0 */
/* The states of connectors and tasks, by Kafka Connect's names. Pure. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include <stdbool.h>

enum state {
    STATE_UNASSIGNED,
    STATE_RUNNING,
    STATE_PAUSED,
    STATE_STOPPED, /* connectors only */
    STATE_FAILED,
    STATE_RESTARTING
};

enum target_state { TARGET_STARTED, TARGET_PAUSED, TARGET_STOPPED };

const char *state_name(enum state s); /* "RUNNING" */
bool state_from(const char *name, enum state *out);
const char *target_state_name(enum target_state s); /* "STARTED", as in the config topic */
bool target_state_from(const char *name, enum target_state *out);
/* initial_state of POST /connectors: RUNNING, PAUSED, STOPPED in any case. */
bool target_state_from_initial(const char *name, enum target_state *out);

#endif
