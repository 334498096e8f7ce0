/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms in a pipeline: their order, predicates, drops, failures and further tries. The plugins
 * are structs of the test: Spell adds a letter to the value, Odd is true for odd offsets or values
 * that begin with an odd digit. */
#include "host/host_api.h"
#include "host/task/stages/pipeline.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "task_rig.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct spell {
    const char *letter;
    int fails; /* how often it fails before it works */
};

static int spell_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct spell *s = self;

    s->letter = mr_config_str(task, "letter");
    s->fails = (int)mr_config_long(task, "fails");
    return strcmp(s->letter, "unstartable") == 0 ? mr_fail(err, MR_ERR_CONFIG, "no such letter")
                                                 : MR_OK;
}

static int spell_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                       struct mr_error *err)
{
    struct spell *s = self;
    size_t more = strlen(s->letter);
    char *text = mr_alloc(arena, rec->value.len + more);

    if (strcmp(s->letter, "drop") == 0)
        return MR_DROP;
    memcpy(text, rec->value.u.p, rec->value.len);
    memcpy(text + rec->value.len, s->letter, more);
    rec->value = mr_text(text, rec->value.len + more);
    mr_record_header(rec, s->letter, NULL, mr_null());
    mr_record_topic(rec, "moved", 5);
    if (s->fails > 0 && s->fails-- > 0)
        return mr_fail(err, MR_ERR_RETRY, "not yet");
    return rec->value.len > 8 ? mr_fail(err, MR_ERR_DATA, "too long") : MR_OK;
}

static int spell_check(const struct mr_task *config, const char *key, const char *shown,
                       struct mr_error *err)
{
    if (strcmp(key, "letter") == 0 && strcmp(mr_config_str(config, key), "bad") == 0)
        return mr_fail(err, MR_ERR_CONFIG, "Invalid value bad for configuration %s: bad", shown);
    return MR_OK;
}

static int odd_test(void *self, const struct mr_record *rec, struct mr_error *err)
{
    char first = rec->value.len > 0 ? ((const char *)rec->value.u.p)[0] : '0';

    return first == '?' ? mr_fail(err, MR_ERR_DATA, "neither") : (first - '0') % 2;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key spell_keys[] = {
    {"letter", MR_CFG_STRING, .fallback = "x"}, {"fails", MR_CFG_INT, .fallback = "0"}, {0}};
static struct mr_config_key no_keys[] = {{0}};
static const struct plugin spell = {
    .kind = MR_PLUGIN_TRANSFORM,
    .name = "Spell",
    .library = "test",
    .aliases = aliases,
    .keys = spell_keys,
    .key_count = 2,
    .state_size = sizeof(struct spell),
    .transform = {.start = spell_start, .apply = spell_apply, .check = spell_check}};
static const struct plugin odd = {.kind = MR_PLUGIN_PREDICATE,
                                  .name = "Odd",
                                  .library = "test",
                                  .aliases = aliases,
                                  .keys = no_keys,
                                  .predicate = {.test = odd_test}};
static const struct plugin *const more[] = {&spell, &odd, NULL};

struct fixture {
    struct props connector;
    struct props worker;
    struct batch_pool *pool;
    struct batch *batch;
    struct pipeline *p;
    json_t *plugins;
    struct mr_error err;
    int64_t waited_ms;
    int waits;
    bool ending;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    rig_more = more;
    props_init(&f->connector);
    props_init(&f->worker);
    props_set(&f->worker, "key.converter", "RigString");
    props_set(&f->worker, "value.converter", "RigString");
    props_set(&f->worker, "header.converter", "RigString");
    f->pool = batch_pool_new(&host_api_table, 1 << 24, 1000);
    f->batch = batch_pool_take(f->pool);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pipeline_free(&f->p);
    json_decref(f->plugins);
    batch_pool_give(f->pool, f->batch);
    batch_pool_free(&f->pool);
    props_deinit(&f->connector);
    props_deinit(&f->worker);
    free(f);
    return 0;
}

static bool waits(void *arg, int64_t ms)
{
    struct fixture *f = arg;

    f->waited_ms += ms;
    f->waits += ms > 0;
    return !f->ending;
}

/* The connector's configuration: key, value, …, NULL. */
static void make(struct fixture *f, ...)
{
    const char *key;
    va_list args;

    va_start(args, f);
    while ((key = va_arg(args, const char *)) != NULL)
        props_set(&f->connector, key, va_arg(args, const char *));
    va_end(args);
    f->plugins = rig_places(&f->connector, &f->worker);
    f->p = pipeline_new(&(struct pipeline_spec){.connector = &f->connector,
                                                .worker = &f->worker,
                                                .plugins = f->plugins,
                                                .owner = {"conn", 0, -1},
                                                .wait = waits,
                                                .arg = f},
                        &f->err);
}

static struct record *add(struct fixture *f, const char *value)
{
    struct mr_record *rec = mr_batch_add(&f->batch->pub, "t");

    mr_record_value(rec, mr_str(value));
    return (struct record *)rec;
}

static int run(struct fixture *f)
{
    size_t done;

    return pipeline_to_kafka(f->p, f->batch, &done, &f->err);
}

static void assert_bytes(const struct record *rec, const char *text)
{
    assert_int_equal(rec->value_len, strlen(text));
    assert_memory_equal(rec->value_bytes, text, strlen(text));
}

static void transforms_run_in_their_order_before_the_converters(void **state)
{
    struct fixture *f = *state;
    struct record *rec;

    make(f, "transforms", "b,a", "transforms.a.type", "Spell", "transforms.a.letter", "A",
         "transforms.b.type", "Spell", "transforms.b.letter", "B", NULL);
    assert_non_null(f->p);
    rec = add(f, "v");
    assert_int_equal(run(f), MR_OK);
    assert_bytes(rec, "vBA");
    assert_string_equal(rec->pub.topic, "moved");
    assert_int_equal(rec->wire_header_count, 2);
    assert_string_equal(rec->wire_headers[0].name, "B");
}

static void a_predicate_says_for_which_records(void **state)
{
    struct fixture *f = *state;
    struct record *one, *two;

    make(f, "transforms", "a,b", "transforms.a.type", "Spell", "transforms.a.letter", "A",
         "transforms.a.predicate", "p", "transforms.b.type", "Spell", "transforms.b.letter", "B",
         "transforms.b.predicate", "p", "transforms.b.negate", "TRUE", "predicates", "p",
         "predicates.p.type", "Odd", NULL);
    one = add(f, "1");
    two = add(f, "2");
    assert_int_equal(run(f), MR_OK);
    assert_bytes(one, "1A");
    assert_bytes(two, "2B");
}

static void a_record_that_a_transform_drops_counts_as_done(void **state)
{
    struct fixture *f = *state;
    const struct consumer_msg msgs[] = {
        {.topic = "t", .offset = 1, .value = "1", .value_len = 1},
        {.topic = "t", .offset = 2, .value = "2", .value_len = 1},
    };
    struct record *one, *two;
    size_t done;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.letter", "drop",
         "transforms.a.predicate", "p", "predicates", "p", "predicates.p.type", "Odd", NULL);
    one = add(f, "1");
    two = add(f, "2");
    assert_int_equal(run(f), MR_OK);
    assert_true(one->dropped);
    assert_false(two->dropped);
    assert_int_equal(pipeline_tolerance(f->p)->skipped, 0);
    f->batch->pub.count = 0;
    assert_int_equal(pipeline_from_kafka(f->p, msgs, 2, f->batch, &done, &f->err), MR_OK);
    assert_int_equal(done, 2);
    assert_int_equal(f->batch->pub.count, 1);
    assert_int_equal(mr_record_at(&f->batch->pub, 0)->offset, 2);
}

static void a_sinks_record_keeps_where_it_came_from(void **state)
{
    struct fixture *f = *state;
    const struct consumer_msg msg = {
        .topic = "t", .partition = 3, .offset = 1, .timestamp_ms = 5, .value = "1", .value_len = 1};
    struct record *rec;
    size_t done;

    make(f, "transforms", "a", "transforms.a.type", "Spell", NULL);
    assert_int_equal(pipeline_from_kafka(f->p, &msg, 1, f->batch, &done, &f->err), MR_OK);
    rec = batch_at(f->batch, 0);
    assert_string_equal(rec->pub.topic, "moved");
    assert_string_equal(rec->from_topic, "t");
    assert_int_equal(rec->from_partition, 3);
    assert_int_equal(rec->value_len, 1); /* as it was read */
    assert_int_equal(rec->pub.value.len, 2);
}

static void what_fails_leaves_the_record_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct record *rec;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "errors.tolerance", "all", NULL);
    rec = add(f, "12345678");
    assert_int_equal(run(f), MR_OK);
    assert_true(rec->dropped);
    assert_int_equal(rec->pub.value.len, 8);
    assert_int_equal(rec->pub.header_count, 0);
    assert_string_equal(rec->pub.topic, "t");
    assert_int_equal(pipeline_tolerance(f->p)->skipped, 1);
}

static void a_predicate_that_fails_is_its_transforms_failure(void **state)
{
    struct fixture *f = *state;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.predicate", "p",
         "predicates", "p", "predicates.p.type", "Odd", NULL);
    add(f, "?");
    assert_int_equal(run(f), MR_ERR_FATAL);
    assert_string_equal(
        f->err.text,
        "Tolerance exceeded in error handler\nCaused by: "
        "org.apache.kafka.connect.errors.DataException: neither\n\tin TRANSFORMATION of Spell, a "
        "record for topic t");
}

static void another_try_begins_from_the_record_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct record *rec;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.fails", "3",
         "errors.retry.timeout", "60000", NULL);
    rec = add(f, "v");
    assert_int_equal(run(f), MR_OK);
    assert_bytes(rec, "vx");
    assert_int_equal(rec->wire_header_count, 1);
    assert_int_equal(f->waits, 3);
    assert_int_equal(f->waited_ms, 300 + 600 + 1200);
}

static void without_a_retry_timeout_tolerance_decides_at_once(void **state)
{
    struct fixture *f = *state;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.fails", "1", NULL);
    add(f, "v");
    assert_int_equal(run(f), MR_ERR_FATAL);
    assert_non_null(strstr(f->err.text, "Caused by: org.apache.kafka.connect.errors."
                                        "RetriableException: not yet"));
    assert_int_equal(f->waits, 0);
}

static void a_task_that_ends_takes_no_further_try(void **state)
{
    struct fixture *f = *state;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.fails", "9",
         "errors.retry.timeout", "-1", "errors.tolerance", "all", NULL);
    add(f, "v");
    f->ending = true;
    assert_int_equal(run(f), MR_ERR_CLOSED);
    assert_int_equal(pipeline_tolerance(f->p)->skipped, 0);
}

/* Each transform has errors.retry.timeout for itself. */
static void the_next_transforms_tries_count_anew(void **state)
{
    struct fixture *f = *state;

    make(f, "transforms", "a,b", "transforms.a.type", "Spell", "transforms.a.fails", "2",
         "transforms.b.type", "Spell", "transforms.b.fails", "2", "errors.retry.timeout", "60000",
         NULL);
    add(f, "v");
    assert_int_equal(run(f), MR_OK);
    assert_int_equal(f->waited_ms, 2 * (300 + 600));
}

/* What the source set is not looked at before a transform had its way with it. */
static void where_a_record_goes_is_judged_after_the_transforms(void **state)
{
    struct fixture *f = *state;
    struct record *rec;

    make(f, "transforms", "a", "transforms.a.type", "Spell", "transforms.a.letter", "drop", NULL);
    rec = add(f, "v");
    rec->pub.partition = -7;
    assert_int_equal(run(f), MR_OK);
    assert_true(rec->dropped);
}

static void tries_end_with_the_retry_timeout(void **state)
{
    struct tolerance t = {.retry_ms = 1000, .retry_delay_ms = 500};

    (void)state;
    assert_int_equal(tolerance_retry_in(&t, 0, 1, 0), 300);
    /* Above the longest: at random below it. */
    assert_true(tolerance_retry_in(&t, 0, 2, 300) < 500);
    assert_int_equal(tolerance_retry_in(&t, 0, 1, 900), 100);
    assert_int_equal(tolerance_retry_in(&t, 0, 3, 1000), -1);
    t = (struct tolerance){.retry_ms = -1, .retry_delay_ms = 60000};
    assert_true(tolerance_retry_in(&t, 0, 100, INT64_C(1) << 40) < 60000);
    t = (struct tolerance){.retry_ms = 0, .retry_delay_ms = 60000};
    assert_int_equal(tolerance_retry_in(&t, 5, 1, 5), -1);
}

static void assert_refused(struct fixture *f, const char *words)
{
    assert_null(f->p);
    if (strstr(f->err.text, words) == NULL)
        fail_msg("%s", f->err.text);
}

static void a_chain_that_can_not_be_made_says_why(void **state)
{
    struct fixture *f = *state;

    make(f, "transforms", "a", "transforms.a.type", "Nowhere", NULL);
    assert_refused(f, "transforms.a.type: no transform called Nowhere is installed");
    json_decref(f->plugins);
    err_clear(&f->err);
    make(f, "transforms.a.type", "Spell", "transforms.a.predicate", "q", NULL);
    assert_refused(f, "transforms.a.predicate names q, and there is no predicates.q.type");
    json_decref(f->plugins);
    err_clear(&f->err);
    props_remove(&f->connector, "transforms.a.predicate");
    make(f, "transforms.a.letter", "bad", NULL);
    assert_refused(f, "transforms.a: Invalid value bad for configuration transforms.a.letter: bad");
    json_decref(f->plugins);
    err_clear(&f->err);
    make(f, "transforms.a.letter", "unstartable", NULL);
    assert_refused(f, "transforms.a: no such letter");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(transforms_run_in_their_order_before_the_converters),
        T(a_predicate_says_for_which_records),
        T(a_record_that_a_transform_drops_counts_as_done),
        T(a_sinks_record_keeps_where_it_came_from),
        T(what_fails_leaves_the_record_as_it_was),
        T(a_predicate_that_fails_is_its_transforms_failure),
        T(another_try_begins_from_the_record_as_it_was),
        T(without_a_retry_timeout_tolerance_decides_at_once),
        T(a_task_that_ends_takes_no_further_try),
        T(the_next_transforms_tries_count_anew),
        T(where_a_record_goes_is_judged_after_the_transforms),
        T(tries_end_with_the_retry_timeout),
        T(a_chain_that_can_not_be_made_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
