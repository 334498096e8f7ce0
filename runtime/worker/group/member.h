/* SPDX-License-Identifier: Apache-2.0 */
/* This worker's membership in the group: a thread with a loop and a connection of its own, which
 * joins, beats, rejoins and leaves by itself, and tells the worker's loop what became of it.
 * Nothing here blocks the caller.
 *
 * The herder drives it by few words: member_start, member_report (what we hold, how far the config
 * topic was read, what was acted upon, that a round is wanted), the answers to `lead` and
 * `stop_all`, member_leave. It hears events, in order.
 *
 *   member_start ─► identity, rebalancing, assigned ─► member_report(settled)
 *                ─► … rebalancing, [lead, led], assigned …
 *
 * Spec: reference group-protocol 4, 5, 8, 11, 12; KIP-394, KIP-415. */
#ifndef WORKER_GROUP_MEMBER_H
#define WORKER_GROUP_MEMBER_H

#include "base/loop.h"
#include "worker/group/lead.h"
#include "worker/group/lease.h"

struct member;
struct props;

/* Everything is copied. kafka: the Java names of one client (see wire/wire_conf.h), client.id set.
 * A member hears of a round by its next heartbeat, so it beats at least every twentieth of the
 * session. */
struct member_options {
    const struct props *kafka;
    const char *group;
    const char *url;          /* advertised, "http://host:port/" */
    enum connect_kind kind;   /* the best sub-protocol to offer; those below it are offered too */
    bool java_assignor;       /* as leader: ASSIGNOR_JAVA in place of ASSIGNOR_MILLRACE */
    int64_t session_ms;       /* session.timeout.ms */
    int64_t heartbeat_ms;     /* heartbeat.interval.ms, at most; see below */
    int64_t rebalance_ms;     /* rebalance.timeout.ms */
    int64_t graceful_ms;      /* task.shutdown.graceful.timeout.ms */
    int64_t max_delay_ms;     /* scheduled.rebalance.max.delay.ms */
    int64_t sync_ms;          /* worker.sync.timeout.ms: the herder's time to answer `lead` */
    int64_t retry_backoff_ms; /* retry.backoff.ms */
    /* Where our member id is recorded, in a folder whose lock the worker holds, and where that of
     * its dead predecessor may stand: once our JoinGroup is sent, that one is made to leave. NULL:
     * neither. See group/ghost.h. */
    const char *ghost_file;
};

/* One finished round. Everything borrowed for the call.
 *
 * The new allocation is: `held`, without `assignment.revoked`, with `assignment.assigned`; with
 * kind CONNECT_EAGER it is `assignment.assigned` alone. `held` is what we joined with, so what the
 * leader takes us to have: what was given up after that is ours again, and what was added after
 * that is not. Revoked items need not be held, assigned ones may be held already. assignment.error
 * != 0: read the config topic up to assignment.offset and report it, change nothing; the member
 * joins again by itself, then or after a back-off. assignment.delay_ms: it joins again by itself
 * when that is over. A leader that gave us no entry at all gives an empty assignment.
 *
 * lease: for supervisor_lease, after what is taken away was told to stop, before anything is
 * started: after a loss hosts must not go on with what is no longer theirs. With an error: hard_ms
 * 0, the lease stays as it is. */
struct member_round {
    int64_t generation;
    enum connect_kind kind;
    const char *member_id;
    bool leads;
    const struct work_list *held;
    const struct connect_assignment *assignment;
    struct lease_times lease;
};

/* Called on the worker's loop, never from inside a call into this header, and never after
 * member_free. Texts are borrowed. */
struct member_events {
    /* The group knows us by this id. */
    void (*identity)(void *arg, const char *member_id);
    /* A round is open: from here to `assigned` the assignment may change. */
    void (*rebalancing)(void *arg);
    /* The protocol wants nothing to run now (eager, or a change to it). Stop all, report an empty
     * allocation, then member_stopped with this number: the round waits for it. */
    void (*stop_all)(void *arg, int64_t ask);
    /* We lead this round. Read the config topic at least up to min_offset, and the words of leavers
     * to their end, and answer by member_lead_take, within sync_ms; otherwise everybody is told to
     * read on and to join again. */
    void (*lead)(void *arg, int64_t ask, int64_t min_offset);
    /* What we assigned to whom (each member's id, metadata.url, share->owned): for routing. Comes
     * before `assigned`. */
    void (*led)(void *arg, int64_t generation, const struct lead *lead);
    /* The round is over. Act on it; then member_report with settled = generation: until then we
     * join no other round (but not for longer than half of rebalance_ms). */
    void (*assigned)(void *arg, const struct member_round *round);
    /* The group dropped us; what ran may run elsewhere by now. Hosts have been told by `lease`. We
     * join again by ourselves, at once, and report the allocation as it is: what stays here goes
     * on. A round that was being acted upon needs no settling. */
    void (*lost)(void *arg, const char *why);
    /* For supervisor_lease: renewed (when it gains half of heartbeat.interval.ms or so), or ended.
     * Between `lost` and `assigned` it is not renewed. */
    void (*lease)(void *arg, struct lease_times times);
    void (*left)(void *arg); /* member_leave is done, or could not be: we are out */
    /* It will never work (rights, protocol, login): we are out. Stop everything and end the
     * worker. */
    void (*failed)(void *arg, const struct mr_error *err);
};

/* Check the options and start the thread; nothing is sent before member_start. loop: the worker's;
 * events' functions may not be NULL. NULL with err (MR_ERR_CONFIG names the key). */
struct member *member_new(struct loop *loop, const struct member_options *options,
                          const struct member_events *events, void *arg, struct mr_error *err);
/* Ends the thread without a word to the group: the broker waits the session out. On the worker's
 * loop, also in an event. Waits for the thread, which never blocks for long (a small file is all it
 * writes). */
void member_free(struct member **member);

/* What the herder tells.
 *
 * allocation  what we hold now: copied; NULL: as reported before
 * offset      of the config topic: last record read + 1, -1 none
 * settled     generation whose assignment was acted upon, -1 none
 * rejoin      a round is wanted, why (for the log); NULL none. Several while one is open or about
 *             to be make one more
 * stopping    a connector of which something that others are to begin still stops here: no round is
 *             joined until a word says NULL (but not for longer than half of rebalance_ms) */
struct member_word {
    const struct work_list *allocation;
    int64_t offset;
    int64_t settled;
    const char *rejoin;
    const char *stopping;
};

/* All of these: from the worker's loop, never blocking; MR_ERR_NOMEM. Words that came too late for
 * what they answer are ignored. */
int member_start(struct member *member, int64_t offset);
int member_report(struct member *member, const struct member_word *word);
int member_stopped(struct member *member, int64_t ask);
int member_lead_take(struct member *member, int64_t ask, struct lead_snapshot *snapshot);
/* Say goodbye: `left` follows, at the latest after about 3 s. Everything must have been stopped
 * before. member_start joins again. */
int member_leave(struct member *member);

#endif
