/* SPDX-License-Identifier: Apache-2.0 */
/* PostgresSink with a real Kafka and a real PostgreSQL: tables equal topics, whatever is killed;
 * types, keys, bad records, changes by REST. What PostgreSQL has is asked by psql. */
#include "support/kafka_run.h"
#include "support/postgres_run.h"
#include "support/process.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MS 30000
#define FLOW_MS 90000
#define ROWS 6000
#define LOOK_MS 5000 /* the sink's, when it is idle */

static struct worker_run *start_worker(const char *name)
{
    return worker_run_start(&(struct worker_run_options){
        .name = name,
        .props = scratch_text("millrace.run.dir=%s\noffset.storage.file.filename=%s\n",
                              scratch_path(scratch_text("%s.run", name)),
                              scratch_path(scratch_text("%s.kept", name)))});
}

/* more: members behind the others, which win. */
static const char *sink_config(const char *topic, const char *more)
{
    return scratch_text(
        "\"connector.class\": \"PostgresSink\", \"tasks.max\": \"2\", "
        "\"topics\": \"%s\", \"connection.url\": \"%s\", "
        "\"connection.user\": \"millrace\", \"connection.password\": \"secret\", "
        "\"key.converter\": \"JsonConverter\", \"value.converter\": \"JsonConverter\", "
        "\"auto.create\": \"true\", "
        "\"max.retries\": \"100\", \"retry.backoff.ms\": \"200\", "
        "\"consumer.override.session.timeout.ms\": \"6000\"%s",
        topic, postgres_run_url(), more);
}

static void put_sink(const struct worker_run *w, const char *conn, const char *topic,
                     const char *more)
{
    worker_run_put(w, conn, sink_config(topic, more));
}

static const char *row(int id, const char *name)
{
    return scratch_text("{\"schema\": {\"type\": \"struct\", \"fields\": ["
                        "{\"field\": \"id\", \"type\": \"int64\"}, "
                        "{\"field\": \"name\", \"type\": \"string\", \"optional\": true}]}, "
                        "\"payload\": {\"id\": %d, \"name\": %s}}",
                        id, name);
}

static const char *key(int id)
{
    return scratch_text("{\"schema\": {\"type\": \"int64\", \"optional\": false}, \"payload\": %d}",
                        id);
}

/* Rows 0 … count - 1, odd ones in partition 1. */
static const char *topic_of_rows(const struct worker_run *w, const char *stem, int count)
{
    const char *topic = scratch_name(stem);
    const char **values = scratch_keep(calloc((size_t)count, sizeof(*values)));

    topic_create(w->servers, topic, 2);
    for (int i = 0; i < count; i++)
        values[i] = row(i, "\"a\\tb\\\\c\"");
    topic_produce_spread(w->servers, topic, 2, values, (size_t)count);
    return topic;
}

static bool sql_is(const char *want, const char *query, const char *table)
{
    return strcmp(postgres_run_sql(query, table), want) == 0;
}

static void assert_sql(const char *want, const char *got)
{
    assert_string_equal(got, want);
}

static long rows(const char *table)
{
    return atol(postgres_run_sql("SELECT CASE WHEN to_regclass('\"%s\"') IS NULL THEN 0 ELSE "
                                 "(xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS "
                                 "c FROM %%I', '%s'), false, true, '')))[1]::text::bigint END",
                                 table, table));
}

static void assert_rows_once(const char *table, int count)
{
    assert_sql(scratch_text("%d|%d|0|%d", count, count, count - 1),
               postgres_run_sql("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM \"%s\"",
                                table));
}

/* --- exactly once ----------------------------------------------------------------------------- */

static void kill_host(const struct worker_run *w, const char *conn)
{
    pid_t host;

    wait_until(STATE_MS, (host = worker_run_host(w, conn)) != 0);
    kill(host, SIGKILL);
}

static void await_more(const char *table)
{
    long before = rows(table);

    wait_until(FLOW_MS, before == ROWS || rows(table) > before);
}

static void rows_equal_the_topic_whatever_is_killed(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = topic_of_rows(w, "rows", ROWS), *conn = scratch_name("pg"),
               *group = scratch_text("connect-%s", conn);

    (void)state;
    put_sink(w, conn, topic, ", \"consumer.override.max.poll.records\": \"5\"");
    for (int i = 0; i < 2; i++) {
        await_more(topic);
        kill_host(w, conn);
    }
    await_more(topic);
    postgres_run_kill();
    postgres_run_restart();
    wait_until(FLOW_MS, rows(topic) >= ROWS);
    assert_rows_once(topic, ROWS);
    assert_sql("a\tb\\c", postgres_run_sql("SELECT DISTINCT name FROM \"%s\"", topic));
    assert_string_equal(worker_run_state(w, conn, "tasks.0.state"), "RUNNING");
    wait_until(STATE_MS, topic_committed(w->servers, group, topic, 0) == ROWS / 2 &&
                             topic_committed(w->servers, group, topic, 1) == ROWS / 2);
}

/* As a backup that was played back, or a standby that had lagged: rows are gone, and the offsets
 * that went with them. The task, which runs on, notices with the next record. */
/* Nothing new comes that would show it: what ends is the connection, as when the server goes. */
static void a_backup_is_made_whole_though_nothing_comes(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = topic_of_rows(w, "backup", 10), *conn = scratch_name("pg");

    (void)state;
    put_sink(w, conn, topic, "");
    wait_until(FLOW_MS, rows(topic) == 10);
    postgres_run_sql("DELETE FROM \"%s\" WHERE id >= 4; "
                     "UPDATE millrace_offsets SET next_offset = 2 WHERE topic = '%s'",
                     topic, topic);
    postgres_run_kill();
    postgres_run_restart();
    wait_until(FLOW_MS, rows(topic) == 10);
    assert_rows_once(topic, 10);
}

/* With nothing to write max.retries are not used up, and a first look fails nobody. */
static void an_idle_task_outlives_its_database(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = topic_of_rows(w, "idle", 10), *conn = scratch_name("pg");
    const char *more[] = {row(10, "null"), row(11, "null")};
    int64_t from;

    (void)state;
    put_sink(w, conn, topic, ", \"max.retries\": \"1\", \"tasks.max\": \"1\"");
    for (int p = 0; p < 2; p++) /* nothing is left to do */
        wait_until(FLOW_MS,
                   topic_committed(w->servers, scratch_text("connect-%s", conn), topic, p) == 5);
    postgres_run_kill();
    for (from = scratch_now_ms(); scratch_since(from) < 3 * LOOK_MS;)
        assert_string_not_equal(worker_run_state(w, conn, "tasks.0.state"), "FAILED");
    postgres_run_restart();
    topic_produce_spread(w->servers, topic, 2, more, 2);
    wait_until(FLOW_MS, rows(topic) == 12);
    assert_rows_once(topic, 12);
}

static void an_older_state_of_the_database_is_made_whole(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = topic_of_rows(w, "older", 10), *conn = scratch_name("pg");
    const char *more[] = {row(10, "null"), row(11, "null")};

    (void)state;
    put_sink(w, conn, topic, "");
    wait_until(FLOW_MS, rows(topic) == 10);
    postgres_run_sql("DELETE FROM \"%s\" WHERE id >= 4; "
                     "UPDATE millrace_offsets SET next_offset = 2 WHERE topic = '%s'",
                     topic, topic);
    assert_int_equal(rows(topic), 4);
    topic_produce_spread(w->servers, topic, 2, more, 2);
    wait_until(FLOW_MS, rows(topic) >= 12);
    assert_rows_once(topic, 12);
    assert_string_equal(worker_run_state(w, conn, "tasks.0.state"), "RUNNING");
}

static void freeze(struct worker_run *w, pid_t host, int signal)
{
    process_signal(w->process, signal);
    assert_int_equal(kill(host, signal), 0);
}

/* While the one is frozen, with records in hand, the other gets its partitions. */
static void a_zombie_changes_nothing(void **state)
{
    static const char slow[] =
        ", \"tasks.max\": \"1\", \"consumer.override.max.poll.records\": \"10\"";
    struct worker_run *one = start_worker("one"), *other = start_worker("other");
    const char *topic = topic_of_rows(one, "rows", ROWS), *conn = scratch_name("z");
    pid_t host;

    (void)state;
    put_sink(one, conn, topic, slow);
    wait_until(FLOW_MS, rows(topic) > 0);
    wait_until(STATE_MS, (host = worker_run_host(one, conn)) != 0);
    freeze(one, host, SIGSTOP);
    put_sink(other, conn, topic, slow);
    wait_until(FLOW_MS, rows(topic) >= ROWS);
    freeze(one, host, SIGCONT);
    topic_produce(one->servers, topic, 0, NULL, row(ROWS, "null"));
    wait_until(FLOW_MS, rows(topic) >= ROWS + 1);
    assert_rows_once(topic, ROWS + 1);
    worker_run_await(one, conn, "RUNNING", 1, STATE_MS);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void stop(const struct worker_run *w, const char *conn)
{
    rest_answer_expect(w, 204, "PUT", scratch_text("/connectors/%s/stop", conn), NULL);
    worker_run_await(w, conn, "STOPPED", 0, STATE_MS);
}

static void change(const struct worker_run *w, const char *method, const char *conn,
                   const char *body)
{
    rest_answer_expect(w, 200, method, scratch_text("/connectors/%s/offsets", conn), body);
}

static void the_newest_of_a_key_stands_and_a_record_without_value_deletes(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = scratch_name("keyed"), *conn = scratch_name("up");

    (void)state;
    topic_create(w->servers, topic, 1);
    for (int i = 0; i < 20; i++)
        topic_produce(w->servers, topic, 0, key(i % 5), row(i % 5, scratch_text("\"v%d\"", i)));
    topic_produce(w->servers, topic, 0, key(3), NULL);
    topic_produce(w->servers, topic, 0, key(4), NULL);
    topic_produce(w->servers, topic, 0, key(4), row(4, "null"));
    put_sink(w, conn, topic,
             ", \"insert.mode\": \"upsert\", \"pk.mode\": \"record_key\", \"pk.fields\": \"id\", "
             "\"delete.enabled\": \"true\"");
    wait_until(FLOW_MS, rows("millrace_offsets") > 0 &&
                            sql_is("23",
                                   "SELECT next_offset FROM millrace_offsets WHERE topic = "
                                   "'%s'",
                                   topic));
    assert_sql("0:v15 1:v16 2:v17 4:",
               postgres_run_sql("SELECT string_agg(id || ':' || coalesce(name, ''), ' ' ORDER BY "
                                "id) FROM \"%s\"",
                                topic));
    stop(w, conn);
    change(w, "PATCH", conn,
           scratch_text("{\"offsets\": [{\"partition\": {\"kafka_topic\": \"%s\", "
                        "\"kafka_partition\": 0}, \"offset\": {\"kafka_offset\": 15}}]}",
                        topic));
    assert_sql("15", postgres_run_sql("SELECT next_offset FROM millrace_offsets WHERE topic = '%s'",
                                      topic));
    change(w, "DELETE", conn, NULL);
    assert_sql("0",
               postgres_run_sql("SELECT count(*) FROM millrace_offsets WHERE topic = '%s'", topic));
}

/* --- modes ------------------------------------------------------------------------------------ */

static const char *wide_row(int id, const char *city)
{
    return scratch_text("{\"schema\": {\"type\": \"struct\", \"fields\": ["
                        "{\"field\": \"id\", \"type\": \"int64\"}, "
                        "{\"field\": \"name\", \"type\": \"string\", \"optional\": true}, "
                        "{\"field\": \"city\", \"type\": \"string\"}]}, "
                        "\"payload\": {\"id\": %d, \"name\": \"n\", \"city\": \"%s\"}}",
                        id, city);
}

static bool stored_is(const char *conn, int offset)
{
    return rows("millrace_offsets") > 0 &&
           sql_is(scratch_text("%d", offset),
                  "SELECT sum(next_offset) FROM millrace_offsets WHERE connector = '%s'", conn);
}

/* Columns of the primary key, in their order. */
static const char *primary_key(const char *table)
{
    return postgres_run_sql(
        "SELECT string_agg(attname, ',' ORDER BY array_position(indkey, attnum)) FROM pg_index "
        "JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) "
        "WHERE indisprimary AND indrelid = '\"%s\"'::regclass",
        table);
}

/* A record with a field more: the table gets a column, in which the rows that are there have
 * nothing. Without auto.evolve that record is refused. */
static void a_table_grows_with_its_records(const struct worker_run *w)
{
    const char *topic = scratch_name("grow"), *conn = scratch_name("ev"), *no = scratch_name("no");

    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, NULL, row(1, "\"a\""));
    topic_produce(w->servers, topic, 0, NULL, wide_row(2, "Ulm"));
    topic_produce(w->servers, topic, 0, NULL, row(3, "\"b\""));
    put_sink(w, conn, topic, ", \"auto.evolve\": \"true\"");
    wait_until(FLOW_MS, stored_is(conn, 3));
    assert_sql("1:- 2:Ulm 3:-",
               postgres_run_sql("SELECT string_agg(id || ':' || coalesce(city, '-'), ' ' ORDER BY "
                                "id) FROM \"%s\"",
                                topic));
    postgres_run_sql("ALTER TABLE \"%s\" DROP COLUMN city", topic);
    put_sink(w, no, topic, ", \"tasks.max\": \"1\"");
    wait_until(STATE_MS, strcmp(worker_run_state(w, no, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, no, "tasks.0.trace"),
                           "has no column city for its field: add it, or set auto.evolve=true"));
}

/* Where a record stood is its key: read twice, it is there once. */
static void kafka_s_coordinates_are_a_key(const struct worker_run *w)
{
    static const char mode[] =
        ", \"insert.mode\": \"upsert\", \"pk.mode\": \"kafka\", \"pk.fields\": \"%s\"";
    static const char *const names[] = {"__connect_topic,__connect_partition,__connect_offset",
                                        "t,p,o"};
    static const char *const fields[] = {"", "t,p,o"};

    for (size_t i = 0; i < 2; i++) {
        const char *topic = topic_of_rows(w, "where", 6), *conn = scratch_name("kf");

        put_sink(w, conn, topic, scratch_text(mode, fields[i]));
        wait_until(FLOW_MS, stored_is(conn, 6));
        assert_sql(names[i], primary_key(topic));
        stop(w, conn);
        change(w, "DELETE", conn, NULL);
        rest_answer_expect(w, 202, "PUT", scratch_text("/connectors/%s/resume", conn), NULL);
        wait_until(FLOW_MS, stored_is(conn, 6));
        assert_rows_once(topic, 6);
    }
}

/* Rows that are not there stay away, and their offsets are stored all the same. */
static void update_changes_rows_that_are_there(const struct worker_run *w)
{
    const char *topic = scratch_name("upd"), *conn = scratch_name("up");

    postgres_run_sql("CREATE TABLE \"%s\" (id bigint PRIMARY KEY, name text, mine text); "
                     "INSERT INTO \"%s\" VALUES (1, 'old', 'x'), (2, 'old', 'y')",
                     topic, topic);
    topic_create(w->servers, topic, 1);
    for (int id = 2; id < 5; id++)
        topic_produce(w->servers, topic, 0, NULL, row(id, "\"new\""));
    topic_produce(w->servers, topic, 0, NULL, row(2, "\"newer\""));
    put_sink(w, conn, topic,
             ", \"insert.mode\": \"update\", \"pk.mode\": \"record_value\", \"pk.fields\": \"id\"");
    wait_until(FLOW_MS, stored_is(conn, 4));
    assert_sql("1:old:x 2:newer:y",
               postgres_run_sql("SELECT string_agg(concat_ws(':', id, name, mine), ' ' ORDER BY "
                                "id) FROM \"%s\"",
                                topic));
}

static void rows_go_as_the_modes_say(void **state)
{
    struct worker_run *w = start_worker("w");

    (void)state;
    a_table_grows_with_its_records(w);
    kafka_s_coordinates_are_a_key(w);
    update_changes_rows_that_are_there(w);
}

/* --- types ------------------------------------------------------------------------------------ */

static const char all_types[] =
    "{\"schema\": {\"type\": \"struct\", \"fields\": ["
    "{\"field\": \"b\", \"type\": \"boolean\"}, {\"field\": \"i8\", \"type\": \"int8\"}, "
    "{\"field\": \"i32\", \"type\": \"int32\"}, {\"field\": \"f\", \"type\": \"float\"}, "
    "{\"field\": \"d\", \"type\": \"double\"}, {\"field\": \"s\", \"type\": \"string\"}, "
    "{\"field\": \"y\", \"type\": \"bytes\"}, "
    "{\"field\": \"dec\", \"type\": \"bytes\", \"name\": "
    "\"org.apache.kafka.connect.data.Decimal\", \"version\": 1, \"parameters\": {\"scale\": "
    "\"2\"}}, "
    "{\"field\": \"day\", \"type\": \"int32\", \"name\": \"org.apache.kafka.connect.data.Date\", "
    "\"version\": 1}, "
    "{\"field\": \"tod\", \"type\": \"int32\", \"name\": \"org.apache.kafka.connect.data.Time\", "
    "\"version\": 1}, "
    "{\"field\": \"ts\", \"type\": \"int64\", \"name\": "
    "\"org.apache.kafka.connect.data.Timestamp\", \"version\": 1}, "
    "{\"field\": \"list\", \"type\": \"array\", \"items\": {\"type\": \"string\", \"optional\": "
    "true}}, "
    "{\"field\": \"deep\", \"type\": \"struct\", \"fields\": [{\"field\": \"m\", \"type\": "
    "\"map\", \"keys\": {\"type\": \"string\"}, \"values\": {\"type\": \"int32\"}}]}]}, "
    "\"payload\": {\"b\": true, \"i8\": -5, \"i32\": 7, \"f\": 0.25, \"d\": 1e300, "
    "\"s\": \"q'\\\"\\\\\\n\", \"y\": \"AP8=\", \"dec\": \"AN4=\", \"day\": -1, \"tod\": 3723004, "
    "\"ts\": -1, \"list\": [\"a,\\\"b\\\\\", null], \"deep\": {\"m\": {\"k\\\"\": 1}}}}";

static const char all_values[] =
    "b|boolean|true i8|smallint|-5 i32|integer|7 f|real|0.25 d|double precision|1e+300 "
    "s|text|q'\"\\\n y|bytea|\\x00ff dec|numeric|2.22 day|date|1969-12-31 tod|time without time "
    "zone|01:02:03.004 ts|timestamp without time zone|1969-12-31 23:59:59.999 "
    "list|text[]|{\"a,\\\"b\\\\\",NULL} deep|jsonb|{\"m\": {\"k\\\"\": 1}}";

/* By COPY and as parameters. */
static void every_type_of_connect_has_a_column(void **state)
{
    static const char *const modes[] = {
        ", \"insert.mode\": \"insert\"",
        ", \"insert.mode\": \"upsert\", \"pk.mode\": \"record_value\", \"pk.fields\": \"i32\""};
    struct worker_run *w = start_worker("w");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *topic = scratch_name("types"), *got;

        topic_create(w->servers, topic, 1);
        topic_produce(w->servers, topic, 0, NULL, all_types);
        put_sink(w, scratch_name("ty"), topic, modes[i]);
        wait_until(FLOW_MS, rows(topic) == 1);
        got = postgres_run_sql(
            "SELECT string_agg(attname || '|' || format_type(atttypid, atttypmod) || '|' || "
            "(xpath('/row/v/text()', query_to_xml(format('SELECT %%I::text AS v FROM %%I', "
            "attname, '%s'), false, true, '')))[1]::text, ' ' ORDER BY array_position("
            "array['b','i8','i32','f','d','s','y','dec','day','tod','ts','list','deep'], "
            "attname::text)) FROM pg_attribute WHERE attrelid = '\"%s\"'::regclass AND attnum > 0",
            topic, topic);
        assert_string_equal(got, all_values);
    }
}

/* --- bad input -------------------------------------------------------------------------------- */

static void what_postgresql_refuses_becomes_a_dead_letter(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = scratch_name("bad"), *dead = scratch_name("dead");

    (void)state;
    postgres_run_sql("CREATE TABLE \"%s\" (id smallint PRIMARY KEY, name text)", topic);
    topic_create(w->servers, topic, 1);
    for (int i = 0; i < 30; i++)
        topic_produce(w->servers, topic, 0, NULL,
                      i == 7    ? row(70000, "null")
                      : i == 19 ? row(3, "\"again\"")
                      : i == 29 ? "{\"schema\": null, \"payload\": {\"id\": 5}}"
                                : row(i, "null"));
    put_sink(w, scratch_name("dl"), topic,
             scratch_text(", \"errors.tolerance\": \"all\", "
                          "\"errors.deadletterqueue.topic.name\": \"%s\", "
                          "\"errors.deadletterqueue.topic.replication.factor\": \"1\", "
                          "\"errors.deadletterqueue.context.headers.enable\": \"true\"",
                          dead));
    wait_until(FLOW_MS, topic_count(w->servers, dead) == 3);
    wait_until(FLOW_MS, rows(topic) == 27);
    assert_non_null(strstr(topic_read(w->servers, dead, 3, FLOW_MS).records[0].headers,
                           "value \"70000\" is out of range for type smallint"));
    assert_non_null(strstr(topic_read(w->servers, dead, 3, FLOW_MS).records[2].headers,
                           "its value is no struct with a schema"));
}

static void await_failure(const struct worker_run *w, const char *conn, const char *text)
{
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    if (strstr(worker_run_state(w, conn, "tasks.0.trace"), text) == NULL)
        fail_msg("%s", worker_run_state(w, conn, "tasks.0.trace"));
}

static void what_can_not_work_fails_and_says_why(void **state)
{
    static const struct {
        const char *more, *text;
    } cases[] = {
        {", \"auto.create\": \"false\"", "create it, or set auto.create=true"},
        {", \"connection.password\": \"wrong\"", "password authentication failed"},
        {", \"connection.url\": \"postgresql://127.0.0.1:1/d\", \"max.retries\": \"1\"",
         "after 1 retries (max.retries)"},
        {", \"pk.mode\": \"record_value\", \"pk.fields\": \"none\"",
         "its value has no field none, which pk.fields names"},
    };
    struct worker_run *w = start_worker("w");
    const char *topic = topic_of_rows(w, "few", 2);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *conn = scratch_name("no");

        put_sink(w, conn, topic, scratch_text(", \"tasks.max\": \"1\"%s", cases[i].more));
        await_failure(w, conn, cases[i].text);
    }
    assert_int_equal(rows(topic), 0);
}

/* The one error of the answer that says no, and the key that it stands at. */
static void expect_error(const json_t *reply, const char *key, const char *text)
{
    const json_t *one;
    size_t i;

    assert_string_equal(http_at(reply, "error_count"), "1");
    json_array_foreach(json_object_get(reply, "configs"), i, one)
    {
        if (strcmp(http_at(one, "value.name"), key) == 0 &&
            strstr(http_at(one, "value.errors.0"), text) != NULL)
            return;
    }
    fail_msg("%s has no error \"%s\"", key, text);
}

/* By the sink itself, which is asked before anything is stored. */
static void what_contradicts_itself_is_refused_with_the_key_that_is_wrong(void **state)
{
    static const struct {
        const char *more, *key, *text;
    } cases[] = {
        {", \"connection.url\": \"mysql://h/d\"", "connection.url", "it is neither a URL"},
        {", \"insert.mode\": \"upsert\"", "insert.mode", "it needs a key: set pk.mode"},
        {", \"delete.enabled\": \"true\"", "delete.enabled", "it needs pk.mode=record_key"},
        {", \"pk.mode\": \"kafka\", \"pk.fields\": \"a,b\"", "pk.fields", "takes three names"},
        {", \"table.name.format\": \"${topic}.\"", "table.name.format",
         "an empty name beside a dot"},
    };
    struct worker_run *w = start_worker("w");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *config = sink_config("t", cases[i].more);
        struct http_reply reply =
            worker_run_expect(w, 200, "PUT", "/connector-plugins/PostgresSink/config/validate",
                              scratch_text("{\"name\": \"no\", %s}", config));

        expect_error(reply.json, cases[i].key, cases[i].text);
        reply = worker_run_expect(w, 400, "POST", "/connectors",
                                  scratch_text("{\"name\": \"no\", \"config\": {%s}}", config));
        assert_non_null(strstr(http_at(reply.json, "message"), cases[i].text));
    }
    worker_run_expect(w, 404, "GET", "/connectors/no", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(rows_equal_the_topic_whatever_is_killed),
        scratch_test(an_older_state_of_the_database_is_made_whole),
        scratch_test(a_backup_is_made_whole_though_nothing_comes),
        scratch_test(an_idle_task_outlives_its_database),
        scratch_test(a_zombie_changes_nothing),
        scratch_test(the_newest_of_a_key_stands_and_a_record_without_value_deletes),
        scratch_test(rows_go_as_the_modes_say),
        scratch_test(every_type_of_connect_has_a_column),
        scratch_test(what_postgresql_refuses_becomes_a_dead_letter),
        scratch_test(what_can_not_work_fails_and_says_why),
        scratch_test(what_contradicts_itself_is_refused_with_the_key_that_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
