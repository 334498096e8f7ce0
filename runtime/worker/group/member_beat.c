/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats, and what goes over the second connection beside them: the ghost's LeaveGroup, and our
 * own.
 *
 * Heartbeats go on while a JoinGroup or SyncGroup is parked on the first connection, with the
 * generation that we have: 27 renews the lease, 22 says that the answer to our JoinGroup is under
 * way, 25 that we are out. An answer counts only if member id and generation are still those it was
 * asked with. Promise: the lease counts from when a request was sent. */
#define LOGGER "worker.group"

#include "base/clock.h"
#include "base/log.h"
#include "worker/group/ghost.h"
#include "worker/group/member_private.h"

#include <stdlib.h>

void member_lease_renewed(struct member *m)
{
    struct lease_times times = lease_times(&m->lease);
    int64_t gain_ms = times.hard_ms - m->told_ms;

    m->answered_ms = clock_ms();
    if (m->lease_held || (gain_ms >= 0 && gain_ms < m->tell_ms))
        return;
    m->told_ms = times.hard_ms;
    ear_lease(m->ear, times);
}

/* --- heartbeats ------------------------------------------------------------------------------- */

static void beat_failed(struct member *m, const char *why)
{
    log_debug("heartbeat failed: %s", why);
    if (clock_ms() - m->answered_ms > m->session_ms) {
        coordinator_lost(m->coordinator, "no heartbeat was answered for session.timeout.ms");
        m->answered_ms = clock_ms();
    }
    member_beat_later(m, member_jitter(m, m->retry_backoff_ms));
}

static void beat_rebalancing(struct member *m)
{
    /* What is in flight hears for itself; a leader that waits for its herder must hear it here. */
    if (m->state == MEMBER_LEADING)
        member_retry(m, true);
    if (m->state == MEMBER_STABLE)
        member_want_round(m, "the group is rebalancing");
}

static void beat_generation_over(struct member *m)
{
    if (m->state == MEMBER_JOINING || m->state == MEMBER_SYNCING)
        return;
    m->generation = -1;
    m->lease_held = true; /* rounds went on without us */
    if (m->state == MEMBER_STABLE)
        member_want_round(m, "the generation is over");
    else if (m->state == MEMBER_LEADING)
        member_retry(m, true);
}

/* After silence for the length of the lease: what is ours is known again after a round. */
static void doubt_if_lapsed(struct member *m, const struct answer *answer)
{
    if (m->lease_held || !lease_lapsed(&m->lease, answer->sent_boot_ms))
        return;
    log_warn("no heartbeat was answered while the lease lasted");
    m->lease_held = true;
    if (m->state == MEMBER_STABLE)
        member_want_round(m, "the lease had run out");
}

/* As in Java, any other code is a heartbeat that failed: what can't be said in a heartbeat shows in
 * the next join. */
static bool ends_membership(int16_t code)
{
    return code == KAFKA_CODE_INVALID_GROUP_ID || code == KAFKA_CODE_GROUP_AUTHORIZATION_FAILED ||
           code == KAFKA_CODE_UNSUPPORTED_VERSION || code == KAFKA_CODE_FENCED_INSTANCE_ID;
}

static void beat_code(struct member *m, const struct answer *answer)
{
    switch (kafka_code_act(answer->error)) {
    case KAFKA_CODE_OK:
        doubt_if_lapsed(m, answer);
        lease_renew(&m->lease, answer->sent_boot_ms);
        member_lease_renewed(m);
        break;
    case KAFKA_CODE_REJOIN:
        doubt_if_lapsed(m, answer);
        lease_rebalancing(&m->lease, answer->sent_boot_ms, m->state == MEMBER_JOINING);
        member_lease_renewed(m);
        beat_rebalancing(m);
        break;
    case KAFKA_CODE_REJOIN_GENERATION:
        beat_generation_over(m);
        break;
    case KAFKA_CODE_REJOIN_NEW:
        member_dropped(m, "a heartbeat was answered with UNKNOWN_MEMBER_ID");
        break;
    case KAFKA_CODE_FATAL:
        if (ends_membership(answer->error)) {
            member_fail_code(m, REQUEST_HEARTBEAT, answer->error);
            return;
        }
        /* fall through */
    default:
        beat_failed(m, kafka_code_name(answer->error));
        return;
    }
    member_beat_later(m, m->heartbeat_ms);
}

static void on_beat(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct member_call call = *(struct member_call *)arg;
    struct member *m = call.member;

    free(arg);
    if (m->ending)
        return;
    m->beating = false;
    if (call.generation != m->generation || call.identity != m->identity)
        member_beat_later(m, m->heartbeat_ms);
    else if (err != NULL && member_is_fatal(err))
        member_fail(m, err);
    else if (err != NULL)
        beat_failed(m, err->text);
    else
        beat_code(m, answer);
}

static void beat(void *arg)
{
    struct member *m = arg;
    struct request request = {.api = REQUEST_HEARTBEAT,
                              .heartbeat = {m->group, m->generation, m->id}};

    if (m->generation < 0 || m->beating)
        return;
    m->beating = member_call(m, COORDINATOR_SIDE, &request, m->session_ms / 2, on_beat);
    if (!m->beating)
        member_beat_later(m, m->retry_backoff_ms);
}

void member_beat_later(struct member *m, int64_t delay_ms)
{
    if (m->generation >= 0 && m->state != MEMBER_LEAVING && m->state != MEMBER_FAILED)
        loop_timer_start(m->loop, &m->beat, delay_ms, beat, m);
}

/* --- the ghost: the member that this worker's dead predecessor left behind -------------------- */

static void ask_ghost(void *arg);

static void on_ghost(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct member *m = ((struct member_call *)arg)->member;
    enum kafka_code_act act = answer == NULL ? KAFKA_CODE_RETRY : kafka_code_act(answer->error);

    free(arg);
    if (m->ending || m->ghost == NULL)
        return;
    if (act == KAFKA_CODE_OK || act == KAFKA_CODE_REJOIN_NEW) {
        log_info("the member %s of this worker's last run is out of the group", m->ghost);
        free(m->ghost);
        m->ghost = NULL;
    } else if (++m->ghost_tries < MEMBER_GHOST_TRIES) {
        loop_timer_start(m->loop, &m->ghost_timer, m->retry_backoff_ms, ask_ghost, m);
    } else {
        log_warn("the member %s of this worker's last run could not be made to leave (%s): the "
                 "group waits until its session ends",
                 m->ghost, answer == NULL ? err->text : kafka_code_name(answer->error));
    }
}

static void ask_ghost(void *arg)
{
    struct member *m = arg;
    struct request request = {.api = REQUEST_LEAVE_GROUP, .leave_group = {m->group, m->ghost}};

    if (m->ghost != NULL &&
        !member_call(m, COORDINATOR_SIDE, &request, m->session_ms / 2, on_ghost))
        loop_timer_start(m->loop, &m->ghost_timer, m->retry_backoff_ms, ask_ghost, m);
}

/* Once our JoinGroup is on its way: an empty group would wait for more members first. */
void member_evict_ghost(struct member *m)
{
    if (m->ghost == NULL || m->ghost_asked)
        return;
    m->ghost_asked = true;
    ask_ghost(m);
}

/* --- goodbye ---------------------------------------------------------------------------------- */

static void gone(void *arg)
{
    struct member *m = arg;

    loop_timer_cancel(&m->leave_timer);
    if (m->state != MEMBER_LEAVING)
        return;
    m->state = MEMBER_OUT;
    m->epoch++;
    m->generation = -1;
    m->lease.sent_ms = m->lease.cap_ms = 0;
    m->lease_held = true;
    if (m->ghost_file != NULL && m->said_goodbye)
        ghost_remove(m->ghost_file);
    member_set_id(m, "");
    ear_left(m->ear);
}

static void on_goodbye(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct member *m = member_called(arg);

    if (m == NULL)
        return;
    m->said_goodbye = err == NULL && (answer->error == 0 ||
                                      kafka_code_act(answer->error) == KAFKA_CODE_REJOIN_NEW);
    if (err != NULL)
        log_warn("could not say goodbye to the group: %s", err->text);
    else if (!m->said_goodbye)
        log_warn("goodbye to the group was answered with %s", kafka_code_name(answer->error));
    gone(m);
}

void member_say_goodbye(struct member *m)
{
    struct request request = {.api = REQUEST_LEAVE_GROUP, .leave_group = {m->group, m->id}};

    m->said_goodbye = m->id[0] == '\0';
    loop_timer_start(m->loop, &m->leave_timer, MEMBER_LEAVE_MS, gone, m);
    if (m->id[0] == '\0' ||
        !member_call(m, COORDINATOR_SIDE, &request, MEMBER_LEAVE_MS, on_goodbye))
        gone(m);
}
