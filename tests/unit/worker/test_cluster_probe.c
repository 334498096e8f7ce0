/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_probe: what it says while Kafka does not answer, and that it is told of the cluster once
 * that does; that it ends. The wall clock of this thread is the test's (--wrap=clock_gettime). */
#include "worker/herder/cluster_probe.h"

#include "base/clock.h"
#include "base/log.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define WAIT_MS 30000
#define HOUR_S 3600

static _Thread_local int64_t step_s;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = __real_clock_gettime(clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += step_s;
    return rc;
}

static atomic_bool left_behind;

static void look_for_it(const char *line, size_t len)
{
    if (memmem(line, len, "left behind", strlen("left behind")) != NULL)
        atomic_store(&left_behind, true);
}

struct fixture {
    struct loop *loop;
    struct worker_config config;
    struct loop_timer guard;
    char id[64];
};

static struct fixture *fixture_new(const char *servers)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->loop = loop_new(NULL);
    props_init(&f->config.props);
    assert_int_equal(props_set(&f->config.props, "bootstrap.servers", servers), 0);
    return f;
}

static void fixture_free(struct fixture *f)
{
    loop_timer_cancel(&f->guard);
    loop_free(&f->loop);
    props_deinit(&f->config.props);
    free(f);
}

static void on_id(void *arg, const char *id)
{
    struct fixture *f = arg;

    snprintf(f->id, sizeof(f->id), "%s", id);
    loop_stop(f->loop);
}

static void on_guard(void *arg)
{
    loop_stop(arg);
}

static struct cluster_probe *start(struct fixture *f)
{
    struct mr_error err = {0};
    struct cluster_probe *probe = cluster_probe_start(f->loop, &f->config, on_id, f, &err);

    if (probe == NULL)
        fail_msg("%s", err.text);
    return probe;
}

/* Until what it says has this in it. */
static void await_trouble(struct cluster_probe *probe, const char *wanted, char *out, size_t size)
{
    int64_t until = clock_ms() + WAIT_MS;

    for (cluster_probe_trouble(probe, out, size); strstr(out, wanted) == NULL;
         cluster_probe_trouble(probe, out, size)) {
        assert_true(clock_ms() < until);
        poll(NULL, 0, 20);
    }
}

static void a_kafka_that_is_not_there_is_told_with_reason_and_time(void **state)
{
    struct fixture *f = fixture_new("127.0.0.1:1");
    struct cluster_probe *probe = start(f);
    char said[1500], again[1500];

    (void)state;
    await_trouble(probe, "Connection refused", said, sizeof(said));
    assert_non_null(strstr(said, "Kafka at 127.0.0.1:1 has not answered since 20"));
    assert_int_equal(said[strlen(said) - 1], '.');
    await_trouble(probe, "Connection refused", again, sizeof(again));
    assert_memory_equal(said, again, strlen("Kafka at 127.0.0.1:1 has not answered since ") + 24);
    cluster_probe_free(&probe);
    fixture_free(f);
}

static void a_kafka_that_answers_is_no_trouble(void **state)
{
    char why[256], said[1500];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof(why));
    rd_kafka_mock_cluster_t *mock = rd_kafka_mock_cluster_new(rk, 1);
    struct fixture *f = fixture_new(rd_kafka_mock_cluster_bootstraps(mock));
    struct cluster_probe *probe;

    (void)state;
    rd_kafka_mock_broker_set_down(mock, 1);
    probe = start(f);
    await_trouble(probe, "has not answered", said, sizeof(said));
    rd_kafka_mock_broker_set_up(mock, 1);
    loop_timer_start(f->loop, &f->guard, WAIT_MS, on_guard, f->loop);
    loop_run(f->loop);
    assert_true(f->id[0] != '\0');
    cluster_probe_trouble(probe, said, sizeof(said));
    assert_string_equal(said, "");
    cluster_probe_free(&probe);
    fixture_free(f);
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(rk);
}

/* Just then somebody sets the clock right: what was a second ahead is long past. */
static void its_end_is_waited_for_whatever_the_wall_clock_does(void **state)
{
    struct fixture *f = fixture_new("127.0.0.1:1");
    struct cluster_probe *probe = start(f);
    char said[1500];

    (void)state;
    await_trouble(probe, "Connection refused", said, sizeof(said));
    step_s = -HOUR_S;
    cluster_probe_free(&probe);
    step_s = 0;
    assert_false(atomic_load(&left_behind));
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kafka_that_is_not_there_is_told_with_reason_and_time),
        cmocka_unit_test(a_kafka_that_answers_is_no_trouble),
        cmocka_unit_test(its_end_is_waited_for_whatever_the_wall_clock_does),
    };

    log_witness(look_for_it);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
