/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: the id that a cluster has; patience, with a reason, where there is none. */
#include "base/clock.h"
#include "kafka/cluster.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cluster *ask(const char *servers)
{
    struct cluster *cluster;
    struct props java;

    props_init(&java);
    assert_int_equal(props_set(&java, "bootstrap.servers", servers), 0);
    cluster = cluster_new(&java, NULL);
    props_deinit(&java);
    assert_non_null(cluster);
    return cluster;
}

static void a_cluster_gives_its_id(void **state)
{
    char why[256], id[64];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof(why));
    rd_kafka_mock_cluster_t *mock = rd_kafka_mock_cluster_new(rk, 1);
    struct cluster *cluster = ask(rd_kafka_mock_cluster_bootstraps(mock));
    struct mr_error err = {0};

    if (cluster_id(cluster, 10000, id, sizeof(id), &err) != 0)
        fail_msg("%s", err.text);
    assert_true(id[0] != '\0');
    assert_int_equal(cluster_id(cluster, 10000, id, 3, NULL), MR_ERR_TOO_LARGE);
    cluster_free(&cluster);
    assert_null(cluster);
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(rk);
}

static void nobody_there_is_told_in_time_and_with_the_reason(void **state)
{
    struct cluster *cluster = ask("127.0.0.1:1");
    int64_t begin = clock_ms();
    struct mr_error err = {0};
    char id[64];
    int tries = 0;

    do {
        err.code = 0;
        assert_int_equal(cluster_id(cluster, 200, id, sizeof(id), &err), MR_ERR_TIMEOUT);
    } while (strstr(err.text, "Connection refused") == NULL && ++tries < 50);
    assert_non_null(strstr(err.text, "127.0.0.1:1"));
    assert_null(strstr(err.text, "(after"));
    assert_true(clock_ms() - begin < 11000);
    cluster_free(&cluster);
}

/* An answer that was once given says nothing about now. */
static void a_cluster_that_falls_silent_does_not_answer(void **state)
{
    char why[256], id[64];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof(why));
    rd_kafka_mock_cluster_t *mock = rd_kafka_mock_cluster_new(rk, 1);
    struct cluster *cluster = ask(rd_kafka_mock_cluster_bootstraps(mock));
    struct mr_error err = {0};
    int64_t until = clock_ms() + 20000;

    assert_int_equal(cluster_id(cluster, 10000, id, sizeof(id), NULL), 0);
    assert_int_equal(cluster_answers(cluster, 10000, NULL), 0);
    rd_kafka_mock_broker_set_down(mock, 1);
    assert_int_equal(cluster_answers(cluster, 500, &err), MR_ERR_TIMEOUT);
    assert_true(err.text[0] != '\0');
    rd_kafka_mock_broker_set_up(mock, 1);
    while (cluster_answers(cluster, 500, NULL) != 0)
        assert_true(clock_ms() < until);
    cluster_free(&cluster);
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(rk);
}

static void settings_that_cannot_be_used_make_no_client(void **state)
{
    struct mr_error err = {0};
    struct props java;

    props_init(&java);
    assert_int_equal(props_set(&java, "security.protocol", "SASL_SSL"), 0);
    assert_int_equal(props_set(&java, "sasl.mechanism", "MAGIC"), 0);
    assert_null(cluster_new(&java, &err));
    assert_int_equal(err.code, MR_ERR_CONFIG);
    props_deinit(&java);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_gives_its_id),
        cmocka_unit_test(nobody_there_is_told_in_time_and_with_the_reason),
        cmocka_unit_test(a_cluster_that_falls_silent_does_not_answer),
        cmocka_unit_test(settings_that_cannot_be_used_make_no_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
