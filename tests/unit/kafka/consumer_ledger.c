/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "consumer_ledger.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

void ledger_fill(struct mock_kafka *kafka, const char *topic, int partitions, int per_partition)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;

    rd_kafka_conf_set(conf, "bootstrap.servers", kafka->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "enable.idempotence", "true", why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    rkt = rd_kafka_topic_new(rk, topic, NULL);
    for (int i = 0; i < per_partition; i++)
        for (int p = 0; p < partitions; p++) {
            char value[64];
            int len = snprintf(value, sizeof(value), "%d:%d and some more to make it longer", p, i);

            while (rd_kafka_produce(rkt, p, RD_KAFKA_MSG_F_COPY, value, (size_t)len, NULL, 0,
                                    NULL) != 0)
                rd_kafka_poll(rk, 10);
        }
    assert_int_equal(rd_kafka_flush(rk, 30000), 0);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
}

void ledger_assigned(void *arg, const struct consumer_partition *parts, size_t count)
{
    struct ledger *l = arg;

    l->assigned++;
    for (size_t i = 0; i < count; i++) {
        assert_false(l->mine[parts[i].partition]);
        l->mine[parts[i].partition] = true;
        l->next[parts[i].partition] = parts[i].offset;
    }
}

size_t ledger_positions(struct ledger *l, const char *topic, struct consumer_partition *out)
{
    size_t n = 0;

    for (int p = 0; p < PARTITIONS; p++)
        if (l->mine[p])
            out[n++] = (struct consumer_partition){topic, p, l->next[p]};
    return n;
}

int ledger_commit(struct ledger *l, const char *topic)
{
    struct consumer_partition mine[PARTITIONS];
    size_t n = ledger_positions(l, topic, mine);
    struct mr_error err = {0};
    int rc = consumer_commit(l->c, mine, n, true, 5000, &err);

    /* The mock's coordinator takes no commits while it rebalances; the real one does. */
    if (rc != 0 && l->kafka->cluster == NULL)
        fail_msg("%s", err.text);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (mine[i].offset >= 0)
            l->truth->committed[mine[i].partition] = mine[i].offset;
    return rc;
}

void ledger_seek_back(struct ledger *l, const char *topic, int partition, int64_t offset)
{
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};

    l->next[partition] = l->truth->next[partition] = l->truth->high[partition] = offset;
    assert_int_equal(consumer_seek(l->c, mine, ledger_positions(l, topic, mine), &err), 0);
}

static void roll_back(struct ledger *l, const struct consumer_partition *parts, size_t count)
{
    struct ledger_truth *truth = l->truth;

    for (size_t i = 0; i < count; i++)
        truth->next[parts[i].partition] = truth->high[parts[i].partition] =
            truth->committed[parts[i].partition];
}

void ledger_revoked(void *arg, const struct consumer_partition *parts, size_t count, bool lost)
{
    struct ledger *l = arg;
    bool committed;

    l->revoked++;
    l->lost += lost;
    committed = l->commit_on_revoke && !lost && ledger_commit(l, parts[0].topic) == 0;
    if (l->rolls_back && !committed)
        roll_back(l, parts, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(l->mine[parts[i].partition]);
        l->mine[parts[i].partition] = false;
    }
}

void ledger_moved(void *arg, const struct consumer_partition *part)
{
    struct ledger *l = arg;

    assert_true(part->offset < l->next[part->partition]);
    l->next[part->partition] = part->offset;
    l->moved++;
}

const struct consumer_events ledger_events = {
    .assigned = ledger_assigned, .revoked = ledger_revoked, .moved = ledger_moved};

void ledger_open(struct ledger *l, const char *group, const char *key, ...)
{
    struct props java;
    struct mr_error err = {0};
    va_list args;

    mock_kafka_props(&java, "bootstrap.servers", l->kafka->bootstrap, "group.id", group,
                     "auto.offset.reset", "earliest", "session.timeout.ms", "6000",
                     "heartbeat.interval.ms", "200", NULL);
    va_start(args, key);
    for (; key != NULL; key = va_arg(args, const char *))
        props_set(&java, key, va_arg(args, const char *));
    va_end(args);
    l->c = consumer_new(&java, &ledger_events, NULL, l, &err);
    if (l->c == NULL)
        fail_msg("%s", err.text);
    props_deinit(&java);
}

void ledger_subscribe(struct ledger *l, const char *topic)
{
    const char *topics[] = {topic, NULL};
    struct mr_error err = {0};

    if (consumer_subscribe(l->c, topics, &err) != 0)
        fail_msg("%s", err.text);
}

/* Values are "partition:serial", so each says whether it is the next one of its partition. */
static void check_message(struct ledger *l, const struct consumer_msg *msg)
{
    int partition;
    long long serial;

    assert_int_equal(sscanf(msg->value, "%d:%lld", &partition, &serial), 2);
    assert_int_equal(partition, msg->partition);
    assert_true(l->mine[partition]);
    if (serial > l->truth->next[partition])
        fail_msg("partition %d: %lld after %lld", partition, serial,
                 (long long)l->truth->next[partition] - 1);
    l->truth->next[partition] = serial + 1;
    if (serial < l->truth->high[partition])
        l->twice++;
    else
        l->truth->high[partition] = serial + 1;
    l->next[partition] = msg->offset + 1;
    l->seen++;
}

int ledger_poll(struct ledger *l, size_t max, int64_t timeout_ms)
{
    struct consumer_msg msgs[BATCH];
    struct mr_error err = {0};
    int n = consumer_poll(l->c, msgs, max < BATCH ? max : BATCH, timeout_ms, &err);

    if (n < 0 && n != MR_ERR_RETRY)
        fail_msg("%s", err.text);
    for (int i = 0; i < n; i++)
        check_message(l, &msgs[i]);
    consumer_release(l->c);
    return n < 0 ? 0 : n;
}

void ledger_poll_until(struct ledger *l, size_t seen, int64_t limit_ms)
{
    int64_t until = clock_ms() + limit_ms;

    while (l->seen < seen && clock_ms() < until)
        ledger_poll(l, BATCH, 100);
    if (l->seen != seen)
        fail_msg("%zu of %zu messages", l->seen, seen);
}

unsigned ledger_seed(void)
{
    const char *text = getenv("SEED");
    unsigned n = text != NULL ? (unsigned)strtoul(text, NULL, 10) : (unsigned)clock_wall_ms();

    print_message("SEED=%u\n", n);
    srandom(n);
    return n;
}
