/* SPDX-License-Identifier: Apache-2.0 */
/* Effective client settings: Connect's defaults below the worker's below the connector's. */
#include "host/task/task_client.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

struct fixture {
    struct props worker;
    struct props config;
    struct props java;
    struct task_client_spec spec;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    props_init(&f->worker);
    props_init(&f->config);
    props_set(&f->worker, "bootstrap.servers", "broker:1234");
    props_set(&f->worker, "security.protocol", "SSL");
    f->spec = (struct task_client_spec){"orders", 3, &f->worker, &f->config};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    props_deinit(&f->worker);
    props_deinit(&f->config);
    props_deinit(&f->java);
    free(f);
    return 0;
}

static void a_producer_has_connects_defaults(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(task_client_producer(&f->spec, &f->java, NULL), 0);
    assert_string_equal(props_get(&f->java, "bootstrap.servers"), "broker:1234");
    assert_string_equal(props_get(&f->java, "client.id"), "connector-producer-orders-3");
    assert_string_equal(props_get(&f->java, "acks"), "all");
    assert_string_equal(props_get(&f->java, "max.in.flight.requests.per.connection"), "1");
    assert_string_equal(props_get(&f->java, "enable.idempotence"), "true");
    assert_string_equal(props_get(&f->java, "delivery.timeout.ms"), "2147483647");
    assert_null(props_get(&f->java, "security.protocol")); /* not inherited without a prefix */
}

static void idempotence_gives_way_to_what_rules_it_out(void **state)
{
    static const char *const settings[][3] = {
        {"producer.override.acks", "1", "false"},
        {"producer.override.retries", "0", "false"},
        {"producer.override.max.in.flight.requests.per.connection", "6", "false"},
        {"producer.override.enable.idempotence", "false", "false"},
        {"producer.override.acks", "-1", "true"}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        props_set(&f->config, settings[i][0], settings[i][1]);
        props_deinit(&f->java);
        assert_int_equal(task_client_producer(&f->spec, &f->java, NULL), 0);
        assert_string_equal(props_get(&f->java, "enable.idempotence"), settings[i][2]);
        props_remove(&f->config, settings[i][0]);
    }
}

static void the_connector_overrides_the_worker_overrides_the_defaults(void **state)
{
    struct fixture *f = *state;

    props_set(&f->worker, "producer.acks", "1");
    props_set(&f->worker, "producer.linger.ms", "7");
    props_set(&f->config, "producer.override.linger.ms", "9");
    assert_int_equal(task_client_producer(&f->spec, &f->java, NULL), 0);
    assert_string_equal(props_get(&f->java, "acks"), "1");
    assert_string_equal(props_get(&f->java, "linger.ms"), "9");
}

static void a_consumer_has_connects_group_and_defaults(void **state)
{
    struct fixture *f = *state;

    props_set(&f->config, "consumer.override.max.poll.records", "20");
    assert_int_equal(task_client_consumer(&f->spec, &f->java, NULL), 0);
    assert_string_equal(props_get(&f->java, "group.id"), "connect-orders");
    assert_string_equal(props_get(&f->java, "client.id"), "connector-consumer-orders-3");
    assert_string_equal(props_get(&f->java, "enable.auto.commit"), "false");
    assert_string_equal(props_get(&f->java, "auto.offset.reset"), "earliest");
    assert_string_equal(props_get(&f->java, "max.poll.records"), "20");
}

static void the_group_can_be_overridden(void **state)
{
    struct fixture *f = *state;

    props_set(&f->config, "consumer.override.group.id", "mine");
    assert_int_equal(task_client_consumer(&f->spec, &f->java, NULL), 0);
    assert_string_equal(props_get(&f->java, "group.id"), "mine");
}

static void numbers_out_of_range_give_the_fallback(void **state)
{
    struct fixture *f = *state;

    props_init(&f->java);
    props_set(&f->java, "a", "12 ");
    props_set(&f->java, "b", "12x");
    props_set(&f->java, "c", "99999999999999999999");
    props_set(&f->java, "buffer.memory", "1000");
    assert_int_equal(task_client_number(&f->java, "a", 5, 0, 100), 12);
    assert_int_equal(task_client_number(&f->java, "a", 5, 0, 10), 5);
    assert_int_equal(task_client_number(&f->java, "b", 5, 0, 100), 5);
    assert_int_equal(task_client_number(&f->java, "c", 5, 0, INT64_MAX), 5);
    assert_int_equal(task_client_number(&f->java, "d", 5, 0, 100), 5);
    assert_int_equal(task_client_budget(&f->java), 262144);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_producer_has_connects_defaults),
        T(the_connector_overrides_the_worker_overrides_the_defaults),
        T(idempotence_gives_way_to_what_rules_it_out),
        T(a_consumer_has_connects_group_and_defaults),
        T(the_group_can_be_overridden),
        T(numbers_out_of_range_give_the_fallback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
