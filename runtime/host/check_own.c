/* SPDX-License-Identifier: Apache-2.0 */
/* One look into a connector's own offsets topic, or one write to it, by clients that are gone
 * afterwards. Under exactly-once a write is one transaction of the id of task 0, whose producers
 * the worker has fenced before: all of it shows, or nothing.
 *
 * One thread, of `millrace check`, which the worker kills when it takes too long: waits have no end
 * of their own. */
#include "host/check_own.h"

#include "host/host_references.h"
#include "host/task/source/own_offsets.h"
#include "kafka/producer.h"
#include "model/offsets_topic.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_MS 100

struct own_question {
    const char *conn;
    bool write;
    const json_t *offsets;
    struct props worker;
    struct props config; /* resolved */
    struct props producer;
};

/* --- the question ----------------------------------------------------------------------------- */

static bool are_entries(const json_t *offsets)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(offsets, i, entry)
    {
        const json_t *offset = json_array_get(entry, 1);

        if (json_array_size(entry) != 2 || !json_is_object(json_array_get(entry, 0)) ||
            (!json_is_object(offset) && !json_is_null(offset)))
            return false;
    }
    return json_is_array(offsets);
}

static int resolve(struct own_question *q, const struct props *raw, struct mr_error *err)
{
    struct providers *providers = providers_new(&q->worker, false, NULL, err);
    int rc =
        providers != NULL
            ? host_references_resolve(
                  &(struct host_references){.providers = providers, .config = raw}, &q->config, err)
            : MR_ERR_CONFIG;

    providers_free(&providers);
    return rc;
}

static int read_question(const json_t *from, struct own_question *q, struct mr_error *err)
{
    struct props raw;
    const char *verb;
    int rc;

    props_init(&raw);
    q->offsets = json_object_get(from, "offsets");
    if (!json_get_text(from, "own", &verb) || !json_get_text(from, "conn", &q->conn) ||
        json_to_props(json_object_get(from, "worker"), &q->worker, err) != 0 ||
        json_to_props(json_object_get(from, "config"), &raw, err) != 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "the worker sent a question of another form");
    q->write = strcmp(verb, "write") == 0;
    if (q->write && !are_entries(q->offsets))
        rc = mr_fail(err, MR_ERR_PROTOCOL, "the worker sent offsets of another form");
    else
        rc = resolve(q, &raw, err);
    props_deinit(&raw);
    return rc;
}

/* --- plain writes ----------------------------------------------------------------------------- */

static bool wait_on(void *arg, int64_t ms)
{
    (void)arg;
    poll(NULL, 0, (int)ms);
    return true;
}

static int write_plain(struct own_offsets *own, const json_t *offsets, struct mr_error *err)
{
    struct pollfd fd = {.fd = own_offsets_fd(own), .events = POLLIN};

    own_offsets_put(own, offsets);
    while (!own_offsets_ended(own, err)) {
        poll(&fd, 1, SLICE_MS);
        own_offsets_serve(own);
    }
    return err->code;
}

/* --- in a transaction ------------------------------------------------------------------------- */

struct txn_write {
    struct producer *producer;
    struct producer_topic *topic;
    struct mr_error failure;
};

/* The producer takes pointers: copies live as long as the process. */
static void *keep(const void *bytes, size_t len)
{
    void *copy = malloc(len + 1);

    mr_assert(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct txn_write *w = arg;

    (void)opaque;
    if (code != 0)
        mr_fail(&w->failure, code == MR_ERR_NOT_FOUND ? MR_ERR_RETRY : code, "%s", text);
}

static int send_one(void *arg, const void *key, size_t key_len, const void *value, size_t value_len,
                    struct mr_error *err)
{
    struct txn_write *w = arg;
    const struct producer_record rec = {.topic = w->topic,
                                        .partition = -1,
                                        .timestamp_ms = -1,
                                        .key = keep(key, key_len),
                                        .key_len = key_len,
                                        .value = value != NULL ? keep(value, value_len) : NULL,
                                        .value_len = value_len};
    int rc;

    while ((rc = producer_send(w->producer, &rec, err)) == MR_ERR_FULL || rc == MR_ERR_NOT_FOUND) {
        err_clear(err); /* the topic was there a moment ago: a broker is behind */
        producer_reports(w->producer, SLICE_MS, on_report, w);
    }
    return rc;
}

static int repeat(int (*step)(struct producer *p, int64_t timeout_ms, struct mr_error *err),
                  struct txn_write *w, struct mr_error *err)
{
    int rc;

    while ((rc = step(w->producer, SLICE_MS, err)) == MR_AGAIN)
        producer_reports(w->producer, 0, on_report, w);
    return rc;
}

static int write_and_commit(struct txn_write *w, const struct own_offsets *own,
                            const json_t *offsets, struct mr_error *err)
{
    int rc = repeat(producer_txn_init, w, err);

    if (rc == 0)
        rc = producer_txn_begin(w->producer, err);
    if (rc == 0 && (w->topic = producer_topic(w->producer, own_offsets_topic(own), err)) == NULL)
        rc = err->code;
    if (rc == 0)
        rc = own_offsets_render(own, offsets, send_one, w, err);
    while (rc == 0 && producer_in_flight(w->producer) > 0)
        producer_reports(w->producer, SLICE_MS, on_report, w);
    if (rc == 0 && w->failure.code != 0)
        rc = mr_fail(err, w->failure.code, "%s", w->failure.text);
    return rc == 0 ? repeat(producer_txn_commit, w, err) : rc;
}

/* What a failure leaves open ends with the next transaction of the id, or by its time. */
static int write_transaction(const struct own_question *q, const struct own_offsets *own,
                             struct mr_error *err)
{
    struct txn_write w = {.producer = producer_new(&q->producer, NULL, NULL, err)};
    int rc;

    if (w.producer == NULL)
        return err->code;
    rc = write_and_commit(&w, own, q->offsets, err);
    producer_free(&w.producer);
    return rc;
}

/* --- the deed --------------------------------------------------------------------------------- */

static int make_producer(struct own_question *q, struct mr_error *err)
{
    struct task_client_spec client = {q->conn, -1, &q->worker, &q->config};
    bool transactions = offsets_topic_transactions(&q->worker);
    char *id = NULL;
    int rc;

    if (!transactions)
        return task_client_change(&client, &q->producer, err);
    client.number = 0;
    rc = task_client_producer(&client, &q->producer, err);
    if (rc == 0)
        rc = task_client_check_transactions(&client, &q->producer, err);
    mr_assert(asprintf(&id, "%s-%s-0", props_get(&q->worker, "group.id"), q->conn) > 0);
    if (rc == 0 && (props_set(&q->producer, "transactional.id", id) != 0 ||
                    props_set(&q->producer, "enable.idempotence", "true") != 0))
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for producer settings");
    free(id);
    return rc;
}

static void tell_all(const struct own_offsets *own, void (*found)(void *arg, json_t *entry),
                     void *arg)
{
    json_t *list = own_offsets_list(own), *entry;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        found(arg, entry);
    }
    json_decref(list);
}

int check_own(const json_t *question, void (*found)(void *arg, json_t *entry), void *arg,
              struct mr_error *err)
{
    struct own_question q = {0};
    struct own_offsets *own = NULL;
    int rc = read_question(question, &q, err);
    struct own_offsets_spec spec = {.wait = wait_on};

    if (rc == 0)
        rc = make_producer(&q, err);
    spec.client = (struct task_client_spec){q.conn, -1, &q.worker, &q.config};
    spec.producer = &q.producer;
    if (rc == 0)
        rc = own_offsets_open(&spec, &own, err);
    if (rc == 0 && own != NULL && !q.write)
        tell_all(own, found, arg);
    else if (rc == 0 && own != NULL)
        rc = offsets_topic_transactions(&q.worker) ? write_transaction(&q, own, err)
                                                   : write_plain(own, q.offsets, err);
    own_offsets_close(&own);
    return rc;
}
