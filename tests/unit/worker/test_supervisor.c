/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor, tenant, child, spawn, output: against real processes, good and bad ones
 * (fake_host.c). */
#include "fake_host.h"

#include "base/clock.h"
#include "base/props.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/spawn.h"
#include "worker/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GRACEFUL_MS 300
#define SLACK_MS 500 /* for a machine that does other things too */

struct fixture {
    struct loop *loop;
    struct supervisor *sup;
    struct props props;
    struct catalog *cat;
    char folder[64];
    struct loop_timer guard;
    bool (*until)(struct fixture *f);
    /* what happened */
    int conn_statuses;
    enum state conn_state;
    char conn_trace[4096];
    struct buf echoes; /* all traces: fake_host.c sends back what it got */
    int task_statuses;
    enum state task_state[8];
    int unassigned;
    char task_trace[256];
    int deaths;
    struct supervisor_death death;
    char obituary[8192];
    int64_t died_ms;
    json_t *configs;
    int64_t get_id, put_id;
    json_t *partitions, *entries;
    int checks;
    int64_t check_id, fence_id;
    int stale;
    bool restart_in_died;
    struct loop_timer tick;
    int ticks;
    pid_t leftover;
};

static void happened(struct fixture *f)
{
    if (f->until != NULL && f->until(f))
        loop_stop(f->loop);
}

static void on_connector_status(void *arg, const char *conn, enum state state, const char *trace,
                                const char *version)
{
    struct fixture *f = arg;

    (void)conn;
    if (trace != NULL)
        assert_string_equal(version, "1.0");
    f->conn_statuses++;
    f->conn_state = state;
    snprintf(f->conn_trace, sizeof(f->conn_trace), "%s", trace == NULL ? "" : trace);
    buf_printf(&f->echoes, "%s\n", f->conn_trace);
    happened(f);
}

static void on_task_configs(void *arg, const char *conn, const json_t *configs, const char *error)
{
    struct fixture *f = arg;

    (void)conn;
    assert_null(error);
    f->configs = json_deep_copy(configs);
    happened(f);
}

static void on_task_status(void *arg, const char *conn, int task, enum state state,
                           const char *trace)
{
    struct fixture *f = arg;

    (void)conn;
    assert_in_range(task, 0, 7);
    f->task_statuses++;
    f->task_state[task] = state;
    f->unassigned += state == STATE_UNASSIGNED;
    if (trace != NULL)
        snprintf(f->task_trace, sizeof(f->task_trace), "%s", trace);
    happened(f);
}

static void on_offsets_get(void *arg, const char *conn, int64_t id, const json_t *partitions)
{
    struct fixture *f = arg;

    (void)conn;
    f->get_id = id;
    json_decref(f->partitions);
    f->partitions = json_deep_copy(partitions);
    happened(f);
}

static void on_offsets_put(void *arg, const char *conn, int64_t id, const json_t *entries)
{
    struct fixture *f = arg;

    (void)conn;
    f->put_id = id;
    json_decref(f->entries);
    f->entries = json_deep_copy(entries);
    happened(f);
}

static void on_start_check(void *arg, const char *conn, int64_t id, int task, int64_t generation)
{
    struct fixture *f = arg;

    assert_string_equal(conn, "asker");
    assert_int_equal(task, 0);
    assert_int_equal(generation, 1);
    f->checks++;
    f->check_id = id;
    happened(f);
}

static void on_fence(void *arg, const char *conn, int64_t id)
{
    struct fixture *f = arg;

    assert_string_equal(conn, "asker");
    f->fence_id = id;
    happened(f);
}

static void start(struct fixture *f, const char *conn)
{
    struct mr_error err = {0};
    struct supervisor_connector spec = {.conn = conn,
                                        .library = "/lib.so",
                                        .class_name = "X",
                                        .config = &f->props,
                                        .target = TARGET_STARTED};

    if (supervisor_start(f->sup, &spec, &err) != 0)
        fail_msg("%s", err.text);
}

static void on_died(void *arg, const char *conn, const struct supervisor_death *death)
{
    struct fixture *f = arg;

    assert_false(supervisor_hosts(f->sup, conn));
    f->deaths++;
    f->death = *death;
    f->died_ms = clock_ms();
    snprintf(f->obituary, sizeof(f->obituary), "%s", death->text);
    f->death.text = f->obituary;
    if (f->restart_in_died) {
        f->restart_in_died = false;
        start(f, conn);
    }
    happened(f);
}

static void on_config_stale(void *arg, const char *conn)
{
    struct fixture *f = arg;

    assert_string_equal(conn, "stale");
    f->stale++;
    happened(f);
}

static const struct supervisor_events events = {
    .connector_status = on_connector_status,
    .task_configs = on_task_configs,
    .task_status = on_task_status,
    .offsets_get = on_offsets_get,
    .offsets_put = on_offsets_put,
    .start_check = on_start_check,
    .fence = on_fence,
    .config_stale = on_config_stale,
    .died = on_died,
};

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("it did not happen within 20 s");
}

static void wait_until(struct fixture *f, bool (*until)(struct fixture *))
{
    if (until(f))
        return;
    f->until = until;
    loop_timer_start(f->loop, &f->guard, 20000, too_long, f);
    loop_run(f->loop);
    loop_timer_cancel(&f->guard);
    f->until = NULL;
}

static bool dead(struct fixture *f)
{
    return f->deaths > 0;
}

static bool connector_up(struct fixture *f)
{
    return f->conn_statuses > 0;
}

static void expect_obituary(struct fixture *f, const char *conn, const char *text)
{
    start(f, conn);
    wait_until(f, dead);
    if (strstr(f->obituary, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, f->obituary);
    assert_false(f->death.expected);
    assert_int_equal(f->death.culprit, -1);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct mr_error err = {0};
    struct supervisor_options options = {
        .exe = "/proc/self/exe", .graceful_ms = GRACEFUL_MS, .hello_ms = 5000};

    buf_init(&f->echoes, 1 << 20);
    props_init(&f->props);
    props_set(&f->props, "name", "value");
    f->cat = catalog_new();
    snprintf(f->folder, sizeof(f->folder), "/tmp/millrace-sup-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->loop = loop_new(NULL);
    options.run_dir = f->folder;
    options.worker_props = &f->props;
    options.catalog = f->cat;
    f->sup = supervisor_new(f->loop, &options, &events, f, &err);
    assert_non_null(f->sup);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    siginfo_t info;

    supervisor_free(&f->sup);
    loop_free(&f->loop);
    catalog_free(&f->cat);
    props_deinit(&f->props);
    buf_deinit(&f->echoes);
    json_decref(f->configs);
    json_decref(f->partitions);
    json_decref(f->entries);
    assert_int_equal(rmdir(f->folder), 0);
    /* Nobody is left behind. */
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    free(f);
    return 0;
}

static void start_tasks(struct fixture *f, const char *conn, int count)
{
    start(f, conn);
    for (int i = 0; i < count; i++)
        assert_int_equal(supervisor_start_task(f->sup, conn, i, &f->props, TARGET_STARTED, 1), 0);
}

static bool four_running(struct fixture *f)
{
    return f->task_statuses == 4;
}

static bool one_running(struct fixture *f)
{
    return f->task_statuses == 1;
}

static bool echoed(const struct fixture *f, const char *text)
{
    return f->echoes.data != NULL && strstr(f->echoes.data, text) != NULL;
}

/* --- how a good host lives -------------------------------------------------------------------- */

static void a_host_is_born_clean(void **state)
{
    struct fixture *f = *state;
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec */
    sigset_t all, before;
    siginfo_t info;

    /* The nest is started again, and must not pass these on either. */
    kill(fake_host_nest(), SIGKILL);
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGUSR2, SIG_IGN);
    start(f, "census");
    wait_until(f, connector_up);
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(echoed(f, "0 1 2 3 4 own group 1, blocked 0, ignored 0, nonblocking 1\n"));
    close(leak);
}

static bool has_configs(struct fixture *f)
{
    return f->configs != NULL;
}

static void a_connector_starts_and_gives_task_configs(void **state)
{
    struct fixture *f = *state;

    start(f, "good");
    assert_true(supervisor_hosts(f->sup, "good"));
    assert_int_equal(supervisor_ask_task_configs(f->sup, "good", 3), 0);
    wait_until(f, has_configs);
    assert_int_equal(f->conn_state, STATE_RUNNING);
    assert_string_equal(json_string_value(json_object_get(json_array_get(f->configs, 0), "k")),
                        "v");
}

#define CONVERTER(name, version, alias) \
    "{\"library\":\"/p/" name "-" version ".so\",\"plugins\":[{\"name\":\"" name \
    "\",\"version\":\"" version "\",\"kind\":3,\"aliases\":[\"" alias "\"],\"keys\":[]}]}\n"

#define OTHER(name, library, kind) \
    "{\"library\":\"" library "\",\"plugins\":[{\"name\":\"" name \
    "\",\"version\":\"1\",\"kind\":" kind ",\"aliases\":[],\"keys\":[]}]}\n"

static bool started_echo(struct fixture *f)
{
    return echoed(f, "CONNECTOR_START");
}

/* By the one rule of names there is: the highest version, aliases, short forms, blanks around
 * them. */
static void a_host_is_told_where_its_plugins_are(void **state)
{
    static const char lines[] = CONVERTER("JsonConverter", "1.9", "org.x.JsonConverter")
        CONVERTER("JsonConverter", "1.10", "org.x.JsonConverter")
            CONVERTER("StringConverter", "1.0", "org.x.StringConverter")
                OTHER("org.x.Cast$Key", "/p/Cast.so", "4") OTHER("Tomb", "/p/Tomb.so", "5")
                    OTHER("SimpleHeaderConverter", "/p/b.so", "6");
    struct fixture *f = *state;

    for (const char *line = lines, *end; *line != '\0'; line = end + 1) {
        struct catalog_line read;

        end = strchr(line, '\n');
        assert_int_equal(catalog_read_line(f->cat, line, (size_t)(end - line), &read, NULL), 0);
    }
    props_set(&f->props, "value.converter", "org.x.StringConverter"); /* the worker's, too */
    props_set(&f->props, "key.converter", " Json ");
    props_set(&f->props, "transforms", "a, b");
    props_set(&f->props, "transforms.a.type", "NotHere");
    props_set(&f->props, "transforms.b.type", "org.x.Cast$Key");
    props_set(&f->props, "predicates", "p");
    props_set(&f->props, "predicates.p.type", "Tomb");
    start(f, "parrot");
    wait_until(f, started_echo);
    assert_true(echoed(f, "\"key.converter\":{\"library\":\"/p/JsonConverter-1.10.so\","
                          "\"class\":\"JsonConverter\"}"));
    assert_true(echoed(f, "\"value.converter\":{\"library\":\"/p/StringConverter-1.0.so\","
                          "\"class\":\"StringConverter\"}"));
    assert_true(echoed(f, "\"header.converter\":{\"library\":\"/p/b.so\","
                          "\"class\":\"SimpleHeaderConverter\"}")); /* none is set */
    assert_true(echoed(
        f, "\"transforms.b.type\":{\"library\":\"/p/Cast.so\",\"class\":\"org.x.Cast$Key\"}"));
    assert_true(echoed(f, "\"predicates.p.type\":{\"library\":\"/p/Tomb.so\",\"class\":\"Tomb\"}"));
    assert_false(echoed(f, "\"transforms.a.type\":{"));
}

static void a_host_for_tasks_alone_is_told_so(void **state)
{
    struct fixture *f = *state;
    struct supervisor_connector spec = {.conn = "parrot",
                                        .library = "/lib.so",
                                        .class_name = "X",
                                        .config = &f->props,
                                        .tasks_only = true};

    assert_int_equal(supervisor_start(f->sup, &spec, NULL), 0);
    wait_until(f, started_echo);
    assert_true(echoed(f, "\"object\":false"));
}

static void one_connector_has_one_host(void **state)
{
    struct fixture *f = *state;
    struct supervisor_connector spec = {
        .conn = "good", .library = "/l.so", .class_name = "X", .config = &f->props};
    struct mr_error err = {0};

    start(f, "good");
    assert_int_equal(supervisor_start(f->sup, &spec, &err), MR_ERR_STATE);
}

static void who_has_no_host_is_told_so(void **state)
{
    struct fixture *f = *state;

    assert_false(supervisor_hosts(f->sup, "none"));
    assert_int_equal(supervisor_target(f->sup, "none", TARGET_PAUSED), MR_ERR_CLOSED);
    assert_int_equal(supervisor_start_task(f->sup, "none", 0, &f->props, TARGET_STARTED, 1),
                     MR_ERR_CLOSED);
    assert_int_equal(supervisor_stop_task(f->sup, "none", 0), MR_ERR_CLOSED);
    assert_int_equal(supervisor_drain(f->sup, "none"), MR_ERR_CLOSED);
    supervisor_offsets_take(f->sup, "none", 1, json_array(), NULL);
}

static bool all_stopped(struct fixture *f)
{
    return f->unassigned == 2;
}

static void tasks_start_and_stop_alone(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "good", 4);
    wait_until(f, four_running);
    assert_int_equal(supervisor_start_task(f->sup, "good", 1, &f->props, TARGET_STARTED, 1),
                     MR_ERR_STATE);
    assert_int_equal(supervisor_stop_task(f->sup, "good", 1), 0);
    assert_int_equal(supervisor_stop_task(f->sup, "good", 2), 0);
    wait_until(f, all_stopped);
    assert_int_equal(f->task_state[0], STATE_RUNNING);
    assert_int_equal(f->task_state[1], STATE_UNASSIGNED);
    assert_int_equal(f->task_state[2], STATE_UNASSIGNED);
    assert_int_equal(supervisor_start_task(f->sup, "good", 1, &f->props, TARGET_STARTED, 2), 0);
    assert_int_equal(f->deaths, 0);
}

static bool one_failed(struct fixture *f)
{
    return f->task_state[0] == STATE_FAILED;
}

static bool one_stopped(struct fixture *f)
{
    return f->unassigned == 1;
}

static void a_failed_task_stops_at_once_and_starts_again(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "failer", 1);
    wait_until(f, one_failed);
    assert_string_equal(f->task_trace, "it went wrong");
    assert_int_equal(supervisor_stop_task(f->sup, "failer", 0), 0);
    assert_int_equal(f->unassigned, 0); /* never from inside the call */
    wait_until(f, one_stopped);
    f->task_state[0] = STATE_UNASSIGNED;
    assert_int_equal(supervisor_start_task(f->sup, "failer", 0, &f->props, TARGET_STARTED, 2), 0);
    wait_until(f, one_failed);
    assert_int_equal(f->deaths, 0);
}

static bool second_failed(struct fixture *f)
{
    return f->task_state[1] == STATE_FAILED;
}

static void a_host_that_is_spent_is_known_and_serves_on(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "spender", 1);
    assert_false(supervisor_spent(f->sup, "spender"));
    assert_int_equal(supervisor_start_task(f->sup, "spender", 1, &f->props, TARGET_STARTED, 1), 0);
    wait_until(f, second_failed);
    assert_true(supervisor_spent(f->sup, "spender"));
    assert_int_equal(f->task_state[0], STATE_RUNNING);
    assert_int_equal(supervisor_drain(f->sup, "spender"), 0);
    assert_false(supervisor_spent(f->sup, "spender"));
    wait_until(f, dead);
    assert_true(f->death.expected);
    assert_false(supervisor_spent(f->sup, "spender"));
}

static void a_task_that_never_ran_stops_at_once(void **state)
{
    struct fixture *f = *state;

    start(f, "good");
    assert_int_equal(supervisor_stop_task(f->sup, "good", 5), 0);
    wait_until(f, one_stopped);
    assert_int_equal(f->task_state[5], STATE_UNASSIGNED);
}

static void a_drained_host_is_expected_to_be_gone(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "good", 4);
    wait_until(f, four_running);
    assert_int_equal(supervisor_drain(f->sup, "good"), 0);
    assert_int_equal(supervisor_ask_task_configs(f->sup, "good", 1), MR_ERR_CLOSED);
    wait_until(f, dead);
    assert_true(f->death.expected);
    assert_int_equal(f->death.culprit, -1);
    assert_int_equal(f->unassigned, 4);
    assert_non_null(strstr(f->obituary, "exited with code 0"));
}

static bool lease_echoed(struct fixture *f)
{
    return echoed(f, "{\"kind\":\"LEASE\",\"body\":{\"soft_ms\":4711,\"hard_ms\":4712}}");
}

static void a_lease_reaches_old_hosts_and_new_ones(void **state)
{
    struct fixture *f = *state;

    start(f, "good");
    wait_until(f, connector_up);
    supervisor_lease(f->sup, 4711, 4712);
    wait_until(f, lease_echoed);
    buf_reset(&f->echoes);
    start(f, "good-too");
    wait_until(f, lease_echoed);
    assert_false(supervisor_leased(f->sup)); /* that moment is long past */
    supervisor_lease(f->sup, clock_boot_ms() + 3600000, clock_boot_ms() + 3600001);
    assert_true(supervisor_leased(f->sup));
    supervisor_lease(f->sup, 0, 0);
    assert_true(supervisor_leased(f->sup));
}

static bool asked_both(struct fixture *f)
{
    return f->get_id != 0 && f->put_id != 0 && f->check_id != 0 && f->fence_id != 0;
}

static bool all_answered(struct fixture *f)
{
    return echoed(f, "\"id\":41") && echoed(f, "\"id\":42") && echoed(f, "\"id\":43") &&
           echoed(f, "\"id\":44") && echoed(f, "\"id\":45");
}

static void questions_are_answered_by_their_own_id(void **state)
{
    struct fixture *f = *state;
    int64_t get_id, put_id;

    start_tasks(f, "asker", 1);
    wait_until(f, asked_both);
    get_id = f->get_id;
    put_id = f->put_id;
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(f->partitions, 0), "file")), "a");
    assert_int_equal(json_array_size(json_array_get(f->entries, 0)), 2);
    supervisor_offsets_stored(f->sup, "asker", put_id, "disk full");
    supervisor_offsets_take(f->sup, "asker", get_id,
                            json_pack("[[{s:s}, {s:i}]]", "file", "a", "at", 7), NULL);
    /* Later, as the herder likes. */
    assert_false(echoed(f, "\"START_CHECKED\",\"body\":{\"id\":43"));
    supervisor_fenced(f->sup, "asker", f->fence_id, "it is standalone");
    supervisor_start_checked_take(f->sup, "asker", f->check_id, true, NULL);
    wait_until(f, all_answered);
    assert_true(
        echoed(f, "\"OFFSETS\",\"body\":{\"id\":41,\"entries\":[[{\"file\":\"a\"},{\"at\":7}]]}"));
    assert_true(echoed(f, "\"OFFSETS_STORED\",\"body\":{\"id\":42,\"error\":\"disk full\"}"));
    assert_true(echoed(f, "\"START_CHECKED\",\"body\":{\"id\":43,\"ok\":true}"));
    assert_true(echoed(f, "\"FENCED\",\"body\":{\"id\":44,\"error\":\"it is standalone\"}"));
    /* a start that another one has followed */
    assert_true(echoed(f, "\"START_CHECKED\",\"body\":{\"id\":45,\"ok\":false}"));
    assert_int_equal(f->checks, 1);
    /* A second answer goes nowhere. */
    supervisor_offsets_take(f->sup, "asker", get_id, json_array(), NULL);
}

static bool asked_again(struct fixture *f)
{
    return f->get_id != 0 && f->deaths > 0;
}

static bool answered_anew(struct fixture *f)
{
    return echoed(f, "\"error\":\"new\"");
}

static void an_answer_does_not_reach_a_successor(void **state)
{
    struct fixture *f = *state;
    int64_t old_id;

    start_tasks(f, "asker", 1);
    wait_until(f, asked_both);
    old_id = f->get_id;
    f->get_id = 0;
    f->restart_in_died = true;
    supervisor_drain(f->sup, "asker");
    wait_until(f, dead);
    supervisor_start_task(f->sup, "asker", 0, &f->props, TARGET_STARTED, 1);
    wait_until(f, asked_again);
    assert_int_not_equal(f->get_id, old_id);
    supervisor_offsets_take(f->sup, "asker", old_id, json_array(), NULL);
    supervisor_offsets_stored(f->sup, "asker", f->get_id, "new");
    wait_until(f, answered_anew);
    assert_false(echoed(f, "\"entries\":[]"));
}

static void a_config_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    struct supervisor_connector spec = {
        .conn = "good", .library = "/l.so", .class_name = "X", .config = &f->props};
    struct mr_error err = {0};
    char *text = calloc(1, 3000001);

    memset(text, 'x', 3000000);
    props_set(&f->props, "big", text);
    assert_int_equal(supervisor_start(f->sup, &spec, &err), MR_ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "too large"));
    assert_false(supervisor_hosts(f->sup, "good"));
    props_remove(&f->props, "big");
    free(text);
}

static void properties_too_large_for_the_link_end_the_host(void **state)
{
    struct fixture *f = *state;
    struct supervisor_options options = {.exe = "/proc/self/exe",
                                         .run_dir = f->folder,
                                         .worker_props = &f->props,
                                         .catalog = f->cat,
                                         .graceful_ms = GRACEFUL_MS};
    char *text = calloc(1, 5000001);

    memset(text, 'x', 5000000);
    props_set(&f->props, "big", text);
    supervisor_free(&f->sup);
    f->sup = supervisor_new(f->loop, &options, &events, f, NULL);
    props_remove(&f->props, "big");
    free(text);
    expect_obituary(f, "good", "because the worker's properties are too large for the link");
}

static void a_missing_binary_is_the_death_of_a_host(void **state)
{
    struct fixture *f = *state;
    struct supervisor_options options = {
        .exe = "/no/such/file", .run_dir = f->folder, .worker_props = &f->props, .catalog = f->cat};

    supervisor_free(&f->sup);
    f->sup = supervisor_new(f->loop, &options, &events, f, NULL);
    expect_obituary(f, "x",
                    "no host process: cannot start the process that hosts are forked from, "
                    "/no/such/file: No such file");
}

/* --- a nest that hangs ------------------------------------------------------------------------ */

static void on_round(void *arg)
{
    loop_stop(((struct fixture *)arg)->loop);
}

/* A fifth of a second of the loop's life. */
static void let_it_run(struct fixture *f)
{
    loop_timer_start(f->loop, &f->tick, 200, on_round, f);
    loop_run(f->loop);
}

static bool two_running(struct fixture *f)
{
    return f->task_statuses == 2;
}

static bool two_dead(struct fixture *f)
{
    return f->deaths == 2;
}

/* The loop goes on meanwhile, and every host comes about all the same. */
static void a_hung_nest_holds_up_nobody(void **state)
{
    struct fixture *f = *state;
    int64_t from_ms;

    start_tasks(f, "good", 1);
    wait_until(f, one_running);
    kill(fake_host_nest(), SIGSTOP);
    from_ms = clock_ms();
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "conn-%d", i);
        start_tasks(f, name, 1);
    }
    assert_true(clock_ms() - from_ms < 2000); /* not two seconds for each */
    let_it_run(f);
    assert_int_equal(f->task_statuses, 1);
    wait_until(f, four_running);
}

static void one_that_waits_for_the_nest_is_called_off(void **state)
{
    struct fixture *f = *state;
    int64_t from_ms;

    start_tasks(f, "good", 1);
    wait_until(f, one_running);
    kill(fake_host_nest(), SIGSTOP);
    start(f, "first");
    start(f, "second");
    from_ms = clock_ms();
    assert_int_equal(supervisor_drain(f->sup, "first"), 0);
    assert_int_equal(supervisor_drain(f->sup, "second"), 0);
    wait_until(f, two_dead);
    assert_true(clock_ms() - from_ms < 1000);
    assert_true(f->death.expected);
    assert_false(supervisor_hosts(f->sup, "first"));
    start_tasks(f, "third", 1);
    wait_until(f, two_running);
}

/* The answer comes after nobody wants it any more: that host is ended, too (the tear-down
 * looks). */
static void a_host_that_is_born_too_late_is_ended(void **state)
{
    struct fixture *f = *state;
    pid_t nest;

    start_tasks(f, "good", 1);
    wait_until(f, one_running);
    nest = fake_host_nest();
    kill(nest, SIGSTOP);
    start(f, "late");
    let_it_run(f);
    assert_int_equal(supervisor_drain(f->sup, "late"), 0);
    wait_until(f, dead);
    kill(nest, SIGCONT);
    start_tasks(f, "next", 1);
    wait_until(f, two_running);
    assert_int_equal(fake_host_nest(), nest);
}

static void no_descriptors_left_is_an_error_and_leaks_nothing(void **state)
{
    struct fixture *f = *state;
    struct supervisor_connector spec = {
        .conn = "x", .library = "/l.so", .class_name = "X", .config = &f->props};
    struct rlimit before, few;
    int lowest = dup(0), after;

    close(lowest);
    getrlimit(RLIMIT_NOFILE, &before);
    for (rlim_t room = 0; room < 10; room++) {
        struct mr_error err = {0};

        few = before;
        few.rlim_cur = (rlim_t)lowest + room;
        setrlimit(RLIMIT_NOFILE, &few);
        assert_int_equal(supervisor_start(f->sup, &spec, &err), MR_ERR_IO);
        assert_int_not_equal(err.text[0], '\0');
        setrlimit(RLIMIT_NOFILE, &before);
    }
    after = dup(0);
    close(after);
    assert_int_equal(after, lowest);
}

/* --- how bad ones end ------------------------------------------------------------------------- */

static void a_mute_host_is_ended(void **state)
{
    struct fixture *f = *state;
    struct supervisor_options options = {.exe = "/proc/self/exe",
                                         .run_dir = f->folder,
                                         .worker_props = &f->props,
                                         .catalog = f->cat,
                                         .graceful_ms = GRACEFUL_MS,
                                         .hello_ms = 200};

    supervisor_free(&f->sup);
    f->sup = supervisor_new(f->loop, &options, &events, f, NULL);
    expect_obituary(f, "mute", "ended by the worker because it did not say hello within 200 ms");
}

static void a_host_that_is_not_needed_any_more_is_ended_before_its_hello(void **state)
{
    struct fixture *f = *state;
    int64_t from_ms = clock_ms();

    start_tasks(f, "mute", 1);
    assert_int_equal(supervisor_drain(f->sup, "mute"), 0);
    wait_until(f, dead);
    assert_true(clock_ms() - from_ms < GRACEFUL_MS);
    assert_true(f->death.expected);
    assert_int_equal(f->death.culprit, -1); /* nothing was given to it yet, so no task held it up */
    assert_null(strstr(f->obituary, "did not stop within"));
    assert_non_null(strstr(f->obituary, "it was to stop before it had said hello"));
}

static void another_version_of_the_link_is_ended(void **state)
{
    expect_obituary(*state, "old-version",
                    "because it speaks version 3 of the link and this worker version 2");
}

static void a_crash_leaves_an_obituary(void **state)
{
    struct fixture *f = *state;

    expect_obituary(f, "crash", "was killed by signal 11 (SIGSEGV), task 0 was in poll for ");
    assert_non_null(strstr(f->obituary, "\nLast words:\n\tabout to divide by zero"));
    assert_null(strstr(f->obituary, "by the worker"));
}

static void an_exit_leaves_an_obituary(void **state)
{
    expect_obituary(*state, "quit", "exited with code 3");
}

static void what_the_c_library_said_is_in_the_obituary(void **state)
{
    struct fixture *f = *state;

    expect_obituary(f, "abort", "was killed by signal 6 (SIGABRT)");
    assert_non_null(strstr(f->obituary, "\nLast lines on stderr:\n\tfree(): invalid ?pointer"));
}

static void a_kill_from_outside_is_told_from_ours(void **state)
{
    struct fixture *f = *state;
    json_t *list;

    start(f, "good");
    wait_until(f, connector_up);
    list = supervisor_describe(f->sup);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "conn")),
                        "good");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "state")),
                        "READY");
    kill((pid_t)json_integer_value(json_object_get(json_array_get(list, 0), "pid")), SIGKILL);
    json_decref(list);
    wait_until(f, dead);
    assert_non_null(strstr(f->obituary,
                           "was killed by signal 9 (SIGKILL), not by the worker (out of memory?)"));
}

static void garbage_on_the_link_ends_the_host(void **state)
{
    expect_obituary(*state, "garbage",
                    "because it broke the rules of the link: the head of a frame is damaged");
}

static void an_oversized_frame_ends_the_host(void **state)
{
    expect_obituary(*state, "oversized",
                    "frame CONNECTOR_STATUS of 4294967295 bytes is above its cap");
}

static void a_frame_before_hello_ends_the_host(void **state)
{
    expect_obituary(*state, "hasty", "frame CONNECTOR_STATUS is not allowed before the greeting");
}

static void a_frame_about_another_connector_ends_the_host(void **state)
{
    struct fixture *f = *state;

    expect_obituary(f, "impostor",
                    "its frame CONNECTOR_STATUS is wrong: it is about another connector");
    assert_int_equal(f->conn_statuses, 0);
}

static void a_frame_about_an_unknown_task_ends_the_host(void **state)
{
    expect_obituary(*state, "confused",
                    "its frame TASK_STATUS is wrong: task 7 was never given to it");
}

static void an_unknown_state_ends_the_host(void **state)
{
    expect_obituary(*state, "wrong-state", "its frame CONNECTOR_STATUS is wrong: no valid state");
}

static void a_topic_of_an_unknown_task_ends_the_host(void **state)
{
    expect_obituary(*state, "wrong-topic",
                    "its frame TOPIC_USED is wrong: task 0 was never given to it");
}

static bool told_stale(struct fixture *f)
{
    return f->stale > 0;
}

static void a_host_says_that_its_configuration_is_stale(void **state)
{
    start(*state, "stale");
    wait_until(*state, told_stale);
}

static void a_closed_link_ends_the_host(void **state)
{
    expect_obituary(*state, "closer", "because it closed the link and lived on");
}

static void too_many_questions_end_the_host(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "asker-too-much", 1);
    wait_until(f, dead);
    assert_non_null(strstr(f->obituary, "more than 1024 questions are open"));
}

static void the_last_status_comes_before_the_death(void **state)
{
    struct fixture *f = *state;

    start(f, "last-status");
    wait_until(f, dead);
    assert_int_equal(f->conn_statuses, 601);
    assert_int_equal(f->conn_state, STATE_FAILED);
    assert_string_equal(f->conn_trace, "the reason");
}

static void a_host_is_started_again_from_inside_its_death(void **state)
{
    struct fixture *f = *state;

    f->restart_in_died = true;
    start(f, "quit");
    wait_until(f, dead);
    assert_true(supervisor_hosts(f->sup, "quit"));
    f->deaths = 0;
    wait_until(f, dead);
}

/* --- stops that are not answered -------------------------------------------------------------- */

static void a_stuck_task_takes_its_host_down_in_time(void **state)
{
    struct fixture *f = *state;
    int64_t asked_ms;

    start_tasks(f, "stubborn", 4);
    wait_until(f, four_running);
    asked_ms = clock_ms();
    assert_int_equal(supervisor_stop_task(f->sup, "stubborn", 0), 0);
    wait_until(f, dead);
    /* The siblings had stopped at once: nothing was waited for but SIGTERM. */
    assert_in_range(f->died_ms - asked_ms, GRACEFUL_MS, GRACEFUL_MS + 200 + SLACK_MS);
    assert_false(f->death.expected);
    assert_int_equal(f->death.culprit, 0);
    assert_non_null(strstr(
        f->obituary,
        "was ended by the worker because task 0 did not stop within 300 ms, task 0 was in poll"));
    /* Siblings that were drained on the way were not asked to stop by the herder. */
    assert_int_equal(f->unassigned, 0);
}

static void siblings_get_their_time_and_no_more(void **state)
{
    struct fixture *f = *state;
    int64_t asked_ms;

    start_tasks(f, "deaf", 4);
    wait_until(f, four_running);
    asked_ms = clock_ms();
    assert_int_equal(supervisor_stop_task(f->sup, "deaf", 0), 0);
    wait_until(f, dead);
    assert_in_range(f->died_ms - asked_ms, GRACEFUL_MS + 700, GRACEFUL_MS + 800 + SLACK_MS);
    assert_int_equal(f->death.culprit, 0);
}

static bool sibling_stopped(struct fixture *f)
{
    return f->task_state[1] == STATE_UNASSIGNED;
}

static void a_sibling_that_was_asked_too_is_told(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "stubborn", 4);
    wait_until(f, four_running);
    supervisor_stop_task(f->sup, "stubborn", 0);
    supervisor_stop_task(f->sup, "stubborn", 1);
    wait_until(f, sibling_stopped);
    wait_until(f, dead);
    assert_int_equal(f->death.culprit, 0);
    assert_int_equal(f->unassigned, 1);
}

static void a_drain_that_is_not_answered_names_the_culprit(void **state)
{
    struct fixture *f = *state;
    int64_t asked_ms;

    start_tasks(f, "stubborn", 4);
    wait_until(f, four_running);
    asked_ms = clock_ms();
    supervisor_drain(f->sup, "stubborn");
    wait_until(f, dead);
    assert_in_range(f->died_ms - asked_ms, GRACEFUL_MS, GRACEFUL_MS + 200 + SLACK_MS);
    assert_true(f->death.expected);
    assert_int_equal(f->death.culprit, 0);
    assert_int_equal(f->unassigned, 3);
    assert_non_null(strstr(f->obituary, "because it did not stop within 300 ms"));
}

static void a_host_that_left_its_group_is_ended_in_time(void **state)
{
    struct fixture *f = *state;
    int64_t asked_ms;

    start_tasks(f, "mover", 1);
    wait_until(f, one_running);
    asked_ms = clock_ms();
    supervisor_drain(f->sup, "mover");
    wait_until(f, dead);
    assert_in_range(f->died_ms - asked_ms, GRACEFUL_MS, GRACEFUL_MS + 200 + SLACK_MS);
}

/* tear_down looks whether the process is left behind. */
static void a_host_that_left_its_group_goes_with_the_supervisor(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "mover", 1);
    wait_until(f, one_running);
    supervisor_free(&f->sup);
}

static void on_tick(void *arg)
{
    struct fixture *f = arg;

    f->ticks++;
    loop_timer_start(f->loop, &f->tick, 5, on_tick, f);
    happened(f);
}

static bool second_over(struct fixture *f)
{
    return f->ticks >= 100;
}

static void a_long_call_is_no_fault(void **state)
{
    struct fixture *f = *state;

    start_tasks(f, "stubborn", 1);
    wait_until(f, one_running);
    supervisor_task_target(f->sup, "stubborn", 0, TARGET_PAUSED);
    on_tick(f);
    wait_until(f, second_over);
    loop_timer_cancel(&f->tick);
    assert_int_equal(f->deaths, 0);
}

/* --- what plugins leave behind ---------------------------------------------------------------- */

static bool leftover_gone(struct fixture *f)
{
    return kill(f->leftover, 0) != 0 && errno == ESRCH;
}

/* The process that the host told of as its last words is killed and reaped soon. */
static void expect_no_leftover(struct fixture *f)
{
    f->leftover = (pid_t)strtol(f->conn_trace, NULL, 10);
    assert_true(f->leftover > 0);
    on_tick(f);
    wait_until(f, leftover_gone);
    loop_timer_cancel(&f->tick);
}

static void a_forked_child_dies_with_its_host(void **state)
{
    struct fixture *f = *state;

    start(f, "forker");
    wait_until(f, dead);
    expect_no_leftover(f);
}

/* Of the lease, which it echoes, and of its connector. */
static bool good_is_up(struct fixture *f)
{
    return f->conn_statuses == 2;
}

static void a_daemon_dies_with_its_host(void **state)
{
    struct fixture *f = *state;

    start(f, "good");
    wait_until(f, good_is_up);
    start(f, "daemonizer");
    wait_until(f, dead);
    expect_no_leftover(f);
    /* The neighbour is not touched. */
    assert_true(supervisor_hosts(f->sup, "good"));
    assert_int_equal(f->deaths, 1);
}

static void another_process_of_ours_outlives_a_host(void **state)
{
    struct fixture *f = *state;
    char program[] = "millrace", verb[] = "scan", library[] = "/x/hang.so";
    char *argv[] = {program, verb, library, NULL};
    pid_t pid = 0;

    assert_int_equal(spawn_run("/proc/self/exe", argv, (const int[]){-1, -1, -1}, 3, &pid), 0);
    assert_true(spawn_knows(pid));
    start(f, "quit");
    wait_until(f, dead);
    on_tick(f);
    f->ticks = 0;
    wait_until(f, second_over);
    loop_timer_cancel(&f->tick);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    spawn_forget(pid);
    assert_false(spawn_knows(pid));
}

/* --- output ----------------------------------------------------------------------------------- */

/* The worker's log goes to a file while fn runs. */
static char *capture(struct fixture *f, void (*fn)(struct fixture *))
{
    int saved = dup(STDERR_FILENO);
    int file = open(f->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct stat st;
    char *text;

    assert_true(file >= 0);
    dup2(file, STDERR_FILENO);
    fn(f);
    dup2(saved, STDERR_FILENO);
    close(saved);
    fstat(file, &st);
    text = calloc(1, (size_t)st.st_size + 1);
    assert_int_equal(pread(file, text, (size_t)st.st_size, 0), st.st_size);
    close(file);
    return text;
}

static void run_talker(struct fixture *f)
{
    start(f, "talker");
    wait_until(f, dead);
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

static void lines_are_logged_under_the_connector(void **state)
{
    char *log = capture(*state, run_talker);

    expect_in(log, " INFO  plugin.stdout [talker] plain output\n");
    expect_in(log, " WARN  host.fake [talker|5] a log line of the host\n");
    expect_in(log, " INFO  plugin.stderr [talker] no end of line\n");
    /* A logger that is none is only what a plugin printed. */
    assert_null(strstr(log, " WARN  evil logger"));
    free(log);
}

static bool flooded(struct fixture *f)
{
    return f->ticks >= 200;
}

static void run_flood(struct fixture *f, const char *conn)
{
    struct rusage before, after;
    int64_t cpu_ms, begin_ms;

    start(f, conn);
    wait_until(f, connector_up);
    getrusage(RUSAGE_SELF, &before);
    begin_ms = clock_ms();
    on_tick(f);
    wait_until(f, flooded);
    loop_timer_cancel(&f->tick);
    getrusage(RUSAGE_SELF, &after);
    cpu_ms = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
              before.ru_stime.tv_sec) *
                 1000 +
             (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
              before.ru_stime.tv_usec) /
                 1000;
    assert_in_range(cpu_ms, 0, 100 + (clock_ms() - begin_ms) / 3);
    supervisor_drain(f->sup, conn);
}

static void run_stdout_flood(struct fixture *f)
{
    run_flood(f, "stdout-flood");
    wait_until(f, dead);
}

static void run_line_flood(struct fixture *f)
{
    run_flood(f, "line-flood");
    wait_until(f, dead);
}

static void a_flood_of_lines_costs_little_and_is_counted(void **state)
{
    char *log = capture(*state, run_stdout_flood);

    expect_in(log, "plugin.stdout: ");
    expect_in(log, " bytes were dropped");
    assert_in_range(strlen(log), 1000, 1500000);
    free(log);
}

static void a_line_without_end_costs_little(void **state)
{
    char *log = capture(*state, run_line_flood);

    expect_in(log, " bytes were dropped");
    assert_in_range(strlen(log), 1000, 20000);
    free(log);
}

static void a_flood_of_frames_costs_little(void **state)
{
    run_flood(*state, "pong-flood");
    wait_until(*state, dead);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_host_is_born_clean),
        TEST(a_connector_starts_and_gives_task_configs),
        TEST(a_host_is_told_where_its_plugins_are),
        TEST(a_host_for_tasks_alone_is_told_so),
        TEST(one_connector_has_one_host),
        TEST(who_has_no_host_is_told_so),
        TEST(tasks_start_and_stop_alone),
        TEST(a_failed_task_stops_at_once_and_starts_again),
        TEST(a_host_that_is_spent_is_known_and_serves_on),
        TEST(a_task_that_never_ran_stops_at_once),
        TEST(a_drained_host_is_expected_to_be_gone),
        TEST(a_lease_reaches_old_hosts_and_new_ones),
        TEST(questions_are_answered_by_their_own_id),
        TEST(an_answer_does_not_reach_a_successor),
        TEST(a_config_too_large_is_refused),
        TEST(properties_too_large_for_the_link_end_the_host),
        TEST(a_missing_binary_is_the_death_of_a_host),
        TEST(a_hung_nest_holds_up_nobody),
        TEST(one_that_waits_for_the_nest_is_called_off),
        TEST(a_host_that_is_born_too_late_is_ended),
        TEST(no_descriptors_left_is_an_error_and_leaks_nothing),
        TEST(a_mute_host_is_ended),
        TEST(another_version_of_the_link_is_ended),
        TEST(a_crash_leaves_an_obituary),
        TEST(an_exit_leaves_an_obituary),
        TEST(what_the_c_library_said_is_in_the_obituary),
        TEST(a_kill_from_outside_is_told_from_ours),
        TEST(garbage_on_the_link_ends_the_host),
        TEST(an_oversized_frame_ends_the_host),
        TEST(a_host_that_is_not_needed_any_more_is_ended_before_its_hello),
        TEST(a_frame_before_hello_ends_the_host),
        TEST(a_frame_about_another_connector_ends_the_host),
        TEST(a_frame_about_an_unknown_task_ends_the_host),
        TEST(an_unknown_state_ends_the_host),
        TEST(a_topic_of_an_unknown_task_ends_the_host),
        TEST(a_host_says_that_its_configuration_is_stale),
        TEST(a_closed_link_ends_the_host),
        TEST(too_many_questions_end_the_host),
        TEST(the_last_status_comes_before_the_death),
        TEST(a_host_is_started_again_from_inside_its_death),
        TEST(a_stuck_task_takes_its_host_down_in_time),
        TEST(siblings_get_their_time_and_no_more),
        TEST(a_sibling_that_was_asked_too_is_told),
        TEST(a_drain_that_is_not_answered_names_the_culprit),
        TEST(a_host_that_left_its_group_is_ended_in_time),
        TEST(a_host_that_left_its_group_goes_with_the_supervisor),
        TEST(a_long_call_is_no_fault),
        TEST(a_forked_child_dies_with_its_host),
        TEST(a_daemon_dies_with_its_host),
        TEST(another_process_of_ours_outlives_a_host),
        TEST(lines_are_logged_under_the_connector),
        TEST(a_flood_of_lines_costs_little_and_is_counted),
        TEST(a_line_without_end_costs_little),
        TEST(a_flood_of_frames_costs_little),
    };

    fake_host_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
