/* SPDX-License-Identifier: Apache-2.0 */
/* validate_reply: definitions, values and problems in Connect's shape, over a catalog that this
 * file plays. That the whole is what a Java worker answers is compared by tests/compat. */
#include "no_services.h"
#include "kafka/client_conf.h"
#include "model/client_keys.h"
#include "worker/herder/validate/validate.h"

#include "fake_catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SOURCE "org.apache.kafka.connect.file.FileStreamSourceConnector"
#define JSON "org.apache.kafka.connect.json.JsonConverter"

/* --- the catalog ------------------------------------------------------------------------------ */

static const char *const none[] = {NULL};
static const struct mr_config_key source_keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY, .doc = "Where to",
     .importance = MR_CFG_HIGH},
    {"batch.size", MR_CFG_INT, .fallback = "2000"},
    {"token", MR_CFG_PASSWORD, .group = "Login", .order = 3, .width = MR_CFG_WIDTH_LONG,
     .display_name = "Token"},
    {"names", MR_CFG_LIST, .fallback = ""},
    {"ratio", MR_CFG_DOUBLE, .fallback = "1"},
    {"millrace.secret.switch", MR_CFG_BOOLEAN, MR_CFG_INTERNAL, .fallback = "false"},
    {0}};
static const struct mr_config_key json_keys[] = {
    {"converter.type", MR_CFG_STRING, MR_CFG_REQUIRED, .choices = "key|value|header"},
    {"schemas.enable", MR_CFG_BOOLEAN, .fallback = "true", .group = "Schemas"},
    {0}};

static const struct mr_config_key no_keys[] = {{0}};
static const struct mr_config_key cast_keys[] = {
    {"negate", MR_CFG_INT, .fallback = "masked by the framework's"},
    {"replace.null.with.default", MR_CFG_BOOLEAN, .fallback = "true", .importance = MR_CFG_MEDIUM},
    {"last", MR_CFG_STRING, .fallback = "", .group = "Z", .order = 2, .display_name = "The last",
     .importance = MR_CFG_HIGH},
    {"low", MR_CFG_STRING, .fallback = ""},
    {"spec", MR_CFG_LIST, MR_CFG_REQUIRED, .fallback = NULL},
    {"first", MR_CFG_STRING, .fallback = "", .group = "Z", .order = 1},
    {"second", MR_CFG_STRING, .fallback = "", .group = "A", .order = 1},
    {0}};

static const struct catalog_plugin plugins[] = {
    {.name = "FileStreamSource",
     .version = "4.3.1",
     .kind = MR_PLUGIN_SOURCE,
     .aliases = none,
     .keys = source_keys,
     .java_class = SOURCE},
    {.name = "JsonConverter",
     .version = "4.3.1",
     .kind = MR_PLUGIN_CONVERTER,
     .aliases = none,
     .keys = json_keys,
     .java_class = JSON},
    {.name = "SimpleHeaderConverter",
     .version = "4.3.1",
     .kind = MR_PLUGIN_HEADER_CONVERTER,
     .aliases = none,
     .keys = no_keys,
     .java_class = "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
    {.name = "Cast$Key",
     .version = "4.3.1",
     .kind = MR_PLUGIN_TRANSFORM,
     .aliases = none,
     .keys = cast_keys,
     .java_class = "org.x.Cast$Key"},
    {.name = "Filter",
     .version = "4.3.1",
     .kind = MR_PLUGIN_TRANSFORM,
     .aliases = none,
     .keys = no_keys,
     .java_class = "org.x.Filter"},
    {.name = "Tombstone",
     .version = "4.3.1",
     .kind = MR_PLUGIN_PREDICATE,
     .aliases = none,
     .keys = no_keys,
     .java_class = "org.x.Tombstone"},
};

size_t catalog_count(const struct catalog *cat)
{
    return sizeof(plugins) / sizeof(plugins[0]);
}

const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i)
{
    return &plugins[i];
}

const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind,
                                          const char *name)
{
    return fake_catalog_find(plugins, catalog_count(cat), kind, name);
}

/* --- one reply -------------------------------------------------------------------------------- */

struct fixture {
    struct worker_config worker;
    struct props config;
    json_t *reply;
};

static void set(struct fixture *f, const char *key, const char *value)
{
    assert_int_equal(props_set(&f->config, key, value), 0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->worker.path = "worker.properties";
    assert_int_equal(props_set(&f->worker.props, "key.converter", "JsonConverter"), 0);
    assert_int_equal(props_set(&f->worker.props, "value.converter", JSON), 0);
    set(f, "name", " v ");
    set(f, "connector.class", "FileStreamSource");
    set(f, "topic", "t");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    json_decref(f->reply);
    props_deinit(&f->config);
    props_deinit(&f->worker.props);
    free(f);
    return 0;
}

static void ask(struct fixture *f)
{
    struct validate_input input = {
        .config = &f->config, .catalog = (const struct catalog *)plugins, .worker = &f->worker};
    struct validate_result result;

    json_decref(f->reply);
    assert_int_equal(validate_connector(&input, &result, NULL), 0);
    f->reply = validate_reply(&input, &result);
    assert_non_null(f->reply);
    validate_deinit(&result);
}

/* The configs entry of a key, as JSON text; "" when there is none. */
static const char *entry(struct fixture *f, const char *key)
{
    static char text[4096];
    json_t *one;
    size_t i;

    text[0] = '\0';
    json_array_foreach(json_object_get(f->reply, "configs"), i, one)
    {
        char *found;

        if (strcmp(json_string_value(json_object_get(json_object_get(one, "value"), "name")),
                   key) != 0)
            continue;
        found = json_text(one);
        snprintf(text, sizeof(text), "%s", found);
        free(found);
    }
    return text;
}

static void shows(struct fixture *f, const char *key, const char *part)
{
    if (strstr(entry(f, key), part) == NULL)
        fail_msg("%s: '%s' is not in '%s'", key, part, entry(f, key));
}

static void a_key_has_its_definition_and_its_value(void **state)
{
    struct fixture *f = *state;

    set(f, "token", "hunter2");
    set(f, "names", "a, b,,c ");
    set(f, "ratio", "0.5");
    ask(f);
    assert_string_equal(
        entry(f, "topic"),
        "{\"definition\":{\"name\":\"topic\",\"type\":\"STRING\",\"required\":true,\"default_"
        "value\":"
        "null,\"importance\":\"HIGH\",\"documentation\":\"Where to\",\"group\":null,"
        "\"order_in_group\":-1,\"width\":\"NONE\",\"display_name\":\"topic\",\"dependents\":[]},"
        "\"value\":{\"name\":\"topic\",\"value\":\"t\",\"recommended_values\":[],\"errors\":[],"
        "\"visible\":true}}");
    shows(f, "token",
          "\"group\":\"Login\",\"order_in_group\":3,\"width\":\"LONG\",\"display_name\":\"Token\"");
    shows(f, "token", "\"value\":\"[hidden]\"");
    shows(f, "names", "\"value\":\"a,b,,c\"");
    shows(f, "ratio", "\"value\":\"0.5\"");
    shows(f, "batch.size", "\"value\":\"2000\"");
    shows(f, "name", "\"value\":\"v\"");
    shows(f, "connector.class", "\"value\":\"FileStreamSource\"");
    assert_string_equal(entry(f, "millrace.secret.switch"), "");
}

static void problems_stand_beside_what_could_be_read(void **state)
{
    struct fixture *f = *state;

    set(f, "tasks.max", "0");
    set(f, "batch.size", "many");
    set(f, "millrace.secret.switch", "perhaps");
    ask(f);
    assert_int_equal(json_integer_value(json_object_get(f->reply, "error_count")), 3);
    assert_string_equal(json_string_value(json_object_get(f->reply, "name")), "FileStreamSource");
    shows(f, "tasks.max", "\"value\":\"0\"");
    shows(f, "tasks.max", "Value must be at least 1");
    shows(f, "batch.size", "\"value\":null");
    shows(f, "batch.size", "Not a number of type INT");
    shows(f, "millrace.secret.switch", "Expected value to be either true or false");
}

static void what_is_installed_is_recommended(void **state)
{
    struct fixture *f = *state;

    set(f, "value.converter", "JsonConverter");
    ask(f);
    shows(f, "key.converter", "\"default_value\":\"" JSON "\"");
    shows(f, "key.converter", "\"value\":\"" JSON "\",\"recommended_values\":[\"" JSON "\"]");
    shows(f, "value.converter", "\"value\":\"" JSON "\"");
    shows(f, "header.converter",
          "\"value\":\"org.apache.kafka.connect.storage.SimpleHeaderConverter\","
          "\"recommended_values\":[\"" JSON
          "\",\"org.apache.kafka.connect.storage.SimpleHeaderConverter\"]");
    shows(f, "connector.plugin.version", "\"default_value\":\"4.3.1\"");
    shows(f, "value.converter.plugin.version",
          "\"value\":\"4.3.1\",\"recommended_values\":[\"4.3.1\"]");
}

static void converters_and_clients_stand_below_their_prefix(void **state)
{
    struct fixture *f = *state;
    json_t *first;

    set(f, "value.converter", JSON);
    set(f, "value.converter.schemas.enable", "FALSE");
    set(f, "producer.override.linger.ms", "5");
    set(f, "producer.override.sasl.jaas.config", "hunter2");
    set(f, "producer.override.no.such", "x");
    ask(f);
    shows(f, "value.converter.schemas.enable",
          "{\"definition\":{\"name\":\"value.converter.schemas.enable\",\"type\":\"BOOLEAN\"");
    shows(f, "value.converter.schemas.enable", "\"value\":\"false\"");
    shows(f, "value.converter.converter.type", "\"value\":\"value\"");
    assert_string_equal(entry(f, "key.converter.converter.type"), "");
    shows(f, "producer.override.linger.ms", "\"display_name\":\"linger.ms\"");
    shows(f, "producer.override.linger.ms", "\"value\":\"5\"");
    shows(f, "producer.override.sasl.jaas.config", "\"value\":\"[hidden]\"");
    assert_null(strstr(entry(f, "producer.override.sasl.jaas.config"), "hunter2"));
    shows(f, "producer.override.linger.ms",
          "\"type\":\"LONG\",\"required\":false,\"default_value\":\"5\",\"importance\":"
          "\"MEDIUM\",");
    first = json_array_get(json_object_get(f->reply, "configs"), 0);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(first, "definition"), "name")), "name");
    shows(f, "producer.override.no.such",
          "{\"definition\":null,\"value\":{\"name\":\"producer."
          "override.no.such\",\"value\":\"x\"");
}

static void groups_are_named_once_in_their_order(void **state)
{
    struct fixture *f = *state;
    char *groups;

    set(f, "value.converter", JSON);
    set(f, "transforms", "a");
    set(f, "transforms.a.type", "Nope");
    ask(f);
    groups = json_text(json_object_get(f->reply, "groups"));
    assert_string_equal(groups, "[\"Common\",\"Transforms\",\"Predicates\",\"Error Handling\","
                                "\"Topic Creation\",\"Exactly Once Support\",\"offsets.topic\","
                                "\"Transforms: a\",\"Login\",\"Schemas\"]");
    free(groups);
    shows(f, "transforms.a.type", "\"display_name\":\"Transformation type for a\"");
    shows(f, "transforms.a.type", "\"value\":null");
}

/* Names, in their order, of what stands below a prefix. */
static const char *names_below(struct fixture *f, const char *prefix)
{
    static char text[2000];
    json_t *one;
    size_t i;

    text[0] = '\0';
    json_array_foreach(json_object_get(f->reply, "configs"), i, one)
    {
        json_t *def = json_object_get(one, "definition");
        const char *name = json_string_value(json_object_get(def, "name"));

        if (name != NULL && strncmp(name, prefix, strlen(prefix)) == 0)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%d ",
                     name + strlen(prefix),
                     (int)json_integer_value(json_object_get(def, "order_in_group")));
    }
    return text;
}

static void aliases_have_keys_of_their_own_in_order(void **state)
{
    struct fixture *f = *state;
    char *groups;

    set(f, "transforms", "a,b");
    set(f, "transforms.a.type", " Cast$Key ");
    set(f, "transforms.a.spec", "x , y");
    set(f, "transforms.b.type", "Filter");
    set(f, "transforms.b.negate", "TRUE");
    set(f, "transforms.b.predicate", "p");
    set(f, "predicates", "p");
    set(f, "predicates.p.type", "Tombstone");
    ask(f);
    assert_int_equal(json_integer_value(json_object_get(f->reply, "error_count")), 0);
    assert_string_equal(names_below(f, "transforms.a."),
                        "type=0 plugin.version=1 spec=2 negate=3 predicate=4 "
                        "replace.null.with.default=5 low=6 first=7 last=8 second=9 ");
    assert_string_equal(names_below(f, "transforms.b."),
                        "type=0 plugin.version=1 negate=2 predicate=3 ");
    assert_string_equal(names_below(f, "predicates.p."), "type=0 plugin.version=1 ");
    shows(f, "transforms.a.type",
          "\"type\":\"CLASS\",\"required\":true,\"default_value\":null,\"importance\":\"HIGH\"");
    shows(f, "transforms.a.type",
          "\"group\":\"Transforms: a\",\"order_in_group\":0,\"width\":\"LONG\",\"display_name\":"
          "\"Transformation type for a\"");
    shows(f, "transforms.a.type",
          "\"value\":\"org.x.Cast$Key\",\"recommended_values\":[\"org.x.Cast$Key\","
          "\"org.x.Filter\"]");
    shows(f, "predicates.p.type", "\"recommended_values\":[\"org.x.Tombstone\"]");
    shows(f, "predicates.p.plugin.version",
          "\"display_name\":\"Predicate version for p\",\"dependents\":[]},\"value\":{\"name\":"
          "\"predicates.p.plugin.version\",\"value\":\"4.3.1\",\"recommended_values\":[\"4.3.1\"]");
    shows(f, "transforms.a.spec", "\"display_name\":\"spec\"");
    shows(f, "transforms.a.spec", "\"value\":\"x,y\"");
    shows(f, "transforms.a.last", "\"group\":\"Transforms: a: Z\"");
    shows(f, "transforms.a.last", "\"display_name\":\"The last\"");
    shows(f, "transforms.a.negate", "\"type\":\"BOOLEAN\"");
    shows(f, "transforms.b.negate", "\"value\":\"true\"");
    shows(f, "transforms.a.predicate", "\"value\":null");
    groups = json_text(json_object_get(f->reply, "groups"));
    assert_non_null(strstr(groups, "\"Transforms: a\",\"Transforms: a: Z\",\"Transforms: a: A\","
                                   "\"Transforms: b\",\"Predicates: p\""));
    free(groups);
}

static void a_class_that_can_not_be_used_is_shown_as_it_is(void **state)
{
    struct fixture *f = *state;

    set(f, "transforms", "a,b,c");
    set(f, "transforms.a.type", "JsonConverter");
    set(f, "transforms.b.type", "org.x.Cast");
    ask(f);
    assert_int_equal(json_integer_value(json_object_get(f->reply, "error_count")), 3);
    assert_string_equal(names_below(f, "transforms."),
                        "a.type=0 a.plugin.version=1 b.type=0 b.plugin.version=1 c.type=0 "
                        "c.plugin.version=1 ");
    shows(f, "transforms.a.type", "\"value\":\"" JSON "\"");
    shows(f, "transforms.b.type", "\"value\":\"org.x.Cast\"");
    shows(f, "transforms.c.type", "\"value\":null");
}

static void definitions_alone_are_the_plugin_s_and_then_the_framework_s(void **state)
{
    json_t *list = validate_definitions((const struct catalog *)plugins, &plugins[0]);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "name")),
                        "topic");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 5), "name")),
                        "name");
    json_decref(list);
    list = validate_definitions((const struct catalog *)plugins, &plugins[1]);
    assert_int_equal(json_array_size(list), 2);
    json_decref(list);
    list = validate_definitions((const struct catalog *)plugins, &plugins[4]);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

/* --- large ones ------------------------------------------------------------------------------- */

static int64_t cpu_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

/* The best of some answers. */
static int64_t time_of(struct fixture *f)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 5; i++) {
        int64_t began = cpu_us();

        ask(f);
        best = cpu_us() - began < best ? cpu_us() - began : best;
    }
    return best;
}

/* On the worker's loop: each key that is shown with its definition would walk over all 20,000, and
 * take a hundred times as long. */
static void many_keys_below_a_prefix_are_shown_in_time(void **state)
{
    const char *const *known = client_conf_names(CLIENT_PRODUCER);
    struct fixture *f = *state;
    int64_t without, with;
    char key[128];

    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "producer.override.none.%d", i);
        set(f, key, "1");
    }
    without = time_of(f);
    props_deinit(&f->config);
    set(f, "connector.class", "FileStreamSource");
    for (; *known != NULL; known++) {
        const struct mr_config_key *def = client_keys_find(CLIENT_KEYS_PRODUCER, *known);

        snprintf(key, sizeof(key), "producer.override.%s", *known);
        set(f, key, def != NULL && def->type == MR_CFG_BOOLEAN ? "true" : "1");
    }
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "producer.override.none.%d", i);
        set(f, key, "1");
    }
    with = time_of(f);
    if (with > 5 * without)
        fail_msg("%lld us, and %lld us without", (long long)with, (long long)without);
}

#define reply_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        reply_test(a_key_has_its_definition_and_its_value),
        reply_test(problems_stand_beside_what_could_be_read),
        reply_test(what_is_installed_is_recommended),
        reply_test(many_keys_below_a_prefix_are_shown_in_time),
        reply_test(converters_and_clients_stand_below_their_prefix),
        reply_test(groups_are_named_once_in_their_order),
        reply_test(aliases_have_keys_of_their_own_in_order),
        reply_test(a_class_that_can_not_be_used_is_shown_as_it_is),
        reply_test(definitions_alone_are_the_plugin_s_and_then_the_framework_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
