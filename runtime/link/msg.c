/* SPDX-License-Identifier: Apache-2.0 */
/* The table of message kinds: who sends each, how large its body may be, and in which states of the
 * link it may arrive. Read by frame.c before a single byte of a body is looked at. Pure.
 *
 * Frames of the host cross with the worker's DRAIN on the way, so everything an open link allows is
 * allowed while it drains. In the other direction the worker itself stops giving new work before it
 * sends DRAIN. Caps: a connector's name may stand in any body, so none is below SMALL; the largest
 * ones hold the configurations of a thousand tasks or the offsets of ten thousands of partitions,
 * and stay what the worker's loop can parse in some tens of milliseconds. */
#include "link/msg.h"

#define SMALL (64u * 1024)
#define TRACE (256u * 1024)
#define CONFIG (2u * 1024 * 1024)
#define LARGE (4u * 1024 * 1024)

#define HELLO MSG_STATE_HELLO
#define OPEN MSG_STATE_OPEN
#define DRAINING MSG_STATE_DRAINING

static const struct msg_rule rules[MSG_KIND_END] = {
    [MSG_HELLO] = {"HELLO", true, SMALL, HELLO},
    [MSG_CONNECTOR_STATUS] = {"CONNECTOR_STATUS", true, TRACE, OPEN | DRAINING},
    [MSG_TASK_CONFIGS_READY] = {"TASK_CONFIGS_READY", true, LARGE, OPEN | DRAINING},
    [MSG_TASK_STATUS] = {"TASK_STATUS", true, TRACE, OPEN | DRAINING},
    [MSG_TASK_MEMBER] = {"TASK_MEMBER", true, SMALL, OPEN | DRAINING},
    [MSG_OFFSETS_GET] = {"OFFSETS_GET", true, LARGE, OPEN | DRAINING},
    [MSG_OFFSETS_PUT] = {"OFFSETS_PUT", true, LARGE, OPEN | DRAINING},
    [MSG_START_CHECK] = {"START_CHECK", true, SMALL, OPEN | DRAINING},
    [MSG_FENCE] = {"FENCE", true, SMALL, OPEN | DRAINING},
    [MSG_TOPIC_USED] = {"TOPIC_USED", true, SMALL, OPEN | DRAINING},
    [MSG_PONG] = {"PONG", true, SMALL, OPEN | DRAINING},
    [MSG_DRAINED] = {"DRAINED", true, SMALL, DRAINING},
    [MSG_CONFIG_STALE] = {"CONFIG_STALE", true, SMALL, OPEN | DRAINING},
    [MSG_WELCOME] = {"WELCOME", false, LARGE, HELLO},
    [MSG_CONNECTOR_START] = {"CONNECTOR_START", false, CONFIG, OPEN},
    [MSG_CONNECTOR_TARGET] = {"CONNECTOR_TARGET", false, SMALL, OPEN | DRAINING},
    [MSG_TASK_CONFIGS] = {"TASK_CONFIGS", false, SMALL, OPEN},
    [MSG_TASK_START] = {"TASK_START", false, CONFIG, OPEN},
    [MSG_TASK_TARGET] = {"TASK_TARGET", false, SMALL, OPEN | DRAINING},
    [MSG_TASK_STOP] = {"TASK_STOP", false, SMALL, OPEN | DRAINING},
    [MSG_OFFSETS] = {"OFFSETS", false, LARGE, OPEN | DRAINING},
    [MSG_OFFSETS_STORED] = {"OFFSETS_STORED", false, SMALL, OPEN | DRAINING},
    [MSG_START_CHECKED] = {"START_CHECKED", false, SMALL, OPEN | DRAINING},
    [MSG_FENCED] = {"FENCED", false, SMALL, OPEN | DRAINING},
    [MSG_TOPICS_FORGET] = {"TOPICS_FORGET", false, SMALL, OPEN | DRAINING},
    [MSG_LEASE] = {"LEASE", false, SMALL, OPEN | DRAINING},
    [MSG_LOG_LEVELS] = {"LOG_LEVELS", false, LARGE, OPEN | DRAINING},
    [MSG_DRAIN] = {"DRAIN", false, SMALL, OPEN | DRAINING},
    [MSG_PING] = {"PING", false, SMALL, OPEN | DRAINING},
};

const struct msg_rule *msg_rule(uint32_t kind)
{
    if (kind >= MSG_KIND_END || rules[kind].name == NULL)
        return NULL;
    return &rules[kind];
}
