/* SPDX-License-Identifier: Apache-2.0 */
/* store_thread: the end of the lease is acted upon also while the thread waits for a broker, and
 * what is said of words that can't be used. Topics are the test's: opening that of the words hangs
 * as long as it likes. */
#include "worker/store/store_private.h"

#include "base/log.h"
#include "kafka/topic_weak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOUND_MS 10000

static struct {
    struct loop *loop;
    struct loop_timer tick;
    int64_t end_ms;
    bool ready, refused;
    bool may_not_read; /* the topic that is opened last */
    int words_code;    /* how opening them ends */
    atomic_bool hangs, stuck;
    atomic_int cuts;
    atomic_bool told, told_of_acls;
    bool fenced; /* writes under exactly-once */
    atomic_int looks, weak;
    atomic_int looks_before; /* the first question */
    atomic_bool asked;
} rig;

/* --- topics ----------------------------------------------------------------------------------- */

struct topic_admin *topic_admin_new(const struct props *java, client_conf_warn warn, void *arg,
                                    struct mr_error *err)
{
    return (struct topic_admin *)&rig;
}

void topic_admin_free(struct topic_admin **admin)
{
    *admin = NULL;
}

void topic_admin_cancel(struct topic_admin *admin)
{
    atomic_store(&rig.hangs, false);
}

void topic_weak_describe(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                         char *out, size_t size)
{
    snprintf(out, size, "%s", strcmp(topic, "strong") == 0 ? "" : "replication factor 1");
    atomic_fetch_add(&rig.looks, 1);
}

void internal_topics_deinit(struct internal_topics *topics)
{
}

int store_log_open(struct store_log *log, int64_t give_up_ms, struct mr_error *err)
{
    if (!log->topic->optional)
        return 0;
    atomic_store(&rig.stuck, true);
    for (int64_t end = clock_ms() + BOUND_MS; atomic_load(&rig.hangs) && clock_ms() < end;)
        sched_yield();
    return rig.words_code == 0 ? 0 : mr_fail(err, rig.words_code, "it says no");
}

int store_log_prove(struct store_log *log, struct mr_error *err)
{
    if (log->topic->kind != TOPIC_CONFIG || !rig.may_not_read)
        return 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED, "it may not be read");
}

int store_log_start(struct store_log *log, struct mr_error *err)
{
    return 0;
}

void store_log_claim(const struct store_log *log, bool anew)
{
}

void store_log_ask(struct store_log *log, struct store_request *req)
{
    atomic_store(&rig.looks_before, atomic_load(&rig.looks));
    atomic_store(&rig.asked, true);
}

int64_t store_log_lease_left(const struct store_log *log)
{
    int64_t left = atomic_load(log->lease_ms) - clock_boot_ms();

    return left > 0 ? left : 0;
}

int64_t store_log_look_at_lease(struct store_log *log)
{
    return -1;
}

void store_log_cut(const struct store_log *log)
{
    assert_int_equal(log->topic->kind, TOPIC_OFFSETS);
    atomic_fetch_add(&rig.cuts, 1);
}

bool store_log_end(struct store_log *log)
{
    return true;
}

void store_log_close(struct store_log *log)
{
}

/* --- the worker's loop ------------------------------------------------------------------------ */

static void on_batch(void *arg, struct store_batch *batch)
{
    store_batch_free(batch);
}

static void on_ready(void *arg, const struct mr_error *err)
{
    rig.ready = err == NULL;
    rig.refused = err != NULL && strcmp(err->text, "it may not be read") == 0;
}

static void on_lost(void *arg, const char *topic, const struct mr_error *err)
{
}

static void on_answer(void *arg, struct store_request *req)
{
}

static bool is_stuck(void)
{
    return rig.ready && atomic_load(&rig.stuck);
}

static bool is_refused(void)
{
    return rig.refused;
}

static bool is_cut(void)
{
    return atomic_load(&rig.cuts) > 0;
}

static bool is_told(void)
{
    return atomic_load(&rig.told);
}

static bool all_looked_at(void)
{
    return atomic_load(&rig.looks) == 5;
}

static bool is_asked(void)
{
    return atomic_load(&rig.asked);
}

static bool (*wanted)(void);

static void look(void *arg)
{
    if (wanted() || clock_ms() > rig.end_ms)
        loop_stop(rig.loop);
    else
        loop_timer_start(rig.loop, &rig.tick, 1, look, NULL);
}

static void run_until(bool (*what)(void))
{
    wanted = what;
    rig.end_ms = clock_ms() + BOUND_MS;
    loop_timer_start(rig.loop, &rig.tick, 0, look, NULL);
    loop_run(rig.loop);
    assert_true(what());
}

static struct store_thread *begin(void)
{
    static const struct store_thread_events events = {on_batch, on_ready, on_lost, on_answer};
    struct internal_topics topics = {0};
    struct mr_error err = {0};
    struct store_thread *thread;

    for (int i = 0; i < ALL_TOPICS; i++) {
        topics.topics[i].kind = (enum internal_topic_kind)i;
        topics.topics[i].name = "topic";
        topics.topics[i].optional = i == TOPIC_WORDS;
        topics.topics[i].fenced = i == TOPIC_CONFIG && rig.fenced;
    }
    thread = store_thread_new(rig.loop, &topics, &events, NULL, &err);
    assert_non_null(thread);
    return thread;
}

static void on_line(const char *line, size_t len)
{
    static const char cause[] = "can't be used (it says no)", acls[] = "needs the ACLs";

    if (memmem(line, len, cause, sizeof(cause) - 1) == NULL)
        return;
    atomic_store(&rig.told_of_acls, memmem(line, len, acls, sizeof(acls) - 1) != NULL);
    atomic_store(&rig.told, true);
}

static int set_up(void **state)
{
    memset(&rig, 0, sizeof(rig));
    log_set_level(LOG_OFF);
    rig.loop = loop_new(NULL);
    return rig.loop == NULL;
}

static int tear_down(void **state)
{
    log_witness(NULL);
    log_set_level(LOG_OFF);
    loop_free(&rig.loop);
    return 0;
}

/* --- what is promised ------------------------------------------------------------------------- */

static void the_lease_ends_while_the_thread_waits_for_a_broker(void **state)
{
    struct store_thread *thread;

    atomic_store(&rig.hangs, true);
    thread = begin();
    run_until(is_stuck);
    store_thread_lease(thread, clock_boot_ms() + 60000);
    store_thread_lease(thread, clock_boot_ms() + 20);
    run_until(is_cut);
    assert_true(atomic_load(&rig.hangs));
    assert_int_equal(atomic_load(&rig.cuts), 1);
    store_thread_end(&thread, clock_ms());
}

static void rights_are_asked_for_where_they_are_the_cause(void **state)
{
    static const int codes[] = {MR_ERR_UNSUPPORTED, MR_ERR_TIMEOUT, MR_ERR_CONFIG};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct store_thread *thread;

        rig.words_code = codes[i];
        atomic_store(&rig.told, false);
        log_set_level(LOG_WARN);
        log_witness(on_line);
        thread = begin();
        run_until(is_told);
        store_thread_end(&thread, clock_ms());
        assert_int_equal(atomic_load(&rig.told_of_acls), codes[i] == MR_ERR_UNSUPPORTED);
    }
}

static void a_topic_that_may_not_be_read_ends_the_start(void **state)
{
    struct store_thread *thread;

    rig.may_not_read = true;
    thread = begin();
    run_until(is_refused);
    store_thread_end(&thread, clock_ms());
    assert_false(atomic_load(&rig.stuck)); /* nor are the words looked for */
}

static void on_weak(const char *line, size_t len)
{
    static const char text[] = "it has replication factor 1, so that";

    if (memmem(line, len, text, sizeof(text) - 1) != NULL)
        atomic_fetch_add(&rig.weak, 1);
}

/* The internal ones, which have one name here; what is asked for, and then the brokers' own. */
static void what_transactions_are_about_is_looked_at_once_each(void **state)
{
    struct store_thread *thread;

    rig.fenced = true;
    log_set_level(LOG_WARN);
    log_witness(on_weak);
    thread = begin();
    store_thread_look(thread, "strong");
    store_thread_look(thread, "strong");
    store_thread_look(thread, "topic");
    store_thread_look(thread, "weak");
    run_until(all_looked_at);
    store_thread_end(&thread, clock_ms());
    assert_true(all_looked_at());
    assert_int_equal(atomic_load(&rig.weak), 4);
}

/* All of it waits while the start does: the question is the last, and comes first. */
static void what_is_asked_does_not_wait_for_looks(void **state)
{
    static const char *const topics[] = {"strong", "weak", "topic"};
    struct store_request question = {.topic = TOPIC_OFFSETS};
    struct store_thread *thread;

    atomic_store(&rig.hangs, true);
    thread = begin();
    run_until(is_stuck);
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        store_thread_look(thread, topics[i]);
    store_thread_ask(thread, &question);
    atomic_store(&rig.hangs, false);
    run_until(is_asked);
    run_until(all_looked_at);
    store_thread_end(&thread, clock_ms());
    assert_true(is_asked());
    assert_int_equal(atomic_load(&rig.looks_before), 0);
    assert_true(all_looked_at());
}

static void without_transactions_nothing_is_looked_at_by_itself(void **state)
{
    struct store_thread *thread;

    atomic_store(&rig.hangs, true);
    thread = begin();
    run_until(is_stuck);
    store_thread_end(&thread, clock_ms());
    assert_int_equal(atomic_load(&rig.looks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_lease_ends_while_the_thread_waits_for_a_broker, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_topic_that_may_not_be_read_ends_the_start, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_transactions_are_about_is_looked_at_once_each, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_asked_does_not_wait_for_looks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_transactions_nothing_is_looked_at_by_itself, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rights_are_asked_for_where_they_are_the_cause, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
