/* SPDX-License-Identifier: Apache-2.0 */
/* The store thread of a cluster worker. It opens the three topics one after another (that blocks,
 * and can be called off), then that of the words, which nothing waits for, and runs a loop of its
 * own: descriptors of the topics, timers, and requests that the worker's loop posts.
 *
 *   worker's loop ── ask ──► store_log (offsets | status | config) ── answer ──► worker's loop
 *                            records ─► offsets: the table here
 *                                       status, config, words: parsed here, applied there, in
 *                                       batches
 *
 * Foreign bytes are read here: a record that does not fit is skipped with one line in the log
 * (topic, partition, offset, why), its neighbours are not touched. At most PERMITS batches are on
 * their way to the loop: a slow loop slows the replay, and memory stays bounded. What is posted
 * carries a reference to `tie`, whose `thread` the loop's half cuts when it ends. */
#include "worker/store/store_private.h"

#define LOGGER "worker.store"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "kafka/topic_weak.h"

#include <errno.h>

#define GIVE_UP_MS 60000 /* Java's default.api.timeout.ms */
#define PERMITS 64
#define BATCH_BYTES ((size_t)1 << 20)
#define OFFSETS_MAX ((size_t)4000000)
#define ODD_MAX 1000 /* lines about odd records, a topic */
/* To find or make their topic, and a little; then it is read. The others wait for that. */
#define WORDS_MS 3000
#define WORDS_AGAIN_MS 10000 /* after it could not be opened, or was lost */
#define WORDS_DENIED_AGAIN_MS 60000
#define WEAK_MS 500 /* one question about what a topic can keep */
#define WEAK_MAX 1000
#define WEAK_EACH_MS 100 /* between two topics: what is asked of the topics goes first */

/* Outlives the thread until all that it posted has run. */
struct tie {
    struct store_thread *thread; /* NULL: it has ended. Loop side */
    atomic_int refs;
};

struct store_thread {
    struct loop *loop; /* the worker's */
    struct loop *own;
    struct store_thread_events events;
    void *arg;
    struct tie *tie;
    pthread_t id;
    sem_t permits;
    atomic_bool ending;
    struct internal_topics topics;
    struct topic_admin *admin;
    struct offset_table *offsets;
    struct store_log logs[ALL_TOPICS];
    struct store_batch *batches[ALL_TOPICS]; /* that is being filled; NULL none */
    size_t odd[ALL_TOPICS];
    bool words_open;
    bool words_told; /* that they can't be used */
    struct mr_error words_failure;
    struct loop_timer words_timer;
    struct map *looked; /* names of topics whose settings were looked at, or will be */
    struct look *looks; /* that will be, in their order */
    struct look **last_look;
    struct loop_timer look_timer;
    bool failed; /* the start */
    struct mr_error failure;
    atomic_llong lease_ms;
    struct loop_timer lease_timer;
    bool ready;                  /* loop side: topics are open */
    struct loop_timer cut_timer; /* on the worker's loop */
    int64_t end_deadline_ms;
    struct loop_timer end_timer;
};

/* --- things that are passed ------------------------------------------------------------------- */

void store_request_free(struct store_request *req)
{
    for (size_t i = 0; i < req->write_count; i++) {
        free(req->writes[i].key);
        free(req->writes[i].value);
    }
    free(req->writes);
    free(req->subject);
    json_decref(req->body);
    free(req);
}

void store_batch_free(struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->topic == TOPIC_STATUS)
            status_record_deinit(&batch->items[i].rec.status);
        else if (batch->topic == TOPIC_WORDS)
            word_deinit(&batch->items[i].rec.word);
        else
            config_record_deinit(&batch->items[i].rec.config);
    }
    free(batch);
}

/* --- to the worker's loop --------------------------------------------------------------------- */

enum posted_kind { POSTED_BATCH, POSTED_READY, POSTED_LOST, POSTED_ANSWER };

struct posted {
    struct tie *tie;
    enum posted_kind kind;
    struct store_batch *batch;
    struct store_request *req;
    struct mr_error err;
    const char *topic; /* of the thread's configuration */
};

static void tie_drop(struct tie *tie)
{
    if (atomic_fetch_sub(&tie->refs, 1) == 1)
        free(tie);
}

static void deliver_to(struct store_thread *thread, struct posted *posted)
{
    const struct mr_error *err = posted->err.code != 0 ? &posted->err : NULL;

    switch (posted->kind) {
    case POSTED_BATCH:
        sem_post(&thread->permits);
        thread->events.batch(thread->arg, posted->batch);
        break;
    case POSTED_READY:
        thread->ready = err == NULL;
        thread->events.ready(thread->arg, err);
        break;
    case POSTED_LOST:
        thread->events.lost(thread->arg, posted->topic, err);
        break;
    case POSTED_ANSWER:
        thread->events.answer(thread->arg, posted->req);
        break;
    }
}

/* On the worker's loop. */
static void deliver(void *arg)
{
    struct posted *posted = arg;

    if (posted->tie->thread != NULL)
        deliver_to(posted->tie->thread, posted);
    else if (posted->kind == POSTED_BATCH)
        store_batch_free(posted->batch);
    else if (posted->kind == POSTED_ANSWER)
        store_request_free(posted->req);
    tie_drop(posted->tie);
    free(posted);
}

static void post(struct store_thread *thread, const struct posted *what)
{
    struct posted *posted = malloc(sizeof(*posted));

    mr_assert(posted != NULL);
    *posted = *what;
    posted->tie = thread->tie;
    atomic_fetch_add(&thread->tie->refs, 1);
    mr_assert(loop_post(thread->loop, deliver, posted) == 0); /* ends before its loop does */
}

static void flush_batch(struct store_thread *thread, enum internal_topic_kind topic)
{
    struct store_batch *batch = thread->batches[topic];

    if (batch == NULL)
        return;
    thread->batches[topic] = NULL;
    while (!atomic_load(&thread->ending) && sem_wait(&thread->permits) != 0)
        mr_assert(errno == EINTR);
    post(thread, &(struct posted){.kind = POSTED_BATCH, .batch = batch});
}

/* Room for one more record of that topic. */
static struct store_item *next_item(struct store_thread *thread, enum internal_topic_kind topic,
                                    size_t bytes)
{
    struct store_batch *batch = thread->batches[topic];
    struct store_item *item;

    if (batch != NULL && (batch->count == STORE_BATCH || batch->bytes + bytes > BATCH_BYTES))
        flush_batch(thread, topic);
    batch = thread->batches[topic];
    if (batch == NULL) {
        batch = thread->batches[topic] = malloc(sizeof(*batch));
        mr_assert(batch != NULL);
        batch->topic = topic;
        batch->fresh = thread->words_open;
        batch->count = batch->bytes = 0;
    }
    batch->bytes += bytes;
    item = &batch->items[batch->count++];
    *item = (struct store_item){0};
    return item;
}

/* --- records ---------------------------------------------------------------------------------- */

/* A key as it may stand in the log. */
static void show_key(const struct topic_log_record *rec, char *out, size_t size)
{
    size_t len = rec->key_len < size - 4 ? rec->key_len : size - 4, n;

    if (rec->key == NULL) {
        snprintf(out, size, "none");
        return;
    }
    for (n = 0; n < len; n++) {
        unsigned char c = ((const unsigned char *)rec->key)[n];

        out[n] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    for (size_t good; (good = utf8_prefix(out, n)) < n;)
        out[good] = '?';
    snprintf(out + n, size - n, "%s", len < rec->key_len ? "..." : "");
}

static void tell_odd(struct store_thread *thread, enum internal_topic_kind topic,
                     const struct topic_log_record *rec, const char *verdict, const char *why)
{
    char key[120] = "";

    if (thread->odd[topic]++ >= ODD_MAX) {
        if (thread->odd[topic] == ODD_MAX + 1)
            log_warn("topic %s: more than %d odd records; the rest is skipped without a line each",
                     thread->topics.topics[topic].name, ODD_MAX);
        return;
    }
    show_key(rec, key, sizeof(key));
    log_warn("topic %s, partition %d, offset %lld: a record with key '%s' %s: %s",
             thread->topics.topics[topic].name, (int)rec->partition, (long long)rec->offset, key,
             verdict, why);
}

static void take_config(struct store_thread *thread, const struct topic_log_record *rec)
{
    struct config_record record;
    struct mr_error err = {0};
    int rc =
        config_records_parse(rec->key, rec->key_len, rec->value, rec->value_len, &record, &err);
    struct store_item *item;

    if (rc != 0 || err.text[0] != '\0')
        tell_odd(thread, TOPIC_CONFIG, rec, rc != 0 ? "is skipped" : "is odd", err.text);
    if (rc != 0 && rc != MR_ERR_DATA)
        return;
    item = next_item(thread, TOPIC_CONFIG, rec->value_len);
    item->offset = rec->offset;
    item->skip = rc != 0;
    if (rc == 0)
        item->rec.config = record;
}

static void take_status(struct store_thread *thread, const struct topic_log_record *rec)
{
    struct status_record record;
    struct mr_error err = {0};
    struct store_item *item;

    if (status_records_parse(rec->key, rec->key_len, rec->value, rec->value_len, &record, &err) !=
        0) {
        tell_odd(thread, TOPIC_STATUS, rec, "is skipped", err.text);
        return;
    }
    item = next_item(thread, TOPIC_STATUS, rec->value_len);
    item->offset = rec->offset;
    item->rec.status = record;
}

static void take_offset(struct store_thread *thread, const struct topic_log_record *rec)
{
    struct mr_error err = {0};
    struct offset_record record = {
        .key = rec->key,
        .key_len = rec->key_len,
        .value = rec->value,
        .value_len = rec->value_len,
        .timestamp_ms = rec->timestamp_ms,
        .offset = rec->offset,
    };

    if (offset_table_apply(thread->offsets, &record, &err) != 0 && err.text[0] != '\0')
        tell_odd(thread, TOPIC_OFFSETS, rec, "is skipped", err.text);
}

static void take_word(struct store_thread *thread, const struct topic_log_record *rec)
{
    struct word word;
    struct mr_error err = {0};
    struct store_item *item;

    if (word_records_parse(rec->key, rec->key_len, rec->value, rec->value_len, &word, &err) != 0) {
        tell_odd(thread, TOPIC_WORDS, rec, "is skipped", err.text);
        return;
    }
    word.said_wall_ms = rec->timestamp_ms;
    item = next_item(thread, TOPIC_WORDS, rec->value_len);
    item->rec.word = word;
}

static void on_record(struct store_log *log, const struct topic_log_record *rec)
{
    static void (*const takers[])(struct store_thread * thread,
                                  const struct topic_log_record *rec) = {
        [TOPIC_OFFSETS] = take_offset,
        [TOPIC_STATUS] = take_status,
        [TOPIC_CONFIG] = take_config,
        [TOPIC_WORDS] = take_word,
    };

    takers[log->topic->kind](log->thread, rec);
}

/* --- events of a topic ------------------------------------------------------------------------ */

static void on_flush(struct store_log *log)
{
    flush_batch(log->thread, log->topic->kind);
}

static void answer(struct store_thread *thread, struct store_request *req)
{
    atomic_store(&req->finished, true);
    post(thread, &(struct posted){.kind = POSTED_ANSWER, .req = req});
}

static void on_answer(struct store_log *log, struct store_request *req)
{
    answer(log->thread, req);
}

static void words_failed(struct store_thread *thread, const struct mr_error *err);

static void on_lost(struct store_log *log, const struct mr_error *err)
{
    if (log->topic->optional) {
        words_failed(log->thread, err);
        return;
    }
    log_error("%s", err->text);
    post(log->thread,
         &(struct posted){.kind = POSTED_LOST, .topic = log->topic->name, .err = *err});
}

/* --- words: nothing waits for their topic, and all works without it --------------------------- */

static const struct store_log_events log_events = {on_record, on_flush, on_answer, on_lost};

static void init_log(struct store_thread *thread, int i)
{
    thread->logs[i] = (struct store_log){
        .topic = &thread->topics.topics[i],
        .seldom = i == TOPIC_WORDS,
        .admin = thread->admin,
        .loop = thread->own,
        .offsets = i == TOPIC_OFFSETS ? thread->offsets : NULL,
        .lease_ms = i == TOPIC_OFFSETS ? &thread->lease_ms : NULL,
        .events = &log_events,
        .thread = thread,
    };
}

static void open_words(void *arg);

/* One line until they work again. */
static void words_failed(struct store_thread *thread, const struct mr_error *err)
{
    thread->words_open = false;
    thread->words_failure = *err;
    thread->words_failure.code = MR_ERR_UNSUPPORTED;
    if (!thread->words_told && err->code != MR_ERR_CLOSED)
        log_warn(
            "topic %s can't be used (%s). Until it can, this worker does as Java's: the work "
            "of a worker that was stopped in order waits "
            "scheduled.rebalance.max.delay.ms, as after a crash%s",
            thread->topics.topics[TOPIC_WORDS].name, err->text,
            err->code == MR_ERR_UNSUPPORTED
                ? ". The worker's principal needs the ACLs Create, Read, Write and Describe on "
                  "it"
                : "");
    thread->words_told = true;
    loop_timer_start(thread->own, &thread->words_timer,
                     err->code == MR_ERR_UNSUPPORTED ? WORDS_DENIED_AGAIN_MS : WORDS_AGAIN_MS,
                     open_words, thread);
}

/* Also anew, after it was lost: what it held is not missed for long. */
static void open_words(void *arg)
{
    struct store_thread *thread = arg;
    struct store_log *log = &thread->logs[TOPIC_WORDS];
    struct mr_error err = {0};

    store_log_close(log);
    init_log(thread, TOPIC_WORDS);
    if (store_log_open(log, WORDS_MS, &err) != 0 || store_log_start(log, &err) != 0) {
        words_failed(thread, &err);
        return;
    }
    thread->words_open = true;
    if (thread->words_told)
        log_info("topic %s can be used now", log->topic->name);
    thread->words_told = false;
}

/* --- the thread ------------------------------------------------------------------------------- */

static int open_all(struct store_thread *thread, struct mr_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < INTERNAL_TOPICS; i++)
        rc = store_log_open(&thread->logs[i], GIVE_UP_MS, err);
    for (int i = 0; rc == 0 && i < INTERNAL_TOPICS; i++)
        rc = store_log_prove(&thread->logs[i], err);
    for (int i = 0; rc == 0 && i < INTERNAL_TOPICS; i++)
        rc = store_log_start(&thread->logs[i], err);
    return rc;
}

/* --- promises that a topic can't keep --------------------------------------------------------- */

/* What transactions are about, once each. Nothing depends on it, so that one topic at a time is
 * looked at, and whatever was asked meanwhile comes before the next. */
struct look {
    struct store_thread *thread;
    struct look *next;
    char topic[];
};

static void describe(struct store_thread *thread, const char *topic)
{
    char weak[160];

    topic_weak_describe(thread->admin, topic, WEAK_MS, weak, sizeof(weak));
    if (weak[0] != '\0')
        log_warn("exactly-once holds for topic %s as long as brokers lose nothing: it has %s, so "
                 "that what they have confirmed may go with one of them",
                 topic, weak);
}

static void look_at_next(void *arg)
{
    struct store_thread *thread = arg;
    struct look *look = thread->looks;

    if (look == NULL || atomic_load(&thread->ending))
        return;
    thread->looks = look->next;
    if (thread->looks == NULL)
        thread->last_look = &thread->looks;
    describe(thread, look->topic);
    free(look);
    loop_timer_start(thread->own, &thread->look_timer, WEAK_EACH_MS, look_at_next, thread);
}

static struct look *look_new(struct store_thread *thread, const char *topic)
{
    size_t size = strlen(topic) + 1;
    struct look *look = malloc(sizeof(*look) + size);

    mr_assert(look != NULL);
    *look = (struct look){.thread = thread};
    memcpy(look->topic, topic, size);
    return look;
}

static void look_at(struct store_thread *thread, const char *topic)
{
    if (map_count(thread->looked) == WEAK_MAX || map_set(thread->looked, topic, thread) != NULL)
        return;
    *thread->last_look = look_new(thread, topic);
    thread->last_look = &(*thread->last_look)->next;
    loop_timer_start(thread->own, &thread->look_timer, 0, look_at_next, thread);
}

static void look_at_all(struct store_thread *thread)
{
    for (int i = 0; i < INTERNAL_TOPICS && thread->topics.topics[TOPIC_CONFIG].fenced; i++)
        look_at(thread, thread->topics.topics[i].name);
}

/* The brokers' own are made by the first transaction. */
static void on_look(void *arg)
{
    static const char *const brokers_own[] = {"__transaction_state", "__consumer_offsets"};
    struct look *look = arg;

    look_at(look->thread, look->topic);
    for (size_t i = 0; i < sizeof(brokers_own) / sizeof(brokers_own[0]); i++)
        look_at(look->thread, brokers_own[i]);
    free(look);
}

static void free_looks(struct store_thread *thread)
{
    for (struct look *look = thread->looks, *next; look != NULL; look = next) {
        next = look->next;
        free(look);
    }
}

/* --- the start -------------------------------------------------------------------------------- */

/* The loop's first round: what is asked meanwhile waits behind it. */
static void on_open(void *arg)
{
    struct store_thread *thread = arg;

    thread->failed = open_all(thread, &thread->failure) != 0;
    post(thread, &(struct posted){.kind = POSTED_READY, .err = thread->failure});
    if (thread->failed)
        return;
    open_words(thread);
    look_at_all(thread);
}

static void *run(void *arg)
{
    struct store_thread *thread = arg;

    pthread_setname_np(pthread_self(), "store");
    loop_run(thread->own);
    loop_timer_cancel(&thread->words_timer);
    loop_timer_cancel(&thread->look_timer);
    for (int i = 0; i < ALL_TOPICS; i++)
        store_log_close(&thread->logs[i]);
    return NULL;
}

static void on_ask(void *arg)
{
    struct store_request *req = arg;
    struct store_thread *thread = req->thread;
    bool deaf = req->topic == TOPIC_WORDS && !thread->words_open;

    if (!thread->failed && !deaf) {
        store_log_ask(&thread->logs[req->topic], req);
        return;
    }
    req->err = thread->failed ? thread->failure : thread->words_failure;
    answer(thread, req);
}

/* Also when the lease was renewed: its end is looked for anew. */
static void on_lease(void *arg)
{
    struct store_thread *thread = arg;
    int64_t left = store_log_look_at_lease(&thread->logs[TOPIC_OFFSETS]);

    if (left > 0)
        loop_timer_start(thread->own, &thread->lease_timer, left, on_lease, thread);
    else
        loop_timer_cancel(&thread->lease_timer);
}

/* Until all that was written is confirmed, or it takes too long. */
static void on_end(void *arg)
{
    struct store_thread *thread = arg;
    bool done = true;

    for (int i = 0; i < ALL_TOPICS; i++)
        done = store_log_end(&thread->logs[i]) && done;
    if (done || thread->failed || clock_ms() >= thread->end_deadline_ms)
        loop_stop(thread->own);
    else
        loop_timer_start(thread->own, &thread->end_timer, 10, on_end, thread);
}

/* --- the loop's side -------------------------------------------------------------------------- */

/* All but the thread itself; topics stay the caller's. */
static void free_parts(struct store_thread *thread)
{
    topic_admin_free(&thread->admin);
    offset_table_free(&thread->offsets);
    map_free(&thread->looked, NULL);
    free_looks(thread);
    for (int i = 0; i < ALL_TOPICS; i++)
        if (thread->batches[i] != NULL)
            store_batch_free(thread->batches[i]);
    sem_destroy(&thread->permits);
    if (thread->own != NULL)
        loop_free(&thread->own);
    tie_drop(thread->tie);
    free(thread);
}

static struct tie *tie_new(struct store_thread *thread)
{
    struct tie *tie = calloc(1, sizeof(*tie));

    mr_assert(tie != NULL);
    tie->thread = thread;
    atomic_init(&tie->refs, 1);
    return tie;
}

struct store_thread *store_thread_new(struct loop *loop, struct internal_topics *topics,
                                      const struct store_thread_events *events, void *arg,
                                      struct mr_error *err)
{
    struct store_thread *thread = calloc(1, sizeof(*thread));

    mr_assert(thread != NULL);
    thread->loop = loop;
    thread->events = *events;
    thread->arg = arg;
    thread->tie = tie_new(thread);
    sem_init(&thread->permits, 0, PERMITS);
    thread->offsets = offset_table_new(OFFSETS_MAX);
    thread->looked = map_new();
    thread->last_look = &thread->looks;
    thread->topics = *topics;
    thread->own = loop_new(err);
    if (thread->own != NULL)
        thread->admin = topic_admin_new(&topics->admin, NULL, NULL, err);
    if (thread->admin != NULL) {
        for (int i = 0; i < ALL_TOPICS; i++)
            init_log(thread, i);
        mr_assert(loop_post(thread->own, on_open, thread) == 0);
        errno = thread_start(&thread->id, run, thread);
        if (errno == 0)
            return thread;
        err_errno(err, "cannot start the store thread");
    }
    free_parts(thread);
    return NULL;
}

void store_thread_ask(struct store_thread *thread, struct store_request *req)
{
    req->thread = thread;
    mr_assert(loop_post(thread->own, on_ask, req) == 0);
}

void store_thread_look(struct store_thread *thread, const char *topic)
{
    mr_assert(loop_post(thread->own, on_look, look_new(thread, topic)) == 0);
}

static void on_claim(void *arg)
{
    store_log_claim(&((struct store_thread *)arg)->logs[TOPIC_CONFIG], false);
}

static void on_claim_anew(void *arg)
{
    store_log_claim(&((struct store_thread *)arg)->logs[TOPIC_CONFIG], true);
}

void store_thread_claim(struct store_thread *thread, bool anew)
{
    mr_assert(loop_post(thread->own, anew ? on_claim_anew : on_claim, thread) == 0);
}

static void on_cut(void *arg)
{
    struct store_thread *thread = arg;

    if (thread->ready)
        store_log_cut(&thread->logs[TOPIC_OFFSETS]);
}

/* The thread may be waiting for a broker when the lease ends: what its client has is cut from
 * here. */
void store_thread_lease(struct store_thread *thread, int64_t hard_ms)
{
    int64_t left;

    atomic_store(&thread->lease_ms, hard_ms);
    left = store_log_lease_left(&thread->logs[TOPIC_OFFSETS]);
    if (left >= 0)
        loop_timer_start(thread->loop, &thread->cut_timer, left, on_cut, thread);
    else
        loop_timer_cancel(&thread->cut_timer);
    mr_assert(loop_post(thread->own, on_lease, thread) == 0);
}

void store_thread_end(struct store_thread **threadp, int64_t deadline_ms)
{
    struct store_thread *thread = *threadp;

    *threadp = NULL;
    loop_timer_cancel(&thread->cut_timer);
    thread->tie->thread = NULL;
    thread->end_deadline_ms = deadline_ms;
    atomic_store(&thread->ending, true);
    sem_post(&thread->permits);
    topic_admin_cancel(thread->admin); /* nobody waits for reads any more */
    mr_assert(loop_post(thread->own, on_end, thread) == 0);
    pthread_join(thread->id, NULL);
    internal_topics_deinit(&thread->topics);
    free_parts(thread);
}
