/* SPDX-License-Identifier: Apache-2.0 */
/* Records that can't be processed, against librdkafka's mock cluster: what put refuses, what fails
 * a put, what no converter reads, and what the dead-letter topic says of them. The sink is a struct
 * of the test: Picky refuses and fails on numbers of the test's choice. */
#include "base/clock.h"
#define LOGGER "test"
#include "base/log.h"
#include "keep_sink.h"
#include "kafka/producer.h"
#include "support/unit/side_by_side.h"

#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define DEAD "errors.deadletterqueue.topic.name", "dead"
#define ODD 99 /* what the text "odd" counts as */
#define ALL "errors.tolerance", "all"

/* Zero: none. Numbers whose last digits are below 100 are of the same kind: 7 means 7, 107, 207
 * … */
static struct {
    int refuses;     /* this one by mr_reject */
    const char *why; /* what it says of it; NULL: its number */
    int fails;       /* on this one the whole put fails with MR_ERR_DATA */
    atomic_int busy; /* puts that ask for a retry once they have seen the failing one alone */
    atomic_int puts;
    pthread_mutex_t lock;
    size_t taken[4096]; /* how often each number was taken */
} picky = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int number_of(const struct mr_record *rec)
{
    char text[16];

    snprintf(text, sizeof(text), "%.*s", (int)rec->value.len, (const char *)rec->value.u.p);
    return strcmp(text, "odd") == 0 || rec->value.len > 1000 ? ODD : atoi(text);
}

static bool has(const struct mr_batch *in, int number)
{
    for (size_t i = 0; i < mr_batch_count(in); i++)
        if (number != 0 && number_of(mr_record_at(in, i)) % 100 == number)
            return true;
    return false;
}

static int picky_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    picky.puts++;
    if (picky.busy > 0 && mr_batch_count(in) == 1 && picky.busy-- > 0) {
        mr_fail(err, MR_ERR_RETRY, "busy");
        return mr_retry_after(err, 50);
    }
    if (has(in, picky.fails))
        return mr_caused_by(err, mr_fail(err, MR_ERR_DATA, "it has a %d", picky.fails),
                            "a.Class: of its own");
    pthread_mutex_lock(&picky.lock);
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        int number = number_of(mr_record_at(in, i));

        if (picky.refuses != 0 && number % 100 == picky.refuses && picky.why != NULL)
            mr_reject(in, i, "%s", picky.why);
        else if (picky.refuses != 0 && number % 100 == picky.refuses)
            mr_reject(in, i, "no %d wanted", number);
        else
            picky.taken[number]++;
    }
    pthread_mutex_unlock(&picky.lock);
    return MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static struct plugin picky_plugin = {.kind = MR_PLUGIN_SINK,
                                     .name = "Picky",
                                     .version = "1.0",
                                     .library = "test",
                                     .aliases = aliases,
                                     .keys = keys,
                                     .sink = {.put = picky_put}};

static atomic_int refused; /* records, since their topic is not known */
static atomic_int purges;
static atomic_int wanted; /* lines that the topic of letters is not ready */

int __real_producer_send(struct producer *p, const struct producer_record *rec,
                         struct mr_error *err);
int __wrap_producer_send(struct producer *p, const struct producer_record *rec,
                         struct mr_error *err);
void __real_producer_purge(struct producer *p);
void __wrap_producer_purge(struct producer *p);

int __wrap_producer_send(struct producer *p, const struct producer_record *rec,
                         struct mr_error *err)
{
    int rc = __real_producer_send(p, rec, err);

    refused += rc == MR_ERR_NOT_FOUND;
    return rc;
}

void __wrap_producer_purge(struct producer *p)
{
    purges++;
    __real_producer_purge(p);
}

static int setup(void **state)
{
    refused = purges = wanted = 0;
    picky_plugin.sink.put_atomic = false;
    picky.why = NULL;
    picky.refuses = picky.fails = picky.busy = picky.puts = 0;
    memset(picky.taken, 0, sizeof(picky.taken));
    *state = calloc(1, sizeof(struct rig));
    return 0;
}

static int teardown(void **state)
{
    rig_deinit(*state);
    free(*state);
    return 0;
}

static bool taken_is(struct rig *rig, int64_t n)
{
    size_t sum = 0;

    pthread_mutex_lock(&picky.lock);
    for (size_t i = 0; i < 4096; i++)
        sum += picky.taken[i];
    pthread_mutex_unlock(&picky.lock);
    return (int64_t)sum == n;
}

/* All of 0 … count - 1 once, but those with this last number. */
static void assert_taken(int count, int without)
{
    for (int i = 0; i < count; i++)
        if (picky.taken[i] != (i % 100 != without))
            fail_msg("%d was taken %zu times", i, picky.taken[i]);
}

static void assert_dead(struct rig *rig, const char *const *values, size_t count)
{
    json_t *dead = rig_read_topic(rig, "dead", count);

    assert_int_equal(json_array_size(dead), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(json_string_value(json_array_get(dead, i)), values[i]);
    json_decref(dead);
}

static void what_put_refuses_becomes_a_dead_letter_and_the_rest_is_taken(void **state)
{
    static const char *const dead[] = {"7", "107", "207"};
    struct rig *rig = *state;

    picky.refuses = 7;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1); /* order is one of a partition */
    rig_write_topic(rig, "in", 1, 0, 300);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, taken_is, 297);
    rig_wait_true(rig, committed_is, 300);
    rig_stop(rig);
    assert_taken(300, 7);
    assert_dead(rig, dead, 3);
}

static void a_refusal_without_tolerance_fails_the_task_behind_its_letter(void **state)
{
    static const char *const dead[] = {"7"};
    struct rig *rig = *state;

    picky.refuses = 7;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, NULL);
    rig_write_topic(rig, "in", 1, 0, 20);
    for (int i = 0; i < 5; i++) /* the letter takes longer than the end of a task */
        rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "Tolerance exceeded in error handler\nCaused by: "
                                       "org.apache.kafka.connect.errors.DataException: no 7 wanted"
                                       "\n\tin TASK_PUT of "
                                       "org.apache.kafka.connect.sink.SinkTask, record in-0@7"));
    assert_true(rig_committed(rig, GROUP, "in", 0) <= 7); /* what batches before it had */
    assert_dead(rig, dead, 1);
}

static void a_put_that_fails_on_data_is_split_down_to_the_guilty_record(void **state)
{
    static const char *const dead[] = {"33", "133", "233", "333", "433"};
    struct rig *rig = *state;

    picky.fails = 33;
    picky_plugin.sink.put_atomic = true;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1); /* order is one of a partition */
    rig_write_topic(rig, "in", 1, 0, 500);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, taken_is, 495);
    rig_wait_true(rig, committed_is, 500);
    rig_stop(rig);
    assert_taken(500, 33);
    assert_dead(rig, dead, 5);
}

/* In the middle of the parts put asks for a retry: what was put before it is not put again. */
static void parts_that_were_put_are_not_put_again_after_a_retry(void **state)
{
    static const char *const dead[] = {"33", "133"};
    struct rig *rig = *state;

    picky.fails = 33;
    picky.busy = 2;
    picky_plugin.sink.put_atomic = true;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1); /* order is one of a partition */
    rig_write_topic(rig, "in", 1, 0, 200);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, taken_is, 198);
    rig_wait_true(rig, committed_is, 200);
    rig_stop(rig);
    assert_int_equal(picky.busy, 0);
    assert_taken(200, 33);
    assert_dead(rig, dead, 2);
}

/* Nothing is skipped where the plugin does not say that a failed put had no effect, or where the
 * user has not asked for it. */
static void a_put_with_effects_that_fails_is_not_split(void **state)
{
    struct rig *rig = *state;

    picky.fails = 3;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "DataException: it has a 3"));
    assert_int_equal(picky.taken[3] + picky.taken[4], 0);
    assert_int_equal(rig_topic_end(rig, "dead"), 0);
    assert_true(rig_committed(rig, GROUP, "in", 0) <= 3);
}

static void without_dead_letters_nothing_is_split(void **state)
{
    struct rig *rig = *state;

    picky.fails = 3;
    picky_plugin.sink.put_atomic = true;
    rig_init(rig, 1, "topics", "in", QUICK, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(picky.taken[3] + picky.taken[4], 0);
}

/* --- what a letter says ----------------------------------------------------------------------- */

static rd_kafka_message_t *first_dead(struct rig *rig, rd_kafka_t **rk)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int64_t until = clock_ms() + 20000;
    rd_kafka_message_t *msg = NULL;
    char why[256];

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "group.id", "reader", why, sizeof(why));
    *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    rd_kafka_topic_partition_list_add(list, "dead", RD_KAFKA_PARTITION_UA);
    list->elems[0].partition = 0;
    list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(*rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    while (msg == NULL && clock_ms() < until) {
        msg = rd_kafka_consumer_poll(*rk, 100);
        if (msg != NULL && msg->err != 0) {
            rd_kafka_message_destroy(msg);
            msg = NULL;
        }
    }
    assert_non_null(msg);
    return msg;
}

static void assert_header(const rd_kafka_headers_t *headers, size_t i, const char *name,
                          const char *value)
{
    const char *found;
    const void *bytes;
    size_t size;

    assert_int_equal(rd_kafka_header_get_all(headers, i, &found, &bytes, &size), 0);
    assert_string_equal(found, name);
    if (value == NULL)
        assert_null(bytes);
    else if (size < strlen(value) || memcmp(bytes, value, strlen(value)) != 0)
        fail_msg("%s is %.*s", name, (int)size, (const char *)bytes);
}

/* In one request, so that one poll has both: into a partition that is known, since a flush ends the
 * linger. */
static void write_values(struct rig *rig, const char *first, const char *second)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *rkt;
    rd_kafka_t *rk;
    char why[256];

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "linger.ms", "500", why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    rkt = rd_kafka_topic_new(rk, "in", NULL);
    assert_int_equal(rd_kafka_metadata(rk, 0, rkt, &metadata, 10000), 0);
    rd_kafka_metadata_destroy(metadata);
    for (int i = 0; i < 2; i++) {
        const char *value = i == 0 ? first : second;

        assert_int_equal(
            rd_kafka_produce(rkt, 0, 0, (void *)(uintptr_t)value, strlen(value), NULL, 0, NULL), 0);
    }
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
}

static void write_one(struct rig *rig, const char *value)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    char why[256];

    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0),
                                       RD_KAFKA_V_KEY("k", 1),
                                       RD_KAFKA_V_VALUE((void *)(uintptr_t)value, strlen(value)),
                                       RD_KAFKA_V_TIMESTAMP(1700000000000),
                                       RD_KAFKA_V_HEADER("a", "1", 1),
                                       RD_KAFKA_V_HEADER("a", NULL, 0), RD_KAFKA_V_END),
                     0);
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_destroy(rk);
}

static void assert_letter(struct rig *rig, const char *value, const char *stage,
                          const char *class_name, const char *message)
{
    rd_kafka_t *rk;
    rd_kafka_message_t *msg = first_dead(rig, &rk);
    rd_kafka_headers_t *headers = NULL;
    rd_kafka_timestamp_type_t type;

    assert_int_equal(msg->len, 3);
    assert_memory_equal(msg->payload, value, 3);
    assert_int_equal(msg->key_len, 1);
    assert_int_equal(rd_kafka_message_timestamp(msg, &type), 1700000000000);
    assert_int_equal(rd_kafka_message_headers(msg, &headers), 0);
    assert_int_equal(rd_kafka_header_cnt(headers), 12);
    assert_header(headers, 0, "a", "1");
    assert_header(headers, 1, "a", NULL);
    assert_header(headers, 2, "__connect.errors.topic", "in");
    assert_header(headers, 3, "__connect.errors.partition", "0");
    assert_header(headers, 4, "__connect.errors.offset", "0");
    assert_header(headers, 5, "__connect.errors.connector.name", "conn");
    assert_header(headers, 6, "__connect.errors.task.id", "0");
    assert_header(headers, 7, "__connect.errors.stage", stage);
    assert_header(headers, 8, "__connect.errors.class.name", class_name);
    assert_header(headers, 9, "__connect.errors.exception.class.name",
                  "org.apache.kafka.connect.errors.DataException");
    assert_header(headers, 10, "__connect.errors.exception.message", message);
    assert_header(headers, 11, "__connect.errors.exception.stacktrace",
                  "org.apache.kafka.connect.errors.DataException: ");
    rd_kafka_message_destroy(msg);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static void a_letter_has_all_that_was_read_and_what_went_wrong(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL,
             "errors.deadletterqueue.context.headers.enable", "true", NULL);
    write_one(rig, "bad");
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    assert_letter(rig, "bad", "VALUE_CONVERTER", "RigString", "");
}

/* The fetch buffers are gone when put refuses a record of a batch that had to wait. */
static void a_letter_from_a_batch_that_waited_says_the_same(void **state)
{
    struct rig *rig = *state;

    picky.busy = 1;
    picky.refuses = ODD;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL,
             "errors.deadletterqueue.context.headers.enable", "true", NULL);
    write_one(rig, "odd");
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    assert_letter(rig, "odd", "TASK_PUT", "org.apache.kafka.connect.sink.SinkTask", "no 99 wanted");
}

/* Of any header: a moment, over a kind that none belongs to. */
static int odd_to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                          size_t len, const struct mr_schema **schema, struct mr_value *value,
                          struct mr_error *err)
{
    const struct mr_schema_spec spec = {.kind = MR_KIND_INT32, .name = MR_LOGICAL_TIMESTAMP};

    *schema = arena->host->schema_make(&spec, sizeof(spec), err);
    *value = mr_timestamp(0);
    return *schema == NULL ? err->code : MR_OK;
}

/* ConnectHeaders.add looks at what any converter gives. */
static void a_header_that_its_schema_does_not_fit_makes_a_dead_letter(void **state)
{
    static const struct plugin odd = {.kind = MR_PLUGIN_CONVERTER,
                                      .name = "Odd",
                                      .version = "1.0",
                                      .library = "test",
                                      .aliases = aliases,
                                      .keys = keys,
                                      .converter = {.to_connect = odd_to_connect}};
    static const struct plugin *const more[] = {&odd, NULL};
    struct rig *rig = *state;

    rig_more = more;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, "header.converter", "Odd",
             "errors.deadletterqueue.context.headers.enable", "true", NULL);
    write_one(rig, "odd");
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    rig_more = NULL;
    assert_letter(rig, "odd", "HEADER_CONVERTER", "Odd",
                  "The value Thu Jan 01 00:00:00 UTC 1970 is not compatible with the schema "
                  "Schema{org.apache.kafka.connect.data.Timestamp:INT32}");
}

static void assert_message(struct rig *rig, const void *message, size_t len)
{
    rd_kafka_t *rk;
    rd_kafka_message_t *msg = first_dead(rig, &rk);
    rd_kafka_headers_t *headers = NULL;
    const void *bytes;
    size_t size;

    assert_int_equal(rd_kafka_message_headers(msg, &headers), 0);
    assert_int_equal(
        rd_kafka_header_get_last(headers, "__connect.errors.exception.message", &bytes, &size), 0);
    assert_int_equal(size, len);
    assert_memory_equal(bytes, message, len);
    rd_kafka_message_destroy(msg);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

/* A lone surrogate becomes what Java writes for it; words like a trace's do not end the message. */
static void a_message_that_quotes_a_value_is_whole_and_is_utf_8(void **state)
{
    static const char message[] = "no x\nCaused by: a.Class: y, ?, \0!";
    struct rig *rig = *state;

    picky.refuses = ODD;
    picky.why = "no x\nCaused by: a.Class: y, \xed\xa0\x80, \xc0\x80!";
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL,
             "errors.deadletterqueue.context.headers.enable", "true", NULL);
    write_one(rig, "odd");
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    assert_message(rig, message, sizeof(message) - 1);
}

/* A cause that put told is no part of the message. */
static void a_message_ends_where_its_cause_begins(void **state)
{
    static const char message[] = "it has a 99";
    struct rig *rig = *state;

    picky.fails = ODD;
    picky_plugin.sink.put_atomic = true;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL,
             "errors.deadletterqueue.context.headers.enable", "true", NULL);
    write_one(rig, "odd");
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    assert_message(rig, message, sizeof(message) - 1);
}

/* --- a topic that can't take them ------------------------------------------------------------- */

static void a_letter_that_can_not_be_written_fails_the_task_and_is_not_passed(void **state)
{
    struct rig *rig = *state;

    picky.refuses = 7;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 20);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "Could not write to the dead-letter topic dead: "));
    assert_true(rig_committed(rig, GROUP, "in", 0) <= 7);
}

static atomic_int away; /* how often the log said that letters wait for their topic */

static void witness(const char *line, size_t len)
{
    (void)len;
    if (strstr(line, "dead letters wait until it is there") != NULL)
        away++;
    wanted += strstr(line, "the dead-letter topic dead: not ready yet") != NULL;
}

static bool is_away(struct rig *rig, int64_t n)
{
    (void)rig;
    return away >= n;
}

static bool refused_at_least(struct rig *rig, int64_t n)
{
    return refused >= n;
}

static bool dead_are(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "dead") >= n;
}

/* A broker that is behind knows no such topic: what is queued comes back, what follows is refused.
 */
static void letters_wait_for_a_topic_that_is_away(void **state)
{
    struct rig *rig = *state;

    picky.refuses = 7;
    rig_init(rig, 2, "topics", "in", QUICK, DEAD, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, 1);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, dead_are, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, "dead", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, 2);
    rig_write_topic(rig, "in", 1, 100, 200);
    rig_wait_true(rig, is_away, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, "dead", RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_wait_true(rig, dead_are, 3);
    rig_wait_true(rig, taken_is, 9 + 198);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static void know_dead(struct rig *rig, bool known)
{
    rd_kafka_mock_topic_set_error(rig->cluster, "dead",
                                  known ? RD_KAFKA_RESP_ERR_NO_ERROR
                                        : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

/* A letter has come back, and is refused, when the lease goes: its record is read again, and so it
 * is not waited for any more. */
static void a_letter_that_waits_for_its_topic_as_the_lease_goes_is_written_anew(void **state)
{
    static const char *const dead[] = {"7", "107"};
    struct rig *rig = *state;

    picky.refuses = 7;
    rig_init(rig, 2, "topics", "in", QUICK, DEAD, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, 1);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 10);
    know_dead(rig, false);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, 2);
    rig_write_topic(rig, "in", 1, 107, 1);
    rig_wait_true(rig, refused_at_least, 1);
    rig_lose_lease(rig, 100000);
    know_dead(rig, true);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, 11);
    rig_stop(rig);
    assert_dead(rig, dead, 2);
}

/* Its letters can't leave for now. */
static void hold_letters(struct rig *rig)
{
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    for (int i = 0; i < 2000; i++)
        rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
}

static void lose_the_lease_and_go_on(struct rig *rig)
{
    static const char *const dead[] = {"bad"};

    rig_lose_lease(rig, 100000);
    assert_int_equal(purges, 1); /* before it was quiet */
    rd_kafka_mock_clear_request_errors(rig->cluster, 0);
    picky.busy = 0;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, 2);
    rig_stop(rig);
    assert_dead(rig, dead, 1);
}

static bool puts_at_least_as_many(struct rig *rig, int64_t n)
{
    return picky.puts >= n;
}

static void a_letter_of_a_batch_that_is_put_again_does_not_outlast_the_lease(void **state)
{
    struct rig *rig = *state;

    picky.busy = 1000;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    write_values(rig, "bad", "5");
    hold_letters(rig);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least_as_many, 1);
    lose_the_lease_and_go_on(rig);
}

static atomic_int tries; /* of what can't be converted for now */

static int busy_to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                           size_t len, const struct mr_schema **schema, struct mr_value *value,
                           struct mr_error *err)
{
    if (picky.busy > 0 && len == 1) {
        tries++;
        return mr_fail(err, MR_ERR_RETRY, "busy");
    }
    return rig_string_converter.converter.to_connect(self, arena, topic, data, len, schema, value,
                                                     err);
}

static bool tried(struct rig *rig, int64_t n)
{
    return tries >= n;
}

/* The next record's conversion is tried and tried again, with that letter under way. */
static void a_letter_of_a_batch_that_is_not_through_does_not_outlast_the_lease(void **state)
{
    struct plugin busy = rig_string_converter;
    struct rig *rig = *state;

    picky.busy = 1000;
    tries = 0;
    busy.name = "Busy";
    busy.converter.to_connect = busy_to_connect;
    rig_plugin = &busy;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, "errors.retry.timeout", "-1",
             "errors.retry.delay.max.ms", "100", NULL);
    props_set(&rig->config, "value.converter", "Busy");
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    write_values(rig, "bad", "5");
    hold_letters(rig);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, tried, 1);
    lose_the_lease_and_go_on(rig);
    rig_plugin = NULL;
}

static bool is_wanted(struct rig *rig, int64_t n)
{
    return wanted >= n;
}

/* The brokers are away as the task begins, and the worker's lease goes with them. */
static void a_lapse_while_the_topic_is_looked_for_fails_no_task(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_true(rig, is_wanted, 1);
    rig_lose_lease(rig, 100000);
    rd_kafka_mock_broker_set_up(rig->cluster, 1);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, 5);
    rig_stop(rig);
    assert_false(rig_saw(rig, STATE_FAILED));
}

/* Waiting for room that never comes would be for ever. */
static void a_letter_above_buffer_memory_fails_the_task(void **state)
{
    struct rig *rig = *state;
    char *large = malloc(600001);

    memset(large, '1', 600000);
    large[600000] = '\0';
    picky.refuses = ODD;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, "producer.override.buffer.memory", "300000",
             "producer.override.max.request.size", "10000000", NULL);
    write_one(rig, large);
    free(large);
    rig_start(rig, &picky_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "larger than buffer.memory"));
}

/* --- sources ---------------------------------------------------------------------------------- */

static atomic_bool bad_asked_again;

static int bad_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    static const char *const values[] = {"one", "bad", "two"};

    if (*(bool *)self) {
        bad_asked_again = true;
        return mr_again_in(out, 100);
    }
    *(bool *)self = true;
    for (int i = 0; i < 3; i++) {
        struct mr_record *rec = mr_batch_add(out, "out");

        mr_record_key(rec, mr_str("k"));
        mr_record_value(rec, mr_str(values[i]));
        mr_record_offset(rec, "p", "at", i + 1);
    }
    return MR_OK;
}

/* What it gave is on its way. */
static bool bad_polled(struct rig *rig, int64_t n)
{
    return bad_asked_again;
}

static const struct plugin bad_source = {.kind = MR_PLUGIN_SOURCE,
                                         .name = "Bad",
                                         .version = "1.0",
                                         .library = "test",
                                         .aliases = aliases,
                                         .keys = keys,
                                         .state_size = sizeof(bool),
                                         .source = {.poll = bad_poll}};

static bool stored_is(struct rig *rig, int64_t n)
{
    return rig_stored(rig, "{\"name\":\"p\"}", "at") == n;
}

static void a_sources_bad_record_becomes_a_dead_letter_where_the_user_asks_for_it(void **state)
{
    static const char *const dead[] = {"bad"};
    struct rig *rig = *state;
    json_t *out;

    rig_init(rig, 1, ALL, "millrace.errors.deadletterqueue.topic.name", "dead",
             "worker:offset.flush.interval.ms", "100", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rig_start(rig, &bad_source, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 3);
    rig_stop(rig);
    out = rig_read_topic(rig, "out", 2);
    assert_int_equal(json_array_size(out), 2);
    json_decref(out);
    assert_dead(rig, dead, 1);
}

static bool stopping_is(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "out") == n;
}

/* The letter is under way when the task is stopped, and the topic never takes it. */
static void a_letter_of_a_source_that_can_not_be_written_keeps_its_offset_back(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, ALL, "millrace.errors.deadletterqueue.topic.name", "dead",
             "worker:offset.flush.interval.ms", "60000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    rig_start(rig, &bad_source, TARGET_STARTED);
    rig_wait_true(rig, stopping_is, 2);
    rig_stop(rig);
    assert_int_equal(rig_stored(rig, "{\"name\":\"p\"}", "at"), -1);
}

/* Under exactly-once too no offset goes before the letter. */
static void a_letter_that_can_not_be_written_commits_no_transaction(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, ALL, "millrace.errors.deadletterqueue.topic.name", "dead",
             "worker:exactly.once.source.support", "enabled", "worker:group.id", "g",
             "worker:offset.storage.topic", "offs", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "offs", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    rig_start(rig, &bad_source, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "dead-letter topic dead"));
    assert_int_equal(rig_topic_end(rig, "offs"), 0);
}

/* A successor may be writing the same letter by now. */
static void a_letter_of_a_source_without_a_lease_waits_for_a_new_one(void **state)
{
    static const char *const dead[] = {"bad"};
    struct rig *rig = *state;

    rig_init(rig, 1, ALL, "millrace.errors.deadletterqueue.topic.name", "dead",
             "worker:offset.flush.interval.ms", "100", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    for (int i = 0; i < 2000; i++)
        rd_kafka_mock_push_request_errors(rig->cluster, 0 /* Produce */, 1,
                                          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
    rig_start(rig, &bad_source, TARGET_STARTED);
    rig_wait_true(rig, bad_polled, 0);
    rig_lose_lease(rig, 100000);
    rd_kafka_mock_clear_request_errors(rig->cluster, 0);
    usleep(500000); /* several times as long as a client waits before it tries again */
    assert_int_equal(rig_topic_end(rig, "dead"), 0);
    assert_int_equal(rig_stored(rig, "{\"name\":\"p\"}", "at"), -1);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, 3);
    rig_stop(rig);
    assert_dead(rig, dead, 1);
}

static int keep_task(void *self, struct mr_task *task, struct mr_error *err)
{
    *(struct mr_task **)self = task;
    return MR_OK;
}

static atomic_bool polled;

static bool is_polled(struct rig *rig, int64_t n)
{
    return polled;
}

static int bad_at_the_end(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct pollfd stop = {.fd = mr_stop_fd(*(struct mr_task **)self), .events = POLLIN};

    polled = true;
    while (poll(&stop, 1, -1) < 1)
        ;
    mr_record_value(mr_batch_add(out, "out"), mr_str("bad"));
    return MR_OK;
}

static atomic_int failures_told;

static void on_log_line(const char *line, size_t len)
{
    static const char text[] = "the task failed";

    failures_told += memmem(line, len, text, sizeof(text) - 1) != NULL;
}

/* A task that was stopped is UNASSIGNED, but the log says what went wrong. */
static void a_bad_record_of_the_last_poll_is_told(void **state)
{
    static const struct plugin last = {.kind = MR_PLUGIN_SOURCE,
                                       .name = "Last",
                                       .version = "1.0",
                                       .library = "test",
                                       .aliases = aliases,
                                       .keys = keys,
                                       .state_size = sizeof(struct mr_task *),
                                       .source = {.start = keep_task, .poll = bad_at_the_end}};
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rig_start(rig, &last, TARGET_STARTED);
    rig_wait_true(rig, is_polled, 0); /* a stop before it would end the task without one */
    log_witness(on_log_line);
    rig_stop(rig);
    log_witness(NULL);
    assert_int_equal(failures_told, 1);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_put_refuses_becomes_a_dead_letter_and_the_rest_is_taken),
        T(a_refusal_without_tolerance_fails_the_task_behind_its_letter),
        T(a_put_that_fails_on_data_is_split_down_to_the_guilty_record),
        T(parts_that_were_put_are_not_put_again_after_a_retry),
        T(a_put_with_effects_that_fails_is_not_split),
        T(without_dead_letters_nothing_is_split),
        T(a_letter_has_all_that_was_read_and_what_went_wrong),
        T(a_letter_from_a_batch_that_waited_says_the_same),
        T(a_header_that_its_schema_does_not_fit_makes_a_dead_letter),
        T(a_message_that_quotes_a_value_is_whole_and_is_utf_8),
        T(a_message_ends_where_its_cause_begins),
        T(a_letter_that_can_not_be_written_fails_the_task_and_is_not_passed),
        T(letters_wait_for_a_topic_that_is_away),
        T(a_lapse_while_the_topic_is_looked_for_fails_no_task),
        T(a_letter_that_waits_for_its_topic_as_the_lease_goes_is_written_anew),
        T(a_letter_of_a_batch_that_is_put_again_does_not_outlast_the_lease),
        T(a_letter_of_a_batch_that_is_not_through_does_not_outlast_the_lease),
        T(a_bad_record_of_the_last_poll_is_told),
        T(a_letter_above_buffer_memory_fails_the_task),
        T(a_letter_of_a_source_that_can_not_be_written_keeps_its_offset_back),
        T(a_letter_that_can_not_be_written_commits_no_transaction),
        T(a_letter_of_a_source_without_a_lease_waits_for_a_new_one),
        T(a_sources_bad_record_becomes_a_dead_letter_where_the_user_asks_for_it),
    };

    log_witness(witness);
    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
