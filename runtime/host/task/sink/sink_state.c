/* SPDX-License-Identifier: Apache-2.0 */
/* State and its topics. Thread: the task's.
 *
 *   emits ─get, set─► part's table ─changes, at a commit─► sender ─► state topic, same transaction
 *                          ▲                                              │
 *                          └──────── restore: topic_log, committed ◄──────┘
 *
 * One topic for each consumed topic, with its partitions: what partition 3 keeps stands in
 * partition 3, so it goes where the offsets go. It is made by the first value that is kept. That it
 * must be there is noted with the offsets: a broker that does not know it yet, or any more, is not
 * believed.
 *
 * Invariants (exactly once): a table is what the transactions committed up to its partition's
 * offset have made of it, and the changes of batches accepted since; read_committed, up to the end
 * with open transactions, so whatever a predecessor left open is waited for. */
#include "host/task/sink/sink_state.h"

#include "base/clock.h"
#include "base/text.h"
#include "host/data/value_bytes.h"
#include "host/data/values.h"
#include "host/task/sink/state_table.h"
#include "host/task/task_client.h"
#include "kafka/topic_admin.h"
#include "kafka/topic_log.h"
#include "model/conn_extras.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.state"
#include "base/log.h"

#define MOST CONN_EXTRAS_STATE_MAX
#define MOST_BYTES (INT64_C(256) << 20)
#define VALUE_MAX ((size_t)64 << 20) /* of one key or value */
#define ASK_MS 2000                  /* one question about a topic */
#define PAUSE_MS 100                 /* between two of them */
#define INSIST_MS 30000
#define READ_MS 1000 /* until a look at stop and lease */
#define TELL_MS 10000
#define HAND_OVER 4096

/* Of one consumed topic. */
struct store {
    const char *input; /* the ledger's */
    char *topic;
    int partitions; /* 0: not known to be there */
};

struct part {
    struct store *store;
    int32_t number;
    bool due;
    bool kept; /* its offsets are to be noted */
    struct state_table *table;
};

struct sink_state {
    struct sink_emit *e;
    size_t bytes;
    size_t most;
    struct store **stores;
    size_t store_count;
    struct part *parts;
    size_t part_count;
    size_t part_cap;
    size_t due;
    struct part *now; /* of the call that runs; NULL none */
    struct buf key;
    struct buf value;
};

/* --- life ------------------------------------------------------------------------------------- */

struct sink_state *sink_state_new(struct sink_emit *e)
{
    struct sink_state *st = calloc(1, sizeof(*st));

    mr_assert(st != NULL);
    st->e = e;
    buf_init(&st->key, VALUE_MAX);
    buf_init(&st->value, VALUE_MAX);
    return st;
}

void sink_state_free(struct sink_state **stp)
{
    struct sink_state *st = *stp;

    *stp = NULL;
    if (st == NULL)
        return;
    for (size_t i = 0; i < st->part_count; i++)
        state_table_free(&st->parts[i].table);
    for (size_t i = 0; i < st->store_count; i++) {
        free(st->stores[i]->topic);
        free(st->stores[i]);
    }
    free(st->stores);
    free(st->parts);
    buf_deinit(&st->key);
    buf_deinit(&st->value);
    free(st);
}

int sink_state_open(struct sink_state *st, struct mr_error *err)
{
    int64_t most = 0;
    int rc = sink_txn_number(st->e->s, MOST, MOST_BYTES, &most, err);

    st->most = (size_t)most;
    return rc;
}

/* --- partitions come and go ------------------------------------------------------------------- */

static struct store *store_of(struct sink_state *st, const char *input)
{
    const char *own = ledger_topic(st->e->s->ledger, input);
    struct store *store;

    for (size_t i = 0; i < st->store_count; i++)
        if (st->stores[i]->input == own)
            return st->stores[i];
    store = calloc(1, sizeof(*store));
    st->stores = realloc(st->stores, (st->store_count + 1) * sizeof(store));
    mr_assert(store != NULL && st->stores != NULL);
    store->input = own;
    mr_assert(asprintf(&store->topic, "%s-state-%s", st->e->group, own) > 0);
    st->stores[st->store_count++] = store;
    return store;
}

static struct part *part_of(struct sink_state *st, const char *topic, int32_t number)
{
    const char *own = ledger_topic(st->e->s->ledger, topic);

    for (size_t i = 0; i < st->part_count; i++)
        if (st->parts[i].number == number && st->parts[i].store->input == own)
            return &st->parts[i];
    return NULL;
}

static void make_due(struct sink_state *st, struct part *part)
{
    state_table_free(&part->table);
    part->table = state_table_new(&st->bytes, st->most);
    st->due += part->due ? 0 : 1;
    part->due = true;
}

static struct part *part_add(struct sink_state *st, const struct consumer_partition *at)
{
    struct part *part;

    if (st->part_count == st->part_cap) {
        st->part_cap = st->part_cap == 0 ? 16 : st->part_cap * 2;
        st->parts = realloc(st->parts, st->part_cap * sizeof(*st->parts));
        mr_assert(st->parts != NULL);
    }
    part = &st->parts[st->part_count++];
    *part = (struct part){.store = store_of(st, at->topic), .number = at->partition};
    return part;
}

void sink_state_come(struct sink_state *st, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct part *part = part_of(st, parts[i].topic, parts[i].partition);

        if (part == NULL)
            part = part_add(st, &parts[i]);
        part->kept = consumer_noted(st->e->s->consumer, parts[i].topic, parts[i].partition);
        make_due(st, part);
    }
}

void sink_state_go(struct sink_state *st, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct part *part = part_of(st, parts[i].topic, parts[i].partition);

        if (part == NULL)
            continue;
        st->due -= part->due ? 1 : 0;
        state_table_free(&part->table);
        *part = st->parts[--st->part_count];
    }
}

void sink_state_turn_back(struct sink_state *st)
{
    for (size_t i = 0; i < st->part_count; i++)
        if (st->parts[i].store->partitions > 0 || st->parts[i].kept ||
            state_table_changes(st->parts[i].table) > 0)
            make_due(st, &st->parts[i]);
}

bool sink_state_due(const struct sink_state *st)
{
    return st->due > 0;
}

/* --- topics ----------------------------------------------------------------------------------- */

static int called_off(struct mr_error *err)
{
    err_clear(err);
    return mr_fail(err, MR_ERR_CLOSED, "the task ends, or its lease is lost");
}

static bool wait_shortly(struct sink_state *st)
{
    struct task *task = st->e->s->task;

    task_wait(task, NULL, 0, clock_ms() + PAUSE_MS);
    return !task_stopping(task) && task_lease_held(task);
}

static struct topic_admin *open_admin(struct sink_state *st, struct mr_error *err)
{
    struct task *task = st->e->s->task;
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    struct topic_admin *admin = NULL;
    struct props java;
    char id[512];

    task_client_id(&client, "adminclient", id, sizeof(id));
    if (task_client_admin(&client, id, &java, err) == MR_OK)
        admin = topic_admin_new(&java, NULL, NULL, err);
    props_deinit(&java);
    return admin;
}

/* How many partitions a topic has; 0: there is none. must: it is there, whatever a broker says. */
static int ask_partitions(struct sink_state *st, struct topic_admin *admin, const char *topic,
                          bool must, int *count, struct mr_error *err)
{
    int64_t until_ms = clock_ms() + INSIST_MS;
    int rc;

    for (;;) {
        err_clear(err);
        *count = 0;
        rc = topic_admin_partitions(admin, topic, ASK_MS, count, err);
        if (rc == MR_ERR_NOT_FOUND && !must) {
            err_clear(err);
            return MR_OK;
        }
        if ((rc != MR_ERR_NOT_FOUND && rc != MR_ERR_RETRY) || clock_ms() >= until_ms)
            return rc;
        if (!wait_shortly(st))
            return called_off(err);
    }
}

/* A key's state would not be where its records are. */
static int compare(struct sink_state *st, struct topic_admin *admin, struct store *store,
                   struct mr_error *err)
{
    int count;
    int rc = ask_partitions(st, admin, store->input, true, &count, err);

    if (rc != MR_OK || count == store->partitions)
        return rc;
    return mr_fail(err, MR_ERR_CONFIG,
                   "topic %.249s has %d partitions, and the topic of its state, %.249s, has %d: "
                   "these must be as many. If keys may begin anew where they lie now, %s; else "
                   "write what %.100s has into a topic of another name, and read that",
                   store->input, count, store->topic, store->partitions,
                   count > store->partitions ? "give the latter partitions as well"
                                             : "delete the latter",
                   store->input);
}

/* What is kept for ever must not expire. A policy that can't be asked for is taken for right. */
static int ask_policy(struct topic_admin *admin, const struct store *store, struct mr_error *err)
{
    struct mr_error own = {0};
    char policy[128];

    if (topic_admin_setting(admin, store->topic, "cleanup.policy", ASK_MS, policy, sizeof(policy),
                            &own) != MR_OK ||
        topic_admin_keeps(policy))
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "topic %.249s has cleanup.policy=%.100s and so loses what this connector keeps "
                   "of %.249s: it must be compact",
                   store->topic, policy, store->input);
}

static int find_topic(struct sink_state *st, struct topic_admin *admin, struct store *store,
                      bool must, struct mr_error *err)
{
    int rc = ask_partitions(st, admin, store->topic, must, &store->partitions, err);

    if (rc == MR_ERR_NOT_FOUND) {
        err_clear(err);
        return mr_fail(err, MR_ERR_FATAL,
                       "topic %.249s is gone, and with it what this connector keeps of %.249s. "
                       "Put it back, or stop the connector, delete its offsets, and begin anew",
                       store->topic, store->input);
    }
    if (rc == MR_OK && store->partitions > 0)
        rc = compare(st, admin, store, err);
    return rc == MR_OK && store->partitions > 0 ? ask_policy(admin, store, err) : rc;
}

static int create_topic(struct sink_state *st, struct topic_admin *admin, struct store *store,
                        struct mr_error *err)
{
    const struct props *worker = st->e->s->task->worker;
    int64_t until_ms = clock_ms() + INSIST_MS;
    struct topic_admin_spec spec = {
        .topic = store->topic,
        .replication =
            (int)task_client_number(worker, "offset.storage.replication.factor",
                                    props_get(worker, "group.id") != NULL ? 3 : -1, -1, INT16_MAX)};
    struct props settings;
    int rc = ask_partitions(st, admin, store->input, true, &spec.partitions, err);

    props_init(&settings);
    mr_assert(props_set(&settings, "cleanup.policy", "compact") == 0);
    spec.settings = &settings;
    while (rc == MR_OK && (rc = topic_admin_create(admin, &spec, ASK_MS, err)) == MR_ERR_RETRY &&
           clock_ms() < until_ms && wait_shortly(st)) {
        err_clear(err);
        rc = MR_OK;
    }
    props_deinit(&settings);
    if (rc == MR_OK)
        log_info("created topic %s for what is kept of %s", store->topic, store->input);
    if (rc != MR_ERR_EXISTS)
        return rc;
    err_clear(err);
    return MR_OK;
}

/* Before the first value is kept. */
static int make_topic(struct sink_state *st, struct store *store, struct mr_error *err)
{
    struct topic_admin *admin = open_admin(st, err);
    int rc;

    if (admin == NULL)
        return err->code;
    rc = create_topic(st, admin, store, err);
    if (rc == MR_OK)
        rc = find_topic(st, admin, store, true, err);
    topic_admin_free(&admin);
    if (rc != MR_OK)
        err_prefix(err, "topic %.249s can't be made", store->topic);
    return rc;
}

/* --- reading it back -------------------------------------------------------------------------- */

struct reading {
    struct sink_state *st;
    struct store *store;
    size_t count;
    struct mr_error failure;
};

static void on_record(void *arg, const struct topic_log_record *rec)
{
    struct reading *r = arg;
    struct part *part = part_of(r->st, r->store->input, rec->partition);
    struct state_span key = {rec->key, rec->key_len};
    struct state_span value = {rec->value, rec->value_len};

    if (part == NULL || !part->due || rec->key == NULL || r->failure.code != 0)
        return;
    r->count++;
    state_table_load(part->table, key, value, &r->failure);
}

/* Not asked for: a log that was cut short below us would be read twice, to the same end. */
static void on_moved(void *arg, int32_t partition, int64_t offset)
{
    (void)arg, (void)partition, (void)offset;
}

static struct topic_log *open_log(struct sink_state *st, struct topic_admin *admin,
                                  const bool *only, struct reading *r, struct mr_error *err)
{
    static const struct topic_log_events events = {on_record, on_moved};
    struct task *task = st->e->s->task;
    const struct task_client_spec client = {task->connector, task->number, task->worker,
                                            &task->connector_config};
    struct topic_log *log = NULL;
    struct props java;

    if (task_client_offsets(&client, &java, err) == MR_OK &&
        props_set(&java, "isolation.level", "read_committed") == 0)
        log = topic_log_open(&(struct topic_log_options){.topic = r->store->topic,
                                                         .partitions = r->store->partitions,
                                                         .only = only,
                                                         .consumer = &java,
                                                         .admin = admin,
                                                         .events = &events,
                                                         .arg = r},
                             err);
    props_deinit(&java);
    return log;
}

static int read_log(struct reading *r, struct topic_log *log, struct mr_error *err)
{
    int64_t told_ms = clock_ms();
    int rc;

    for (;;) {
        err_clear(err);
        rc = topic_log_read_to_end(log, clock_ms() + READ_MS, err);
        if (r->failure.code != 0)
            return mr_fail(err, MR_ERR_FATAL, "%s: raise " MOST, r->failure.text);
        if (rc != MR_ERR_TIMEOUT)
            return rc;
        if (clock_ms() - told_ms >= TELL_MS) {
            log_warn("reads what it keeps, %zu records so far: %s", r->count, err->text);
            told_ms = clock_ms();
        }
        if (!wait_shortly(r->st))
            return called_off(err);
    }
}

static int read_store(struct sink_state *st, struct topic_admin *admin, struct store *store,
                      struct mr_error *err)
{
    struct reading r = {.st = st, .store = store};
    bool *only = calloc((size_t)store->partitions, sizeof(*only));
    struct topic_log *log;
    int64_t began_ms = clock_ms();
    int rc;

    mr_assert(only != NULL);
    for (size_t i = 0; i < st->part_count; i++)
        if (st->parts[i].store == store && st->parts[i].due &&
            st->parts[i].number < store->partitions)
            only[st->parts[i].number] = true;
    log = open_log(st, admin, only, &r, err);
    rc = log != NULL ? read_log(&r, log, err) : err->code;
    topic_log_close(&log);
    free(only);
    if (rc == MR_OK)
        log_info("read back what it keeps of %s: %zu records, %lld ms", store->input, r.count,
                 (long long)(clock_ms() - began_ms));
    return rc;
}

/* Of one consumed topic, those that are due. */
static int restore_store(struct sink_state *st, struct topic_admin *admin, struct store *store,
                         struct mr_error *err)
{
    bool due = false, must = store->partitions > 0;
    int rc;

    for (size_t i = 0; i < st->part_count; i++)
        if (st->parts[i].store == store && st->parts[i].due) {
            due = true;
            must = must || st->parts[i].kept;
            make_due(st, &st->parts[i]); /* what an earlier try has read */
        }
    if (!due)
        return MR_OK;
    rc = find_topic(st, admin, store, must, err);
    if (rc == MR_OK && store->partitions > 0)
        rc = read_store(st, admin, store, err);
    for (size_t i = 0; rc == MR_OK && i < st->part_count; i++)
        if (st->parts[i].store == store && st->parts[i].due) {
            st->parts[i].due = false;
            st->due--;
        }
    return rc;
}

void sink_state_restore(struct sink_state *st)
{
    struct sink_task *s = st->e->s;
    struct mr_error err = {0};
    struct topic_admin *admin;
    int rc;

    sink_consumer_offer(s);
    admin = open_admin(st, &err);
    rc = admin == NULL ? err.code : MR_OK;
    for (size_t i = 0; rc == MR_OK && i < st->store_count; i++)
        rc = restore_store(st, admin, st->stores[i], &err);
    topic_admin_free(&admin);
    if (sink_consumer_end_offer(s))
        sink_consumer_take_back(s);
    if (rc != MR_OK && rc != MR_ERR_CLOSED)
        sink_task_fail(s, &err, NULL);
}

/* --- within a call ---------------------------------------------------------------------------- */

void sink_state_begin(struct sink_state *st, const struct batch *batch)
{
    const struct record *rec = batch_at(batch, 0);

    st->now = batch->pub.count == 0 ? NULL : part_of(st, rec->from_topic, rec->from_partition);
}

void sink_state_end(struct sink_state *st, bool good)
{
    if (st->now == NULL)
        return;
    if (good)
        state_table_keep(st->now->table);
    else
        state_table_roll_back(st->now->table);
    st->now = NULL;
}

static int check_now(const struct sink_state *st, struct mr_error *err)
{
    return st->now != NULL ? MR_OK
                           : mr_fail(err, MR_ERR_STATE,
                                     "state is kept for a partition, and this call of emits was "
                                     "given records of none");
}

/* A plugin's value: not trusted. */
static int write_bytes(struct buf *out, struct mr_value v, struct mr_error *err)
{
    int rc = values_check(v, err);

    buf_reset(out);
    out->failed = false;
    return rc == MR_OK ? value_bytes_write(out, v, err) : rc;
}

int sink_state_get(struct sink_state *st, struct mr_value key, struct mr_value *value,
                   struct mr_error *err)
{
    struct state_span found;

    if (check_now(st, err) != MR_OK || write_bytes(&st->key, key, err) != MR_OK)
        return err->code;
    found = state_table_get(st->now->table, (struct state_span){st->key.data, st->key.len});
    if (found.data == NULL)
        return 0;
    if (value_bytes_read(st->e->base.pub.arena, found.data, found.len, value, err) == MR_OK)
        return 1;
    err_prefix(err, "topic %.249s, partition %d", st->now->store->topic, (int)st->now->number);
    return err->code = MR_ERR_FATAL;
}

int sink_state_set(struct sink_state *st, struct mr_value key, struct mr_value value,
                   struct mr_error *err)
{
    struct state_span bytes = {NULL, 0};
    int rc;

    if (check_now(st, err) != MR_OK || write_bytes(&st->key, key, err) != MR_OK ||
        write_bytes(&st->value, value, err) != MR_OK)
        return err->code;
    if (value.kind != MR_KIND_NULL && st->now->store->partitions == 0 &&
        make_topic(st, st->now->store, err) != MR_OK)
        return err->code;
    st->now->kept = st->now->kept || value.kind != MR_KIND_NULL;
    if (value.kind != MR_KIND_NULL)
        bytes = (struct state_span){st->value.data, st->value.len};
    rc =
        state_table_set(st->now->table, (struct state_span){st->key.data, st->key.len}, bytes, err);
    if (rc == MR_ERR_FULL)
        err_prefix(err, "raise " MOST);
    return rc;
}

/* --- with a transaction ----------------------------------------------------------------------- */

static int send_part(struct sink_state *st, struct part *part, struct mr_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < state_table_changes(part->table); i++) {
        struct state_span key, value;

        state_table_change(part->table, i, &key, &value);
        rc = sink_emit_borrowed(st->e,
                                &(struct sink_emit_bytes){.topic = part->store->topic,
                                                          .partition = part->number,
                                                          .key = key.data,
                                                          .key_len = key.len,
                                                          .value = value.data,
                                                          .value_len = value.len},
                                err);
    }
    return rc;
}

int sink_state_send(struct sink_state *st, struct mr_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < st->part_count; i++) {
        struct part *part = &st->parts[i];

        if (part->kept)
            consumer_note(st->e->s->consumer, part->store->input, part->number);
        rc = send_part(st, part, err);
    }
    return rc;
}

void sink_state_committed(struct sink_state *st)
{
    for (size_t i = 0; i < st->part_count; i++)
        state_table_committed(st->parts[i].table);
}
