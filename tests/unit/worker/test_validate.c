/* SPDX-License-Identifier: Apache-2.0 */
/* validate: the refusals of Connect, in its words and its order, over a catalog that this file
 * plays. The texts are those that a Java worker 4.3.1 answered. */
#include "no_services.h"
#include "base/buf.h"
#include "model/conn_extras.h"
#include "worker/herder/validate/validate.h"

#include "fake_catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCE "org.apache.kafka.connect.file.FileStreamSourceConnector"
#define SINK "org.apache.kafka.connect.file.FileStreamSinkConnector"
#define POLICY "connector.client.config.override.policy"
#define CAST "org.apache.kafka.connect.transforms.Cast"
#define JSON "org.apache.kafka.connect.json.JsonConverter"

/* --- the catalog ------------------------------------------------------------------------------ */

static const char *const none[] = {NULL};
static const struct mr_config_key source_keys[] = {
    {"file", MR_CFG_STRING, .fallback = NULL},
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY, .fallback = NULL},
    {"batch.size", MR_CFG_INT, .fallback = "2000"},
    {0}};
static const struct mr_config_key sink_keys[] = {{"file", MR_CFG_STRING, .fallback = NULL}, {0}};
static const struct mr_config_key greedy_keys[] = {
    {"tasks.max", MR_CFG_STRING, .fallback = "as many as you like"},
    {"token", MR_CFG_PASSWORD, .fallback = NULL},
    {"name", MR_CFG_STRING, .fallback = "greedy"},
    {0}};
static const struct mr_config_key json_keys[] = {
    {"converter.type", MR_CFG_STRING, MR_CFG_REQUIRED, .choices = "key|value|header"},
    {"schemas.cache.size", MR_CFG_INT, .fallback = "1000"},
    {0}};

static const struct mr_config_key no_keys[] = {{0}};
static const struct mr_config_key cast_keys[] = {
    {"replace.null.with.default", MR_CFG_BOOLEAN, .fallback = "true", .importance = MR_CFG_MEDIUM},
    {"spec", MR_CFG_LIST, MR_CFG_REQUIRED, .fallback = NULL, .importance = MR_CFG_HIGH},
    {"depth", MR_CFG_INT, .fallback = "1", .has_range = true, .min = 1, .max = 9},
    {"side", MR_CFG_STRING, .fallback = "left", .choices = "left|right"},
    {0}};
static const struct mr_config_key route_keys[] = {
    {"negate", MR_CFG_INT, .fallback = "7"},
    {"last", MR_CFG_STRING, .fallback = "", .group = "Z", .order = 2},
    {"first", MR_CFG_STRING, .fallback = "", .group = "Z", .order = 1},
    {"second", MR_CFG_STRING, .fallback = "", .group = "A", .order = 1},
    {0}};
static const struct mr_config_key pattern_keys[] = {{"pattern", MR_CFG_STRING,
                                                     MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
                                                     .fallback = NULL, .importance = MR_CFG_MEDIUM},
                                                    {0}};

static const struct mr_config_key one_keys[] = {{"of.one", MR_CFG_INT, .fallback = "1"}, {0}};
static const struct mr_config_key two_keys[] = {{"of.two", MR_CFG_INT, .fallback = "2"}, {0}};

static const struct mr_config_key once_keys[] = {
    {"file", MR_CFG_STRING, .fallback = NULL}, {"once", MR_CFG_BOOLEAN, .fallback = "false"}, {0}};

static const struct catalog_plugin plugins[] = {
    {.name = "FileStreamSink",
     .version = "4.3.1",
     .kind = MR_PLUGIN_SINK,
     .aliases = none,
     .keys = sink_keys,
     .java_class = SINK},
    {.name = "FileStreamSource",
     .version = "4.3.1",
     .kind = MR_PLUGIN_SOURCE,
     .aliases = none,
     .keys = source_keys,
     .exactly_once = "file",
     .java_class = SOURCE},
    {.name = "Greedy",
     .kind = MR_PLUGIN_SOURCE,
     .boundaries = true,
     .aliases = none,
     .keys = greedy_keys,
     .java_class = "Greedy"},
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
     .java_class = CAST "$Key"},
    {.name = "Cast$Value",
     .version = "4.3.1",
     .kind = MR_PLUGIN_TRANSFORM,
     .aliases = none,
     .keys = cast_keys,
     .java_class = CAST "$Value"},
    {.name = "Route",
     .version = "4.3.1",
     .kind = MR_PLUGIN_TRANSFORM,
     .aliases = none,
     .keys = route_keys,
     .java_class = "Route"},
    {.name = "TopicNameMatches",
     .version = "4.3.1",
     .kind = MR_PLUGIN_PREDICATE,
     .aliases = none,
     .keys = pattern_keys,
     .java_class = "org.x.TopicNameMatches"},
    {.name = "Twice",
     .version = "2.0",
     .kind = MR_PLUGIN_CONVERTER,
     .aliases = none,
     .keys = two_keys,
     .java_class = "Twice"},
    {.name = "Twice",
     .version = "1.0",
     .kind = MR_PLUGIN_CONVERTER,
     .aliases = none,
     .keys = one_keys,
     .java_class = "Twice"},
    {.name = "Emitter",
     .kind = MR_PLUGIN_SINK,
     .aliases = none,
     .keys = sink_keys,
     .emits = true,
     .java_class = "Emitter"},
    {.name = "Storing",
     .kind = MR_PLUGIN_SINK,
     .aliases = none,
     .keys = sink_keys,
     .stores_offsets = "",
     .java_class = "Storing"},
    {.name = "StoringOnce",
     .kind = MR_PLUGIN_SINK,
     .aliases = none,
     .keys = once_keys,
     .stores_offsets = "once",
     .java_class = "StoringOnce"},
    {.name = "Greedy", /* the same library in a second folder */
     .kind = MR_PLUGIN_SOURCE,
     .boundaries = true,
     .aliases = none,
     .keys = greedy_keys,
     .java_class = "Greedy"},
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

/* --- the fixture ------------------------------------------------------------------------------ */

struct fixture {
    struct worker_config worker;
    struct props config;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->worker.path = "worker.properties";
    assert_int_equal(props_set(&f->config, "name", "v"), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    props_deinit(&f->config);
    props_deinit(&f->worker.props);
    free(f);
    return 0;
}

static void set(struct fixture *f, const char *key, const char *value)
{
    assert_int_equal(props_set(&f->config, key, value), 0);
}

static void set_worker(struct fixture *f, const char *key, const char *value)
{
    assert_int_equal(props_set(&f->worker.props, key, value), 0);
}

static void a_source(struct fixture *f)
{
    set(f, "connector.class", SOURCE);
    set(f, "topic", "t");
}

static void a_sink(struct fixture *f)
{
    set(f, "connector.class", SINK);
    set(f, "topics", "a,b");
}

/* The problems as "key: text" lines. */
static char *problems(struct fixture *f, size_t *count)
{
    struct validate_input input = {
        .config = &f->config, .catalog = (const struct catalog *)plugins, .worker = &f->worker};
    struct validate_result result;
    struct mr_error err = {0};
    struct buf out;

    buf_init(&out, 1 << 20);
    if (validate_connector(&input, &result, &err) != 0) {
        assert_int_equal(err.code, MR_ERR_CONFIG);
        buf_printf(&out, "%s", err.text);
    }
    for (size_t i = 0; i < result.key_count; i++)
        for (size_t j = 0; j < result.keys[i].error_count; j++)
            buf_printf(&out, "%s: %s\n", result.keys[i].name, result.keys[i].errors[j]);
    *count = validate_error_count(&result);
    validate_deinit(&result);
    return out.len > 0 ? buf_take(&out) : strdup("");
}

static void expect_part(struct fixture *f, const char *want)
{
    size_t n;
    char *got = problems(f, &n);

    assert_non_null(strstr(got, want));
    free(got);
}

static void expect_no_part(struct fixture *f, const char *text)
{
    size_t n;
    char *got = problems(f, &n);

    assert_null(strstr(got, text));
    free(got);
}

/* The whole of it, and not single keys. */
static void expect_refused(struct fixture *f, const char *want)
{
    struct validate_input input = {
        .config = &f->config, .catalog = (const struct catalog *)plugins, .worker = &f->worker};
    struct validate_result result;
    struct mr_error err = {0};

    assert_int_equal(validate_connector(&input, &result, &err), MR_ERR_CONFIG);
    assert_string_equal(err.text, want);
    validate_deinit(&result);
}

static void expect(struct fixture *f, size_t count, const char *want)
{
    size_t n;
    char *got = problems(f, &n);

    if (strcmp(got, want) != 0)
        fail_msg("found\n%swhere this belongs\n%s", got, want);
    assert_int_equal(n, count);
    free(got);
}

/* --- the class -------------------------------------------------------------------------------- */

static void a_missing_class_is_told_with_what_was_sent(void **state)
{
    struct fixture *f = *state;

    set(f, "x.password", "hunter2");
    expect(f, 0, "Connector config {name=v, x.password=[hidden]} contains no connector type");
}

static void an_unknown_class_is_told_with_what_there_is(void **state)
{
    struct fixture *f = *state;

    set(f, "connector.class", " JsonConverter ");
    expect(f, 0,
           "Failed to find any class that implements Connector and which name matches "
           "JsonConverter, available connectors "
           "are: " SINK ", " SOURCE ", Greedy, Emitter, Storing, StoringOnce");
}

static void good_configurations_pass(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    expect(f, 0, "");
    set(f, "value.converter", JSON);
    set(f, "header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter");
    set(f, "producer.override.acks", "all");
    set(f, "connector.plugin.version", "latest");
    set(f, "unknown.key", "is no error");
    set(f, "errors.tolerance", "none ");
    set(f, "topics", "means nothing to a source");
    expect(f, 0, "");
    a_sink(f);
    expect(f, 0, "");
}

/* Escaped it is larger: what counts is what goes to its process. */
static void a_configuration_too_large_for_its_process_is_refused(void **state)
{
    struct fixture *f = *state;
    char *fill = calloc(1, ((size_t)1 << 20) + 1);

    a_source(f);
    memset(fill, 'x', (size_t)1 << 20);
    fill[1000000] = '\0';
    set(f, "file", fill);
    expect(f, 0, "");
    fill[1000000] = 'x';
    set(f, "file", fill);
    expect(f, 0,
           "The connector's configuration is too large: 1048686 bytes as JSON, where at most "
           "1048576 are possible");
    memset(fill, '\n', 600000);
    fill[600000] = '\0';
    set(f, "file", fill);
    expect(f, 0,
           "The connector's configuration is too large: 1200110 bytes as JSON, where at most "
           "1048576 are possible");
    free(fill);
}

/* --- single keys ------------------------------------------------------------------------------ */

static void problems_stand_in_the_order_of_the_keys(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "value.converter", JSON);
    set(f, "value.converter.schemas.cache.size", "x");
    set(f, "batch.size", "nine");
    set(f, "topic", "");
    set(f, "errors.retry.timeout", "1.5");
    set(f, "tasks.max", "many");
    set(f, "null.key", NULL);
    set(f, "name", "a\nb");
    set(f, "producer.override.plugin.library.paths", "evil.so");
    expect(f, 9,
           "null.key: Null value can not be supplied as the configuration value.\n"
           "name: Invalid value a\nb for configuration name: String may not contain control "
           "sequences but had the following ASCII "
           "chars: 10\n"
           "tasks.max: Invalid value many for configuration tasks.max: Not a number of type INT\n"
           "tasks.max: Invalid value null for configuration tasks.max: Value must be non-null\n"
           "errors.retry.timeout: Invalid value 1.5 for configuration errors.retry.timeout: Not a "
           "number of type LONG\n"
           "topic: Invalid value  for configuration topic: String must be non-empty\n"
           "batch.size: Invalid value nine for configuration batch.size: Not a number of type INT\n"
           "producer.override.plugin.library.paths: \"plugin.library.paths\" is a setting of "
           "librdkafka, which can't be set here: "
           "remove it\n"
           "value.converter.schemas.cache.size: Invalid value x for configuration "
           "schemas.cache.size: Not a number of type INT\n");
}

static void the_name_is_checked(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "name", "   ");
    expect(f, 1, "name: Invalid value  for configuration name: String may not be empty\n");
    set(f, "name", NULL);
    expect(f, 1, "name: Null value can not be supplied as the configuration value.\n");
    props_remove(&f->config, "name");
    expect(f, 1, "name: Missing required configuration \"name\" which has no default value.\n");
    set(f, "connector.class", "Greedy"); /* it has a key of its own of that name */
    set(f, "name", "");
    expect(f, 1, "name: Invalid value  for configuration name: String may not be empty\n");
}

static void null_is_no_error_for_the_plugin_s_own_keys(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "file", NULL);
    expect(f, 0, "");
}

static void a_plugin_s_key_takes_the_place_of_the_framework_s(void **state)
{
    struct fixture *f = *state;

    set(f, "connector.class", "Greedy");
    set(f, "tasks.max", "all of them");
    expect(f, 0, "");
}

static void choices_and_ranges_are_told_in_kafka_s_words(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "errors.tolerance", "ALL");
    set(f, "config.action.reload", "never");
    set(f, "transaction.boundary", "record");
    set(f, "tasks.max", "0");
    set(f, "errors.log.enable", "maybe");
    expect(f, 5,
           "tasks.max: Invalid value 0 for configuration tasks.max: Value must be at least 1\n"
           "config.action.reload: Invalid value never for configuration config.action.reload: "
           "String must be one of: none, restart\n"
           "errors.tolerance: Invalid value ALL for configuration errors.tolerance: String must be "
           "one of: none, all\n"
           "errors.log.enable: Invalid value maybe for configuration errors.log.enable: Expected "
           "value to be either true or false\n"
           "transaction.boundary: Invalid value record for configuration transaction.boundary: "
           "String must be one of (case "
           "insensitive): INTERVAL, POLL, CONNECTOR\n");
}

static void versions_are_the_installed_one_or_none(void **state)
{
    struct fixture *f = *state;
    static const char *const good[] = {"4.3.1", "[4.3.1]", "latest", "[4.0,5)", " [4.3.1,] "};

    a_source(f);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        set(f, "connector.plugin.version", good[i]);
        expect(f, 0, "");
    }
    set(f, "connector.plugin.version", "99.0");
    expect(f, 2,
           "connector.class: Plugin " SOURCE
           " not found that matches the version range [99.0,99.0], available versions: [4.3.1]\n"
           "connector.plugin.version: Plugin " SOURCE
           " not found that matches the version range [99.0,99.0], available versions: "
           "[4.3.1]\n");
}

/* Of a class in two versions the one that is asked for is looked at: its keys are its own. */
static void versions_are_picked_from_what_is_installed(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "value.converter", "Twice");
    set(f, "value.converter.of.two", "x");
    expect(f, 1,
           "value.converter.of.two: Invalid value x for configuration of.two: Not a number of type "
           "INT\n");
    set(f, "value.converter.plugin.version", "[1,2)");
    set(f, "value.converter.of.one", "x");
    expect(f, 1,
           "value.converter.of.one: Invalid value x for configuration of.one: Not a number of type "
           "INT\n");
    set(f, "value.converter.plugin.version", "3");
    expect(
        f, 2,
        "value.converter: Plugin Twice not found that matches the version range [3,3], available "
        "versions: [1.0, 2.0]\n"
        "value.converter.plugin.version: Plugin Twice not found that matches the version range "
        "[3,3], available versions: [1.0, 2.0]\n");
}

static void a_version_that_is_none_is_told_of(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "value.converter.plugin.version", "[1.0");
    set(f, "transforms", "a");
    set(f, "transforms.a.type", "Route");
    set(f, "transforms.a.plugin.version", "(1.0]");
    expect(f, 3,
           "value.converter.plugin.version: Unbounded range: [1.0\n"
           "transforms.a.type: Single version must be surrounded by []: (1.0]\n"
           "transforms.a.plugin.version: Single version must be surrounded by []: (1.0]\n");
    set(f, "connector.plugin.version", "[2,1]");
    expect_refused(f, "Range defies version ordering: [2,1]");
}

static void without_its_version_a_class_is_not_looked_at(void **state)
{
    struct fixture *f = *state;

    set(f, "connector.class", SOURCE);
    set(f, "connector.plugin.version", "[5,)");
    set(f, "topic", NULL);
    set(f, "tasks.max", "many");
    set(f, "value.converter", "nope");
    set(f, "transforms", "a");
    set(f, "producer.override.linger.ms", "soon");
    expect(
        f, 6,
        "topic: Null value can not be supplied as the configuration value.\n"
        "connector.class: Plugin " SOURCE
        " not found that matches the version range [5,), available versions: [4.3.1]\n"
        "connector.plugin.version: Plugin " SOURCE
        " not found that matches the version range [5,), available versions: [4.3.1]\n"
        "tasks.max: Invalid value many for configuration tasks.max: Not a number of type INT\n"
        "tasks.max: Invalid value null for configuration tasks.max: Value must be non-null\n"
        "value.converter: Invalid value nope for configuration value.converter: Class nope could "
        "not be found.\n");
}

/* --- converters, transforms ------------------------------------------------------------------- */

static void converters_must_be_there_and_be_converters(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "key.converter", SOURCE);
    set(f, "value.converter", "nope");
    set(f, "header.converter", SINK);
    expect(f, 3,
           "key.converter: Class class " SOURCE " does not implement the Converter interface\n"
           "value.converter: Invalid value nope for configuration value.converter: Class nope "
           "could not be found.\n"
           "header.converter: Class class " SINK
           " does not implement the HeaderConverter interface\n");
    set(f, "header.converter", "JsonConverter");
    set(f, "value.converter", "JsonConverter");
    set(f, "key.converter", "");
    expect(f, 1,
           "key.converter: Invalid value  for configuration key.converter: Class  could not be "
           "found.\n");
}

/* --- transforms and predicates ---------------------------------------------------------------- */

static void transforms_that_are_not_installed_are_refused(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a,a,b");
    set(f, "transforms.a.type", "org.x.Cast");
    set(f, "predicates", "p");
    expect(f, 4,
           "transforms: Invalid value [a, a, b] for configuration transforms: Duplicate alias "
           "provided.\n"
           "transforms.a.type: Invalid value org.x.Cast for configuration transforms.a.type: Class "
           "org.x.Cast could not be found.\n"
           "transforms.b.type: Missing required configuration \"transforms.b.type\" which has no "
           "default value.\n"
           "predicates.p.type: Missing required configuration \"predicates.p.type\" which has no "
           "default value.\n");
}

static void classes_of_another_kind_are_no_transforms(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a,b,c,d");
    set(f, "transforms.a.type", JSON);
    set(f, "transforms.b.type", CAST);
    set(f, "transforms.c.type", " TopicNameMatches ");
    set(f, "predicates", "p");
    set(f, "predicates.p.type", CAST "$Key");
    set(f, "transforms.d.type", "Cast");
    expect(f, 5,
           "transforms.a.type: Class class " JSON
           " does not implement the Transformation interface\n"
           "transforms.b.type: This class is abstract and cannot be created. Did you mean " CAST
           "$Key, " CAST "$Value?\n"
           "transforms.c.type: Class class org.x.TopicNameMatches does not implement the "
           "Transformation interface\n"
           "transforms.d.type: Invalid value Cast for configuration transforms.d.type: Class Cast "
           "could not be found. Did you mean " CAST "$Key, " CAST "$Value?\n"
           "predicates.p.type: Class class " CAST "$Key does not implement the Predicate "
           "interface\n");
}

static void good_transforms_and_predicates_pass(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    set(f, "transforms", " a , b");
    set(f, "transforms.a.type", CAST "$Value");
    set(f, "transforms.a.spec", "int8");
    set(f, "transforms.a.plugin.version", "4.3.1");
    set(f, "transforms.b.type", "Cast$Key");
    set(f, "transforms.b.spec", "a:int8,b:string");
    set(f, "transforms.b.predicate", "p");
    set(f, "transforms.b.negate", "TRUE");
    set(f, "predicates", "p");
    set(f, "predicates.p.type", "TopicNameMatches");
    set(f, "predicates.p.pattern", "a.*");
    set(f, "transforms.c.type", "is not looked at");
    expect(f, 0, "");
}

/* What can't be read is told by the whole name, what is refused by the plugin's. */
static void keys_of_transforms_are_checked(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a");
    set(f, "transforms.a.type", CAST "$Value");
    set(f, "transforms.a.depth", "x");
    set(f, "transforms.a.side", "up");
    set(f, "transforms.a.replace.null.with.default", "maybe");
    set(f, "predicates", "p");
    set(f, "predicates.p.type", "TopicNameMatches");
    set(f, "predicates.p.pattern", "");
    expect(f, 6,
           "transforms.a.spec: Missing required configuration \"transforms.a.spec\" which has no "
           "default value.\n"
           "transforms.a.replace.null.with.default: Invalid value maybe for configuration "
           "transforms.a.replace.null.with.default: Expected value to be either true or false\n"
           "transforms.a.depth: Invalid value x for configuration transforms.a.depth: Not a number "
           "of type INT\n"
           "transforms.a.depth: Invalid value null for configuration depth: Value must be "
           "non-null\n"
           "transforms.a.side: Invalid value up for configuration side: String must be one of: "
           "left, right\n"
           "predicates.p.pattern: Invalid value  for configuration pattern: String must be "
           "non-empty\n");
}

static void nothing_can_be_negated_without_a_predicate(void **state)
{
    static const char text[] =
        "transforms.a.type: Config 'transforms.a.negate' was provided but "
        "there is no config 'transforms.a.predicate' defining a predicate to "
        "be negated.\n";
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a");
    set(f, "transforms.a.type", "Route");
    set(f, "transforms.a.negate", "false");
    expect(f, 1, text);
    set(f, "transforms.a.type", JSON);
    expect(f, 1, text);
    set(f, "transforms.a.predicate", "not looked at here");
    set(f, "transforms.a.type", "Route");
    expect(f, 0, "");
    set(f, "transforms.a.negate", "5");
    expect(f, 1,
           "transforms.a.negate: Invalid value 5 for configuration transforms.a.negate: Expected "
           "value to be either true or false\n");
}

static void versions_of_transforms_are_the_installed_one(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a");
    set(f, "transforms.a.type", "Route");
    set(f, "transforms.a.plugin.version", "0.1");
    expect(f, 2,
           "transforms.a.type: Plugin Route not found that matches the version range [0.1,0.1], "
           "available versions: [4.3.1]\n"
           "transforms.a.plugin.version: Plugin Route not found that matches the version range "
           "[0.1,0.1], available versions: [4.3.1]\n");
}

/* The aliases a and a.b meet where a has a key below b. */
static void aliases_that_meet_do_no_harm(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a.b,a,");
    set(f, "transforms.a.type", "Route");
    set(f, "transforms.a.b.type", "Route");
    set(f, "transforms..type", "Route");
    expect(f, 0, "");
    set(f, "transforms", NULL);
    expect(f, 2,
           "transforms: Invalid value null for configuration transforms: entry must be non null\n"
           "transforms: Null value can not be supplied as the configuration value.\n");
}

/* --- across keys ------------------------------------------------------------------------------ */

static void a_sink_needs_topics_in_exactly_one_way(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    set(f, "topics", "");
    expect(f, 2,
           "topics: Must configure one of topics or topics.regex\n"
           "topics.regex: Must configure one of topics or topics.regex\n");
    set(f, "topics", "a");
    set(f, "topics.regex", "a.*");
    expect(f, 2,
           "topics: topics and topics.regex are mutually exclusive options, but both are set.\n"
           "topics.regex: topics and topics.regex are mutually exclusive options, but both are "
           "set.\n");
    props_remove(&f->config, "topics.regex");
    set(f, "topics", " , ");
    expect(f, 1, "topics: Configuration 'topics' values must not be duplicated.\n");
    set(f, "topics", "a, D");
    set(f, "errors.deadletterqueue.topic.name", "D");
    expect(f, 1,
           "topics: The DLQ topic 'D' may not be included in the list of topics ('topics=[a, D]') "
           "consumed by the "
           "connector\n");
}

/* The worker's loop may not be held up by a pattern, and the compiled code of PCRE2 does not count
 * all of its steps. */
static void a_pattern_without_end_is_given_up(void **state)
{
    struct fixture *f = *state;
    char regex[1000] = "", name[250] = "";

    for (int i = 0; i < 150; i++)
        strcat(regex, "(a|aa)");
    memset(name, 'a', 248);
    name[248] = 'b';
    a_sink(f);
    props_remove(&f->config, "topics");
    set(f, "topics.regex", regex);
    set(f, "errors.deadletterqueue.topic.name", name);
    alarm(60);
    expect(f, 0, "");
    alarm(0);
}

static void dead_letters_must_not_come_back(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    set(f, "errors.deadletterqueue.topic.name", " dead.letters ");
    expect(f, 0, "");
    props_remove(&f->config, "topics");
    set(f, "topics.regex", "letters|dead");
    expect(f, 0, "");
    set(f, "topics.regex", "dead\\..{1,9}");
    expect(f, 1,
           "topics.regex: The DLQ topic 'dead.letters' may not be matched by the regex for the "
           "topics ('topics.regex=dead\\..{1,9}') consumed by the connector\n");
    set(f, "topics.regex", "[");
    expect_refused(f, "Invalid value [ for configuration topics.regex: Invalid regex: Unclosed "
                      "character class near index 0\n[\n^");
    a_source(f);
    set(f, "topics.regex", "dead.*");
    expect(f, 0, "");
}

static void a_pattern_that_no_task_could_use_is_refused(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    props_remove(&f->config, "topics");
    set(f, "topics.regex", "[{");
    expect(f, 1,
           "topics.regex: Invalid value [{ for configuration topics.regex: Invalid regex: Unclosed "
           "character class near index 1\n[{\n ^\n");
    set(f, "topics.regex", "a(?<=b*)c");
    expect(f, 1,
           "topics.regex: Invalid value a(?<=b*)c for configuration topics.regex: Invalid regex: "
           "a look-behind of varying length is not supported here; write each length as an "
           "alternative, (?<=a|aa) for (?<=a{1,2}): a(?<=b*)c\n");
    set(f, "topics.regex", "orders-(?!private)\\d++");
    expect(f, 0, "");
    set(f, "topics.regex",
        "(((a{9999}){9999}){9999}){9999}"); /* nothing that the worker should compile */
    expect(f, 0, "");
}

static void on_remark(void *arg, const char *key, const char *text)
{
    buf_printf(arg, "%s: %s\n", key, text);
}

/* What is remarked of a valid configuration, a line each. */
static void remarked(struct fixture *f, const char *lines)
{
    struct validate_input input = {
        .config = &f->config, .catalog = (const struct catalog *)plugins, .worker = &f->worker};
    struct validate_result result;
    struct buf seen;

    buf_init(&seen, 1 << 16);
    assert_int_equal(validate_connector(&input, &result, NULL), 0);
    assert_int_equal(validate_error_count(&result), 0);
    validate_remarks(&input, &result, on_remark, &seen);
    assert_string_equal(seen.len > 0 ? seen.data : "", lines);
    validate_deinit(&result);
    buf_deinit(&seen);
}

static void what_has_no_effect_is_remarked_upon(void **state)
{
    struct fixture *f = *state;
    char group[] = "g";

    a_source(f);
    set(f, "errors.retry.timeout", "5");
    set(f, "errors.log.enable", "true");
    set(f, "topic.creation.default.partitions", "1");
    set(f, "topic.creation.default.replication.factor", "1");
    remarked(f, "");
    set(f, "offsets.storage.topic", "own");
    set(f, "exactly.once.support", "requested");
    set(f, "transaction.boundary", " Poll");
    remarked(f, "offsets.storage.topic: a standalone worker keeps all offsets in its file\n");
    set(f, "exactly.once.support", "Required ");
    set(f, "transaction.boundary", "interval");
    remarked(f, "offsets.storage.topic: a standalone worker keeps all offsets in its file\n"
                "exactly.once.support: a standalone worker delivers at least once; exactly once "
                "takes a cluster, be it of one worker\n"
                "transaction.boundary: a standalone worker's sources have no transactions\n");
    set(f, "exactly.once.support", "requested");
    set(f, "transaction.boundary", "poll");
    f->worker.cluster.group_id = group;
    remarked(f, "");
    f->worker.cluster.group_id = NULL;
}

static void a_reference_that_stays_is_remarked_upon(void **state)
{
    struct fixture *f = *state;
    struct validate_input input = {.config = &f->config, .worker = &f->worker};
    struct props raw, worker;
    struct buf seen;

    buf_init(&seen, 1 << 16);
    props_init(&worker);
    assert_int_equal(props_set(&worker, "config.providers", "env"), 0);
    assert_int_equal(props_set(&worker, "config.providers.env.class", "EnvVarConfigProvider"), 0);
    a_source(f);
    set(f, "topic", "${topic} ${vault:a:b}");
    validate_references_left(&input, on_remark, &seen);
    assert_string_equal(seen.data,
                        "topic: has a reference ${vault:...} that stays as it is: the worker's "
                        "config.providers have no such name\n");
    buf_reset(&seen);
    f->worker.providers = providers_new(&worker, true, NULL, NULL);
    assert_non_null(f->worker.providers);
    set(f, "topic", "${env:TEST_VALIDATE_HAS} ${env:TEST_VALIDATE_NONE}");
    assert_int_equal(props_copy(&raw, &f->config), 0);
    set(f, "topic", "found ${env:TEST_VALIDATE_NONE}");
    input.raw = &raw;
    validate_references_left(&input, on_remark, &seen);
    assert_string_equal(seen.data,
                        "topic: has a reference ${env:TEST_VALIDATE_NONE} that stays as it is: "
                        "its config provider has no such value\n");
    buf_reset(&seen);
    set(f, "topic", "found found");
    validate_references_left(&input, on_remark, &seen);
    assert_int_equal(seen.len, 0);
    providers_free(&f->worker.providers);
    props_deinit(&raw);
    props_deinit(&worker);
    buf_deinit(&seen);
}

static void dead_letters_of_a_source_are_known(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "millrace.errors.deadletterqueue.topic.name", "d");
    set(f, "errors.deadletterqueue.context.headers.enable", "true");
    remarked(f, "");
    set(f, "errors.deadletterqueue.topic.name", "d");
    remarked(f, "errors.deadletterqueue.topic.name: sources have "
                "millrace.errors.deadletterqueue.topic.name\n");
    props_remove(&f->config, "errors.deadletterqueue.topic.name");
    props_remove(&f->config, "errors.deadletterqueue.context.headers.enable");
    a_sink(f);
    props_remove(&f->config, "topic");
    remarked(f, "millrace.errors.deadletterqueue.topic.name: sinks have "
                "errors.deadletterqueue.topic.name\n");
}

/* What every task reads beyond Connect's keys has its effect where it is read, and is told of
 * elsewhere. */
static void keys_beyond_connects_are_known_where_they_are_read(void **state)
{
    static const struct {
        const char *class_name;
        enum conn_extras_reader reader; /* CONN_EXTRAS_READERS: none of them */
    } cases[] = {{SOURCE, CONN_EXTRAS_SOURCE},
                 {SINK, CONN_EXTRAS_READERS},
                 {"Emitter", CONN_EXTRAS_EMITS},
                 {"Storing", CONN_EXTRAS_STORES}};
    struct fixture *f = *state;
    struct buf lines;

    buf_init(&lines, 1 << 16);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        bool source = cases[c].reader == CONN_EXTRAS_SOURCE;

        for (const struct conn_extra *e = conn_extras; e->name != NULL; e++) {
            if (!source && strncmp(e->name, "millrace.", 9) != 0)
                continue; /* Connect's, of sinks */
            if (source)
                a_source(f);
            else
                a_sink(f);
            set(f, "connector.class", cases[c].class_name);
            set(f, e->name, "1");
            buf_reset(&lines);
            if (e->reader == CONN_EXTRAS_SOURCE && !source)
                buf_printf(&lines, "%s: sinks have errors.deadletterqueue.topic.name\n", e->name);
            else if (e->reader != cases[c].reader)
                buf_printf(&lines, "%s: only sinks that %s have it\n", e->name,
                           e->reader == CONN_EXTRAS_EMITS ? "emit"
                                                          : "store their offsets with their data");
            remarked(f, lines.len > 0 ? lines.data : "");
            props_remove(&f->config, e->name);
            props_remove(&f->config, source ? "topic" : "topics");
        }
    }
    buf_deinit(&lines);
}

static void what_goes_with_stored_offsets_is_told_where_they_are_not_stored(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    set(f, "connector.class", "StoringOnce");
    set(f, CONN_EXTRAS_OUT_OF_RANGE, "earliest");
    remarked(f, "millrace.offsets.out.of.range: it needs once=true\n");
    set(f, "once", "true");
    remarked(f, "");
}

static void misspelt_options_of_transforms_are_remarked_upon(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "transforms", "a");
    set(f, "transforms.a.type", "Cast$Value");
    set(f, "transforms.a.spec", "int8");
    set(f, "transforms.a.predicate", "p");
    remarked(f, "");
    set(f, "transforms.a.sides", "left");
    set(f, "transforms.a.predicat", "p");
    set(f, "transforms.b.spec", "int8");
    set(f, "predicates.p.type", "TopicNameMatches");
    remarked(f, "transforms.a.sides: no such setting is known; did you mean transforms.a.side?\n"
                "transforms.a.predicat: no such setting is known; did you mean "
                "transforms.a.predicate?\n"
                "transforms.b.spec: transforms does not list its alias\n"
                "predicates.p.type: predicates does not list its alias\n");
}

/* Connect is silent, and the user wonders. */
static void misspelt_keys_are_remarked_upon_with_the_nearest_name(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "tasks.maxx", "2");
    set(f, "topics", "t");
    set(f, "batchsize", "1");
    set(f, "colour", "secret");
    remarked(f, "tasks.maxx: no such setting is known; did you mean tasks.max?\n"
                "topics: no such setting is known; did you mean topic?\n"
                "batchsize: no such setting is known; did you mean batch.size?\n"
                "colour: no such setting is known\n");
}

static void keys_of_converters_and_clients_are_known(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "key.converter", JSON);
    set(f, "key.converter.schemas.cache.size", "10");
    set(f, "header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter");
    set(f, "header.converter.whatever", "1");
    set(f, "producer.override.linger.ms", "5");
    set(f, "consumer.override.fetch.min.bytes", "5");
    remarked(f, "");
    set(f, "key.converter.schemas.cachesize", "10");
    set(f, "value.converter.schemas.cache.size", "10");
    set(f, "key.converter.cache.size", "10");
    remarked(f, "key.converter.schemas.cachesize: no such setting is known; did you mean "
                "key.converter.schemas.cache.size?\n"
                "value.converter.schemas.cache.size: value.converter is not set, and the worker's "
                "converter has the worker's settings; set both here\n"
                "key.converter.cache.size: no such setting is known; did you mean "
                "key.converter.schemas.cache.size?\n");
}

static void a_crowd_of_unknown_keys_is_remarked_upon_in_part(void **state)
{
    struct fixture *f = *state;
    struct buf lines;

    buf_init(&lines, 1 << 16);
    a_source(f);
    for (int i = 0; i < 300; i++) {
        char key[64];

        snprintf(key, sizeof(key), "some.unheard.of.key.%d", i);
        set(f, key, "x");
        if (i < 20)
            buf_printf(&lines, "%s: no such setting is known\n", key);
    }
    remarked(f, lines.data);
    buf_deinit(&lines);
}

static void a_required_guarantee_that_cannot_be_given_is_refused(void **state)
{
    struct fixture *f = *state;
    char group[] = "g";

    a_source(f);
    set(f, "exactly.once.support", "required");
    set(f, "transaction.boundary", "connector");
    expect(f, 0, ""); /* as a Java worker standalone, but for a remark */
    f->worker.cluster.group_id = group;
    props_remove(&f->config, "transaction.boundary");
    set(f, "exactly.once.support", "requested");
    expect(f, 0, "");
    set(f, "exactly.once.support", " Required");
    set(f, "file", "f");
    expect(
        f, 1,
        "exactly.once.support: This worker does not have exactly-once source support enabled.\n");
    f->worker.cluster.exactly_once = (char *)(uintptr_t) "ENABLED";
    expect(f, 0, "");
    props_remove(&f->config, "file");
    expect(f, 1,
           "exactly.once.support: The connector does not support exactly-once semantics with the "
           "provided configuration.\n");
    set(f, "file", "f");
    set(f, "transaction.boundary", "Connector");
    expect(f, 1,
           "transaction.boundary: The connector does not support connector-defined transaction "
           "boundaries with the given configuration. Please reconfigure it to use a different "
           "transaction boundary definition.\n");
    set(f, "connector.class", "Greedy");
    expect_part(f, "exactly.once.support: The connector does not implement the API required for "
                   "preflight validation of exactly-once source support.");
    expect_no_part(f, "transaction.boundary"); /* it defines them */
    f->worker.cluster.group_id = NULL;
}

static void overrides_are_judged_by_the_worker_s_policy(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "producer.override.linger.ms", "5");
    set(f, "producer.override.security.protocol", "PLAINTEXT");
    set(f, "consumer.override.max.poll.records", "not a client of a source");
    set_worker(f, POLICY, "None");
    expect(f, 2, /* in the order of Java's HashMap */
           "producer.override.security.protocol: The 'None' policy does not allow "
           "'security.protocol' to be overridden in the connector configuration.\n"
           "producer.override.linger.ms: The 'None' policy does not allow 'linger.ms' to be "
           "overridden in the connector configuration.\n");
    set_worker(f, POLICY, "Principal");
    expect(f, 1,
           "producer.override.linger.ms: The 'Principal' policy does not allow 'linger.ms' to be "
           "overridden in the connector "
           "configuration.\n");
    set_worker(f, POLICY, "Allowlist");
    set_worker(f, "connector.client.config.override.allowlist", "linger.ms");
    expect(f, 1,
           "producer.override.security.protocol: The 'Allowlist' policy does not allow "
           "'security.protocol' to be overridden "
           "in the connector configuration.\n");
}

/* Connect answers 500 to these; the words are its own. */
static void overrides_are_read_by_the_types_of_the_client_s_settings(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "tasks.max", "many");
    set(f, "producer.override.linger.ms", "soon");
    expect_refused(f, "Invalid value soon for configuration linger.ms: Not a number of type LONG");
    set(f, "producer.override.linger.ms", " 5 ");
    set(f, "producer.override.enable.idempotence", "yes");
    expect_refused(f, "Invalid value yes for configuration enable.idempotence: Expected value to "
                      "be either true or false");
    props_remove(&f->config, "producer.override.enable.idempotence");
    props_remove(&f->config, "tasks.max");
    set(f, "consumer.override.max.poll.records", "not a client of a source");
    set(f, "producer.override.no.such.setting", "x");
    set(f, "producer.override.key.serializer", "org.example.Mine");
    expect(f, 0, "");
}

/* What no client takes is the task's to tell, as in Connect. */
static void values_that_no_client_takes_are_left_to_the_task(void **state)
{
    struct fixture *f = *state;

    a_source(f);
    set(f, "producer.override.batch.size", "-2");
    set(f, "producer.override.compression.type", "brotli");
    set(f, "producer.override.acks", "7");
    expect(f, 0, "");
}

static void a_sink_s_group_is_not_the_workers(void **state)
{
    struct fixture *f = *state;

    a_sink(f);
    f->worker.cluster.group_id = strdup("connect-v");
    expect(f, 1,
           "name: Consumer group for sink connector named v conflicts with Connect worker group "
           "connect-v\n");
    set(f, "consumer.override.group.id", "connect-v");
    expect(f, 1,
           "consumer.override.group.id: Consumer group connect-v conflicts with Connect worker "
           "group connect-v\n");
    set(f, "consumer.override.group.id", "mine");
    expect(f, 0, "");
    free(f->worker.cluster.group_id);
    f->worker.cluster.group_id = NULL;
    props_remove(&f->config, "consumer.override.group.id");
    expect(f, 0, "");
}

static const char *const of_its_own =
    "consumer.override.fetch.min.bytes: The 'None' policy does not allow 'fetch.min.bytes' to be "
    "overridden in the connector configuration.\n"
    "admin.override.retries: The 'None' policy does not allow 'retries' to be overridden in the "
    "connector configuration.\n";

/* As in Java: of a cluster, with a topic named or under exactly-once. */
static void an_own_offsets_topic_has_a_consumer_and_an_administrator(void **state)
{
    struct fixture *f = *state;
    char group[] = "g";

    a_source(f);
    set(f, "consumer.override.fetch.min.bytes", "5");
    set(f, "admin.override.retries", "5");
    set_worker(f, POLICY, "None");
    set(f, "offsets.storage.topic", "own");
    expect(f, 0, "");
    f->worker.cluster.group_id = group;
    expect(f, 2, of_its_own);
    props_remove(&f->config, "offsets.storage.topic");
    expect(f, 0, "");
    props_set(&f->worker.props, "group.id", "g");
    props_set(&f->worker.props, "exactly.once.source.support", "enabled");
    expect(f, 2, of_its_own);
    f->worker.cluster.group_id = NULL;
}

static void security_that_cannot_be_honoured_is_refused(void **state)
{
    struct fixture *f = *state;
    size_t n;
    char *got;

    a_sink(f);
    set(f, "consumer.override.security.protocol", "SASL_SSL");
    set(f, "consumer.override.sasl.mechanism", "AWS_MSK_IAM");
    got = problems(f, &n);
    assert_int_equal(n, 1);
    assert_non_null(strstr(got, "AWS_MSK_IAM"));
    free(got);
}

static void crowds_of_names_are_bounded(void **state)
{
    struct fixture *f = *state;
    char name[64];
    size_t n;
    char *got;

    a_source(f);
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "producer.override.x%d", i);
        set(f, name, "1");
        snprintf(name, sizeof(name), "null%d", i);
        set(f, name, NULL);
    }
    got = problems(f, &n);
    assert_int_equal(n, 201);
    assert_non_null(strstr(got, "4000 keys below producer.override. are more than 200\n"));
    free(got);
}

/* --- the message, the worker ------------------------------------------------------------------ */

static void the_message_is_connect_s(void **state)
{
    struct fixture *f = *state;
    struct validate_input input = {
        .config = &f->config, .catalog = (const struct catalog *)plugins, .worker = &f->worker};
    struct validate_result result;
    struct buf out;

    a_sink(f);
    set(f, "topics", "");
    assert_int_equal(validate_connector(&input, &result, NULL), 0);
    buf_init(&out, 4096);
    assert_int_equal(validate_message(&result, &out), 0);
    assert_string_equal(
        out.data, "Connector configuration is invalid and contains the following 2 error(s):\n"
                  "Must configure one of topics or topics.regex\nMust configure one of topics or "
                  "topics.regex\n"
                  "You can also find the above list of errors at the endpoint "
                  "`/connector-plugins/{connectorType}/config/validate`");
    buf_deinit(&out);
    validate_deinit(&result);
}

static void the_worker_s_converters_must_be_there(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    const struct catalog *catalog = (const struct catalog *)plugins;

    assert_int_equal(props_set(&f->worker.props, "key.converter", "JsonConverter"), 0);
    assert_int_equal(validate_worker(&f->worker, catalog, &err), 0);
    assert_int_equal(props_set(&f->worker.props, "key.converter.schemas.cache.size", "x"), 0);
    f->worker.props.entries[1].line = 7;
    assert_int_equal(validate_worker(&f->worker, catalog, &err), MR_ERR_CONFIG);
    assert_string_equal(err.text, "worker.properties:7: Invalid value x for configuration "
                                  "schemas.cache.size: Not a number of type "
                                  "INT");
    err_clear(&err);
    assert_int_equal(props_set(&f->worker.props, "value.converter", "AvroConverter"), 0);
    f->worker.props.entries[2].line = 9;
    props_remove(&f->worker.props, "key.converter.schemas.cache.size");
    assert_int_equal(validate_worker(&f->worker, catalog, &err), MR_ERR_CONFIG);
    assert_string_equal(
        err.text,
        "worker.properties:9: Invalid value AvroConverter for configuration value.converter: Class "
        "AvroConverter could not be found.");
}

#define validate_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        validate_test(a_missing_class_is_told_with_what_was_sent),
        validate_test(an_unknown_class_is_told_with_what_there_is),
        validate_test(a_pattern_without_end_is_given_up),
        validate_test(good_configurations_pass),
        validate_test(a_configuration_too_large_for_its_process_is_refused),
        validate_test(problems_stand_in_the_order_of_the_keys),
        validate_test(the_name_is_checked),
        validate_test(null_is_no_error_for_the_plugin_s_own_keys),
        validate_test(a_plugin_s_key_takes_the_place_of_the_framework_s),
        validate_test(choices_and_ranges_are_told_in_kafka_s_words),
        validate_test(versions_are_the_installed_one_or_none),
        validate_test(converters_must_be_there_and_be_converters),
        validate_test(transforms_that_are_not_installed_are_refused),
        validate_test(classes_of_another_kind_are_no_transforms),
        validate_test(good_transforms_and_predicates_pass),
        validate_test(keys_of_transforms_are_checked),
        validate_test(nothing_can_be_negated_without_a_predicate),
        validate_test(versions_of_transforms_are_the_installed_one),
        validate_test(aliases_that_meet_do_no_harm),
        validate_test(a_sink_needs_topics_in_exactly_one_way),
        validate_test(dead_letters_must_not_come_back),
        validate_test(a_pattern_that_no_task_could_use_is_refused),
        validate_test(what_has_no_effect_is_remarked_upon),
        validate_test(dead_letters_of_a_source_are_known),
        validate_test(a_reference_that_stays_is_remarked_upon),
        validate_test(keys_beyond_connects_are_known_where_they_are_read),
        validate_test(what_goes_with_stored_offsets_is_told_where_they_are_not_stored),
        validate_test(misspelt_options_of_transforms_are_remarked_upon),
        validate_test(misspelt_keys_are_remarked_upon_with_the_nearest_name),
        validate_test(keys_of_converters_and_clients_are_known),
        validate_test(a_crowd_of_unknown_keys_is_remarked_upon_in_part),
        validate_test(a_required_guarantee_that_cannot_be_given_is_refused),
        validate_test(overrides_are_judged_by_the_worker_s_policy),
        validate_test(an_own_offsets_topic_has_a_consumer_and_an_administrator),
        validate_test(overrides_are_read_by_the_types_of_the_client_s_settings),
        validate_test(values_that_no_client_takes_are_left_to_the_task),
        validate_test(a_sink_s_group_is_not_the_workers),
        validate_test(versions_are_picked_from_what_is_installed),
        validate_test(a_version_that_is_none_is_told_of),
        validate_test(without_its_version_a_class_is_not_looked_at),
        validate_test(security_that_cannot_be_honoured_is_refused),
        validate_test(crowds_of_names_are_bounded),
        validate_test(the_message_is_connect_s),
        validate_test(the_worker_s_converters_must_be_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
