/* SPDX-License-Identifier: Apache-2.0 */
/* Names of states, in both directions. Used by the link's frames, by REST bodies and (later) by the
 * status and config topics, so the spelling is Kafka Connect's to the letter. Pure; any thread.
 * Spec: AbstractStatus.State, TargetState, CreateConnectorRequest.InitialState. */
#include "model/state.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const char *const state_names[] = {
    [STATE_UNASSIGNED] = "UNASSIGNED", [STATE_RUNNING] = "RUNNING",
    [STATE_PAUSED] = "PAUSED",         [STATE_STOPPED] = "STOPPED",
    [STATE_FAILED] = "FAILED",         [STATE_RESTARTING] = "RESTARTING",
};

static const char *const target_names[] = {
    [TARGET_STARTED] = "STARTED",
    [TARGET_PAUSED] = "PAUSED",
    [TARGET_STOPPED] = "STOPPED",
};

static const char *const initial_names[] = {
    [TARGET_STARTED] = "RUNNING",
    [TARGET_PAUSED] = "PAUSED",
    [TARGET_STOPPED] = "STOPPED",
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static int find(const char *const *names, int count, const char *name, bool any_case)
{
    for (int i = 0; name != NULL && i < count; i++)
        if ((any_case ? strcasecmp(names[i], name) : strcmp(names[i], name)) == 0)
            return i;
    return -1;
}

const char *state_name(enum state s)
{
    return (int)s >= 0 && (int)s < COUNT(state_names) ? state_names[s] : "UNASSIGNED";
}

bool state_from(const char *name, enum state *out)
{
    int i = find(state_names, COUNT(state_names), name, false);

    if (i < 0)
        return false;
    *out = (enum state)i;
    return true;
}

const char *target_state_name(enum target_state s)
{
    return (int)s >= 0 && (int)s < COUNT(target_names) ? target_names[s] : "STARTED";
}

bool target_state_from(const char *name, enum target_state *out)
{
    int i = find(target_names, COUNT(target_names), name, false);

    if (i < 0)
        return false;
    *out = (enum target_state)i;
    return true;
}

bool target_state_from_initial(const char *name, enum target_state *out)
{
    int i = find(initial_names, COUNT(initial_names), name, true);

    if (i < 0)
        return false;
    *out = (enum target_state)i;
    return true;
}
