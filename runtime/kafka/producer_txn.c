/* SPDX-License-Identifier: Apache-2.0 */
/* The transactions of a producer.
 *
 *   init ─► READY ─begin─► OPEN ─commit─► READY, perhaps tainted
 *                           └────abort──► READY, perhaps tainted
 *                  any ─fenced, fatal─► of no use      tainted ─begin─► refused
 *
 * This librdkafka speaks the transaction protocol without an epoch that moves with each transaction
 * (no KIP-890): an EndTxn whose answer was lost, and which it sent again by itself, may arrive late
 * and end the next transaction. It shows that to nobody, so requests are counted where they leave:
 * unless exactly one EndTxn went out and was answered well, the producer is tainted. So it is by an
 * abort of what was still under way: librdkafka sends EndTxn although no partition is added yet,
 * which the broker takes for an invalid state (tried: one in some hundred).
 *
 * Thread: the owner's; the counters are librdkafka's. Spec: KIP-98, KIP-360, KIP-890; reference
 * exactly-once 15. */
#include "kafka/kafka_private.h"

#include <string.h>

#define END_TXN 26 /* its ApiKey */
#define ABANDON_MS 50
#define NAME "millrace"

/* --- what leaves and what comes back ---------------------------------------------------------- */

static rd_kafka_resp_err_t on_sent(rd_kafka_t *rk, int fd, const char *broker, int32_t id,
                                   int16_t key, int16_t version, int32_t corr, size_t size,
                                   void *arg)
{
    struct producer_txn *txn = arg;

    (void)rk, (void)fd, (void)broker, (void)id, (void)version, (void)corr, (void)size;
    if (key == END_TXN)
        atomic_fetch_add(&txn->ends_sent, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_received(rd_kafka_t *rk, int fd, const char *broker, int32_t id,
                                       int16_t key, int16_t version, int32_t corr, size_t size,
                                       int64_t rtt, rd_kafka_resp_err_t code, void *arg)
{
    struct producer_txn *txn = arg;

    (void)rk, (void)fd, (void)broker, (void)id, (void)version, (void)corr, (void)size, (void)rtt;
    if (key == END_TXN && code != RD_KAFKA_RESP_ERR_NO_ERROR)
        atomic_fetch_add(&txn->ends_bad, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *arg,
                                  char *text, size_t size)
{
    rd_kafka_resp_err_t code = rd_kafka_interceptor_add_on_request_sent(rk, NAME, on_sent, arg);

    (void)conf, (void)text, (void)size;
    return code != RD_KAFKA_RESP_ERR_NO_ERROR
               ? code
               : rd_kafka_interceptor_add_on_response_received(rk, NAME, on_received, arg);
}

void producer_txn_watch(struct producer *p, rd_kafka_conf_t *conf)
{
    char id[8];
    size_t size = sizeof(id);

    if (rd_kafka_conf_get(conf, "transactional.id", NULL, &size) == RD_KAFKA_CONF_OK && size > 1)
        rd_kafka_conf_interceptor_add_on_new(conf, NAME, on_new, &p->txn);
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool is_fenced(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
           code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

/* What a producer made anew would be told as well. */
static bool is_refusal(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT ||
           code == RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION ||
           code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
}

static bool is_taken_over(struct producer *p)
{
    return is_fenced(rd_kafka_fatal_error(p->rk, NULL, 0));
}

bool producer_txn_over(struct producer *p)
{
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(p->rk, NULL, 0);

    return code != RD_KAFKA_RESP_ERR_NO_ERROR && !is_refusal(code);
}

static int code_of(struct producer *p, const rd_kafka_error_t *error)
{
    if (is_fenced(rd_kafka_error_code(error)) || is_taken_over(p))
        return MR_ERR_CLOSED;
    if (rd_kafka_error_is_fatal(error))
        return producer_txn_over(p) ? MR_ERR_STATE : MR_ERR_FATAL;
    if (rd_kafka_error_txn_requires_abort(error) ||
        rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__STATE)
        return MR_ERR_STATE;
    return rd_kafka_error_is_retriable(error) ||
                   rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__TIMED_OUT
               ? MR_AGAIN
               : MR_ERR_FATAL;
}

static void describe_right(struct producer *p, const char *said, char *out, size_t size)
{
    char id[250] = "";
    size_t len = sizeof(id);

    rd_kafka_conf_get(rd_kafka_conf(p->rk), "transactional.id", id, &len);
    snprintf(out, size,
             "%s; the client's principal needs the ACLs Write and Describe on the transactional id "
             "%s",
             said, id);
}

static void describe_timeout(struct producer *p, char *out, size_t size)
{
    char ms[32] = "";
    size_t len = sizeof(ms);

    rd_kafka_conf_get(rd_kafka_conf(p->rk), "transaction.timeout.ms", ms, &len);
    snprintf(out, size,
             "transaction.timeout.ms must not exceed transaction.max.timeout.ms of the broker; it "
             "is %s",
             ms);
}

/* librdkafka 2.0.2 misnames the broker's setting, and does not name ours. */
static void describe(struct producer *p, const rd_kafka_error_t *error, char *out, size_t size)
{
    const char *said = rd_kafka_error_string(error);

    switch (rd_kafka_error_code(error)) {
    case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
        describe_timeout(p, out, size);
        break;
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        describe_right(p, said, out, size);
        break;
    default:
        kafka_error_text(said, out, size);
    }
}

int producer_txn_result(struct producer *p, const char *what, rd_kafka_error_t *error,
                        struct mr_error *err)
{
    char text[512];
    int rc;

    if (error == NULL)
        return 0;
    rc = code_of(p, error);
    describe(p, error, text, sizeof(text));
    if (rc == MR_ERR_CLOSED)
        mr_fail(err, rc,
                "%s: another producer with the same transactional id has taken over, or the "
                "transaction was open for longer than transaction.timeout.ms: %s",
                what, text);
    else if (rc != MR_AGAIN)
        mr_fail(err, rc, "%s: %s", what, text);
    rd_kafka_error_destroy(error);
    return rc;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Without a broker at hand librdkafka looks for the coordinator half a second later. */
static void find_broker(struct producer *p, int64_t timeout_ms)
{
    const struct rd_kafka_metadata *metadata = NULL;

    if (rd_kafka_metadata(p->rk, 0, NULL, &metadata, (int)timeout_ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(metadata);
}

int producer_txn_init(struct producer *p, int64_t timeout_ms, struct mr_error *err)
{
    find_broker(p, timeout_ms);
    return producer_txn_result(p, "The producer's transactions can't begin",
                               rd_kafka_init_transactions(p->rk, (int)timeout_ms), err);
}

int producer_txn_begin(struct producer *p, struct mr_error *err)
{
    int rc;

    if (p->txn.tainted)
        return mr_fail(err, MR_ERR_STATE,
                       "A transaction can't begin: the end of an earlier one may reach the broker "
                       "once more");
    p->txn.records = 0;
    rc =
        producer_txn_result(p, "A transaction can't begin", rd_kafka_begin_transaction(p->rk), err);
    p->txn.open = rc == 0;
    return rc == MR_AGAIN ? mr_fail(err, MR_ERR_FATAL, "A transaction can't begin now") : rc;
}

/* Only the next call about transactions says why. */
int producer_txn_broken(struct producer *p, struct mr_error *err)
{
    int rc =
        producer_txn_result(p, "The transaction is broken", rd_kafka_begin_transaction(p->rk), err);

    return rc < 0 ? rc : mr_fail(err, MR_ERR_STATE, "The transaction is broken");
}

/* --- ends ------------------------------------------------------------------------------------- */

/* A transaction that nothing was sent in ends without a request. */
static void judge(struct producer_txn *txn, int rc)
{
    unsigned sent = atomic_load(&txn->ends_sent) - txn->sent_before;
    bool odd = atomic_load(&txn->ends_bad) != txn->bad_before;

    if (rc != 0 || odd || sent > 1 || (sent == 0 && txn->records > 0))
        txn->tainted = true;
}

static int end(struct producer *p, const char *what,
               rd_kafka_error_t *(*call)(rd_kafka_t *rk, int timeout_ms), int64_t timeout_ms,
               struct mr_error *err)
{
    struct producer_txn *txn = &p->txn;
    int rc;

    if (!txn->ending) {
        txn->sent_before = atomic_load(&txn->ends_sent);
        txn->bad_before = atomic_load(&txn->ends_bad);
    }
    rc = producer_txn_result(p, what, call(p->rk, (int)timeout_ms), err);
    txn->ending = rc == MR_AGAIN;
    txn->open = rc != 0;
    if (!txn->ending)
        judge(txn, rc);
    return rc;
}

int producer_txn_commit(struct producer *p, int64_t timeout_ms, struct mr_error *err)
{
    return end(p, "A transaction can't be committed", rd_kafka_commit_transaction, timeout_ms, err);
}

int producer_txn_abort(struct producer *p, int64_t timeout_ms, struct mr_error *err)
{
    if (producer_txn_offsets_busy(p))
        return mr_fail(err, MR_ERR_STATE, "offsets are still being added to it");
    if (!p->txn.ending && p->in_flight > 0)
        p->txn.tainted = true;
    p->txn.records = 0; /* a broker that took none of them is told nothing */
    return end(p, "A transaction can't be aborted", rd_kafka_abort_transaction, timeout_ms, err);
}

/* A handle that goes while its transaction is open may find no thread any more that would tell the
 * coordinator of a topic; it then asserts that it has counted this, which comes a line later
 * (2.0.2, seen: SIGABRT, one time in fifty). One that has begun to abort tells of no more topics;
 * how far it comes with that is of no matter. */
void producer_txn_abandon(struct producer *p)
{
    rd_kafka_error_t *error;

    if (!p->txn.open || p->txn.ending)
        return;
    error = rd_kafka_abort_transaction(p->rk, ABANDON_MS);
    if (error != NULL)
        rd_kafka_error_destroy(error);
}

bool producer_txn_tainted(const struct producer *p)
{
    return p->txn.tainted;
}
