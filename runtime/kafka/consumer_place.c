/* SPDX-License-Identifier: Apache-2.0 */
/* Where reading starts: committed offsets, and for partitions without one the log's end or
 * beginning as it is now.
 *
 * librdkafka could look both up itself, but before it knows the answer a seek is not safe (2.0.2):
 * an answer that comes late is asked for again, and then moves a partition that was sought
 * elsewhere in between, back to the beginning or on to the end. So partitions are assigned at plain
 * offsets only, found here before. Called by consumer_group.c and by owners that have places of
 * their own; waits for brokers, at most as long as it is told. */
#include "kafka/kafka_private.h"

/* Tries to find beginnings before reading starts without: a partition that no broker leads must not
 * hold up the rest. Ends are insisted on, since one that is found later may be behind messages that
 * nobody read. */
#define TRIES 2

static int committed(struct consumer *c, rd_kafka_topic_partition_list_t *list, int limit_ms,
                     struct mr_error *err)
{
    rd_kafka_resp_err_t code = rd_kafka_committed(c->rk, list, limit_ms);

    for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++)
        code = list->elems[i].err;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    return mr_fail(err, kafka_error_consume(code, ""), "Committed offsets can't be read: %s",
                   rd_kafka_err2str(code));
}

/* The partitions without an offset; a time of -1 or -2 asks for the end or the beginning, as in
 * Kafka's protocol. */
static rd_kafka_topic_partition_list_t *unknown(const struct consumer *c,
                                                const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *out = rd_kafka_topic_partition_list_new(list->cnt);

    for (int i = 0; i < list->cnt; i++)
        if (list->elems[i].offset < 0)
            rd_kafka_topic_partition_list_add(out, list->elems[i].topic, list->elems[i].partition)
                ->offset = c->reset;
    return out;
}

static rd_kafka_resp_err_t find_bounds(struct consumer *c, rd_kafka_topic_partition_list_t *list,
                                       int limit_ms)
{
    rd_kafka_topic_partition_list_t *bounds = unknown(c, list);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;

    if (bounds->cnt > 0)
        code = rd_kafka_offsets_for_times(c->rk, bounds, limit_ms);
    for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && i < bounds->cnt; i++) {
        const rd_kafka_topic_partition_t *bound = &bounds->elems[i];

        code = bound->err;
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && bound->offset >= 0)
            rd_kafka_topic_partition_list_set_offset(list, bound->topic, bound->partition,
                                                     bound->offset);
    }
    rd_kafka_topic_partition_list_destroy(bounds);
    return code;
}

int consumer_place_find(struct consumer *c, rd_kafka_topic_partition_list_t *list, int limit_ms,
                        struct mr_error *err)
{
    int rc = list->cnt > 0 ? committed(c, list, limit_ms, err) : 0;
    rd_kafka_resp_err_t code;

    if (rc != 0 || c->reset == RD_KAFKA_OFFSET_INVALID)
        return rc;
    code = find_bounds(c, list, limit_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        c->bound_tries = 0;
        return 0;
    }
    if (c->reset == RD_KAFKA_OFFSET_BEGINNING && ++c->bound_tries >= TRIES)
        return 0;
    return mr_fail(err, kafka_error_consume(code, ""), "The %s of a partition can't be found: %s",
                   c->reset == RD_KAFKA_OFFSET_END ? "end" : "beginning", rd_kafka_err2str(code));
}

static int look_up(struct consumer *c, rd_kafka_topic_partition_list_t *list, int64_t what,
                   int64_t *out, int limit_ms)
{
    rd_kafka_resp_err_t code;

    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = what;
    code = rd_kafka_offsets_for_times(c->rk, list, limit_ms);
    for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        code = list->elems[i].err;
        out[i] = list->elems[i].offset;
    }
    return (int)code;
}

int consumer_bounds(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    int64_t *begins, int64_t *ends, int limit_ms, struct mr_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    int code;

    for (size_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, parts[i].topic, parts[i].partition);
    code = look_up(c, list, RD_KAFKA_OFFSET_BEGINNING, begins, limit_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = look_up(c, list, RD_KAFKA_OFFSET_END, ends, limit_ms);
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return mr_fail(err, MR_ERR_RETRY, "The ends of partitions can't be found: %s",
                       rd_kafka_err2str((rd_kafka_resp_err_t)code));
    return 0;
}
