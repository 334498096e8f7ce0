/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the membership share. Everything belongs to the group thread, but for what
 * member_ear.c posts. */
#ifndef WORKER_GROUP_MEMBER_PRIVATE_H
#define WORKER_GROUP_MEMBER_PRIVATE_H

#include "wire/coordinator.h"
#include "wire/kafka_code.h"
#include "worker/group/member.h"

#include <pthread.h>

#define MEMBER_BACKOFF_MAX_MS 1000
#define MEMBER_MISMATCH_MAX_MS 5000 /* between rounds that end with CONNECT_CONFIG_MISMATCH */
#define MEMBER_BEAT_MIN_MS 100
#define MEMBER_LEAVE_MS 3000
#define MEMBER_GHOST_TRIES 5

enum member_state {
    MEMBER_OUT,      /* not asked to be in, or gone */
    MEMBER_WAITING,  /* wants to join: a back-off runs, or the herder acts on the last round */
    MEMBER_EMPTYING, /* before JoinGroup or SyncGroup: the herder stops everything */
    MEMBER_JOINING,  /* JoinGroup is sent; the broker may park it */
    MEMBER_LEADING,  /* the herder's snapshot is awaited */
    MEMBER_SYNCING,  /* SyncGroup is sent */
    MEMBER_STABLE,
    MEMBER_LEAVING,
    MEMBER_FAILED
};

struct ear;

struct member {
    /* as given */
    char *group;
    char *url;
    enum connect_kind best;
    bool java_assignor;
    int64_t session_ms, heartbeat_ms, rebalance_ms, max_delay_ms, sync_ms, retry_backoff_ms;
    int64_t request_ms;

    struct ear *ear;
    struct loop *loop;
    pthread_t thread;
    struct wire_conf *conf;
    struct wire_client *client;
    struct coordinator *coordinator;
    bool ending; /* answers and commands are only freed */
    unsigned seed;

    /* who we are; generation -1: in none */
    enum member_state state;
    uint64_t epoch;    /* changes when what is under way no longer matters */
    uint64_t identity; /* changes with the id */
    char *id;
    int32_t generation;

    /* what the herder told */
    struct work_list held;
    int64_t offset;

    /* of the last round that ended well; kind -1: none */
    int kind;
    int64_t completed;
    char *leader;
    char *leader_url;
    int64_t assigned_offset;

    /* the round that is wanted or open */
    bool wants_round;
    bool open_told;    /* `rebalancing` was posted */
    int64_t unsettled; /* generation the herder is acting upon, -1 none */
    char *stopping;    /* the herder's word; NULL nothing */
    bool held_long_enough;
    int failures;          /* on end, until STABLE */
    int mismatches;        /* rounds on end */
    int64_t wanted_offset; /* of the last of them */
    struct loop_timer retry, settle, delay;

    /* the round in which we are joined */
    int round_kind;
    bool leads;
    bool twins_told;              /* two members with one URL were named */
    int64_t ask;                  /* number of the last question to the herder */
    struct work_list joined_with; /* what our JoinGroup said that we hold */
    struct lead lead;
    struct assignor *assignor;
    struct loop_timer lead_timer;

    /* heartbeats */
    struct lease lease;
    int64_t told_ms; /* the hard time that was told last, 0: none that holds */
    int64_t tell_ms; /* renewals that gain less are not told: each goes to every host */
    bool lease_held; /* what is ours is not known: the lease is told with the next assignment */
    struct loop_timer beat;
    bool beating;        /* one is under way */
    int64_t answered_ms; /* monotonic: the last one that was answered as from a member */
    char *ghost_file;    /* NULL: none */
    char *ghost;         /* NULL: none, or gone */
    int ghost_tries;
    bool ghost_asked;
    bool said_goodbye; /* and the broker knows */
    struct loop_timer leave_timer, ghost_timer;
};

/* What an answer belongs to. One a call; its callback frees it, by member_called or itself. */
struct member_call {
    struct member *member;
    uint64_t epoch;
    uint64_t identity;
    int32_t generation;
};

/* Make a call over a lane. false: it could not be made, fn is not called. */
bool member_call(struct member *m, enum coordinator_lane lane, const struct request *request,
                 int64_t timeout_ms, answer_fn fn);
/* The member that an answer is for; NULL when it is stale, or the member is ending. */
struct member *member_called(void *arg);

/* member.c */
void member_fail(struct member *m, const struct mr_error *err);
void member_fail_code(struct member *m, enum request_api api, int16_t code);
void member_set_id(struct member *m, const char *id);
int64_t member_jitter(struct member *m, int64_t ms); /* within a fifth */
bool member_is_fatal(const struct mr_error *err);

/* member_join.c */
void member_want_round(struct member *m, const char *why);
void member_try_join(struct member *m);
void member_retry(struct member *m, bool at_once);
/* The group does not know us (25), or this generation is over (22). */
void member_dropped(struct member *m, const char *why);
void member_emptied(struct member *m, int64_t ask);
/* The herder reported an offset: perhaps the one that the last round wanted. */
void member_read_on(struct member *m);
void member_led(struct member *m, int64_t ask, const struct lead_snapshot *snapshot);
void member_open(struct member *m);

/* member_beat.c */
void member_beat_later(struct member *m, int64_t delay_ms);
void member_lease_renewed(struct member *m);
void member_evict_ghost(struct member *m);
void member_say_goodbye(struct member *m);

/* --- member_ear.c: events to the worker's loop ------------------------------------------------ */

struct ear *ear_new(struct loop *loop, const struct member_events *events, void *arg);
void ear_close(struct ear **ear); /* on the worker's loop: nothing is heard from now on */

void ear_identity(struct ear *ear, const char *member_id);
void ear_rebalancing(struct ear *ear);
void ear_stop_all(struct ear *ear, int64_t ask);
void ear_lead(struct ear *ear, int64_t ask, int64_t min_offset);
void ear_led_take(struct ear *ear, int64_t generation, struct lead *lead);
/* round's assignment is taken. */
void ear_assigned_take(struct ear *ear, const struct member_round *round,
                       struct connect_assignment *assignment);
void ear_lost(struct ear *ear, const char *why);
void ear_lease(struct ear *ear, struct lease_times times);
void ear_left(struct ear *ear);
void ear_failed(struct ear *ear, const struct mr_error *err);

#endif
