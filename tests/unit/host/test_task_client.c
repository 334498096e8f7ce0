/* SPDX-License-Identifier: Apache-2.0 */
/* Effective client settings: Connect's defaults below the worker's below the connector's. */
#include "base/json.h"
#include "host/task/task_client.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
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

/* The policy may be younger than what is stored; each kind of client is judged by its own
 * overrides. */
static void a_stored_override_that_the_policy_forbids_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    props_set(&f->worker, "connector.client.config.override.policy", "Principal");
    props_set(&f->config, "producer.override.linger.ms", "5");
    props_set(&f->config, "producer.override.ssl.key.password", "hunter2");
    props_set(&f->config, "consumer.override.security.protocol", "PLAINTEXT");
    assert_int_equal(task_client_producer(&f->spec, &f->java, &err), MR_ERR_CONFIG);
    assert_string_equal(
        err.text,
        "Client Config Overrides not allowed [[linger.ms,5,[],[The 'Principal' policy does not "
        "allow 'linger.ms' to be overridden in the connector configuration.],true], "
        "[ssl.key.password,[hidden],[],[The 'Principal' policy does not allow 'ssl.key.password' "
        "to be overridden in the connector configuration.],true]]");
    props_deinit(&f->java);
    assert_int_equal(task_client_consumer(&f->spec, &f->java, NULL), 0);
    props_deinit(&f->java);
    assert_int_equal(task_client_admin(&f->spec, "admin", &f->java, NULL), 0);
    props_set(&f->config, "admin.override.retries", "5");
    props_deinit(&f->java);
    assert_int_equal(task_client_admin(&f->spec, "admin", &f->java, NULL), MR_ERR_CONFIG);
    props_deinit(&f->java);
    assert_int_equal(task_client_dead_letters(&f->spec, &f->java, NULL), MR_ERR_CONFIG);
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

/* setting: KEY=VALUE, or NULL. */
static void below(struct props *props, const char *prefix, const char *setting)
{
    const char *value = setting != NULL ? strchr(setting, '=') : NULL;
    char key[128];

    if (value == NULL)
        return;
    snprintf(key, sizeof(key), "%s%.*s", prefix, (int)(value - setting), setting);
    props_set(props, key, value + 1);
}

/* Each is told where it was set. */
static void what_rules_transactions_out_is_named(void **state)
{
    static const struct {
        const char *worker, *connector; /* below producer. and producer.override. */
        const char *text;
    } settings[] = {
        {"acks=0", NULL, "producer.acks=0: exactly-once needs acks=all"},
        {"acks=0", "acks=1", "producer.override.acks=1: exactly-once needs acks=all"},
        {"retries=0", NULL, "producer.retries=0: exactly-once needs retries=1 or more"},
        {NULL, "max.in.flight.requests.per.connection=6",
         "producer.override.max.in.flight.requests.per.connection=6: exactly-once needs "
         "max.in.flight.requests.per.connection=1 to 5"},
        {"acks=1", "acks= all ", NULL},
        {NULL, "enable.idempotence=false", NULL},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        struct props worker = f->worker, config = f->config;
        struct mr_error err = {0};

        props_init(&f->worker);
        props_init(&f->config);
        below(&f->worker, "producer.", settings[i].worker);
        below(&f->config, "producer.override.", settings[i].connector);
        assert_int_equal(task_client_producer(&f->spec, &f->java, NULL), 0);
        assert_int_equal(task_client_check_transactions(&f->spec, &f->java, &err),
                         settings[i].text != NULL ? MR_ERR_CONFIG : 0);
        assert_string_equal(err.text, settings[i].text != NULL ? settings[i].text : "");
        props_deinit(&f->java);
        props_deinit(&f->worker);
        props_deinit(&f->config);
        f->worker = worker;
        f->config = config;
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

/* --- the Java worker's, from its own log ------------------------------------------------------ */

/* A line of tests/data/client-settings.jsonl: settings of worker and connector, and by client what
 * the Java worker 4.3.1 logged as its values: all of them in the first line, where nobody set any,
 * and in the others what is not as there. null: it refused them. */
#define TABLE TEST_SOURCE "/tests/data/client-settings.jsonl"

static int source_admin(const struct task_client_spec *spec, struct props *java,
                        struct mr_error *err)
{
    return task_client_admin(spec, "connector-adminclient-conn-0", java, err);
}

static int sink_admin(const struct task_client_spec *spec, struct props *java, struct mr_error *err)
{
    return task_client_admin(spec, "connector-dlq-adminclient-conn-0", java, err);
}

static const struct {
    const char *name;
    int (*make)(const struct task_client_spec *spec, struct props *java, struct mr_error *err);
} clients[] = {
    {"source producer", task_client_producer},
    {"source admin", source_admin},
    {"sink consumer", task_client_consumer},
    {"sink producer", task_client_dead_letters},
    {"sink admin", sink_admin},
};

static void take(struct props *props, const json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        assert_int_equal(props_set(props, key, json_string_value(value)), 0);
}

/* Ours, but for order's sake: idempotent unless the user says otherwise. */
static bool is_meant(const char *client, const char *key, const struct task_client_spec *spec)
{
    return strcmp(client, "source producer") == 0 && strcmp(key, "enable.idempotence") == 0 &&
           props_get(spec->worker, "producer.enable.idempotence") == NULL &&
           props_get(spec->config, "producer.override.enable.idempotence") == NULL;
}

static size_t compare(const char *client, const struct task_client_spec *spec,
                      const struct props *java, const json_t *first, const json_t *row)
{
    size_t wrong = 0;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)first, key, value)
    {
        const json_t *other = json_object_get(row, key);
        const char *want = json_string_value(other != NULL ? other : value);
        const char *got = props_get(java, key);

        if (got == NULL)
            got = json_string_value(value); /* nobody set it */
        if (strcmp(got, "all") == 0)
            got = "-1";
        if (strcmp(got, want) == 0 || is_meant(client, key, spec))
            continue;
        print_error("%s: %s is %s, Java's is %s\n", client, key, got, want);
        wrong++;
    }
    return wrong;
}

static size_t compare_line(const json_t *first, const json_t *line)
{
    struct props worker, config, java;
    const struct task_client_spec spec = {"conn", 0, &worker, &config};
    size_t wrong = 0;

    props_init(&worker);
    props_init(&config);
    props_set(&worker, "bootstrap.servers", "broker:9092");
    take(&worker, json_object_get(line, "worker"));
    take(&config, json_object_get(line, "connector"));
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        const char *name = clients[i].name;
        const json_t *row = json_object_get(json_object_get(line, "clients"), name);

        if (json_is_null(row))
            continue;
        assert_int_equal(clients[i].make(&spec, &java, NULL), 0);
        wrong += compare(name, &spec, &java,
                         json_object_get(json_object_get(first, "clients"), name), row);
        props_deinit(&java);
    }
    props_deinit(&worker);
    props_deinit(&config);
    return wrong;
}

static void every_client_has_the_settings_that_the_java_worker_gives_it(void **state)
{
    FILE *table = fopen(TABLE, "re");
    json_t *first = NULL;
    size_t lines = 0, wrong = 0;
    char text[16384];

    (void)state;
    assert_non_null(table);
    for (; fgets(text, sizeof(text), table) != NULL; lines++) {
        json_t *line = json_loads(text, 0, NULL);
        size_t found;

        assert_non_null(line);
        if (first == NULL)
            first = json_incref(line);
        found = compare_line(first, line);
        if (found > 0)
            print_error("in line %zu\n", lines + 1);
        wrong += found;
        json_decref(line);
    }
    json_decref(first);
    fclose(table);
    assert_int_equal(lines, 20);
    assert_int_equal(wrong, 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_producer_has_connects_defaults),
        T(a_stored_override_that_the_policy_forbids_is_refused),
        T(the_connector_overrides_the_worker_overrides_the_defaults),
        T(idempotence_gives_way_to_what_rules_it_out),
        T(what_rules_transactions_out_is_named),
        T(a_consumer_has_connects_group_and_defaults),
        T(the_group_can_be_overridden),
        T(numbers_out_of_range_give_the_fallback),
        cmocka_unit_test(every_client_has_the_settings_that_the_java_worker_gives_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
