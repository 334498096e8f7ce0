/* SPDX-License-Identifier: Apache-2.0 */
/* The internal topics under fire: compacted as hard as Kafka can while configurations change,
 * filled with rubbish between good records, and deleted under running workers. R36, R37, R38 of the
 * plan; how single records are judged is tested with the stores
 * (tests/integration/test_stores.c). */
#include "chaos/chaos.h"

#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTORS 6
#define RUBBISH 80

/* --- topics of our own making ----------------------------------------------------------------- */

static rd_kafka_t *client(const char *servers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text));
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(rk);
    return rk;
}

static rd_kafka_NewTopic_t *churned(const struct chaos_cluster *c, const char *what, int partitions)
{
    char text[256];
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(scratch_text("%s-%s", c->group, what),
                                                       partitions, 3, text, sizeof(text));

    assert_non_null(topic);
    rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "compact");
    rd_kafka_NewTopic_set_config(topic, "segment.ms", "1000");
    rd_kafka_NewTopic_set_config(topic, "delete.retention.ms", "0");
    rd_kafka_NewTopic_set_config(topic, "min.cleanable.dirty.ratio", "0.01");
    rd_kafka_NewTopic_set_config(topic, "max.compaction.lag.ms", "1000");
    return topic;
}

static void make_churned_topics(const struct chaos_cluster *c)
{
    rd_kafka_t *rk = client(c->servers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *topics[3] = {churned(c, "configs", 1), churned(c, "offsets", 2),
                                      churned(c, "status", 2)};
    rd_kafka_event_t *event;

    rd_kafka_CreateTopics(rk, topics, 3, NULL, queue);
    event = rd_kafka_queue_poll(queue, 30000);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy_array(topics, 3);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

/* --- what all workers say --------------------------------------------------------------------- */

static bool is_paused(const json_t *one)
{
    return strcmp(http_at(one, "status.connector.state"), "PAUSED") == 0;
}

/* Configurations and tasks of all connectors, one text. Without the tasks of those that are paused:
 * where one was configured anew while paused, compaction leaves its tasks' configurations before
 * its own, and then they may be those of an earlier connector of this name. They are made anew when
 * it is resumed, in Java too. */
static const char *told_by(const struct worker_run *w)
{
    struct http_reply reply =
        worker_run_call(w, "GET", "/connectors?expand=info&expand=status", NULL);
    json_t *told = json_object(), *one;
    const char *name, *text;

    json_object_foreach((json_t *)(uintptr_t)reply.json, name, one)
    {
        json_t *info = json_object_get(one, "info");

        if (is_paused(one))
            json_object_del(info, "tasks");
        json_object_set(told, name, info);
    }
    text = reply.status == 200 ? scratch_keep(json_dumps(told, JSON_SORT_KEYS | JSON_COMPACT)) : "";
    json_decref(told);
    return text;
}

static const char *assert_told_alike(const struct chaos_cluster *c)
{
    const char *first = told_by(c->w[0]);

    for (int i = 1; i < c->count; i++)
        wait_until(CHAOS_HEAL_MS, strcmp(told_by(c->w[i]), first = told_by(c->w[0])) == 0);
    return first;
}

/* Whoever is not paused has as many tasks as its newest configuration says: what is asked for is
 * done. */
static bool all_made(const struct worker_run *w)
{
    struct http_reply reply =
        worker_run_call(w, "GET", "/connectors?expand=info&expand=status", NULL);
    const char *name;
    json_t *one;

    json_object_foreach((json_t *)(uintptr_t)reply.json, name, one)
    {
        const json_t *info = json_object_get(one, "info");
        const json_t *max = json_object_get(json_object_get(info, "config"), "tasks.max");

        if (!is_paused(one) && (strcmp(http_at(one, "status.connector.state"), "RUNNING") != 0 ||
                                json_array_size(json_object_get(info, "tasks")) !=
                                    strtoul(json_string_value(max), NULL, 10)))
            return false;
    }
    return reply.status == 200;
}

static void restart_all(const struct chaos_cluster *c)
{
    for (int i = 0; i < c->count; i++)
        chaos_destroy(c->w[i]);
    for (int i = 0; i < c->count; i++)
        worker_run_launch(c->w[i]);
    for (int i = 0; i < c->count; i++)
        wait_until(CHAOS_HEAL_MS, http_get(scratch_text("%s/health", c->w[i]->url)).status == 200);
}

/* --- R36 -------------------------------------------------------------------------------------- */

enum wanted { ABSENT, PAUSED, RUNNING };

struct churn {
    struct chaos_cluster *cluster;
    enum wanted wanted[CONNECTORS];
};

static const char *name_of(int i)
{
    return scratch_text("%c", 'a' + i);
}

static void churn_call(const struct churn *churn, int i, const char *method, const char *rest,
                       const char *body)
{
    struct http_reply reply = chaos_call(churn->cluster, method,
                                         scratch_text("/connectors/%s%s", name_of(i), rest), body);

    if (reply.status / 100 != 2 && reply.status != 404)
        fail_msg("%s %s%s: %d: %s", method, name_of(i), rest, reply.status, reply.body);
}

static void reconfigure_one(struct churn *churn)
{
    int i = chaos_pick(CONNECTORS);

    if (chaos_pick(4) == 0) {
        churn_call(churn, i, "DELETE", "", NULL);
        churn->wanted[i] = ABSENT;
    } else if (chaos_pick(4) == 0) {
        churn_call(churn, i, "PUT", "/pause", NULL);
        churn->wanted[i] = churn->wanted[i] == ABSENT ? ABSENT : PAUSED;
    } else {
        churn_call(churn, i, "PUT", "/config",
                   scratch_text("{\"connector.class\": \"LedgerSource\", \"tasks.max\": \"%d\", "
                                "\"topic\": \"%s-%s\", \"ledger\": \"%s\", \"rate\": \"20\"}",
                                1 + chaos_pick(4), churn->cluster->group, name_of(i),
                                scratch_path(scratch_text("%s.ledger", name_of(i)))));
        churn->wanted[i] = churn->wanted[i] == ABSENT ? RUNNING : churn->wanted[i];
    }
}

static bool is_as_wanted(const struct churn *churn, int i, const struct worker_run *w)
{
    if (churn->wanted[i] == ABSENT)
        return worker_run_call(w, "GET", scratch_text("/connectors/%s", name_of(i)), NULL).status ==
                   404 &&
               worker_run_host(w, name_of(i)) == 0;
    return strcmp(worker_run_state(w, name_of(i), "connector.state"),
                  churn->wanted[i] == PAUSED ? "PAUSED" : "RUNNING") == 0;
}

/* What was asked for last is what all workers say; of what was deleted no process is left. */
static void judge_churn(const struct churn *churn)
{
    for (int i = 0; i < CONNECTORS; i++)
        for (int w = 0; w < churn->cluster->count; w++)
            wait_until(CHAOS_HEAL_MS, is_as_wanted(churn, i, churn->cluster->w[w]));
}

static void compaction_at_any_moment_changes_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(0, "");
    struct churn churn = {.cluster = c};
    int64_t from, for_ms = chaos_seconds(120) * 1000L / 2;
    struct chaos_source *s;
    const char *before;

    (void)state;
    make_churned_topics(c);
    for (int i = 0; i < 3; i++)
        chaos_join(c, NULL);
    s = chaos_source(c, "src", 3, 50, "");
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;) {
        int64_t next_ms = scratch_now_ms() + 500 + chaos_pick(1000);

        reconfigure_one(&churn);
        wait_until(10000, scratch_now_ms() > next_ms);
    }
    wait_until(CHAOS_HEAL_MS, all_made(c->w[0]));
    judge_churn(&churn);
    before = assert_told_alike(c);
    restart_all(c);
    wait_until(CHAOS_HEAL_MS, strcmp(told_by(c->w[0]), before) == 0);
    for (int i = 1; i < c->count; i++)
        wait_until(CHAOS_HEAL_MS, strcmp(told_by(c->w[i]), before) == 0);
    judge_churn(&churn);
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
}

/* --- R37 -------------------------------------------------------------------------------------- */

static const char *rubbish_key(int i)
{
    static const char *const keys[] = {
        "connector-src",
        "task-src-0",
        "commit-src",
        "target-state-src",
        "session-key",
        "task-src-99999",
        "commit-",
        "",
        "nonsense",
        "status-task-src-0",
        "[\"src\"]",
        "[\"src\",{\"x\":1",
        "logger-",
        "tasks-fencing-no",
        "restart-connector-",
    };

    return keys[i % (int)(sizeof(keys) / sizeof(keys[0]))];
}

static const char *rubbish_value(int i)
{
    static const char *const values[] = {
        "{",
        "nul",
        "[]",
        "{\"properties\":7}",
        "{\"tasks\":\"many\"}",
        "{\"tasks\":-1}",
        "\"\"",
        "{\"state\":5}",
        "\x01\xff\xfe",
        "{\"key\":\"!\",\"algorithm\":\"none\"}",
        "{\"properties\":[{\"a\":1}]}",
    };

    return values[i % (int)(sizeof(values) / sizeof(values[0]))];
}

/* Keys that would change what is wanted carry values that can't be read. */
static void rubbish_in_the_topics_costs_nothing(void **state)
{
    static const char *const topics[] = {"configs", "offsets", "status"};
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 3, 50, "");
    const char *before;

    (void)state;
    before = assert_told_alike(c);
    for (int i = 0; i < RUBBISH; i++)
        topic_produce(c->servers, scratch_text("%s-%s", c->group, topics[i % 3]), 0,
                      rubbish_key(chaos_pick(1000)), rubbish_value(chaos_pick(1000)));
    for (int i = 0; i < 3; i++)
        assert_true(chaos_lives(c->w[i]));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    assert_string_equal(assert_told_alike(c), before);
    restart_all(c);
    assert_string_equal(assert_told_alike(c), before);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    for (int i = 0; i < 3; i++)
        assert_true(chaos_lives(c->w[i]));
}

/* --- R38 -------------------------------------------------------------------------------------- */

static void a_config_topic_deleted_mid_run_stops_writes_and_no_data(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 4, 50, "");
    char *output;

    (void)state;
    topic_delete(c->servers, scratch_text("%s-configs", c->group));
    process_shell(scratch_text("curl -s -m 100 -w ' code %%{http_code}' -X PUT "
                               "-H 'Content-Type: application/json' -d '{\"connector.class\": "
                               "\"LedgerSource\", \"topic\": \"a\", \"ledger\": \"b\"}' "
                               "%s/connectors/new/config",
                               c->w[0]->url),
                  110000, &output);
    printf("             a write: %s\n", output);
    assert_non_null(strstr(output, "code 500"));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    for (int i = 0; i < s->tasks; i++)
        assert_int_equal(chaos_lives_of(s, i), 1);
    worker_run_expect(c->w[1], 200, "GET", "/connectors/src/status", NULL);
}

const struct CMUnitTest chaos_topics[] = {
    scratch_test(compaction_at_any_moment_changes_nothing),
    scratch_test(rubbish_in_the_topics_costs_nothing),
    scratch_test(a_config_topic_deleted_mid_run_stops_writes_and_no_data),
};
const size_t chaos_topics_count = sizeof(chaos_topics) / sizeof(chaos_topics[0]);
