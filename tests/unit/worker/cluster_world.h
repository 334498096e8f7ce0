/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's worker whose topics, group and peers a test plays, over the supervisor and the clock
 * of herder_world.h. One journal has all of it, in order. Included by one .c of a test binary. */
#ifndef TESTS_CLUSTER_WORLD_H
#define TESTS_CLUSTER_WORLD_H

#include "herder_world.h"
#include "worker/herder/cluster/distributed.h"
#include "worker/herder/cluster/distributed_private.h"
#include "worker/herder/cluster/fence_round.h"
#include "worker/herder/herder.h"

#include "base/clock.h"
#include "base/log.h"

/* --- topics, group and peers ------------------------------------------------------------------ */

#define DONE_MAX 16

static struct cluster {
    struct cluster_store_events store;
    void *store_arg;
    struct config_state *config;
    struct status_state *status;
    struct word_state *words;
    int64_t offset;
    struct {
        cluster_store_done fn;
        void *arg;
    } done[DONE_MAX]; /* of what was asked of the store and not answered */
    size_t done_count;
    bool confirms; /* a store that closes has been answered what is open */
    struct member_events member;
    void *member_arg;
    int64_t generation;
    struct work_list held; /* as it was reported last */
    peer_done peer_fn;
    void *peer_arg;
    fence_round_done fence_fn; /* of the round under way, NULL none */
    void *fence_arg;
    int claims; /* of the leader's writes, and of these anew */
    int claims_anew;
    bool java_assignor; /* of the member's options */
    char trace[64];     /* of the last status */
    int64_t lease_ms;   /* of the store */
} cluster;

static void asked(cluster_store_done fn, void *arg)
{
    assert_true(cluster.done_count < DONE_MAX);
    cluster.done[cluster.done_count].fn = fn;
    cluster.done[cluster.done_count++].arg = arg;
}

/* The store answers its oldest question. */
static void answer(int code)
{
    cluster_store_done fn = cluster.done[0].fn;
    void *arg = cluster.done[0].arg;
    struct mr_error err = {.code = code};

    assert_true(cluster.done_count > 0);
    memmove(cluster.done, cluster.done + 1, --cluster.done_count * sizeof(cluster.done[0]));
    snprintf(err.text, sizeof(err.text), "it says no");
    fn(arg, code != 0 ? &err : NULL);
}

struct cluster_store *cluster_store_open(const struct cluster_store_options *options,
                                         const struct cluster_store_events *events,
                                         struct mr_error *err)
{
    cluster.store = *events;
    cluster.store_arg = options->arg;
    cluster.config = config_state_new();
    cluster.status = status_state_new();
    cluster.words = word_state_new();
    return (struct cluster_store *)&cluster;
}

void cluster_store_close(struct cluster_store **store, int64_t deadline_ms)
{
    *store = NULL;
    while (cluster.done_count > 0)
        answer(cluster.confirms ? 0 : MR_ERR_CLOSED);
    config_state_free(&cluster.config);
    status_state_free(&cluster.status);
    word_state_free(&cluster.words);
}

const struct config_state *cluster_store_config(const struct cluster_store *store)
{
    return cluster.config;
}

const struct status_state *cluster_store_status(const struct cluster_store *store)
{
    return cluster.status;
}

void cluster_store_refresh(struct cluster_store *store, int64_t timeout_ms, cluster_store_done done,
                           void *arg)
{
    assert_non_null(store);
    note("refresh\n");
    asked(done, arg);
}

void cluster_store_claim(struct cluster_store *store, bool anew)
{
    cluster.claims++;
    cluster.claims_anew += anew;
}

const struct word_state *cluster_store_words(const struct cluster_store *store)
{
    return cluster.words;
}

void cluster_store_refresh_words(struct cluster_store *store, int64_t timeout_ms,
                                 cluster_store_done done, void *arg)
{
    note("refresh words\n");
    asked(done, arg);
}

void cluster_store_say(struct cluster_store *store, const struct word *word, int64_t timeout_ms,
                       cluster_store_done done, void *arg)
{
    struct buf key, value;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    assert_int_equal(word_records_render(word, &key, &value), 0);
    note("say %s %s\n", key.data, word->tombstone ? "no more" : value.data);
    buf_deinit(&key);
    buf_deinit(&value);
    if (done != NULL)
        asked(done, arg);
}

void cluster_store_put_connector(struct cluster_store *store, const char *conn,
                                 const struct props *config, const enum target_state *initial,
                                 cluster_store_done done, void *arg)
{
    note("write connector %s%s%s\n", conn, initial != NULL ? " " : "",
         initial != NULL ? target_state_name(*initial) : "");
    asked(done, arg);
}

void cluster_store_remove_connector(struct cluster_store *store, const char *conn,
                                    cluster_store_done done, void *arg)
{
    note("write removal %s\n", conn);
    asked(done, arg);
}

void cluster_store_put_tasks(struct cluster_store *store, const char *conn,
                             const struct props *tasks, size_t count, cluster_store_done done,
                             void *arg)
{
    note("write tasks %s %zu\n", conn, count);
    asked(done, arg);
}

void cluster_store_put_target(struct cluster_store *store, const char *conn,
                              enum target_state target, cluster_store_done done, void *arg)
{
    assert_non_null(store);
    note("write target %s %s\n", conn, target_state_name(target));
    asked(done, arg);
}

void cluster_store_put_task_count(struct cluster_store *store, const char *conn, int count,
                                  cluster_store_done done, void *arg)
{
    note("write count %s %d\n", conn, count);
    asked(done, arg);
}

struct fence_round *fence_round_new(struct loop *loop, const struct fence_order *order,
                                    fence_round_done done, void *arg, struct mr_error *err)
{
    if (order->tasks == NULL)
        note("fence %s-%s-0 to %zu\n", order->group, order->conn, order->count - 1);
    for (size_t i = 0; order->tasks != NULL && i < order->count; i++)
        note("fence %s-%s-%d\n", order->group, order->conn, order->tasks[i]);
    cluster.fence_fn = done;
    cluster.fence_arg = arg;
    return (struct fence_round *)&cluster;
}

void fence_round_free(struct fence_round **round)
{
    if (*round == NULL)
        return;
    if (cluster.fence_fn != NULL)
        note("fence off\n");
    cluster.fence_fn = NULL;
    *round = NULL;
}

void cluster_store_put_session_key(struct cluster_store *store,
                                   const struct config_session_key *key, cluster_store_done done,
                                   void *arg)
{
    note("write key of %zu bytes\n", key->key_len);
    asked(done, arg);
}

void cluster_store_put_restart(struct cluster_store *store, const char *conn, bool include_tasks,
                               bool only_failed, cluster_store_done done, void *arg)
{
    note("write restart %s %d %d\n", conn, include_tasks, only_failed);
    asked(done, arg);
}

void cluster_store_put_logger(struct cluster_store *store, const char *logger, const char *level,
                              cluster_store_done done, void *arg)
{
    note("write level %s %s\n", logger, level);
    asked(done, arg);
}

void cluster_store_lease(struct cluster_store *store, int64_t hard_ms)
{
    cluster.lease_ms = hard_ms;
}

void cluster_store_put_status(struct cluster_store *store, const char *conn, int task,
                              const struct status *status, bool safe)
{
    note("status %s %d %s %d%s\n", conn, task, state_name(status->state), status->generation,
         safe ? " safe" : "");
    snprintf(cluster.trace, sizeof(cluster.trace), "%s",
             status->trace != NULL ? status->trace : "none");
}

void cluster_store_remove_status(struct cluster_store *store, const char *conn, int task)
{
    note("status %s %d gone\n", conn, task);
}

void cluster_store_put_topic(struct cluster_store *store, const char *conn, const char *topic,
                             int task)
{
    note("topic %s %s of task %d\n", conn, topic, task);
}

void cluster_store_remove_topic(struct cluster_store *store, const char *conn, const char *topic)
{
    note("topic %s %s gone\n", conn, topic);
}

void cluster_store_look_at_topic(struct cluster_store *store, const char *topic)
{
    note("look at topic %s\n", topic);
}

struct offset_store cluster_store_offsets(struct cluster_store *store)
{
    return (struct offset_store){0};
}

struct member *member_new(struct loop *loop, const struct member_options *options,
                          const struct member_events *events, void *arg, struct mr_error *err)
{
    assert_string_equal(options->url, "http://me:8083/");
    assert_string_equal(props_get(options->kafka, "client.id"), "connect-me:8083");
    cluster.java_assignor = options->java_assignor;
    cluster.member = *events;
    cluster.member_arg = arg;
    return (struct member *)&cluster;
}

void member_free(struct member **member)
{
    *member = NULL;
}

int member_start(struct member *member, int64_t offset)
{
    note("join %d\n", (int)offset);
    return 0;
}

static void note_list(const struct work_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t t = 0; t < list->entries[i].count; t++)
            note(" %s:%d", list->entries[i].conn, (int)list->entries[i].tasks[t]);
}

int member_report(struct member *member, const struct member_word *word)
{
    static bool stopping;
    bool changed = stopping != (word->stopping != NULL);

    stopping = word->stopping != NULL;
    if (word->allocation != NULL)
        assert_int_equal(work_list_copy(&cluster.held, word->allocation), 0);
    if (word->settled < 0 && word->rejoin == NULL && word->allocation == NULL) {
        if (changed)
            note(stopping ? "join nothing\n" : "join again\n");
        return 0; /* only how far it has read */
    }
    if (word->settled >= 0)
        note("settled %d:", (int)word->settled);
    else
        note("report:");
    if (word->allocation != NULL)
        note_list(word->allocation);
    note("%s%s%s\n", word->rejoin != NULL ? " and again: " : "",
         word->rejoin != NULL ? word->rejoin : "", stopping ? ", not yet" : "");
    return 0;
}

int member_stopped(struct member *member, int64_t ask)
{
    note("stopped %d\n", (int)ask);
    return 0;
}

int member_lead_take(struct member *member, int64_t ask, struct lead_snapshot *snapshot)
{
    note("lead %d at %d:", (int)ask, (int)snapshot->offset);
    for (size_t i = 0; i < snapshot->conn_count; i++)
        note(" %s %d", snapshot->conns[i].name, (int)snapshot->conns[i].tasks);
    for (size_t i = 0; i < snapshot->leaver_count; i++)
        note(" without %s", snapshot->leavers[i]);
    note("\n");
    lead_snapshot_free(&snapshot);
    return 0;
}

int member_leave(struct member *member)
{
    note("leave\n");
    return 0;
}

struct peer *peer_new(struct loop *loop, const struct worker_https *https, struct mr_error *err)
{
    return (struct peer *)&cluster;
}

void peer_free(struct peer **peer)
{
    *peer = NULL;
}

void peer_send(struct peer *peer, const struct peer_request *request, peer_done done, void *arg)
{
    note("%s %s %.*s%s\n", request->method, request->url, (int)request->len, request->body,
         request->signature != NULL ? " signed" : "");
    cluster.peer_fn = done;
    cluster.peer_arg = arg;
}

void peer_give_up(struct peer *peer, const char *base, const char *error)
{
    note("give up %s\n", base);
}

char *peer_escape(const char *text)
{
    return strdup(text);
}

char *peer_url(const char *base, const char *path)
{
    char *url = NULL;

    assert_true(asprintf(&url, "%.*s%s", (int)strlen(base) - 1, base, path) > 0);
    return url;
}

void supervisor_lease(struct supervisor *sup, int64_t soft_ms, int64_t hard_ms)
{
    note("lease %d %d\n", (int)soft_ms, (int)hard_ms);
}

/* --- what happens ----------------------------------------------------------------------------- */

struct fixture {
    struct worker_config config;
    struct herder *herder;
    bool readable;
    int failed; /* code */
    bool ended;
    int answers;
    int code;
    char text[256];
    char elsewhere[64];
};

static void on_readable(void *arg)
{
    ((struct fixture *)arg)->readable = true;
}

static void on_failed(void *arg, const struct mr_error *err)
{
    ((struct fixture *)arg)->failed = err->code;
}

__attribute__((unused)) static void on_ended(void *arg)
{
    ((struct fixture *)arg)->ended = true;
}

/* A record comes to the config topic, and is read. value NULL: a tombstone. */
static void record(const char *key, const char *value)
{
    struct config_change change = {0};
    struct config_record rec;
    struct mr_error err = {0};

    if (config_records_parse(key, strlen(key), value, value != NULL ? strlen(value) : 0, &rec,
                             &err) != 0)
        fail_msg("%s: %s", key, err.text);
    config_state_apply(cluster.config, cluster.offset++, &rec, &change);
    if (cluster.store.config != NULL && change.kind != CONFIG_NOTHING)
        cluster.store.config(cluster.store_arg, &change);
    config_record_deinit(&rec);
}

#define SRC "{\"properties\":{\"connector.class\":\"Src\",\"topic\":\"t\",\"name\":\"c\"}}"

static void create(const char *conn)
{
    char key[64];

    snprintf(key, sizeof(key), "connector-%s", conn);
    record(key, SRC);
}

static void commit(const char *conn, int count)
{
    char key[64], value[128];

    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "task-%s-%d", conn, i);
        record(key, "{\"properties\":{\"a\":\"b\",\"task.class\":\"org.example.SrcTask\"}}");
    }
    snprintf(key, sizeof(key), "commit-%s", conn);
    snprintf(value, sizeof(value), "{\"tasks\":%d}", count);
    record(key, value);
}

struct round {
    const char *assigned; /* "c:-1 c:0" */
    const char *revoked;
    bool leads;
    bool mismatch;
    bool lease;
    const char *leader_url;
    int64_t ahead;           /* its offset is so much further than ours */
    const char *joined_with; /* NULL: what was reported last */
};

static void read_list(struct work_list *list, const char *text)
{
    char conn[64];
    int task, used;

    while (text != NULL && sscanf(text, " %63[^:]:%d%n", conn, &task, &used) == 2) {
        assert_int_equal(work_list_add(list, conn, task), 0);
        text += used;
    }
}

static void round_ends(const struct round *round)
{
    struct connect_assignment given = {
        .leader = (char *)(uintptr_t) "m1",
        .leader_url =
            (char *)(uintptr_t)(round->leader_url != NULL ? round->leader_url : "http://leader:1/"),
        .offset = config_state_offset(cluster.config) + round->ahead,
        .error = round->mismatch ? 1 : 0};
    struct work_list held = {0};

    read_list(&given.assigned, round->assigned);
    read_list(&given.revoked, round->revoked);
    if (round->joined_with != NULL)
        read_list(&held, round->joined_with);
    else
        assert_int_equal(work_list_copy(&held, &cluster.held), 0);
    cluster.member.assigned(
        cluster.member_arg,
        &(struct member_round){.generation = ++cluster.generation,
                               .kind = CONNECT_SESSIONED,
                               .member_id = "m2",
                               .leads = round->leads,
                               .lease = {round->lease ? 1 : 0, round->lease ? 2 : 0},
                               .held = &held,
                               .assignment = &given});
    work_list_deinit(&held);
    work_list_deinit(&given.assigned);
    work_list_deinit(&given.revoked);
}

static char assignor[] = "millrace"; /* millrace.assignor */
static char support[] = "disabled";  /* exactly.once.source.support; room for "enabled" */

static int set_up(void **state)
{
    static char *macs[] = {(char *)(uintptr_t) "HmacSHA256", NULL};
    struct fixture *f = calloc(1, sizeof(*f));
    struct mr_error err = {0};

    memset(&world, 0, sizeof(world));
    memset(&cluster, 0, sizeof(cluster));
    world.loop.now_ms = 1000;
    f->config = (struct worker_config){.graceful_ms = 5000,
                                       .restart_max = 5,
                                       .path = "w",
                                       .worker_id = (char *)(uintptr_t) "me:8083",
                                       .cluster = {.group_id = (char *)(uintptr_t) "g",
                                                   .exactly_once = support,
                                                   .protocol = (char *)(uintptr_t) "sessioned",
                                                   .assignor = assignor,
                                                   .client_id = (char *)(uintptr_t) "",
                                                   .key_ttl_ms = 3600000,
                                                   .key_algorithm = macs[0],
                                                   .signature_algorithm = macs[0],
                                                   .verification_algorithms = macs}};
    props_init(&f->config.props);
    log_set_level(LOG_OFF);
    f->herder = herder_new(&(struct herder_options){.loop = &world.loop,
                                                    .config = &f->config,
                                                    .catalog = (const struct catalog *)&world,
                                                    .open = distributed_open,
                                                    .readable = on_readable,
                                                    .failed = on_failed,
                                                    .arg = f},
                           &err);
    assert_non_null(f->herder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    herder_free(&f->herder);
    work_list_deinit(&cluster.held);
    assert_null(next_timer(INT64_MAX));
    props_deinit(&f->config.props);
    free(f);
    return 0;
}

static void forget(void)
{
    world.journal[0] = '\0';
}

/* Topics read, and a first round over that gave us this. */
static void join(const char *assigned, bool leads)
{
    cluster.store.ready(cluster.store_arg, NULL);
    round_ends(&(struct round){.assigned = assigned, .leads = leads});
    if (leads) {
        record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                              "\"creation-timestamp\":4000000000000}");
        while (cluster.done_count > 0)
            answer(0);
    }
    pass(0);
    forget();
}

static void task_says(const char *conn, int task, enum state state)
{
    if (state == STATE_UNASSIGNED || state == STATE_FAILED)
        host_of(conn)->live[task] = false;
    if (host_of(conn)->stopping == task)
        host_of(conn)->stopping = -1;
    world.events.task_status(world.arg, conn, task, state, NULL);
}

__attribute__((unused)) static void died(const char *conn)
{
    struct supervisor_death death = {host_of(conn)->draining, -1, "drained"};

    memset(host_of(conn), 0, sizeof(struct host));
    world.events.died(world.arg, conn, &death);
}

#endif
