/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds: JoinGroup, the leader's duty, SyncGroup, and when to do it all again. The drawing is
 * in member.c.
 *
 * One round is under way at a time. That a further one is wanted is remembered in wants_round,
 * which is cleared when JoinGroup is sent, so any number of wishes make one round. A round is not
 * joined while the herder acts on the last one, since what we report then would be wrong soon.
 * Failures are tried again: the first at once where the broker asks for it, the others after a
 * back-off with jitter, so that no answer of a coordinator can make us storm. */
#define LOGGER "worker.group"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "worker/group/member_private.h"

#include <stdlib.h>
#include <string.h>

/* --- wanting to join -------------------------------------------------------------------------- */

void member_open(struct member *m)
{
    if (!m->open_told)
        ear_rebalancing(m->ear);
    m->open_told = true;
}

/* Forget what this round had come to. */
static void abandon(struct member *m)
{
    m->epoch++;
    m->round_kind = -1;
    m->leads = false;
    lead_deinit(&m->lead);
    loop_timer_cancel(&m->lead_timer);
}

static void try_join_again(void *arg)
{
    member_try_join(arg);
}

static void waited_long_enough(void *arg)
{
    struct member *m = arg;

    if (m->stopping != NULL)
        log_warn("joining the next round although a task of %s still stops here: what replaces it "
                 "may start elsewhere beside it",
                 m->stopping);
    else
        log_warn("joining the next round although the last one was not acted upon yet");
    m->held_long_enough = true;
    member_try_join(m);
}

static int64_t backoff_ms(struct member *m, int64_t first_ms, int64_t max_ms, int n)
{
    int64_t ms = first_ms;

    while (n-- > 1 && ms < max_ms)
        ms *= 2;
    return member_jitter(m, ms < max_ms ? ms : max_ms);
}

void member_retry(struct member *m, bool at_once)
{
    int64_t delay_ms;

    abandon(m);
    m->state = MEMBER_WAITING;
    m->wants_round = true;
    m->failures++;
    delay_ms = at_once && m->failures == 1
                   ? 0
                   : backoff_ms(m, m->retry_backoff_ms, MEMBER_BACKOFF_MAX_MS, m->failures);
    loop_timer_start(m->loop, &m->retry, delay_ms, try_join_again, m);
}

void member_want_round(struct member *m, const char *why)
{
    if (!m->wants_round)
        log_info("joining the group %s%s: %s", m->group, m->completed >= 0 ? " again" : "", why);
    m->wants_round = true;
    member_try_join(m);
}

void member_dropped(struct member *m, const char *why)
{
    bool worked = m->completed >= 0;

    if (worked) {
        m->told_ms = 0;
        ear_lease(m->ear, lease_ended(&m->lease, clock_boot_ms()));
        ear_lost(m->ear, why);
    }
    log_warn("the group %s dropped this worker: %s", m->group, why);
    m->generation = -1;
    m->completed = -1;
    m->unsettled = -1; /* the herder heard `lost`: it acts on nothing any more */
    m->lease_held = true;
    member_set_id(m, "");
    if (m->state == MEMBER_JOINING || m->state == MEMBER_SYNCING)
        return; /* its answer says the same */
    if (m->state == MEMBER_STABLE)
        member_want_round(m, why);
    else if (m->state == MEMBER_WAITING)
        member_try_join(m); /* it need not wait for the herder any more */
    else if (m->state == MEMBER_LEADING || m->state == MEMBER_EMPTYING)
        member_retry(m, true);
}

/* --- what an answer that is no success does --------------------------------------------------- */

static void failed_call(struct member *m, enum request_api api, const struct mr_error *err)
{
    if (member_is_fatal(err)) {
        member_fail(m, err);
        return;
    }
    log_warn("%s to the group %s failed, trying again: %s", request_name(api), m->group, err->text);
    member_retry(m, false);
}

static void failed_code(struct member *m, enum request_api api, int16_t code)
{
    enum kafka_code_act act = kafka_code_act(code);

    if (act == KAFKA_CODE_FATAL) {
        member_fail_code(m, api, code);
        return;
    }
    log_info("%s to the group %s was answered with %s, trying again", request_name(api), m->group,
             kafka_code_name(code));
    if (act == KAFKA_CODE_REJOIN_GENERATION) {
        m->generation = -1;
        m->lease_held = true;
    }
    if (act == KAFKA_CODE_REJOIN_NEW)
        member_dropped(m, kafka_code_name(code));
    member_retry(m, act == KAFKA_CODE_REJOIN || act == KAFKA_CODE_REJOIN_GENERATION ||
                        act == KAFKA_CODE_REJOIN_NEW);
}

/* --- SyncGroup -------------------------------------------------------------------------------- */

static void want_round_now(void *arg)
{
    member_want_round(arg, "the scheduled delay is over");
}

/* Everybody is to read the config topic on. Rounds like this one come with growing pauses, which
 * the others wait out with us; a report that we have read on ends ours. */
static void round_mismatched(struct member *m, const struct connect_assignment *assignment)
{
    int64_t delay_ms = backoff_ms(m, m->retry_backoff_ms, MEMBER_MISMATCH_MAX_MS, ++m->mismatches);

    log_warn("the round ended with error %d: no worker has read the config topic up to offset %lld",
             assignment->error, (long long)assignment->offset);
    m->wanted_offset = assignment->offset;
    m->wants_round = true;
    loop_timer_start(m->loop, &m->retry, delay_ms, try_join_again, m);
}

void member_read_on(struct member *m)
{
    if (m->mismatches > 0 && m->offset >= m->wanted_offset)
        loop_timer_cancel(&m->retry);
}

static void round_done(struct member *m, const struct connect_assignment *assignment)
{
    m->mismatches = 0;
    m->kind = m->round_kind;
    m->completed = m->generation;
    m->unsettled = m->generation;
    m->held_long_enough = false;
    m->assigned_offset = assignment->offset;
    text_replace(&m->leader, assignment->leader == NULL ? "" : assignment->leader);
    text_replace(&m->leader_url, assignment->leader_url == NULL ? "" : assignment->leader_url);
    if (assignment->delay_ms > 0)
        loop_timer_start(m->loop, &m->delay, assignment->delay_ms, want_round_now, m);
    else
        loop_timer_cancel(&m->delay);
}

static void finish(struct member *m, struct connect_assignment *assignment)
{
    struct member_round round = {.generation = m->generation,
                                 .kind = (enum connect_kind)m->round_kind,
                                 .member_id = m->id,
                                 .leads = m->leads,
                                 .held = &m->joined_with};

    log_info("round %d of the group %s: %s, %zu items assigned, %zu revoked, delay %d ms%s",
             m->generation, m->group, connect_protocol_name(round.kind), assignment->assigned.items,
             assignment->revoked.items, assignment->delay_ms, m->leads ? ", leader" : "");
    m->state = MEMBER_STABLE;
    m->failures = 0;
    m->open_told = false;
    if (assignment->error != CONNECT_OK)
        round_mismatched(m, assignment);
    else
        round_done(m, assignment);
    if (assignment->error == CONNECT_OK) {
        m->lease_held = false;
        round.lease = lease_times(&m->lease);
        m->told_ms = round.lease.hard_ms;
    }
    if (m->leads && assignment->error == CONNECT_OK)
        ear_led_take(m->ear, m->generation, &m->lead);
    ear_assigned_take(m->ear, &round, assignment);
    abandon(m);
    member_try_join(m);
}

/* No bytes: the leader has nothing for us. Java's worker would end. */
static void take_assignment(struct member *m, struct codec_bytes bytes)
{
    struct connect_assignment assignment = {.version = (int16_t)m->round_kind, .offset = m->offset};
    struct mr_error err = {0};
    bool eager = m->round_kind == CONNECT_EAGER;

    if (bytes.len == 0)
        log_warn("the leader gave this worker no assignment: taken for an empty one");
    else if (connect_protocol_read_assignment(bytes.data, bytes.len, eager, &assignment, &err) !=
             0) {
        log_error("the leader's assignment can't be read: %s", err.text);
        member_retry(m, false);
        return;
    }
    finish(m, &assignment);
    connect_protocol_assignment_deinit(&assignment);
}

static void on_sync(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct member *m = member_called(arg);

    if (m == NULL)
        return;
    if (err != NULL) {
        failed_call(m, REQUEST_SYNC_GROUP, err);
    } else if (answer->error != 0) {
        failed_code(m, REQUEST_SYNC_GROUP, answer->error);
    } else if (m->generation < 0) {
        member_retry(m, true); /* dropped meanwhile */
    } else {
        lease_renew(&m->lease, answer->sent_boot_ms);
        member_lease_renewed(m);
        take_assignment(m, answer->sync_group.assignment);
    }
}

static void send_sync(struct member *m)
{
    struct request_assignment *assignments = calloc(m->lead.count + 1, sizeof(*assignments));
    struct request request = {.api = REQUEST_SYNC_GROUP,
                              .sync_group = {.group = m->group,
                                             .generation = m->generation,
                                             .member = m->id,
                                             .assignments = assignments,
                                             .assignment_count = m->lead.count}};
    bool sent = false;

    for (size_t i = 0; assignments != NULL && i < m->lead.count; i++)
        assignments[i] = (struct request_assignment){
            m->lead.members[i].id,
            {(const uint8_t *)m->lead.members[i].bytes.data, m->lead.members[i].bytes.len}};
    m->state = MEMBER_SYNCING;
    if (assignments != NULL)
        sent = member_call(m, COORDINATOR_MAIN, &request, m->request_ms, on_sync);
    free(assignments);
    if (!sent)
        member_retry(m, false);
}

/* --- leading ---------------------------------------------------------------------------------- */

static void make_assignments(struct member *m, const struct lead_snapshot *snapshot)
{
    struct lead_terms terms = {.assignor = m->assignor,
                               .kind = (enum connect_kind)m->round_kind,
                               .java = m->java_assignor,
                               .leader = m->id,
                               .leader_url = m->url,
                               .snapshot = snapshot,
                               .now_ms = clock_boot_ms(),
                               .generation = m->generation,
                               .last_completed = m->completed,
                               .max_delay_ms = m->max_delay_ms};
    int rc = lead_make(&m->lead, &terms);

    loop_timer_cancel(&m->lead_timer);
    if (rc != 0) {
        log_error("assignments of the group %s could not be made: %s", m->group,
                  rc == MR_ERR_NOMEM ? "out of memory" : "one is above 4 MiB");
        member_retry(m, false);
        return;
    }
    send_sync(m);
}

void member_led(struct member *m, int64_t ask, const struct lead_snapshot *snapshot)
{
    if (m->state == MEMBER_LEADING && ask == m->ask)
        make_assignments(m, snapshot);
}

static void herder_is_late(void *arg)
{
    struct member *m = arg;

    log_warn("the config topic was not read in time for this round: it has to be repeated");
    if (m->state == MEMBER_LEADING)
        make_assignments(m, NULL);
}

/* Members of one round are alive, all of them: two with one URL are two workers. Told once, until
 * it is mended. */
static void name_twins(struct member *m)
{
    const struct lead_member *members = m->lead.members;
    bool told = m->twins_told;

    m->twins_told = false;
    for (size_t i = 0; i < m->lead.count; i++)
        for (size_t j = 0; j < i; j++) {
            if (!members[i].readable || !members[j].readable ||
                strcmp(members[i].metadata.url, members[j].metadata.url) != 0)
                continue;
            m->twins_told = true;
            if (!told)
                log_error("two live workers of the group %s, %s and %s, both advertise %s: set "
                          "rest.advertised.host.name and rest.advertised.port of one of them",
                          m->group, members[j].id, members[i].id, members[i].metadata.url);
        }
}

static bool gather_members(struct member *m, const struct answer_join_group *join)
{
    for (size_t i = 0; i < join->member_count; i++) {
        struct mr_error err = {0};

        if (lead_add(&m->lead, join->members[i].member, join->members[i].metadata.data,
                     join->members[i].metadata.len, m->round_kind == CONNECT_EAGER, &err) != 0)
            return false;
        if (err.code != 0)
            log_warn("what the member %s says can't be read, it gets nothing: %s",
                     join->members[i].member, err.text);
    }
    name_twins(m);
    return true;
}

/* --- JoinGroup -------------------------------------------------------------------------------- */

static void ask_herder_to_stop(struct member *m)
{
    m->state = MEMBER_EMPTYING;
    ear_stop_all(m->ear, ++m->ask);
}

static void go_on_to_sync(struct member *m)
{
    if (!m->leads) {
        send_sync(m);
        return;
    }
    m->state = MEMBER_LEADING;
    ear_lead(m->ear, ++m->ask, m->lead.max_offset);
    loop_timer_start(m->loop, &m->lead_timer, m->sync_ms, herder_is_late, m);
}

static void joined(struct member *m, const struct answer *answer)
{
    const struct answer_join_group *join = &answer->join_group;
    enum connect_kind kind;

    if (!connect_protocol_kind(join->protocol, &kind) || kind > m->best || join->generation < 0) {
        log_error("the coordinator chose the protocol '%s', which was not offered", join->protocol);
        member_retry(m, false);
        return;
    }
    m->round_kind = (int)kind;
    m->generation = join->generation;
    if (strcmp(m->id, join->member) != 0)
        member_set_id(m, join->member);
    m->leads = strcmp(join->leader, m->id) == 0;
    lease_joined(&m->lease);
    lease_renew(&m->lease, answer->sent_boot_ms);
    member_lease_renewed(m);
    member_beat_later(m, m->heartbeat_ms);
    if (m->leads && !gather_members(m, join))
        member_retry(m, false);
    else if (kind == CONNECT_EAGER && m->held.items > 0)
        ask_herder_to_stop(m); /* the last round was cooperative: Java goes on with what it loses */
    else
        go_on_to_sync(m);
}

static void on_join(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct member *m = member_called(arg);

    if (m == NULL)
        return;
    if (err != NULL) {
        failed_call(m, REQUEST_JOIN_GROUP, err);
    } else if (kafka_code_act(answer->error) == KAFKA_CODE_REJOIN_AS &&
               answer->join_group.member[0] != '\0') {
        bool first = m->id[0] == '\0';

        member_set_id(m, answer->join_group.member);
        member_retry(m, true);
        m->failures -= first;
    } else if (answer->error != 0) {
        failed_code(m, REQUEST_JOIN_GROUP, answer->error);
    } else {
        joined(m, answer);
    }
}

static int write_metadata(struct member *m, enum connect_kind kind, struct buf *out)
{
    struct connect_assignment allocation = {.version = (int16_t)kind,
                                            .leader = m->leader,
                                            .leader_url = m->leader_url,
                                            .offset = m->assigned_offset,
                                            .assigned = m->held};
    struct connect_metadata metadata = {
        .version = (int16_t)kind,
        .url = m->url,
        .offset = m->offset,
        .allocation = m->kind > CONNECT_EAGER ? &allocation : NULL,
    };

    buf_init(out, CONNECT_PROTOCOL_MAX_BYTES);
    return connect_protocol_write_metadata(out, &metadata);
}

static bool call_join(struct member *m, const struct buf *metadata)
{
    struct request_protocol protocols[CONNECT_KINDS];
    struct request request = {.api = REQUEST_JOIN_GROUP,
                              .join_group = {.group = m->group,
                                             .session_timeout_ms = (int32_t)m->session_ms,
                                             .rebalance_timeout_ms = (int32_t)m->rebalance_ms,
                                             .member = m->id,
                                             .protocol_type = CONNECT_PROTOCOL_TYPE,
                                             .protocols = protocols}};

    for (int kind = (int)m->best; kind >= 0; kind--)
        protocols[request.join_group.protocol_count++] =
            (struct request_protocol){connect_protocol_name((enum connect_kind)kind),
                                      {(const uint8_t *)metadata[kind].data, metadata[kind].len}};
    return member_call(m, COORDINATOR_MAIN, &request, m->request_ms, on_join);
}

static void send_join(struct member *m)
{
    struct buf metadata[CONNECT_KINDS] = {{0}};
    bool sent = true;

    for (int kind = 0; kind <= (int)m->best; kind++)
        sent &= write_metadata(m, (enum connect_kind)kind, &metadata[kind]) == 0;
    mr_assert(work_list_copy(&m->joined_with, &m->held) == 0);
    m->state = MEMBER_JOINING;
    m->wants_round = false;
    sent = sent && call_join(m, metadata);
    for (int kind = 0; kind <= (int)m->best; kind++)
        buf_deinit(&metadata[kind]);
    if (!sent)
        member_retry(m, false);
    else if (m->id[0] != '\0')
        member_evict_ghost(m);
}

void member_try_join(struct member *m)
{
    if ((m->state != MEMBER_STABLE && m->state != MEMBER_WAITING) || !m->wants_round)
        return;
    member_open(m);
    m->state = MEMBER_WAITING;
    if (m->retry.slot != 0)
        return;
    if ((m->unsettled >= 0 || m->stopping != NULL) && !m->held_long_enough) {
        if (m->settle.slot == 0)
            loop_timer_start(m->loop, &m->settle, m->rebalance_ms / 2, waited_long_enough, m);
        return;
    }
    loop_timer_cancel(&m->settle);
    loop_timer_cancel(&m->delay);
    if (m->kind == CONNECT_EAGER && m->held.items > 0)
        ask_herder_to_stop(m);
    else
        send_join(m);
}

void member_emptied(struct member *m, int64_t ask)
{
    if (m->state != MEMBER_EMPTYING || ask != m->ask)
        return;
    if (m->round_kind >= 0)
        go_on_to_sync(m);
    else
        send_join(m);
}
