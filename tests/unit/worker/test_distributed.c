/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's worker whose topics, group and peers this file plays, over the supervisor and the clock of herder_world.h: what a
 * round may start and must have stopped, what is written by whom, and who is asked to act. One journal has all of it, in order. */
#define LOGGER "test"
#include "base/log.h"
#include "herder_world.h"
#include "worker/herder/distributed.h"
#include "worker/herder/distributed_private.h"
#include "worker/herder/herder.h"

/* --- topics, group and peers -------------------------------------------------------------------------------------------- */

#define DONE_MAX 16

static struct cluster {
    struct cluster_store_events store;
    void *store_arg;
    struct config_state *config;
    struct status_state *status;
    int64_t offset;
    struct {
        cluster_store_done fn;
        void *arg;
    } done[DONE_MAX]; /* of what was asked of the store and not answered */
    size_t done_count;
    struct member_events member;
    void *member_arg;
    int64_t generation;
    peer_done peer_fn;
    void *peer_arg;
    char trace[64];   /* of the last status */
    int64_t lease_ms; /* of the store */
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
    return (struct cluster_store *)&cluster;
}

void cluster_store_close(struct cluster_store **store, int64_t deadline_ms)
{
    while (cluster.done_count > 0)
        answer(MR_ERR_CLOSED);
    config_state_free(&cluster.config);
    status_state_free(&cluster.status);
    *store = NULL;
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
    note("refresh\n");
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
    note("write target %s %s\n", conn, target_state_name(target));
    asked(done, arg);
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

void cluster_store_remove_topic(struct cluster_store *store, const char *conn, const char *topic)
{
    note("topic %s %s gone\n", conn, topic);
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
    bool changed = stopping != word->stopping;

    stopping = word->stopping;
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
    note("\n");
    lead_snapshot_free(&snapshot);
    return 0;
}

int member_leave(struct member *member)
{
    note("leave\n");
    return 0;
}

struct peer *peer_new(struct loop *loop, struct mr_error *err)
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

/* --- what happens ----------------------------------------------------------------------------------------------------------- */

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

static void on_ended(void *arg)
{
    ((struct fixture *)arg)->ended = true;
}

static void on_answer(void *arg, const struct herder_answer *got)
{
    struct fixture *f = arg;

    f->answers++;
    f->code = got->err != NULL ? got->err->code : 0;
    snprintf(f->text, sizeof(f->text), "%s", got->message != NULL ? got->message : "");
    snprintf(f->elsewhere, sizeof(f->elsewhere), "%s",
             got->elsewhere == NULL ? "here" : got->elsewhere);
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
    int64_t ahead; /* its offset is so much further than ours */
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
    struct connect_assignment given = {.leader = (char *)(uintptr_t) "m1",
                                       .leader_url = (char *)(uintptr_t) "http://leader:1/",
                                       .offset = config_state_offset(cluster.config) + round->ahead,
                                       .error = round->mismatch ? 1 : 0};

    read_list(&given.assigned, round->assigned);
    read_list(&given.revoked, round->revoked);
    cluster.member.assigned(
        cluster.member_arg,
        &(struct member_round){.generation = ++cluster.generation,
                               .kind = CONNECT_SESSIONED,
                               .member_id = "m2",
                               .leads = round->leads,
                               .lease = {round->lease ? 1 : 0, round->lease ? 2 : 0},
                               .assignment = &given});
    work_list_deinit(&given.assigned);
    work_list_deinit(&given.revoked);
}

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
                                                   .protocol = (char *)(uintptr_t) "sessioned",
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

static void says(const char *conn, enum state state)
{
    world.events.connector_status(world.arg, conn, state, NULL, "1.0");
}

static void task_says(const char *conn, int task, enum state state)
{
    if (state == STATE_UNASSIGNED || state == STATE_FAILED)
        host_of(conn)->live[task] = false;
    if (host_of(conn)->stopping == task)
        host_of(conn)->stopping = -1;
    world.events.task_status(world.arg, conn, task, state, NULL);
}

static void made(const char *conn, int count)
{
    json_t *configs = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(configs, json_pack("{s:s}", "a", "b"));
    world.events.task_configs(world.arg, conn, configs, NULL);
    json_decref(configs);
}

static void died(const char *conn)
{
    struct supervisor_death death = {true, -1, "drained"};

    memset(host_of(conn), 0, sizeof(struct host));
    world.events.died(world.arg, conn, &death);
}

/* --- start and end ------------------------------------------------------------------------------------------------------------ */

static void the_group_is_joined_once_the_topics_were_read(void **state)
{
    struct fixture *f = *state;

    expect("");
    assert_false(herder_readable(f->herder));
    assert_string_equal(herder_stage(f->herder), "creating the connectors of the command line");
    herder_started(f->herder);
    assert_string_equal(herder_stage(f->herder), "reading the internal topics");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    forget();
    cluster.store.ready(cluster.store_arg, NULL);
    expect("join 1\n");
    assert_true(f->readable && herder_readable(f->herder));
    assert_string_equal(herder_stage(f->herder), "ensuring membership in the cluster");
    round_ends(&(struct round){.assigned = NULL});
    expect("settled 1:\n");
    world.probe_fn(world.probe_arg, "id");
    assert_true(herder_ready(f->herder));
}

static void topics_or_a_group_that_fail_end_the_worker(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {.code = MR_ERR_CONFIG};

    cluster.store.ready(cluster.store_arg, &err);
    assert_int_equal(f->failed, MR_ERR_CONFIG);
    expect("");
    err.code = MR_ERR_FATAL;
    cluster.member.failed(cluster.member_arg, &err);
    assert_int_equal(f->failed, MR_ERR_FATAL);
}

static void the_group_is_left_after_the_work_has_ended(void **state)
{
    struct fixture *f = *state;

    create("c");
    join("c:-1", false);
    says("c", STATE_RUNNING);
    forget();
    herder_shutdown(f->herder, on_ended, f);
    expect("drain c\n");
    pass(7900); /* its time and nearly all of the spare; a goodbye has a time of its own */
    died("c");
    pass(0);
    expect("status c -1 UNASSIGNED 1 safe\nleave\n");
    pass(3000);
    assert_false(f->ended);
    cluster.member.left(cluster.member_arg);
    assert_true(f->ended);
}

static void a_goodbye_that_takes_too_long_holds_up_no_end(void **state)
{
    struct fixture *f = *state;

    join(NULL, false);
    herder_shutdown(f->herder, on_ended, f);
    pass(0);
    pass(5000);
    assert_true(f->ended);
}

static void the_lease_goes_to_the_hosts(void **state)
{
    (void)state;
    cluster.member.lease(cluster.member_arg, (struct lease_times){7, 8});
    expect("lease 7 8\n");
}

/* --- rounds --------------------------------------------------------------------------------------------------------------------- */

static void what_is_assigned_starts_and_says_so(void **state)
{
    (void)state;
    create("c");
    commit("c", 3);
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = "c:-1 c:2"});
    pass(0);
    expect("settled 1: c:-1 c:2\nstart c Src STARTED\n");
    says("c", STATE_RUNNING);
    expect("status c -1 RUNNING 1\nask c 1\n");
    made("c", 3);
    task_says("c", 2, STATE_RUNNING);
    expect("task c 2 STARTED\nstatus c 2 RUNNING 1\n");
}

static void a_round_is_settled_when_what_it_took_has_stopped(void **state)
{
    (void)state;
    create("c");
    commit("c", 4);
    join("c:0 c:1 c:2", false);
    for (int i = 0; i < 3; i++)
        task_says("c", i, STATE_RUNNING);
    forget();
    round_ends(&(struct round){.revoked = "c:0 c:2", .assigned = "c:3", .lease = true});
    expect("stop_task c 0\nstop_task c 2\nlease 1 2\n");
    assert_int_equal(cluster.lease_ms, 2); /* also of what hosts have written */
    task_says("c", 2, STATE_UNASSIGNED);
    expect("status c 2 UNASSIGNED 2 safe\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 2 safe\n"
           "settled 2: c:1 c:3 and again: what was revoked has stopped\ntask c 3 STARTED\n");
}

static void a_worker_that_lags_reads_on_before_it_starts_anything(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    expect("refresh\n");
    record("target-state-x", "{\"state\":\"PAUSED\"}");
    answer(0);
    pass(0);
    expect("settled 2: c:0\nstart c Src STARTED for tasks\ntask c 0 STARTED\n");
}

static void a_topic_that_cannot_be_read_gives_no_new_work(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    answer(MR_ERR_TIMEOUT);
    pass(0);
    expect("refresh\nsettled 2: and again: the config topic could not be read\n");
}

static void a_round_of_an_unread_topic_changes_nothing(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0", false);
    round_ends(&(struct round){.mismatch = true, .ahead = 1});
    record("target-state-x", "{\"state\":\"PAUSED\"}");
    answer(0);
    expect("refresh\nsettled 2: c:0\n");
}

static void an_answer_to_an_earlier_round_is_dropped(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    round_ends(&(struct round){.assigned = NULL});
    expect("refresh\nsettled 3:\n");
    answer(0);
    expect("");
}

static void everything_stops_when_the_protocol_wants_it(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    cluster.member.stop_all(cluster.member_arg, 9);
    expect("drain c\n");
    died("c");
    expect("status c 0 UNASSIGNED 1 safe\nstatus c 1 UNASSIGNED 1 safe\nreport:\nstopped 9\n");
}

static void a_leader_reads_up_to_the_members_before_it_assigns(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    create("d");
    join(NULL, true);
    cluster.member.lead(cluster.member_arg, 3, 2);
    expect("lead 3 at 6: c 2 d 0\n");
    cluster.member.lead(cluster.member_arg, 4, 7);
    create("e");
    forget();
    answer(0);
    expect("lead 4 at 7: c 2 d 0 e 0\n");
}

/* --- what the topic says -------------------------------------------------------------------------------------------------------- */

static void tasks_of_a_new_set_wait_for_a_round(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:-1 c:0 c:1", false);
    says("c", STATE_RUNNING);
    made("c", 2);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    commit("c", 2);
    expect("stop_task c 0\nstop_task c 1\nreport: and again: tasks were configured, not yet\n");
    world.events.start_check(world.arg, "c", 1, 0, 1);
    expect("checked c 1 no\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 1 safe\n");
    task_says("c", 1, STATE_UNASSIGNED);
    expect("status c 1 UNASSIGNED 1 safe\njoin again\n");
    round_ends(&(struct round){.assigned = NULL});
    expect("task c 0 STARTED\ntask c 1 STARTED\nsettled 2: c:-1 c:0 c:1\n");
    world.events.start_check(world.arg, "c", 2, 0, 1);
    world.events.start_check(world.arg, "c", 3, 0, 0); /* of the old set */
    expect("checked c 2 yes\nchecked c 3 no\n");
}

static void a_set_that_this_round_does_not_know_goes_on_waiting(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:-1", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    commit("c", 1);
    forget();
    round_ends(&(struct round){.assigned = "c:0", .ahead = -1});
    expect("settled 2: c:-1 c:0 and again: the config topic has gone on\n");
}

static void a_deleted_connector_stops_at_once_and_writes_no_more_states(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    forget();
    record("connector-c", NULL);
    expect("drain c\nreport: and again: a connector was deleted, not yet\n");
    died("c");
    expect("join again\n");
}

static void targets_and_restarts_reach_what_is_here(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:1", false);
    record("target-state-c", "{\"state\":\"PAUSED\"}");
    expect("task_target c 1 PAUSED\n");
    record("restart-connector-c", "{\"include-tasks\":true,\"only-failed\":false}");
    expect("status c 1 RESTARTING 1\nstop_task c 1\n");
    record("restart-connector-elsewhere", "{\"include-tasks\":true,\"only-failed\":false}");
    expect("");
}

/* The words in the status topic, and their order, as the Java worker was heard to write them. */
static void restarts_are_told_as_connect_tells_them(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    join("c:-1 c:0", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    task_says("c", 0, STATE_RUNNING);
    forget();
    herder_restart(f->herder, "c", false, false, on_answer, f);
    expect("status c -1 UNASSIGNED 1 safe\nstatus c -1 RUNNING 1\nask c 1\n");
    made("c", 1);
    forget();
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("stop_task c 0\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 1 safe\ntask c 0 STARTED\n");
    task_says("c", 0, STATE_RUNNING);
    expect("status c 0 RUNNING 1\n");
    host_of("c")->live[0] = false;
    world.events.task_status(world.arg, "c", 0, STATE_FAILED, "boom");
    expect("status c 0 FAILED 1 safe\n");
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("task c 0 STARTED\n");
    host_of("c")->live[0] = false;
    world.events.task_status(world.arg, "c", 0, STATE_FAILED, "boom");
    record("restart-connector-c", "{\"include-tasks\":true,\"only-failed\":true}");
    expect("status c 0 RESTARTING 1\ntask c 0 STARTED\n");
    assert_string_equal(cluster.trace, "none");
}

static void a_class_that_is_not_here_is_failed_and_nothing_else_is_written(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    commit("c", 1);
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = "c:-1 c:0", .leads = true});
    expect("status c -1 FAILED 1 safe\nstatus c 0 FAILED 1 safe\nsettled 1: c:-1 c:0\n"
           "write key of 32 bytes\n");
}

/* Another worker may have run it meanwhile, and shown that. */
static void a_class_that_is_not_here_is_failed_whenever_it_comes_here(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    commit("c", 1);
    cluster.store.ready(cluster.store_arg, NULL);
    round_ends(&(struct round){.assigned = "c:-1"});
    round_ends(&(struct round){0});
    forget();
    round_ends(&(struct round){.revoked = "c:-1"});
    forget();
    round_ends(&(struct round){.assigned = "c:0"});
    expect("status c 0 FAILED 4 safe\nsettled 4: c:0\n");
    forget();
    round_ends(&(struct round){.revoked = "c:0", .assigned = "c:-1"});
    expect("settled 5: c:-1 and again: what was revoked has stopped\nstatus c -1 FAILED 5 safe\n");
}

static void a_leader_tidies_states_of_what_is_no_more(void **state)
{
    struct status_record rec = {.kind = STATUS_TASK,
                                .conn = strdup("gone"),
                                .task = 1,
                                .status = {.state = STATE_RUNNING, .worker_id = strdup("x:1")}};

    (void)state;
    status_state_apply(cluster.status, &rec);
    status_record_deinit(&rec);
    join(NULL, false);
    round_ends(&(struct round){.leads = true});
    expect("settled 2:\nstatus gone 1 gone\nwrite key of 32 bytes\n");
}

/* --- sets of tasks ---------------------------------------------------------------------------------------------------------------- */

static void the_leader_writes_what_is_new_and_nothing_else(void **state)
{
    (void)state;
    create("c");
    join("c:-1", true);
    says("c", STATE_RUNNING);
    forget();
    made("c", 2);
    expect("write tasks c 2\n");
    commit("c", 2);
    expect("report: and again: tasks were configured\n");
    answer(0);
    round_ends(&(struct round){.assigned = "c:0", .leads = true});
    expect("task c 0 STARTED\nsettled 2: c:-1 c:0\n");
    world.events.connector_status(world.arg, "c", STATE_PAUSED, NULL, "1.0");
    says("c", STATE_RUNNING);
    forget();
    made("c", 2); /* the same again */
    expect("");
    assert_int_equal(cluster.done_count, 0);
}

static void a_follower_sends_them_signed_and_again_until_they_are_taken(void **state)
{
    static const struct peer_answer no = {.status = 403, .body = "no"}, yes = {.status = 204};

    (void)state;
    create("c");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":1}");
    join("c:-1", false);
    says("c", STATE_RUNNING);
    forget();
    made("c", 1);
    expect("POST http://leader:1/connectors/c/tasks "
           "[{\"a\":\"b\",\"task.class\":\"org.example.SrcTask\"}] signed\n");
    cluster.peer_fn(cluster.peer_arg, &no);
    pass(249);
    expect("");
    pass(1);
    expect("ask c 1\n");
    made("c", 1);
    forget();
    cluster.peer_fn(cluster.peer_arg, &yes);
    pass(100000);
    expect("");
}

static void a_set_that_another_worker_made_is_the_leaders_to_write(void **state)
{
    struct fixture *f = *state;
    struct props none;

    props_init(&none);
    create("c");
    join(NULL, false);
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    round_ends(&(struct round){.leads = true});
    forget();
    herder_put_tasks(f->herder, "x", &none, 1, on_answer, f);
    assert_int_equal(f->code, MR_ERR_NOT_FOUND);
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    expect("write tasks c 1\n");
    answer(0);
    assert_int_equal(f->code, 0);
    record("target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    assert_string_equal(f->text,
                        "Cannot submit non-empty set of task configs for stopped connector c");
    assert_int_equal(f->answers, 4);
}

/* --- who acts, and what is written ---------------------------------------------------------------------------------------------- */

static void a_follower_names_the_leader_and_a_leader_the_owner(void **state)
{
    struct fixture *f = *state;
    struct assignor_share share = {0};
    struct lead_member owner = {.readable = true,
                                .metadata = {.url = (char *)(uintptr_t) "http://owner:2/"},
                                .share = &share};
    struct lead lead = {.members = &owner, .count = 1};

    create("c");
    commit("c", 2);
    join("c:0", false);
    herder_delete(f->herder, "c", on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("stop_task c 0\n");
    read_list(&share.owned, "c:-1 c:1");
    cluster.member.led(cluster.member_arg, 2, &lead);
    round_ends(&(struct round){.leads = true});
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_string_equal(f->elsewhere, "http://owner:2/");
    herder_restart_task(f->herder, "c", 1, on_answer, f);
    assert_string_equal(f->elsewhere, "http://owner:2/");
    work_list_deinit(&share.owned);
}

static void an_open_round_refuses_what_depends_on_it_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    json_t *info;

    create("c");
    join("c:-1", true);
    cluster.member.rebalancing(cluster.member_arg);
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_int_equal(f->code, MR_ERR_STATE);
    assert_non_null(strstr(f->text, "stale configuration"));
    forget();
    herder_delete(f->herder, "c", on_answer, f);
    herder_set_target(f->herder, "c", TARGET_PAUSED, on_answer, f);
    expect("write removal c\nwrite target c PAUSED\n");
    info = herder_info(f->herder, "c");
    assert_non_null(info);
    json_decref(info);
}

static void a_stop_empties_the_set_then_says_so_then_reads(void **state)
{
    struct fixture *f = *state;

    create("c");
    join(NULL, true);
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    expect("write tasks c 0\n");
    answer(0);
    expect("write target c STOPPED\n");
    answer(0);
    expect("refresh\n");
    assert_int_equal(f->answers, 0);
    answer(0);
    assert_int_equal(f->answers, 1);
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    answer(MR_ERR_TIMEOUT);
    assert_string_equal(f->text, "Error writing target state to Kafka: it says no");
}

static void a_create_is_answered_when_the_topic_has_it(void **state)
{
    struct fixture *f = *state;
    struct herder_put put = {.conn = "n", .create_only = true, .initial = TARGET_PAUSED};
    struct props config;

    props_init(&config);
    props_set(&config, "name", "n");
    props_set(&config, "connector.class", "Src");
    props_set(&config, "topic", "t");
    put.config = &config;
    join(NULL, true);
    herder_put(f->herder, &put, on_answer, f);
    expect("write connector n PAUSED\n");
    assert_int_equal(f->answers, 0);
    create("n");
    answer(0);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, 0);
    put.no_initial = true;
    herder_put(f->herder, &put, on_answer, f);
    assert_string_equal(f->text, "Connector n already exists");
    props_deinit(&config);
}

static void only_a_leader_makes_keys_and_makes_them_anew_in_time(void **state)
{
    (void)state;
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = NULL});
    expect("settled 1:\n");
    round_ends(&(struct round){.leads = true});
    expect("settled 2:\nwrite key of 32 bytes\n");
    answer(MR_ERR_TIMEOUT);
    pass(1000);
    expect("write key of 32 bytes\n");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    answer(0);
    pass(3599999);
    expect("");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":1000}");
    expect("write key of 32 bytes\n");
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_group_is_joined_once_the_topics_were_read),
        test(topics_or_a_group_that_fail_end_the_worker),
        test(the_group_is_left_after_the_work_has_ended),
        test(a_goodbye_that_takes_too_long_holds_up_no_end),
        test(the_lease_goes_to_the_hosts),
        test(what_is_assigned_starts_and_says_so),
        test(a_round_is_settled_when_what_it_took_has_stopped),
        test(a_worker_that_lags_reads_on_before_it_starts_anything),
        test(a_topic_that_cannot_be_read_gives_no_new_work),
        test(a_round_of_an_unread_topic_changes_nothing),
        test(an_answer_to_an_earlier_round_is_dropped),
        test(everything_stops_when_the_protocol_wants_it),
        test(a_leader_reads_up_to_the_members_before_it_assigns),
        test(tasks_of_a_new_set_wait_for_a_round),
        test(a_set_that_this_round_does_not_know_goes_on_waiting),
        test(a_deleted_connector_stops_at_once_and_writes_no_more_states),
        test(targets_and_restarts_reach_what_is_here),
        test(restarts_are_told_as_connect_tells_them),
        test(a_class_that_is_not_here_is_failed_and_nothing_else_is_written),
        test(a_class_that_is_not_here_is_failed_whenever_it_comes_here),
        test(a_leader_tidies_states_of_what_is_no_more),
        test(the_leader_writes_what_is_new_and_nothing_else),
        test(a_follower_sends_them_signed_and_again_until_they_are_taken),
        test(a_set_that_another_worker_made_is_the_leaders_to_write),
        test(a_follower_names_the_leader_and_a_leader_the_owner),
        test(an_open_round_refuses_what_depends_on_it_and_nothing_else),
        test(a_stop_empties_the_set_then_says_so_then_reads),
        test(a_create_is_answered_when_the_topic_has_it),
        test(only_a_leader_makes_keys_and_makes_them_anew_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
