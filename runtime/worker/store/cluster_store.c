/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's half of the stores: it renders what is to be written, hands it to the store thread,
 * and applies what the thread read to the state that everybody on the loop looks at.
 *
 *   herder ─► cluster_store_put_* ─► store_request ─► store thread ─► Kafka
 *   herder ◄─ done, events ◄─ config_state, status_state ◄─ batches ◄─ store thread
 *
 * A batch is posted before the answer that depends on it, so at `done` of a write that was read
 * back the state has it. Task configurations become effective with their commit record only, which
 * is written when the whole set is in the topic (promise: nobody sees half a set). Where
 * exactly.once.source.support is preparing or enabled, each step of what a leader writes is a
 * transaction (fenced_writer.h). Open requests are bounded; one too many is refused. */
#include "worker/store/cluster_store.h"

#include "worker/store/status_desk.h"
#include "worker/store/store_private.h"

#define LOGGER "worker.store"
#include "base/log.h"
#include "base/text.h"

/* Requests; those about status are bounded by the desk, at the end by what runs here. */
#define OPEN_MAX 4096
/* Offsets: a transaction that hangs is waited for that long, the host's own deadline comes
 * earlier. */
#define READ_MS 90000
#define RECORD_MAX ((size_t)64 << 20)

struct cluster_store {
    struct loop *loop;
    struct cluster_store_events events;
    void *arg;
    struct store_thread *thread;
    struct config_state *config;
    struct status_state *status;
    struct word_state *words;
    struct status_desk *desk;
    struct store_request *first; /* open ones, oldest first */
    struct store_request *last;
    size_t open;
    bool ready;
};

/* --- what comes from the thread --------------------------------------------------------------- */

static void take_config(struct cluster_store *store, struct store_item *item)
{
    struct config_change change;

    if (item->skip) {
        config_state_skip(store->config, item->offset);
        return;
    }
    config_state_apply(store->config, item->offset, &item->rec.config, &change);
    if (store->ready && change.kind != CONFIG_NOTHING)
        store->events.config(store->arg, &change);
}

static void take_status(struct cluster_store *store, struct store_item *item)
{
    struct status_record *rec = &item->rec.status;

    if (!status_state_apply(store->status, rec) || !store->ready)
        return;
    if (rec->kind == STATUS_TOPIC)
        store->events.topic(store->arg, rec->conn, rec->topic, rec->tombstone);
    else
        store->events.status(store->arg, rec->conn, rec->kind == STATUS_TASK ? rec->task : -1);
}

static void take_word(struct cluster_store *store, struct store_item *item, bool fresh)
{
    struct word *word = &item->rec.word;

    if (fresh && !word->tombstone && store->ready)
        store->events.word(store->arg, word);
    word_state_apply(store->words, word);
}

static void on_batch(void *arg, struct store_batch *batch)
{
    struct cluster_store *store = arg;

    for (size_t i = 0; i < batch->count; i++) {
        if (batch->topic == TOPIC_STATUS)
            take_status(store, &batch->items[i]);
        else if (batch->topic == TOPIC_WORDS)
            take_word(store, &batch->items[i], batch->fresh);
        else
            take_config(store, &batch->items[i]);
    }
    store_batch_free(batch);
}

static void on_ready(void *arg, const struct mr_error *err)
{
    struct cluster_store *store = arg;

    store->ready = err == NULL;
    store->events.ready(store->arg, err);
}

static void on_lost(void *arg, const char *topic, const struct mr_error *err)
{
    struct cluster_store *store = arg;

    store->events.lost(store->arg, topic, err);
}

/* --- requests --------------------------------------------------------------------------------- */

static void unlink_request(struct cluster_store *store, struct store_request *req)
{
    *(req->prev != NULL ? &req->prev->next : &store->first) = req->next;
    *(req->next != NULL ? &req->next->prev : &store->last) = req->prev;
    store->open--;
}

static void on_answer(void *arg, struct store_request *req)
{
    unlink_request(arg, req);
    req->answer(req);
    store_request_free(req);
}

static struct store_request *request_new(enum internal_topic_kind topic, const char *subject,
                                         int64_t timeout_ms, void *arg)
{
    struct store_request *req = calloc(1, sizeof(*req));

    mr_assert(req != NULL);
    req->topic = topic;
    req->subject = text_dup(subject);
    req->deadline_ms = clock_ms() + timeout_ms;
    req->arg = arg;
    return req;
}

static void link_request(struct cluster_store *store, struct store_request *req)
{
    req->prev = store->last;
    *(store->last != NULL ? &store->last->next : &store->first) = req;
    store->last = req;
    store->open++;
}

/* Refused before it reached the thread: answered in a later round, unless the store's end was
 * quicker. */
static void refuse(void *arg)
{
    struct store_request *req = arg;

    if (req->owner != NULL)
        on_answer(req->owner, req);
    else
        store_request_free(req);
}

static void ask(struct cluster_store *store, struct store_request *req)
{
    loop_assert_owner(store->loop);
    if (req->err.code == 0 && store->thread == NULL)
        mr_fail(&req->err, MR_ERR_CLOSED, "the worker is stopping");
    if (req->err.code == 0 && store->open >= OPEN_MAX && req->topic != TOPIC_STATUS)
        mr_fail(&req->err, MR_ERR_FULL, "more than %d requests wait for the internal topics",
                OPEN_MAX);
    req->owner = store;
    link_request(store, req);
    if (req->err.code == 0) {
        store_thread_ask(store->thread, req);
        return;
    }
    atomic_store(&req->finished, true);
    mr_assert(loop_post(store->loop, refuse, req) == 0);
}

static void add_write(struct store_request *req, struct buf *key, struct buf *value, bool tombstone)
{
    struct store_write *write;

    req->writes = realloc(req->writes, (req->write_count + 1) * sizeof(*req->writes));
    mr_assert(req->writes != NULL);
    write = &req->writes[req->write_count++];
    *write = (struct store_write){.key_len = key->len, .value_len = value->len};
    write->key = buf_take(key);
    write->value = tombstone ? NULL : buf_take(value);
}

/* What was added since the last step is one. */
static void add_step(struct store_request *req, bool read_back)
{
    mr_assert(req->step_count < STORE_STEPS);
    req->steps[req->step_count++] = (struct store_step){req->write_count, read_back};
}

/* --- configuration ---------------------------------------------------------------------------- */

static void answer_done(struct store_request *req)
{
    if (req->privileged && req->err.code == MR_ERR_STATE && req->owner != NULL &&
        req->owner->events.unclaimed != NULL)
        req->owner->events.unclaimed(req->owner->arg);
    req->done(req->arg, req->err.code != 0 ? &req->err : NULL);
}

static struct store_request *config_request(const char *subject, int64_t timeout_ms,
                                            cluster_store_done done, void *arg)
{
    struct store_request *req = request_new(TOPIC_CONFIG, subject, timeout_ms, arg);

    req->answer = answer_done;
    req->done = done;
    return req;
}

static void add_config(struct store_request *req, const struct config_record *rec)
{
    struct buf key, value;

    buf_init(&key, RECORD_MAX);
    buf_init(&value, RECORD_MAX);
    if (config_records_render(rec, &key, &value) == 0)
        add_write(req, &key, &value, rec->tombstone);
    else
        mr_fail(&req->err, MR_ERR_TOO_LARGE,
                "a configuration is no UTF-8, or longer than %zu bytes", RECORD_MAX);
    buf_deinit(&key);
    buf_deinit(&value);
}

static char *name_of(const char *name)
{
    return (char *)(uintptr_t)name; /* borrowed for rendering, which changes nothing */
}

/* One record, one step. Target states and levels of loggers are anybody's to write. */
static void put(struct cluster_store *store, const struct config_record *rec, bool read_back,
                cluster_store_done done, void *arg)
{
    struct store_request *req = config_request(rec->name, CLUSTER_STORE_WRITE_MS, done, arg);

    req->privileged = rec->kind != CONFIG_TARGET && rec->kind != CONFIG_LOGGER;
    add_config(req, rec);
    add_step(req, read_back);
    ask(store, req);
}

void cluster_store_claim(struct cluster_store *store, bool anew)
{
    if (store->thread != NULL)
        store_thread_claim(store->thread, anew);
}

void cluster_store_refresh(struct cluster_store *store, int64_t timeout_ms, cluster_store_done done,
                           void *arg)
{
    struct store_request *req = config_request(NULL, timeout_ms, done, arg);

    add_step(req, true);
    ask(store, req);
}

void cluster_store_put_connector(struct cluster_store *store, const char *conn,
                                 const struct props *config, const enum target_state *initial,
                                 cluster_store_done done, void *arg)
{
    struct store_request *req = config_request(conn, CLUSTER_STORE_WRITE_MS, done, arg);

    req->privileged = true;
    if (initial != NULL)
        add_config(req, &(struct config_record){
                            .kind = CONFIG_TARGET, .name = name_of(conn), .target = *initial});
    add_config(req, &(struct config_record){
                        .kind = CONFIG_CONNECTOR, .name = name_of(conn), .props = *config});
    add_step(req, true);
    ask(store, req);
}

void cluster_store_remove_connector(struct cluster_store *store, const char *conn,
                                    cluster_store_done done, void *arg)
{
    struct store_request *req = config_request(conn, CLUSTER_STORE_WRITE_MS, done, arg);

    req->privileged = true;
    add_config(req, &(struct config_record){
                        .kind = CONFIG_CONNECTOR, .name = name_of(conn), .tombstone = true});
    add_config(req, &(struct config_record){
                        .kind = CONFIG_TARGET, .name = name_of(conn), .tombstone = true});
    add_step(req, true);
    ask(store, req);
}

void cluster_store_put_tasks(struct cluster_store *store, const char *conn,
                             const struct props *tasks, size_t count, cluster_store_done done,
                             void *arg)
{
    struct store_request *req = config_request(conn, CLUSTER_STORE_WRITE_MS, done, arg);

    req->privileged = true;
    for (size_t i = 0; i < count; i++)
        add_config(req, &(struct config_record){.kind = CONFIG_TASK,
                                                .name = name_of(conn),
                                                .task = (int)i,
                                                .props = tasks[i]});
    if (count > 0)
        add_step(req, true);
    add_config(req, &(struct config_record){
                        .kind = CONFIG_COMMIT, .name = name_of(conn), .count = (int)count});
    add_step(req, true);
    ask(store, req);
}

void cluster_store_put_target(struct cluster_store *store, const char *conn,
                              enum target_state target, cluster_store_done done, void *arg)
{
    put(store,
        &(struct config_record){.kind = CONFIG_TARGET, .name = name_of(conn), .target = target},
        false, done, arg);
}

void cluster_store_put_task_count(struct cluster_store *store, const char *conn, int count,
                                  cluster_store_done done, void *arg)
{
    put(store,
        &(struct config_record){.kind = CONFIG_TASK_COUNT, .name = name_of(conn), .count = count},
        true, done, arg);
}

void cluster_store_put_session_key(struct cluster_store *store,
                                   const struct config_session_key *key, cluster_store_done done,
                                   void *arg)
{
    put(store, &(struct config_record){.kind = CONFIG_SESSION_KEY, .session = *key}, true, done,
        arg);
}

void cluster_store_put_restart(struct cluster_store *store, const char *conn, bool include_tasks,
                               bool only_failed, cluster_store_done done, void *arg)
{
    put(store,
        &(struct config_record){.kind = CONFIG_RESTART,
                                .name = name_of(conn),
                                .include_tasks = include_tasks,
                                .only_failed = only_failed},
        true, done, arg);
}

void cluster_store_put_logger(struct cluster_store *store, const char *logger, const char *level,
                              cluster_store_done done, void *arg)
{
    put(store,
        &(struct config_record){
            .kind = CONFIG_LOGGER, .name = name_of(logger), .level = name_of(level)},
        false, done, arg);
}

/* --- status ----------------------------------------------------------------------------------- */

/* A request's arg. */
struct slip_answer {
    struct cluster_store *store;
    struct status_slip *slip;
};

static void answer_slip(struct store_request *req)
{
    struct slip_answer *answer = req->arg;

    status_desk_sent(answer->store->desk, answer->slip, req->err.code != 0 ? &req->err : NULL);
    free(answer);
}

static void send_status(void *arg, struct status_slip *slip, const struct status_record *rec)
{
    struct cluster_store *store = arg;
    struct slip_answer *answer = malloc(sizeof(*answer));
    struct store_request *req = request_new(TOPIC_STATUS, NULL, CLUSTER_STORE_WRITE_MS * 2, answer);
    struct buf key, value;

    mr_assert(answer != NULL);
    *answer = (struct slip_answer){store, slip};
    req->answer = answer_slip;
    buf_init(&key, RECORD_MAX);
    buf_init(&value, RECORD_MAX);
    if (status_records_render(rec, &key, &value) == 0)
        add_write(req, &key, &value, rec->tombstone);
    else
        mr_fail(&req->err, MR_ERR_DATA, "it is no UTF-8, or too long");
    buf_deinit(&key);
    buf_deinit(&value);
    add_step(req, false);
    ask(store, req);
}

static struct status_record status_of(const char *conn, int task)
{
    return (struct status_record){.kind = task < 0 ? STATUS_CONNECTOR : STATUS_TASK,
                                  .conn = text_dup(conn),
                                  .task = task < 0 ? 0 : task};
}

void cluster_store_put_status(struct cluster_store *store, const char *conn, int task,
                              const struct status *status, bool safe)
{
    struct status_record rec = status_of(conn, task);

    loop_assert_owner(store->loop);
    status_copy(&rec.status, status);
    status_desk_put(store->desk, &rec, safe);
}

void cluster_store_remove_status(struct cluster_store *store, const char *conn, int task)
{
    struct status_record rec = status_of(conn, task);

    loop_assert_owner(store->loop);
    rec.tombstone = true;
    status_desk_put(store->desk, &rec, false);
}

void cluster_store_put_topic(struct cluster_store *store, const char *conn, const char *topic,
                             int task)
{
    struct status_record rec = {.kind = STATUS_TOPIC,
                                .conn = text_dup(conn),
                                .topic = text_dup(topic),
                                .task = task,
                                .discovered_wall_ms = clock_wall_ms()};

    loop_assert_owner(store->loop);
    status_desk_put(store->desk, &rec, false);
}

void cluster_store_remove_topic(struct cluster_store *store, const char *conn, const char *topic)
{
    struct status_record rec = {
        .kind = STATUS_TOPIC, .tombstone = true, .conn = text_dup(conn), .topic = text_dup(topic)};

    loop_assert_owner(store->loop);
    status_desk_put(store->desk, &rec, false);
}

void cluster_store_look_at_topic(struct cluster_store *store, const char *topic)
{
    loop_assert_owner(store->loop);
    if (store->thread != NULL)
        store_thread_look(store->thread, topic);
}

/* --- words ------------------------------------------------------------------------------------ */

static void answer_said(struct store_request *req)
{
    if (req->done != NULL)
        answer_done(req);
    else if (req->err.code != 0)
        log_debug("a word to the other workers could not be said: %s", req->err.text);
}

static struct store_request *words_request(int64_t timeout_ms, cluster_store_done done, void *arg)
{
    struct store_request *req = request_new(TOPIC_WORDS, NULL, timeout_ms, arg);

    req->answer = answer_said;
    req->done = done;
    return req;
}

void cluster_store_refresh_words(struct cluster_store *store, int64_t timeout_ms,
                                 cluster_store_done done, void *arg)
{
    struct store_request *req = words_request(timeout_ms, done, arg);

    add_step(req, true);
    ask(store, req);
}

void cluster_store_say(struct cluster_store *store, const struct word *word, int64_t timeout_ms,
                       cluster_store_done done, void *arg)
{
    struct store_request *req = words_request(timeout_ms, done, arg);
    struct buf key, value;

    buf_init(&key, RECORD_MAX);
    buf_init(&value, RECORD_MAX);
    if (word_records_render(word, &key, &value) == 0)
        add_write(req, &key, &value, word->tombstone);
    else
        mr_fail(&req->err, MR_ERR_DATA, "it is no UTF-8");
    buf_deinit(&key);
    buf_deinit(&value);
    add_step(req, false);
    ask(store, req);
}

/* --- offsets ---------------------------------------------------------------------------------- */

static void answer_read(struct store_request *req)
{
    json_t *entries = req->err.code == 0 ? req->body : NULL;

    if (entries != NULL)
        req->body = NULL;
    req->read_fn(req->arg, entries, req->err.code != 0 ? req->err.text : NULL);
}

static void answer_written(struct store_request *req)
{
    req->written_fn(req->arg, req->err.code != 0 ? req->err.text : NULL);
}

/* body: the question, taken, and nobody else's: jansson's values are not for two threads. NULL: no
 * memory for it, unless all are to be listed. */
static void ask_offsets(struct cluster_store *store, struct store_request *req,
                        enum store_task task, json_t *body)
{
    req->task = task;
    req->body = body;
    if (body == NULL && task != STORE_OFFSETS_LIST)
        mr_fail(&req->err, MR_ERR_NOMEM, "out of memory");
    add_step(req, task != STORE_OFFSETS_PUT);
    ask(store, req);
}

static void get_offsets(void *self, const char *conn, const json_t *partitions,
                        offset_store_read_fn fn, void *arg)
{
    struct store_request *req = request_new(TOPIC_OFFSETS, conn, READ_MS, arg);
    json_t *partition;
    size_t i;

    req->answer = answer_read;
    req->read_fn = fn;
    if (!json_is_array(partitions))
        mr_fail(&req->err, MR_ERR_DATA, "partitions are not an array");
    json_array_foreach(partitions, i, partition)
    {
        if (!json_is_object(partition))
            mr_fail(&req->err, MR_ERR_DATA, "partition %zu is not an object", i);
    }
    ask_offsets(self, req, STORE_OFFSETS_GET, json_deep_copy(partitions));
}

static void put_offsets(void *self, const char *conn, json_t *entries, offset_store_written_fn fn,
                        void *arg)
{
    struct store_request *req = request_new(TOPIC_OFFSETS, conn, CLUSTER_STORE_WRITE_MS, arg);
    json_t *entry;
    size_t i;

    req->answer = answer_written;
    req->written_fn = fn;
    if (!json_is_array(entries))
        mr_fail(&req->err, MR_ERR_DATA, "offsets are not an array");
    json_array_foreach(entries, i, entry)
    {
        const json_t *offset = json_array_get(entry, 1);

        if (json_array_size(entry) != 2 || !json_is_object(json_array_get(entry, 0)) ||
            (!json_is_object(offset) && !json_is_null(offset)))
            mr_fail(&req->err, MR_ERR_DATA, "offset %zu is not [object, object or null]", i);
    }
    ask_offsets(self, req, STORE_OFFSETS_PUT, entries);
}

void cluster_store_lease(struct cluster_store *store, int64_t hard_ms)
{
    loop_assert_owner(store->loop);
    if (store->thread != NULL)
        store_thread_lease(store->thread, hard_ms);
}

static void list_offsets(void *self, const char *conn, offset_store_read_fn fn, void *arg)
{
    struct store_request *req = request_new(TOPIC_OFFSETS, conn, READ_MS, arg);

    req->answer = answer_read;
    req->read_fn = fn;
    ask_offsets(self, req, STORE_OFFSETS_LIST, NULL);
}

struct offset_store cluster_store_offsets(struct cluster_store *store)
{
    return (struct offset_store){
        .self = store, .get = get_offsets, .list = list_offsets, .put = put_offsets};
}

void cluster_store_list_offsets(struct cluster_store *store, const char *conn,
                                offset_store_read_fn fn, void *arg)
{
    list_offsets(store, conn, fn, arg);
}

/* --- life ------------------------------------------------------------------------------------- */

struct cluster_store *cluster_store_open(const struct cluster_store_options *options,
                                         const struct cluster_store_events *events,
                                         struct mr_error *err)
{
    static const struct store_thread_events from_thread = {on_batch, on_ready, on_lost, on_answer};
    struct internal_topics topics;
    struct cluster_store *store;

    if (internal_topics_init(&topics, options->worker, err) != 0)
        return NULL;
    store = calloc(1, sizeof(*store));
    mr_assert(store != NULL);
    store->loop = options->loop;
    store->events = *events;
    store->arg = options->arg;
    store->config = config_state_new();
    store->status = status_state_new();
    store->words = word_state_new();
    store->desk = status_desk_new(store->loop, store->status, send_status, store);
    store->thread = store_thread_new(store->loop, &topics, &from_thread, store, err);
    if (store->thread != NULL)
        return store;
    internal_topics_deinit(&topics);
    status_desk_free(&store->desk);
    config_state_free(&store->config);
    status_state_free(&store->status);
    word_state_free(&store->words);
    free(store);
    return NULL;
}

/* The thread has ended: what it was done with is freed by what it posted, the rest here. */
static void tell_all(struct cluster_store *store)
{
    while (store->first != NULL) {
        struct store_request *req = store->first;
        bool finished = atomic_load(&req->finished);

        unlink_request(store, req);
        req->owner = NULL;
        if (!finished)
            mr_fail(&req->err, MR_ERR_CLOSED, "the worker is stopping");
        req->answer(req);
        if (!finished)
            store_request_free(req);
    }
}

void cluster_store_close(struct cluster_store **storep, int64_t deadline_ms)
{
    struct cluster_store *store = *storep;

    *storep = NULL;
    if (store == NULL)
        return;
    loop_assert_owner(store->loop);
    if (store->ready)
        status_desk_flush(store->desk);
    store_thread_end(&store->thread, deadline_ms);
    tell_all(store);
    status_desk_tell_lost(store->desk);
    status_desk_free(&store->desk);
    config_state_free(&store->config);
    status_state_free(&store->status);
    word_state_free(&store->words);
    free(store);
}

const struct config_state *cluster_store_config(const struct cluster_store *store)
{
    return store->config;
}

const struct status_state *cluster_store_status(const struct cluster_store *store)
{
    return store->status;
}

const struct word_state *cluster_store_words(const struct cluster_store *store)
{
    return store->words;
}
