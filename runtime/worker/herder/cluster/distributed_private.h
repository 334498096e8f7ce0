/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a cluster's source share: the connectors as the config topic and the group have
 * them, and the round that is under way. Owner: the worker's loop. */
#ifndef WORKER_DISTRIBUTED_PRIVATE_H
#define WORKER_DISTRIBUTED_PRIVATE_H

#include "base/map.h"
#include "worker/group/member.h"
#include "worker/herder/conn_source.h"
#include "worker/herder/cluster/round_pace.h"
#include "worker/peer.h"
#include "worker/worker_https.h"
#include "worker/store/cluster_store.h"

/* A connector that the config topic has named since we began; also a deleted one, until a round is
 * over and nothing of it is under way any more. */
struct dist_conn {
    struct distributed *d;
    char *name;
    bool known;            /* it has a configuration */
    uint64_t serial;       /* of that */
    bool held;             /* a new set of tasks came: none is started before the next round */
    int64_t held_offset;   /* of the config topic, behind that set */
    bool stopping;         /* tasks of an older set, or of a deleted connector, still stop here */
    uint64_t missing_told; /* serial for which it was told that its class is not installed, */
    struct work_list missing; /* of these that are assigned here, */
    char *missing_trace;      /* in these words */
    /* task_writer.c */
    bool writing; /* a set is on its way to the topic */
    bool again;   /* and is to be made anew after that */
    bool kept;    /* it was told that none can be sent to who leads now */
    int64_t backoff_ms;
    struct loop_timer retry;
    /* cluster_fence.c */
    bool fencing;              /* a round is under way */
    struct fence_round *round; /* its first half */
    uint64_t fence_serial;
    int64_t fence_generation;
    /* cluster_lost.c */
    struct work_list lost; /* tasks that nobody has, and whose ids were fenced for it */
    struct fence_round *lost_round;
    struct fence_round *orphan_round; /* of tasks whose host died here */
    struct work_list orphans;         /* these tasks, as long as it is under way */
};

struct fence_wait;
struct telling;

/* Steps of acting on a round. STOPPING: what was revoked still ends, or the config topic is still
 * read. */
enum dist_step { DIST_IDLE, DIST_STOPPING };

struct distributed {
    struct conn_source source;
    struct source_parts parts;
    struct connectors *connectors;
    struct cluster_store *store;
    struct member *member;
    struct peer *peer;
    struct worker_https https; /* of peer */
    struct map *conns;
    uint64_t serials;
    char *url;       /* ours, as advertised */
    char *member_id; /* "" none */
    bool replayed;
    bool joined; /* a round was acted upon */
    bool closing;
    bool config_lost; /* the config topic is: nothing new is heard of it */
    loop_fn left_fn;
    void *left_arg;
    /* cluster_round.c: the group as of the last round */
    bool rebalancing;
    int64_t generation;
    enum connect_kind kind;
    bool leads;
    char *leader_url;            /* "" unknown */
    int64_t lease_ms;            /* when ours ends, by clock_boot_ms; 0: never */
    struct map *owners;          /* "TASK CONN" → URL, of a leader */
    struct map *members;         /* URLs of the group's members, of a leader: → anything */
    char *stranger;              /* who was named last as none of them; "" nobody */
    struct work_list allocation; /* what is to run here */
    enum dist_step step;
    uint64_t round;  /* number of the round being acted upon: answers to earlier ones are dropped */
    bool reading;    /* the config topic, for it */
    bool unreadable; /* that failed */
    int64_t offset;  /* that the assignment was made for */
    struct work_list assigned;
    struct work_list ending; /* what must have stopped */
    bool resharing;          /* a list is being gone through */
    bool revoked;            /* something was: another round follows */
    bool mismatch;           /* the round says only: read on */
    int64_t stop_ask;        /* of member.h's stop_all; -1 none */
    struct round_pace pace;
    const char *wish; /* why another round is wanted, when wish_timer ends */
    struct loop_timer wish_timer;
    /* cluster_words.c */
    struct map
        *leavers;     /* those that the last snapshot named and that are no members: → anything */
    bool word_missed; /* a goodbye came after that snapshot */
    bool twins_told;  /* by us as the leader */
    char *lost;       /* "The topic … is lost": the first one; NULL none */
    char *twin;       /* who advertises what we do, and was named for it last; "" nobody */
    struct telling *tellings; /* of sinks' members, under way */
    bool leaving;
    struct loop_timer goodbye_timer;
    struct fence_wait *fence_waits; /* cluster_fence.c */
    /* cluster_status.c */
    struct loop_timer repair_timer; /* to look for states that others wrote over ours */
    struct map *repairs;            /* "TASK CONN" → struct repair, counted since: */
    int64_t repairs_since_ms;
    /* key_keeper.c */
    struct loop_timer key_timer;
    bool key_writing;
};

/* --- distributed.c ---------------------------------------------------------------------------- */

static inline struct distributed *distributed_of(struct conn_source *source)
{
    return (struct distributed *)source;
}

static inline const struct distributed *distributed_in(const struct conn_source *source)
{
    return (const struct distributed *)source;
}

struct dist_conn *distributed_conn(const struct distributed *d, const char *name);
const struct config_state *distributed_config(const struct distributed *d);
/* Its class, in the version that is asked for, or in another where only that is not here (it does
 * not run then). NULL: it is not installed here. */
const struct catalog_plugin *distributed_plugin(const struct distributed *d,
                                                const struct config_conn *config);
/* Do tasks of such a connector run in transactions here? */
bool distributed_in_transactions(const struct distributed *d, const struct catalog_plugin *plugin);
/* A connector of which something still stops here that others may begin after the next round; NULL
 * none. */
const char *distributed_stopping(const struct distributed *d);
/* Let go of deleted connectors of which nothing is under way any more. */
void distributed_forget(struct distributed *d);
/* Tell the member how far we have read and what stops here; with a rejoin also to ask the group for
 * another round, now, and why. NULL: not that. */
void distributed_report(struct distributed *d, const char *rejoin);
/* The group may have given our work, and our say, to others. */
bool distributed_lease_over(const struct distributed *d);

/* --- cluster_changes.c ------------------------------------------------------------------------ */

void cluster_changes_serve(struct conn_source *source); /* its functions that change something */

/* --- cluster_topics.c ------------------------------------------------------------------------- */

extern const struct cluster_store_events cluster_topics_events; /* arg: struct distributed */

/* --- cluster_round.c -------------------------------------------------------------------------- */

extern const struct member_events cluster_round_events; /* arg: struct distributed */
void cluster_round_go_on(struct distributed *d);        /* something has stopped */
/* The config topic has changed: another round is wanted, soon. why: a literal. */
void cluster_round_want(struct distributed *d, const char *why);
void cluster_round_deinit(struct distributed *d);
/* URL of who has this; "" unknown. Leaders only. */
const char *cluster_round_owner(const struct distributed *d, const char *conn, int task);

/* --- cluster_words.c -------------------------------------------------------------------------- */

void cluster_words_heard(struct distributed *d, const struct word *word);
void cluster_words_goodbye(struct distributed *d); /* then member_leave */
/* The leader's: add them to the snapshot of a round; the members of that round are known; it is
 * over. */
void cluster_words_leavers(struct distributed *d, struct lead_snapshot *snapshot);
void cluster_words_led(struct distributed *d, const struct lead *lead);
void cluster_words_settled(struct distributed *d); /* also a follower's */
void cluster_words_led_by(struct distributed *d, const char *leader, const char *url);
/* As conn_source.h's. */
void cluster_words_joined(struct distributed *d, const char *task, const char *member);
void cluster_words_want_round(struct distributed *d); /* what was revoked has stopped */

/* --- cluster_status.c ------------------------------------------------------------------------- */

void cluster_status_told(struct distributed *d, const char *conn, int task, enum state state,
                         const char *trace);
/* Its class is not installed here, which trace says. */
void cluster_status_missing(struct distributed *d, struct dist_conn *conn, const char *trace);
void cluster_status_tidy(struct distributed *d); /* the leader's: of what is no more */
void cluster_status_forget_topics(struct distributed *d, const char *conn);
/* A state in the topic has changed. One of what is here that another hand wrote is soon written
 * again as it is, a few times. */
void cluster_status_read(struct distributed *d, const char *conn, int task);
void cluster_status_deinit(struct distributed *d);

/* --- task_writer.c ---------------------------------------------------------------------------- */

void task_writer_made(struct distributed *d, const char *conn, struct props *configs, size_t count);
/* The topic has no whole set for this connector: have one made, by whoever has the object. */
void task_writer_torn(struct dist_conn *conn);
void task_writer_round_over(struct distributed *d); /* what waits is tried soon */
void task_writer_forget(struct dist_conn *conn);    /* cancel what waits */

/* --- cluster_fence.c -------------------------------------------------------------------------- */

/* Fence the producers of a source connector's earlier sets of tasks, if any are left. patient: what
 * may pass is tried again. done runs once, not before this returns if the answer is not at hand. */
void cluster_fence(struct distributed *d, const char *conn, bool patient, connectors_done done,
                   void *arg);
void cluster_fence_cancel(struct dist_conn *conn); /* its tasks were configured anew */
void cluster_fence_end(struct distributed *d);     /* closing: before peers and store end */

/* --- cluster_lost.c --------------------------------------------------------------------------- */

/* After the owners are known. */
void cluster_lost_led(struct distributed *d, const struct lead *lead);
void cluster_lost_forget(struct dist_conn *conn); /* call off what is under way */
/* Tasks here whose host died, and that stay away for now; they begin again, or are not ours. */
void cluster_lost_orphaned(struct distributed *d, const struct lifecycle_orphans *orphans);
void cluster_lost_drop_orphans(struct dist_conn *conn);
void cluster_lost_call_off(const struct distributed *d, const char *conn);

/* --- key_keeper.c ----------------------------------------------------------------------------- */

void key_keeper_look(struct distributed *d); /* is another key due? */

#endif
