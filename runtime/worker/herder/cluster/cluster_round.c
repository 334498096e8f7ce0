/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's part in the rounds of its group. The member (group/member.h) joins and syncs by
 * itself; here is what a finished round means for the work, and what the leader owes to a round.
 *
 *   assigned ─► what was revoked ends; then the lease, by which hosts may go on ─┐
 *          └──► the config topic is read up to the round's offset ───────────────┴─► go_on
 *   go_on ─► settle: the rest of the assignment is wanted, sets of tasks that were held may start
 *
 * Promises: nothing of a round starts before everything it took away has stopped here, and the
 * round is not reported as acted upon before that; tasks of a new set start only after a round
 * whose offset covers it. Events of the member, of the store and of connectors.c; loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static int64_t own_offset(const struct distributed *d)
{
    return config_state_offset(distributed_config(d));
}

static void copy_list(struct work_list *to, const struct work_list *from)
{
    mr_assert(work_list_copy(to, from) == 0);
}

static void merge_list(struct work_list *to, const struct work_list *from)
{
    mr_assert(work_list_merge(to, from) == 0);
}

/* What has nothing to stop says so from inside, while those behind it in the list have not heard
 * yet: cluster_round_go_on waits until all have. */
static void reshare_all(struct distributed *d, const struct work_list *list)
{
    d->resharing = true;
    for (size_t i = 0; i < list->count; i++)
        connectors_reshare(d->connectors, list->entries[i].conn);
    d->resharing = false;
}

/* --- acting on a round ------------------------------------------------------------------------ */

static void free_owners(struct distributed *d)
{
    map_free(&d->owners, free);
    map_free(&d->members, NULL);
    d->owners = map_new();
    d->members = map_new();
}

static void lead_no_more(struct distributed *d)
{
    void *conn;

    free_owners(d);
    for (size_t i = 0; map_next(d->conns, &i, NULL, &conn);)
        cluster_lost_forget(conn);
}

static bool still_ending(const struct distributed *d)
{
    for (size_t i = 0; i < d->ending.count; i++)
        if (connectors_sharing(d->connectors, d->ending.entries[i].conn))
            return true;
    return false;
}

/* Every member acts on this round after it read the sets up to this offset, and whoever had read
 * them stopped tasks of older ones before it joined (distributed_stopping). One that had not read
 * them stops them now: for that moment it runs beside the new set, as in Java. */
static void release_held(struct distributed *d)
{
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, NULL, &value);) {
        struct dist_conn *conn = value;

        if (conn->held && conn->held_offset <= d->offset) {
            conn->held = false;
            connectors_reshare(d->connectors, conn->name);
        }
    }
}

/* --- the next round --------------------------------------------------------------------------- */

static void ask_for_round(struct distributed *d)
{
    loop_timer_cancel(&d->wish_timer);
    round_pace_asked(&d->pace, loop_now_ms(d->parts.loop));
    distributed_report(d, d->wish);
}

static void on_wish(void *arg)
{
    ask_for_round(arg);
}

static void want(struct distributed *d, const char *why)
{
    int64_t wait_ms = round_pace_wait_ms(&d->pace, loop_now_ms(d->parts.loop));

    d->wish = why;
    if (wait_ms > 0)
        loop_timer_start(d->parts.loop, &d->wish_timer, wait_ms, on_wish, d);
    else
        ask_for_round(d);
}

void cluster_round_want(struct distributed *d, const char *why)
{
    if (!d->rebalancing && d->wish_timer.slot == 0) /* else `settle` looks what the round knew */
        want(d, why);
}

/* At once: what others wait for. Else NULL. */
static const char *hurry(const struct distributed *d)
{
    if (d->mismatch || d->unreadable)
        return NULL;
    if (d->revoked)
        return "what was revoked has stopped";
    return d->leads && d->word_missed ? "a worker leaves" : NULL;
}

/* A round with a mismatch is repeated by the member itself. */
static void want_what_is_missing(struct distributed *d)
{
    if (d->mismatch || hurry(d) != NULL)
        return;
    if (d->unreadable)
        want(d, "the config topic could not be read");
    else if (own_offset(d) != d->offset)
        want(d, "the config topic has gone on");
}

/* The others have what we can't get: our work is better off with them. */
static bool is_left_behind(const struct distributed *d)
{
    return d->config_lost && !d->mismatch && own_offset(d) < d->offset;
}

static void end_left_behind(struct distributed *d)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL,
            "the config topic is lost to this worker, and the others have read on (it to offset "
            "%lld, they to %lld): it ends, so that it does not go on with old configurations; "
            "start it again",
            (long long)own_offset(d), (long long)d->offset);
    d->parts.failed(d->parts.arg, &err);
}

static void report_settled(struct distributed *d)
{
    struct member_word word = {.allocation = &d->allocation,
                               .offset = own_offset(d),
                               .settled = d->generation,
                               .rejoin = hurry(d),
                               .stopping = distributed_stopping(d)};

    member_report(d->member, &word);
}

/* --- settling --------------------------------------------------------------------------------- */

static void after_round(struct distributed *d)
{
    cluster_words_settled(d);
    task_writer_round_over(d);
    if (d->revoked)
        cluster_words_want_round(d);
    distributed_forget(d);
    if (!d->leads)
        return;
    cluster_status_tidy(d);
    key_keeper_look(d);
}

static void settle(struct distributed *d)
{
    bool acts = !d->mismatch && !d->unreadable;

    d->step = DIST_IDLE;
    if (acts) {
        merge_list(&d->allocation, &d->assigned);
        d->rebalancing = false;
        if (!d->joined)
            log_info("start-up is over: member of group %s, REST at %s",
                     d->parts.config->cluster.group_id, d->url);
        d->joined = true;
        release_held(d);
        reshare_all(d, &d->allocation);
    }
    round_pace_ended(&d->pace, loop_now_ms(d->parts.loop), own_offset(d), d->offset);
    report_settled(d);
    want_what_is_missing(d);
    d->word_missed = false;
    if (acts)
        after_round(d);
    if (is_left_behind(d))
        end_left_behind(d);
}

static void tell_stopped(struct distributed *d)
{
    int64_t ask = d->stop_ask;

    d->stop_ask = -1;
    member_report(d->member, &(struct member_word){.allocation = &d->allocation,
                                                   .offset = own_offset(d),
                                                   .settled = -1,
                                                   .stopping = distributed_stopping(d)});
    member_stopped(d->member, ask);
}

void cluster_round_go_on(struct distributed *d)
{
    if (d->closing || d->resharing || (d->stop_ask < 0 && d->step == DIST_IDLE) || still_ending(d))
        return;
    work_list_deinit(&d->ending);
    if (d->stop_ask >= 0)
        tell_stopped(d);
    else if (!d->reading)
        settle(d);
}

struct reading {
    struct distributed *d;
    uint64_t round;
};

static void on_read(void *arg, const struct mr_error *err)
{
    struct reading *reading = arg;
    struct distributed *d = reading->d;
    bool mine = reading->round == d->round && d->step == DIST_STOPPING;

    free(reading);
    if (!mine || d->closing)
        return;
    d->reading = false;
    d->unreadable = err != NULL || own_offset(d) < d->offset;
    if (err == NULL && d->unreadable && !d->mismatch)
        log_warn("the config topic ends at offset %lld, and the group has read it up to %lld: it "
                 "was deleted or cut, or other workers of the group have another one. This worker "
                 "takes no new work",
                 (long long)own_offset(d), (long long)d->offset);
    if (err != NULL)
        log_warn("the config topic was not read to its end in time, so this worker takes no new "
                 "work in this round: %s",
                 err->text);
    cluster_round_go_on(d);
}

static void read_on(struct distributed *d)
{
    struct reading *reading = calloc(1, sizeof(*reading));

    mr_assert(reading != NULL);
    *reading = (struct reading){d, d->round};
    d->reading = true;
    cluster_store_refresh(d->store, d->parts.config->cluster.sync_ms, on_read, reading);
}

static void remove_list(struct work_list *from, const struct work_list *list)
{
    mr_assert(work_list_subtract(from, list) == 0);
}

/* What is not ours any more ends at once; what is new waits for `settle`. The leader counts on what
 * we joined with: a round that took something of it away may have been lost since, and then that is
 * ours again. */
static void take_away(struct distributed *d, const struct member_round *round)
{
    const struct work_list *revoked = &round->assignment->revoked;
    struct work_list gone = {0};
    struct work_list kept = {0};

    copy_list(&gone, &d->allocation);
    if (round->kind != CONNECT_EAGER) {
        copy_list(&kept, round->held);
        remove_list(&kept, revoked);
        merge_list(&d->assigned, &kept);
        remove_list(&gone, &d->assigned);
        merge_list(&d->ending, revoked);
    }
    remove_list(&d->allocation, &gone);
    merge_list(&d->ending, &gone);
    d->revoked = round->kind != CONNECT_EAGER && revoked->items > 0;
    for (size_t i = 0; i < d->ending.count; i++)
        cluster_lost_call_off(d, d->ending.entries[i].conn);
    reshare_all(d, &d->ending);
    work_list_deinit(&gone);
    work_list_deinit(&kept);
}

/* For the hosts, and for what they have the store write. */
static void take_lease(struct distributed *d, struct lease_times times)
{
    d->lease_ms = times.hard_ms;
    supervisor_lease(d->parts.sup, times.soft_ms, times.hard_ms);
    cluster_store_lease(d->store, times.hard_ms);
}

/* Who led may be frozen, and is asked for nothing more. */
static void led_by(struct distributed *d, const char *url)
{
    if (d->leader_url[0] != '\0' && strcmp(d->leader_url, url) != 0)
        peer_give_up(d->peer, d->leader_url,
                     "the leader changed before it answered; it may have carried out the request "
                     "or not: look before you try again");
    text_replace(&d->leader_url, url);
}

static void on_assigned(void *arg, const struct member_round *round)
{
    struct distributed *d = arg;
    const struct connect_assignment *given = round->assignment;

    d->round++;
    d->generation = round->generation;
    d->kind = round->kind;
    if (!round->leads)
        lead_no_more(d);
    if (round->leads)
        cluster_store_claim(d->store, !d->leads);
    d->leads = round->leads;
    led_by(d, given->leader_url != NULL ? given->leader_url : "");
    d->offset = given->offset;
    d->mismatch = given->error != CONNECT_OK;
    d->unreadable = d->reading = d->revoked = false;
    d->step = DIST_STOPPING;
    copy_list(&d->assigned, &given->assigned);
    cluster_words_led_by(d, given->leader != NULL ? given->leader : "", d->leader_url);
    if (!d->mismatch)
        take_away(d, round);
    if (round->lease.hard_ms != 0)
        take_lease(d, round->lease);
    if (own_offset(d) < d->offset)
        read_on(d);
    cluster_round_go_on(d);
}

static void on_rebalancing(void *arg)
{
    struct distributed *d = arg;

    d->rebalancing = true;
    loop_timer_cancel(&d->wish_timer);
}

static void on_stop_all(void *arg, int64_t ask)
{
    struct distributed *d = arg;

    d->round++;
    d->step = DIST_IDLE;
    d->stop_ask = ask;
    merge_list(&d->ending, &d->allocation);
    work_list_deinit(&d->allocation);
    reshare_all(d, &d->ending);
    cluster_round_go_on(d);
}

static void on_lost(void *arg, const char *why)
{
    struct distributed *d = arg;

    log_warn("this worker is out of its group and joins again: %s", why);
    d->round++;
    d->step = DIST_IDLE;
    d->stop_ask = -1; /* the round that waited for it is no more */
    d->rebalancing = true;
    d->leads = false;
    loop_timer_cancel(&d->wish_timer);
    text_replace(&d->leader_url, "");
    text_replace(&d->member_id, "");
}

/* --- leading ---------------------------------------------------------------------------------- */

static void give_snapshot(struct distributed *d, int64_t ask)
{
    const struct config_state *config = distributed_config(d);
    struct lead_snapshot *snapshot = lead_snapshot_new(config_state_offset(config));
    const struct config_conn *conn;

    mr_assert(snapshot != NULL);
    for (size_t i = 0; (conn = config_state_next(config, &i)) != NULL;)
        mr_assert(lead_snapshot_add(snapshot, conn->name, config_state_tasks(conn)) == 0);
    cluster_words_leavers(d, snapshot);
    member_lead_take(d->member, ask, snapshot);
}

struct asking {
    struct distributed *d;
    int64_t ask;
    int reads; /* that are under way */
};

static void one_read_less(struct asking *asking)
{
    if (--asking->reads > 0)
        return;
    if (asking->d->member != NULL) /* else the worker has ended meanwhile */
        give_snapshot(asking->d, asking->ask);
    free(asking);
}

static void on_read_to_lead(void *arg, const struct mr_error *err)
{
    if (err != NULL)
        log_warn("the config topic was not read to its end in time for a round: %s", err->text);
    one_read_less(arg);
}

static void on_words_to_lead(void *arg, const struct mr_error *err)
{
    if (err != NULL && err->code != MR_ERR_UNSUPPORTED)
        log_warn("a round is made without the newest words of the other workers: %s", err->text);
    one_read_less(arg);
}

/* Words matter to a leader that remembers: who leads anew gives what nobody holds to others in any
 * case. */
static void on_lead(void *arg, int64_t ask, int64_t min_offset)
{
    struct distributed *d = arg;
    struct asking *asking = calloc(1, sizeof(*asking));
    int64_t sync_ms = d->parts.config->cluster.sync_ms;

    mr_assert(asking != NULL);
    *asking = (struct asking){d, ask, 1};
    if (own_offset(d) < min_offset) {
        asking->reads++;
        cluster_store_refresh(d->store, sync_ms, on_read_to_lead, asking);
    }
    if (d->leads) {
        asking->reads++;
        cluster_store_refresh_words(d->store, sync_ms / 2, on_words_to_lead, asking);
    }
    one_read_less(asking);
}

static char *owner_key(const char *conn, int task)
{
    char *key = NULL;

    mr_assert(asprintf(&key, "%d %s", task, conn) > 0);
    return key;
}

static void add_owner(struct distributed *d, const char *conn, int task, const char *url)
{
    char *key = owner_key(conn, task), *copy = text_dup(url);

    free(map_set(d->owners, key, copy));
    free(key);
}

static void on_led(void *arg, int64_t generation, const struct lead *lead)
{
    struct distributed *d = arg;

    (void)generation;
    cluster_words_led(d, lead);
    free_owners(d);
    for (size_t m = 0; m < lead->count; m++) {
        const struct lead_member *member = &lead->members[m];

        if (!member->readable || member->metadata.url == NULL)
            continue;
        map_set(d->members, member->metadata.url, d);
        if (member->share == NULL)
            continue;
        for (size_t i = 0; i < member->share->owned.count; i++)
            for (size_t t = 0; t < member->share->owned.entries[i].count; t++)
                add_owner(d, member->share->owned.entries[i].conn,
                          member->share->owned.entries[i].tasks[t], member->metadata.url);
    }
    cluster_lost_led(d, lead);
}

const char *cluster_round_owner(const struct distributed *d, const char *conn, int task)
{
    char *key = owner_key(conn, task);
    const char *url = map_get(d->owners, key);

    free(key);
    return url != NULL ? url : "";
}

/* --- the rest --------------------------------------------------------------------------------- */

static void on_identity(void *arg, const char *member_id)
{
    log_debug("the group knows this worker as %s", member_id);
    text_replace(&((struct distributed *)arg)->member_id, member_id);
}

static void on_lease(void *arg, struct lease_times times)
{
    take_lease(arg, times);
}

static void on_left(void *arg)
{
    struct distributed *d = arg;
    loop_fn fn = d->left_fn;

    d->left_fn = NULL;
    if (fn != NULL)
        fn(d->left_arg);
}

static void on_failed(void *arg, const struct mr_error *err)
{
    struct distributed *d = arg;

    if (!d->closing)
        d->parts.failed(d->parts.arg, err);
    on_left(d); /* we are out in any case */
}

const struct member_events cluster_round_events = {
    .identity = on_identity,
    .rebalancing = on_rebalancing,
    .stop_all = on_stop_all,
    .lead = on_lead,
    .led = on_led,
    .assigned = on_assigned,
    .lost = on_lost,
    .lease = on_lease,
    .left = on_left,
    .failed = on_failed,
};

void cluster_round_deinit(struct distributed *d)
{
    map_free(&d->owners, free);
    map_free(&d->members, NULL);
    free(d->stranger);
    free(d->leader_url);
    work_list_deinit(&d->allocation);
    work_list_deinit(&d->assigned);
    work_list_deinit(&d->ending);
}
