/* SPDX-License-Identifier: Apache-2.0 */
/* The stages between plugin and Kafka: which converter with which settings, order, headers, bad
 * records. */
#include "task_rig.h"

#include "host/host_api.h"
#include "host/task/stages/pipeline.h"
#include "kafka/producer.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- a converter that writes down what it is asked -------------------------------------------- */

struct spy {
    char role[16];
    const char *tag;
};

static char story[4096];

static int spy_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct spy *spy = self;
    const char *fail = mr_config_raw(task, "fail");

    snprintf(spy->role, sizeof(spy->role), "%s", mr_config_raw(task, "converter.type"));
    spy->tag = mr_config_raw(task, "tag");
    snprintf(story + strlen(story), sizeof(story) - strlen(story), "start %s %s; ", spy->role,
             spy->tag == NULL ? "-" : spy->tag);
    if (fail != NULL && strcmp(fail, "config") == 0)
        return mr_fail(err, MR_ERR_CONFIG, "the tag is wrong");
    if (fail != NULL)
        mr_config_str(task, fail);
    return MR_OK;
}

static int tell(struct spy *spy, const char *topic, const char *text, size_t len,
                struct mr_error *err)
{
    snprintf(story + strlen(story), sizeof(story) - strlen(story), "%s:%s:%.*s ", spy->role, topic,
             (int)len, text == NULL ? "" : text);
    if (len == 3 && memcmp(text, "bad", 3) == 0)
        return mr_fail(err, MR_ERR_DATA, "it is bad");
    if (len == 4 && memcmp(text, "full", 4) == 0)
        return mr_fail(err, MR_ERR_FULL, "no more schemas");
    return len == 4 && memcmp(text, "mute", 4) == 0 ? MR_ERR_DATA : MR_OK;
}

static int spy_from(void *self, struct mr_arena *arena, const char *topic,
                    const struct mr_schema *schema, struct mr_value value, const void **data,
                    size_t *len, struct mr_error *err)
{
    if (value.kind == MR_KIND_STRING && value.len == 4 && memcmp(value.u.p, "huge", 4) == 0)
        mr_alloc(arena, (size_t)1 << 40);
    *data = value.kind == MR_KIND_NULL ? NULL : value.u.p;
    *len = value.len;
    return tell(self, topic, *data, *len, err);
}

static int spy_to(void *self, struct mr_arena *arena, const char *topic, const void *data,
                  size_t len, const struct mr_schema **schema, struct mr_value *value,
                  struct mr_error *err)
{
    *schema = NULL;
    *value = data == NULL ? mr_null() : mr_text(data, len);
    return tell(self, topic, data, len, err);
}

static void spy_stop(void *self)
{
    snprintf(story + strlen(story), sizeof(story) - strlen(story), "stop %s; ",
             ((struct spy *)self)->role);
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static const struct plugin spy = {
    .kind = MR_PLUGIN_CONVERTER,
    .name = "Spy",
    .version = "1",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .state_size = sizeof(struct spy),
    .converter = {.start = spy_start,
                  .from_connect = spy_from,
                  .to_connect = spy_to,
                  .stop = spy_stop},
};

/* --- fixture ---------------------------------------------------------------------------------- */

struct fixture {
    struct props connector;
    struct props worker;
    struct batch_pool *pool;
    struct batch *batch;
    struct pipeline *p;
    json_t *plugins;
    struct mr_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    story[0] = '\0';
    rig_plugin = &spy;
    props_init(&f->connector);
    props_init(&f->worker);
    props_set(&f->worker, "key.converter", "Spy");
    props_set(&f->worker, "value.converter", "Spy");
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

static void make(struct fixture *f)
{
    json_decref(f->plugins);
    f->plugins = rig_places(&f->connector, &f->worker);
    f->p = pipeline_new(&(struct pipeline_spec){.connector = &f->connector,
                                                .worker = &f->worker,
                                                .plugins = f->plugins,
                                                .owner = {"conn", 0, -1}},
                        &f->err);
}

static struct mr_record *add(struct fixture *f, const char *key, const char *value)
{
    struct mr_record *rec = mr_batch_add(&f->batch->pub, "t");

    if (key != NULL)
        mr_record_key(rec, mr_str(key));
    if (value != NULL)
        mr_record_value(rec, mr_str(value));
    return rec;
}

/* --- which converter -------------------------------------------------------------------------- */

static void the_workers_converters_come_with_the_workers_settings(void **state)
{
    struct fixture *f = *state;

    props_set(&f->worker, "key.converter.tag", "w");
    props_set(&f->connector, "key.converter.tag", "ignored: the connector names no converter");
    make(f);
    assert_non_null(f->p);
    assert_string_equal(story, "start key w; start value -; ");
}

static void the_connectors_converter_comes_with_the_connectors_settings_only(void **state)
{
    struct fixture *f = *state;

    props_set(&f->worker, "value.converter.tag", "w");
    props_set(&f->connector, "value.converter", "Spy");
    props_set(&f->connector, "header.converter", "Spy");
    props_set(&f->connector, "header.converter.tag", "h");
    make(f);
    assert_non_null(f->p);
    assert_string_equal(story, "start key -; start value -; start header h; ");
    pipeline_free(&f->p);
    assert_non_null(strstr(story, "stop key; stop value; stop header; "));
}

static void a_converter_that_is_not_there_is_named_with_its_property(void **state)
{
    struct fixture *f = *state;

    props_set(&f->connector, "value.converter", "org.example.Avro");
    make(f);
    assert_null(f->p);
    assert_int_equal(f->err.code, MR_ERR_CONFIG);
    assert_string_equal(f->err.text,
                        "value.converter: no converter called org.example.Avro is installed");
    f->err = (struct mr_error){0};
    props_set(&f->connector, "value.converter", "Spy");
    props_set(&f->connector, "header.converter", "NoSuch");
    make(f);
    assert_null(f->p);
    assert_non_null(strstr(f->err.text, "header.converter: no converter called NoSuch"));
    f->err = (struct mr_error){0};
    props_remove(&f->worker, "key.converter");
    make(f);
    assert_string_equal(f->err.text, "neither the connector nor the worker sets key.converter");
}

static void a_converter_that_does_not_start_is_named_and_stopped(void **state)
{
    struct fixture *f = *state;

    props_set(&f->worker, "value.converter.fail", "config");
    make(f);
    assert_null(f->p);
    assert_string_equal(f->err.text, "value.converter Spy: the tag is wrong");
    assert_non_null(strstr(story, "stop value; "));
    f->err = (struct mr_error){0};
    props_set(&f->worker, "value.converter.fail", "undeclared");
    make(f);
    assert_null(f->p);
    assert_non_null(strstr(f->err.text, "undeclared"));
}

/* --- to Kafka --------------------------------------------------------------------------------- */

static void a_source_record_passes_header_key_value(void **state)
{
    struct fixture *f = *state;
    struct mr_record *rec;
    size_t done = 0;

    props_set(&f->connector, "header.converter", "Spy");
    make(f);
    rec = add(f, "k", "v");
    mr_record_header(rec, "a", NULL, mr_str("h1"));
    mr_record_header(rec, "a", NULL, mr_null());
    add(f, NULL, NULL);
    story[0] = '\0';
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_OK);
    assert_int_equal(done, 2);
    assert_string_equal(story, "header:t:h1 header:t: key:t:k value:t:v key:t: value:t: ");
    assert_memory_equal(batch_at(f->batch, 0)->value_bytes, "v", 1);
    /* Passed through, not copied. */
    assert_ptr_equal(batch_at(f->batch, 0)->value_bytes, rec->value.u.p);
    assert_null(batch_at(f->batch, 1)->key_bytes);
    assert_null(batch_at(f->batch, 1)->value_bytes);
    assert_string_equal(batch_at(f->batch, 0)->wire_headers[1].name, "a");
    assert_null(batch_at(f->batch, 0)->wire_headers[1].value);
}

static void a_converter_of_headers_alone_is_started_and_stopped(void **state)
{
    struct fixture *f = *state;
    struct plugin headers = spy;
    const struct plugin *const more[] = {&headers, NULL};

    headers.kind = MR_PLUGIN_HEADER_CONVERTER;
    headers.name = "HeaderSpy";
    rig_more = more;
    props_set(&f->connector, "header.converter", "HeaderSpy");
    make(f);
    assert_non_null(f->p);
    assert_non_null(strstr(story, "start header"));
    pipeline_free(&f->p);
    rig_more = NULL;
    assert_non_null(strstr(story, "stop header"));
}

/* The worker names SimpleHeaderConverter unless another is set; only where it is not installed
 * there is none. */
static void headers_need_a_converter(void **state)
{
    struct fixture *f = *state;
    struct mr_record *rec;
    size_t done;

    make(f);
    add(f, NULL, "v");
    rec = add(f, NULL, "v");
    mr_record_header(rec, "text", NULL, mr_str("x"));
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_CONFIG);
    assert_int_equal(done, 1);
    assert_non_null(strstr(f->err.text, "SimpleHeaderConverter is not installed"));
}

static void a_bad_record_fails_behind_those_that_are_ready(void **state)
{
    struct fixture *f = *state;
    size_t done = 0;

    make(f);
    add(f, NULL, "one");
    add(f, "bad", "two");
    add(f, NULL, "three");
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_FATAL);
    assert_int_equal(done, 1);
    assert_string_equal(
        f->err.text,
        "Tolerance exceeded in error handler\nCaused by: "
        "org.apache.kafka.connect.errors.DataException: it is bad\n\tin KEY_CONVERTER of Spy, a "
        "record for topic t");
}

static void tolerance_drops_bad_records_and_counts_them(void **state)
{
    struct fixture *f = *state;
    size_t done = 0;

    props_set(&f->connector, "errors.tolerance", "all");
    make(f);
    add(f, NULL, "one");
    add(f, "bad", "two");
    add(f, NULL, "mute");
    add(f, NULL, "three");
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_OK);
    assert_int_equal(done, 4);
    assert_false(batch_at(f->batch, 0)->dropped);
    assert_true(batch_at(f->batch, 1)->dropped);
    assert_true(batch_at(f->batch, 2)->dropped);
    assert_false(batch_at(f->batch, 3)->dropped);
    assert_int_equal(pipeline_tolerance(f->p)->skipped, 2);
    assert_int_equal(f->err.code, 0);
}

static void what_is_no_fault_of_the_record_is_not_tolerated(void **state)
{
    struct fixture *f = *state;
    const struct consumer_msg msg = {
        .topic = "in", .partition = 2, .offset = 7, .value = "full", .value_len = 4};
    size_t done = 0;

    props_set(&f->connector, "errors.tolerance", "all");
    make(f);
    add(f, NULL, "one");
    add(f, NULL, "full");
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_FULL);
    assert_int_equal(done, 1);
    assert_string_equal(f->err.text,
                        "VALUE_CONVERTER of Spy, a record for topic t: no more schemas");
    f->err = (struct mr_error){0};
    assert_int_equal(pipeline_from_kafka(f->p, &msg, 1, f->batch, &done, &f->err), MR_ERR_FULL);
    assert_int_equal(pipeline_tolerance(f->p)->skipped, 0);
}

static void blanks_around_a_tolerance_do_not_count(void **state)
{
    struct fixture *f = *state;

    props_set(&f->connector, "errors.tolerance", " all\t");
    make(f);
    assert_non_null(f->p);
    assert_true(pipeline_tolerance(f->p)->all);
}

static void an_unknown_tolerance_is_refused(void **state)
{
    struct fixture *f = *state;

    props_set(&f->connector, "errors.tolerance", "some");
    make(f);
    assert_null(f->p);
    assert_non_null(strstr(f->err.text, "errors.tolerance"));
}

static void what_no_producer_takes_fails_whatever_the_tolerance(void **state)
{
    struct fixture *f = *state;
    size_t done;

    props_set(&f->connector, "errors.tolerance", "all");
    make(f);
    add(f, NULL, "v")->partition = -2;
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_DATA);
    assert_non_null(strstr(f->err.text, "Invalid partition: -2"));
    assert_int_equal(done, 0);
    f->err = (struct mr_error){0};
    mr_record_at(&f->batch->pub, 0)->partition = 3;
    mr_record_at(&f->batch->pub, 0)->timestamp = -2;
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_DATA);
    assert_string_equal(f->err.text, "Invalid record timestamp -2");
}

static void a_converter_that_takes_all_memory_fails_the_task(void **state)
{
    struct fixture *f = *state;
    size_t done;

    props_set(&f->connector, "errors.tolerance", "all");
    make(f);
    add(f, NULL, "one");
    add(f, NULL, "huge");
    add(f, NULL, "three");
    assert_int_equal(pipeline_to_kafka(f->p, f->batch, &done, &f->err), MR_ERR_FATAL);
    assert_int_equal(done, 1);
    assert_non_null(strstr(f->err.text, "more memory than a batch may hold"));
}

/* --- from Kafka ------------------------------------------------------------------------------- */

static struct consumer_msg message(int64_t offset, const char *key, const char *value)
{
    return (struct consumer_msg){.topic = "in",
                                 .partition = 2,
                                 .offset = offset,
                                 .timestamp_ms = 1000 + offset,
                                 .key = key,
                                 .key_len = key == NULL ? 0 : strlen(key),
                                 .value = value,
                                 .value_len = value == NULL ? 0 : strlen(value)};
}

static void a_sink_record_passes_key_value_and_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    const struct consumer_msg msgs[] = {message(7, "k", "v"), message(8, NULL, NULL)};
    struct mr_record *rec;
    size_t done = 0;

    make(f);
    story[0] = '\0';
    assert_int_equal(pipeline_from_kafka(f->p, msgs, 2, f->batch, &done, &f->err), MR_OK);
    assert_string_equal(story, "key:in:k value:in:v key:in: value:in: ");
    rec = mr_record_at(&f->batch->pub, 0);
    assert_ptr_equal(rec->topic, msgs[0].topic);
    assert_int_equal(rec->partition, 2);
    /* Stays when rec's changes. */
    assert_ptr_equal(((struct record *)rec)->from_topic, msgs[0].topic);
    assert_int_equal(((struct record *)rec)->from_partition, 2);
    assert_int_equal(rec->offset, 7);
    assert_int_equal(rec->timestamp, 1007);
    assert_ptr_equal(rec->value.u.p, msgs[0].value); /* borrowed from the fetch buffer */
    assert_true(mr_is_null(mr_record_at(&f->batch->pub, 1)->value));
    assert_int_equal(done, 2);
}

static void bad_sink_records_are_left_out_or_fail_the_poll(void **state)
{
    struct fixture *f = *state;
    const struct consumer_msg msgs[] = {message(7, "k", "v"), message(8, "k", "bad"),
                                        message(9, "k", "w")};
    size_t done = 0;

    make(f);
    assert_int_equal(pipeline_from_kafka(f->p, msgs, 3, f->batch, &done, &f->err), MR_ERR_FATAL);
    assert_non_null(strstr(f->err.text, "in VALUE_CONVERTER of Spy, record in-2@8"));
    pipeline_free(&f->p);
    batch_pool_give(f->pool, f->batch);
    f->batch = batch_pool_take(f->pool);
    f->err = (struct mr_error){0};
    props_set(&f->connector, "errors.tolerance", "all");
    make(f);
    assert_int_equal(pipeline_from_kafka(f->p, msgs, 3, f->batch, &done, &f->err), MR_OK);
    assert_int_equal(f->batch->pub.count, 2);
    assert_int_equal(mr_record_at(&f->batch->pub, 0)->offset, 7);
    assert_int_equal(mr_record_at(&f->batch->pub, 1)->offset, 9);
}

/* By what is borrowed, too: a batch that must wait is copied. */
static void a_batch_ends_when_its_bytes_are_many(void **state)
{
    struct fixture *f = *state;
    char *large = calloc(1, PIPELINE_FULL_BYTES / 2 + 1);
    struct consumer_msg msgs[] = {message(7, "k", "v"), message(8, NULL, "w"),
                                  message(9, NULL, "x")};
    size_t done = 0;

    make(f);
    msgs[0].value = msgs[1].value = large;
    msgs[0].value_len = msgs[1].value_len = PIPELINE_FULL_BYTES / 2;
    assert_int_equal(pipeline_from_kafka(f->p, msgs, 3, f->batch, &done, &f->err), MR_OK);
    assert_int_equal(done, 2);
    assert_int_equal(f->batch->pub.count, 2);
    free(large);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_workers_converters_come_with_the_workers_settings),
        T(the_connectors_converter_comes_with_the_connectors_settings_only),
        T(a_converter_that_is_not_there_is_named_with_its_property),
        T(a_converter_that_does_not_start_is_named_and_stopped),
        T(a_source_record_passes_header_key_value),
        T(a_converter_of_headers_alone_is_started_and_stopped),
        T(headers_need_a_converter),
        T(a_bad_record_fails_behind_those_that_are_ready),
        T(tolerance_drops_bad_records_and_counts_them),
        T(what_is_no_fault_of_the_record_is_not_tolerated),
        T(blanks_around_a_tolerance_do_not_count),
        T(an_unknown_tolerance_is_refused),
        T(what_no_producer_takes_fails_whatever_the_tolerance),
        T(a_converter_that_takes_all_memory_fails_the_task),
        T(a_sink_record_passes_key_value_and_keeps_its_place),
        T(bad_sink_records_are_left_out_or_fail_the_poll),
        T(a_batch_ends_when_its_bytes_are_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
