/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of a consumer, as a part of a producer's transaction.
 *
 *   producer_txn_offsets ─► a thread in rd_kafka_send_offsets_to_transaction ─► its answer
 *        ▲ MR_AGAIN │              └─ the producer is freed meanwhile: by that thread then, when
 *        └──────────┘                 the call is over
 *
 * That call can't be told how long it may take. While the group's coordinator can't be reached it
 * waits, whatever its timeout says (2.0.2, tried: for a minute and on); and when the timeout is
 * over all trouble with the coordinator makes the transaction one that can only be aborted. So it
 * is given all the time that the transaction has, and a thread that may spend it; the owner waits
 * for as long as it wants to. The library refuses other calls about the transaction meanwhile.
 *
 * A call that the producer's owner has left may still reach the brokers: whoever goes on with the
 * id has taken it over before, so that nothing comes of it. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALL_TIME (-1) /* for librdkafka: transaction.timeout.ms */

struct producer_txn_call {
    pthread_t thread;
    rd_kafka_t *rk;
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_consumer_group_metadata_t *group;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t ended;
    bool over;
    rd_kafka_error_t *error; /* NULL: it went well */
    struct producer *orphan; /* the thread's to free; NULL: somebody waits for the answer */
};

/* --- what is sent ----------------------------------------------------------------------------- */

/* What librdkafka writes of a membership begins with this, then come the generation and, each with
 * a NUL behind it, group and member id. */
#define WRITTEN "CGMDv2:"

/* A member that its group has thrown out has neither generation nor id until it is in again, and
 * the brokers let offsets without these pass unchecked: anybody's. */
static bool is_member(rd_kafka_t *rk, const rd_kafka_consumer_group_metadata_t *group)
{
    size_t size = 0, head = strlen(WRITTEN);
    int32_t generation = -1;
    bool has_id = false;
    void *bytes = NULL;
    const char *name, *end;
    rd_kafka_error_t *error = rd_kafka_consumer_group_metadata_write(group, &bytes, &size);

    if (error != NULL) {
        rd_kafka_error_destroy(error);
        return false;
    }
    if (size > head + sizeof(generation) && memcmp(bytes, WRITTEN, head) == 0) {
        memcpy(&generation, (const char *)bytes + head, sizeof(generation));
        name = (const char *)bytes + head + sizeof(generation);
        end = (const char *)bytes + size;
        name = memchr(name, '\0', (size_t)(end - name));
        has_id = name != NULL && name + 1 < end && name[1] != '\0';
    }
    rd_kafka_mem_free(rk, bytes);
    return generation >= 0 && has_id;
}

static void add_offset(rd_kafka_topic_partition_list_t *list, const struct consumer_partition *at,
                       bool noted)
{
    rd_kafka_topic_partition_t *item =
        rd_kafka_topic_partition_list_add(list, at->topic, at->partition);

    item->offset = at->offset;
    item->metadata = noted ? strdup(CONSUMER_NOTE) : NULL; /* the list frees it */
    item->metadata_size = item->metadata != NULL ? strlen(CONSUMER_NOTE) : 0;
}

static rd_kafka_topic_partition_list_t *list_of(const struct consumer *c,
                                                const struct consumer_partition *parts,
                                                size_t count, struct mr_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);

    for (size_t i = 0; i < count; i++) {
        const struct consumer_part *part =
            consumer_parts_find(&c->parts, parts[i].topic, parts[i].partition);

        if (part == NULL) {
            mr_fail(err, MR_ERR_STATE, "partition %s-%d went to another member of the group",
                    parts[i].topic, (int)parts[i].partition);
            rd_kafka_topic_partition_list_destroy(list);
            return NULL;
        }
        add_offset(list, &parts[i], part->noted);
    }
    return list;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void call_free(struct producer_txn_call *call)
{
    if (call->list != NULL)
        rd_kafka_topic_partition_list_destroy(call->list);
    if (call->group != NULL)
        rd_kafka_consumer_group_metadata_destroy(call->group);
    if (call->error != NULL)
        rd_kafka_error_destroy(call->error);
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->ended);
    free(call);
}

static void *run(void *arg)
{
    struct producer_txn_call *call = arg;
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(call->rk, call->list, call->group, ALL_TIME);
    struct producer *orphan;

    pthread_mutex_lock(&call->lock);
    call->error = error;
    call->over = true;
    orphan = call->orphan;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
    if (orphan == NULL)
        return NULL;
    orphan->txn.call = NULL;
    call_free(call);
    producer_free(&orphan);
    return NULL;
}

static struct producer_txn_call *call_new(void)
{
    struct producer_txn_call *call = calloc(1, sizeof(*call));
    pthread_condattr_t attr;

    if (call == NULL)
        return NULL;
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&call->ended, &attr);
    pthread_condattr_destroy(&attr);
    return call;
}

static int fill(struct producer_txn_call *call, struct producer *p, struct consumer *c,
                const struct consumer_partition *parts, size_t count, struct mr_error *err)
{
    call->rk = p->rk;
    call->list = list_of(c, parts, count, err);
    if (call->list == NULL)
        return MR_ERR_STATE;
    call->group = rd_kafka_consumer_group_metadata(c->rk);
    if (call->group == NULL || !is_member(c->rk, call->group))
        return mr_fail(err, MR_ERR_STATE, "this consumer is not in its group any more");
    errno = pthread_create(&call->thread, NULL, run, call);
    return errno == 0 ? 0 : err_errno(err, "no thread for the offsets of a transaction");
}

static int begin(struct producer *p, struct consumer *c, const struct consumer_partition *parts,
                 size_t count, struct mr_error *err)
{
    struct producer_txn_call *call = call_new();
    int rc;

    if (call == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for the offsets of a transaction");
    rc = fill(call, p, c, parts, count, err);
    if (rc == 0)
        p->txn.call = call;
    else
        call_free(call);
    return rc;
}

static bool is_over(struct producer_txn_call *call, int64_t timeout_ms)
{
    int64_t until_ms = clock_ms() + timeout_ms;
    const struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    bool over;

    pthread_mutex_lock(&call->lock);
    while (!call->over && clock_ms() < until_ms)
        pthread_cond_timedwait(&call->ended, &call->lock, &until);
    over = call->over;
    pthread_mutex_unlock(&call->lock);
    return over;
}

/* The answer of one that is over. */
static rd_kafka_error_t *take_answer(struct producer *p)
{
    struct producer_txn_call *call = p->txn.call;
    rd_kafka_error_t *error = call->error;

    pthread_join(call->thread, NULL);
    call->error = NULL;
    call_free(call);
    p->txn.call = NULL;
    return error;
}

/* --- for the owner ---------------------------------------------------------------------------- */

int producer_txn_offsets(struct producer *p, struct consumer *c,
                         const struct consumer_partition *parts, size_t count, int64_t timeout_ms,
                         struct mr_error *err)
{
    int rc = 0;

    mr_assert(!c->lent && p->in_flight == 0); /* it may be freed with the call under way */
    if (p->txn.call == NULL)
        rc = begin(p, c, parts, count, err);
    if (rc != 0)
        return rc;
    if (!is_over(p->txn.call, timeout_ms))
        return MR_AGAIN;
    rc = producer_txn_result(p, "Offsets can't be added to the transaction", take_answer(p), err);
    p->txn.records += rc == 0 ? 1 : 0;
    return rc;
}

bool producer_txn_offsets_busy(struct producer *p)
{
    rd_kafka_error_t *error;

    if (p->txn.call == NULL)
        return false;
    if (!is_over(p->txn.call, 0))
        return true;
    error = take_answer(p);
    if (error != NULL)
        rd_kafka_error_destroy(error);
    return false;
}

bool producer_txn_offsets_leave(struct producer *p)
{
    struct producer_txn_call *call = p->txn.call;
    bool over;

    if (call == NULL)
        return false;
    pthread_mutex_lock(&call->lock);
    over = call->over;
    if (!over) {
        call->orphan = p;
        pthread_detach(call->thread);
    }
    pthread_mutex_unlock(&call->lock);
    return !over || producer_txn_offsets_busy(p);
}
