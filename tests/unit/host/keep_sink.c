/* SPDX-License-Identifier: Apache-2.0 */
/* See keep_sink.h. */
#include "keep_sink.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct keep_seen keep_seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
struct keep_script keep_script;

static void batch_text(struct mr_batch *in, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < mr_batch_count(in); i++) {
        struct mr_record *rec = mr_record_at(in, i);
        struct mr_value v = mr_value(rec);

        used += (size_t)snprintf(out + used, size - used, "%s-%d@%lld=%.*s ", rec->topic,
                                 rec->partition, (long long)rec->offset, (int)v.len,
                                 (const char *)v.u.p);
    }
}

static void take(struct mr_batch *in)
{
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        struct mr_record *rec = mr_record_at(in, i);
        struct mr_value v = mr_value(rec);

        keep_seen.got = realloc(keep_seen.got, keep_seen.got_len + v.len + 2);
        memcpy(keep_seen.got + keep_seen.got_len, v.u.p, v.len);
        keep_seen.got_len += v.len;
        keep_seen.got[keep_seen.got_len++] = ' ';
        keep_seen.got[keep_seen.got_len] = '\0';
        keep_script.headers += (int)rec->header_count;
    }
    keep_seen.accepted += mr_batch_count(in);
}

static int keep_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    int slow = atomic_exchange(&keep_script.slow_put_ms, 0);
    int rc = MR_OK;

    if (slow < keep_script.each_put_ms)
        slow = keep_script.each_put_ms;
    if (slow > 0)
        usleep((useconds_t)slow * 1000);
    if (keep_script.end_thread == 1)
        pthread_exit(NULL);
    pthread_mutex_lock(&keep_seen.lock);
    keep_seen.puts++;
    assert_true(mr_batch_count(in) > 0);
    if (keep_script.fail_put != 0) {
        rc = mr_fail(err, keep_script.fail_put, "the target is broken");
    } else if (keep_script.retries > 0) {
        keep_script.retries--;
        batch_text(in, keep_seen.first_try, sizeof(keep_seen.first_try));
        mr_fail(err, MR_ERR_RETRY, "the target is busy");
        rc = mr_retry_after(err, keep_script.retry_after);
    } else {
        if (keep_seen.first_try[0] != '\0' && keep_seen.second_try[0] == '\0')
            batch_text(in, keep_seen.second_try, sizeof(keep_seen.second_try));
        take(in);
    }
    pthread_mutex_unlock(&keep_seen.lock);
    return rc;
}

static int keep_flush(void *self, struct mr_error *err)
{
    if (keep_script.end_thread == 2)
        pthread_exit(NULL);
    keep_script.flushes++;
    if (keep_script.flush_code != 0)
        return mr_fail(err, keep_script.flush_code, "the disk is full");
    pthread_mutex_lock(&keep_seen.lock);
    keep_seen.durable = keep_seen.accepted;
    pthread_mutex_unlock(&keep_seen.lock);
    return MR_OK;
}

static void keep_stop(void *self)
{
    keep_script.stopped++;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
const struct plugin keep_plugin = {
    .kind = MR_PLUGIN_SINK,
    .name = "Keep",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .sink = {.put = keep_put, .flush = keep_flush, .stop = keep_stop},
};

int keep_setup(void **state)
{
    memset(&keep_script, 0, sizeof(keep_script));
    keep_script.retry_after = 300;
    rig_dense_bytes = 0;
    free(keep_seen.got);
    keep_seen.got = NULL;
    keep_seen.got_len = keep_seen.accepted = keep_seen.durable = keep_seen.puts = 0;
    keep_seen.first_try[0] = keep_seen.second_try[0] = '\0';
    *state = calloc(1, sizeof(struct rig));
    return 0;
}

int keep_teardown(void **state)
{
    struct rig *rig = *state;

    rig_deinit(rig);
    free(rig);
    return 0;
}

bool accepted_is(struct rig *rig, int64_t n)
{
    bool yes;

    pthread_mutex_lock(&keep_seen.lock);
    yes = (int64_t)keep_seen.accepted == n;
    pthread_mutex_unlock(&keep_seen.lock);
    return yes;
}

bool accepted_at_least(struct rig *rig, int64_t n)
{
    bool yes;

    pthread_mutex_lock(&keep_seen.lock);
    yes = (int64_t)keep_seen.accepted >= n;
    pthread_mutex_unlock(&keep_seen.lock);
    return yes;
}

bool puts_at_least(struct rig *rig, int64_t n)
{
    bool yes;

    pthread_mutex_lock(&keep_seen.lock);
    yes = (int64_t)keep_seen.puts >= n;
    pthread_mutex_unlock(&keep_seen.lock);
    return yes;
}

bool durable_is(struct rig *rig, int64_t n)
{
    bool yes;

    pthread_mutex_lock(&keep_seen.lock);
    yes = (int64_t)keep_seen.durable == n;
    pthread_mutex_unlock(&keep_seen.lock);
    return yes;
}

bool committed_is(struct rig *rig, int64_t n)
{
    return rig_committed(rig, GROUP, "in", 0) == n;
}

bool flushes_at_least(struct rig *rig, int64_t n)
{
    return keep_script.flushes >= n;
}

void check_got(int count, int partitions)
{
    int next[8];
    int n = 0;
    char *save = NULL;

    for (int p = 0; p < partitions; p++)
        next[p] = p;
    for (char *word = strtok_r(keep_seen.got, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), n++) {
        int value = (int)strtol(word, NULL, 10);

        assert_int_equal(value, next[value % partitions]);
        next[value % partitions] += partitions;
    }
    assert_int_equal(n, count);
}

rd_kafka_t *group_client(struct rig *rig)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "group.id", GROUP, why, sizeof(why));
    rd_kafka_conf_set(conf, "session.timeout.ms", "6000", why, sizeof(why));
    rd_kafka_conf_set(conf, "heartbeat.interval.ms", "300", why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    assert_non_null(rk);
    return rk;
}

rd_kafka_t *join(struct rig *rig)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *rk = group_client(rig);

    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    assert_int_equal(rd_kafka_subscribe(rk, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return rk;
}

static int assigned(rd_kafka_t *other)
{
    rd_kafka_topic_partition_list_t *parts = NULL;
    int count = rd_kafka_assignment(other, &parts) == 0 ? parts->cnt : 0;

    if (parts != NULL)
        rd_kafka_topic_partition_list_destroy(parts);
    return count;
}

void wait_assignment(rd_kafka_t *other, int count)
{
    int64_t until = clock_ms() + 20000;

    rd_kafka_poll_set_consumer(other);
    while (assigned(other) != count && clock_ms() < until) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(other, 20);

        if (msg != NULL)
            rd_kafka_message_destroy(msg);
    }
    assert_int_equal(assigned(other), count);
}
