/* SPDX-License-Identifier: Apache-2.0 */
/* See task_rig.h. */
#include "task_rig.h"

#include "base/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define PATIENCE_MS 60000 /* bounds a fault, not the machine */
#define OLD_MAX 256

static void *volatile old[OLD_MAX]; /* volatile, or the compiler drops what nobody reads */
static size_t old_count;

/* --- a converter ------------------------------------------------------------------------------ */

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    if (value.kind == MR_KIND_NULL) {
        *data = NULL;
        *len = 0;
        return MR_OK;
    }
    if (value.kind != MR_KIND_STRING && value.kind != MR_KIND_BYTES)
        return mr_fail(err, MR_ERR_DATA, "not text");
    if (value.len == 3 && memcmp(value.u.p, "bad", 3) == 0)
        return mr_fail(err, MR_ERR_DATA, "this value is bad");
    *data = value.len == 0 ? "" : value.u.p;
    *len = value.len;
    return MR_OK;
}

atomic_size_t rig_dense_bytes;

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    *schema = NULL;
    if (data != NULL && len == 3 && memcmp(data, "bad", 3) == 0)
        return mr_fail(err, MR_ERR_DATA, "this value is bad");
    *value = data == NULL ? mr_null() : mr_text(data, len);
    if (rig_dense_bytes > 0)
        mr_alloc(arena, rig_dense_bytes);
    return MR_OK;
}

static const char *const no_aliases[] = {NULL};
static struct mr_config_key no_keys[] = {{0}};

const struct plugin rig_string_converter = {
    .kind = MR_PLUGIN_CONVERTER,
    .name = "RigString",
    .version = "1",
    .library = "test",
    .aliases = no_aliases,
    .keys = no_keys,
    .converter = {.from_connect = from_connect, .to_connect = to_connect},
};

/* --- plugins that are structs of the test ----------------------------------------------------- */

const struct plugin *rig_plugin;
const struct plugin *const *rig_more;

static const struct plugin *own_plugin(const char *name)
{
    if (rig_plugin != NULL && strcmp(name, rig_plugin->name) == 0)
        return rig_plugin;
    for (size_t i = 0; rig_more != NULL && rig_more[i] != NULL; i++)
        if (strcmp(name, rig_more[i]->name) == 0)
            return rig_more[i];
    return strcmp(name, rig_string_converter.name) == 0 ? &rig_string_converter : NULL;
}

json_t *rig_places(const struct props *connector, const struct props *worker)
{
    const struct props *sets[] = {worker, connector};
    json_t *places = json_object();

    for (size_t set = 0; set < 2; set++)
        for (size_t i = 0; i < sets[set]->count; i++) {
            const struct props_entry *entry = &sets[set]->entries[i];
            const struct plugin *plugin = entry->value == NULL ? NULL : own_plugin(entry->value);

            json_object_del(places, entry->key);
            if (plugin != NULL)
                json_object_set_new(
                    places, entry->key,
                    json_pack("{s:s, s:s}", "library", RIG_LIBRARY, "class", plugin->name));
        }
    return places;
}

/* The linker (-Wl,--wrap) sends every call of plugin_load_find here. */
const struct plugin *__wrap_plugin_load_find(const char *path, uint32_t kind, const char *name,
                                             struct mr_error *err);
const struct plugin *__real_plugin_load_find(const char *path, uint32_t kind, const char *name,
                                             struct mr_error *err);

const struct plugin *__wrap_plugin_load_find(const char *path, uint32_t kind, const char *name,
                                             struct mr_error *err)
{
    if (strcmp(path, RIG_LIBRARY) == 0)
        return own_plugin(name);
    return __real_plugin_load_find(path, kind, name, err);
}

/* --- the worker's side ------------------------------------------------------------------------ */

static void on_status(void *arg, struct task *task, enum state state, const char *trace)
{
    struct rig *rig = arg;

    pthread_mutex_lock(&rig->lock);
    if (rig->state_count < RIG_STATES)
        rig->states[rig->state_count++] = state;
    if (trace != NULL)
        snprintf(rig->trace, sizeof(rig->trace), "%s", trace);
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void on_quiet(void *arg, struct task *task)
{
    struct rig *rig = arg;

    pthread_mutex_lock(&rig->lock);
    rig->quiets++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void on_ended(void *arg, struct task *task)
{
    struct rig *rig = arg;

    pthread_mutex_lock(&rig->lock);
    rig->ended = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void answer(struct task *task, int64_t id, json_t *entries, bool ok, const char *error)
{
    struct task_answer *a = calloc(1, sizeof(*a));

    a->id = id;
    a->entries = entries;
    a->ok = ok;
    snprintf(a->error, sizeof(a->error), "%s", error);
    task_answer_take(task, a);
}

static int64_t ask_start(void *arg, struct task *task)
{
    struct rig *rig = arg;
    int64_t id = ++rig->next_id;

    answer(task, id, NULL, !rig->not_ours, rig->no_answer != NULL ? rig->no_answer : "");
    return id;
}

static int64_t ask_fence(void *arg, struct task *task)
{
    struct rig *rig = arg;
    int64_t id = ++rig->next_id;

    answer(task, id, NULL, false, "");
    return id;
}

static void on_member(void *arg, struct task *task, const char *id)
{
    struct rig *rig = arg;

    pthread_mutex_lock(&rig->lock);
    snprintf(rig->member, sizeof(rig->member), "%s", id);
    pthread_mutex_unlock(&rig->lock);
}

static int64_t ask_offsets(void *arg, struct task *task, json_t *partitions)
{
    struct rig *rig = arg;
    int64_t id = ++rig->next_id;
    char *name = json_dumps(json_array_get(partitions, 0), JSON_COMPACT | JSON_SORT_KEYS);
    json_t *found;

    pthread_mutex_lock(&rig->lock);
    found = json_deep_copy(json_object_get(rig->offsets, name));
    pthread_mutex_unlock(&rig->lock);
    answer(task, id, json_pack("[[o,o?]]", json_incref(json_array_get(partitions, 0)), found), true,
           "");
    free(name);
    json_decref(partitions);
    return id;
}

static void store(struct rig *rig, json_t *entries)
{
    json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        char *name = json_dumps(json_array_get(entry, 0), JSON_COMPACT | JSON_SORT_KEYS);

        json_object_set(rig->offsets, name, json_array_get(entry, 1));
        free(name);
    }
    json_decref(entries);
}

static int64_t put_offsets(void *arg, struct task *task, json_t *entries)
{
    struct rig *rig = arg;
    int64_t id = ++rig->next_id;
    bool refuse;
    bool hold;

    pthread_mutex_lock(&rig->lock);
    rig->puts++;
    refuse = rig->refuse_puts;
    hold = rig->hold_puts;
    if (hold) {
        rig->held_id = id;
        json_decref(rig->held_entries);
        rig->held_entries = entries;
    } else if (refuse) {
        json_decref(entries);
    } else {
        store(rig, entries);
    }
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    if (!hold)
        answer(task, id, NULL, !refuse, refuse ? "the disk is full" : "");
    return id;
}

void rig_answer_held(struct rig *rig)
{
    int64_t id;

    pthread_mutex_lock(&rig->lock);
    rig->hold_puts = false;
    id = rig->held_id;
    store(rig, rig->held_entries);
    rig->held_entries = NULL;
    pthread_mutex_unlock(&rig->lock);
    answer(rig->task, id, NULL, true, "");
}

static void on_topic_used(void *arg, struct task *task, const char *topic)
{
    struct rig *rig = arg;
    size_t len;

    pthread_mutex_lock(&rig->lock);
    len = strlen(rig->topics);
    snprintf(rig->topics + len, sizeof(rig->topics) - len, "%s ", topic);
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static const struct task_events events = {
    .status = on_status,
    .ask_offsets = ask_offsets,
    .put_offsets = put_offsets,
    .ask_start = ask_start,
    .ask_fence = ask_fence,
    .topic_used = on_topic_used,
    .member = on_member,
    .quiet = on_quiet,
    .ended = on_ended,
};

/* Control's clock. */
static void *tick(void *arg)
{
    struct rig *rig = arg;
    const struct timespec step = {.tv_nsec = 20000000};

    for (;;) {
        bool nudging;

        nanosleep(&step, NULL);
        pthread_mutex_lock(&rig->lock);
        nudging = rig->nudging;
        if (!rig->ticking) {
            pthread_mutex_unlock(&rig->lock);
            return NULL;
        }
        pthread_mutex_unlock(&rig->lock);
        task_serve(rig->task);
        if (nudging)
            task_nudge(rig->task);
    }
}

/* --- for tests -------------------------------------------------------------------------------- */

static void start_cluster(struct rig *rig, int brokers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
    rig->mock = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    assert_non_null(rig->mock);
    rig->cluster = rd_kafka_mock_cluster_new(rig->mock, brokers);
    assert_non_null(rig->cluster);
    snprintf(rig->bootstrap, sizeof(rig->bootstrap), "%s",
             rd_kafka_mock_cluster_bootstraps(rig->cluster));
}

static void nothing(int sig)
{
    (void)sig;
}

void rig_init(struct rig *rig, int brokers, ...)
{
    struct sigaction action = {.sa_handler = nothing};
    va_list args;
    const char *key;

    memset(rig, 0, sizeof(*rig));
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    rig->offsets = json_object();
    sigaction(SIGURG, &action, NULL);
    start_cluster(rig, brokers);
    props_init(&rig->worker);
    props_init(&rig->config);
    props_set(&rig->worker, "bootstrap.servers", rig->bootstrap);
    props_set(&rig->worker, "offset.flush.interval.ms", "100");
    props_set(&rig->config, "name", "conn");
    props_set(&rig->config, "key.converter", "RigString");
    props_set(&rig->config, "value.converter", "RigString");
    props_set(&rig->config, "header.converter", "RigString");
    va_start(args, brokers);
    while ((key = va_arg(args, const char *)) != NULL) {
        const char *value = va_arg(args, const char *);

        if (strncmp(key, "worker:", 7) == 0)
            props_set(&rig->worker, key + 7, value);
        else
            props_set(&rig->config, key, value);
    }
    va_end(args);
}

void rig_start(struct rig *rig, const struct plugin *plugin, enum target_state target)
{
    struct task_spec spec = {
        .connector = "conn",
        .number = 0,
        .plugin = plugin,
        .config = &rig->config,
        .connector_config = &rig->config,
        .worker = &rig->worker,
        .target = target,
        .lease_lost = rig->lease_lost,
        .lease_hard_boot_ms = INT64_MAX,
        .box = &rig->box,
        .box_slot = 1,
        .events = &events,
        .arg = rig,
    };
    struct mr_error err = {0};

    json_decref(rig->plugins);
    spec.plugins = rig->plugins = rig_places(&rig->config, &rig->worker);
    providers_free(&rig->providers);
    spec.providers = rig->providers = providers_new(&rig->worker, false, NULL, &err);
    rig->ended = false;
    rig->state_count = 0;
    rig->trace[0] = '\0';
    rig->nudging = false;
    rig->task = task_new(&spec, &err);
    assert_non_null(rig->task);
    rig->ticking = true;
    assert_int_equal(pthread_create(&rig->ticker, NULL, tick, rig), 0);
}

static bool wait_changed(struct rig *rig, int64_t until_ms)
{
    struct timespec at;
    int64_t left = until_ms - clock_ms();

    if (left <= 0)
        return false;
    if (left > 50)
        left = 50;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += left * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&rig->changed, &rig->lock, &at);
    return true;
}

static bool saw(const struct rig *rig, enum state state)
{
    return rig->state_count > 0 && rig->states[rig->state_count - 1] == state;
}

size_t rig_puts(struct rig *rig)
{
    size_t puts;

    pthread_mutex_lock(&rig->lock);
    puts = rig->puts;
    pthread_mutex_unlock(&rig->lock);
    return puts;
}

void rig_refuse_puts(struct rig *rig, bool refuse)
{
    pthread_mutex_lock(&rig->lock);
    rig->refuse_puts = refuse;
    pthread_mutex_unlock(&rig->lock);
}

bool rig_saw(struct rig *rig, enum state state)
{
    bool yes = false;

    pthread_mutex_lock(&rig->lock);
    for (size_t i = 0; i < rig->state_count; i++)
        yes |= rig->states[i] == state;
    pthread_mutex_unlock(&rig->lock);
    return yes;
}

void rig_wait_state(struct rig *rig, enum state state)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    bool yes;

    pthread_mutex_lock(&rig->lock);
    while (!(yes = saw(rig, state)) && wait_changed(rig, until))
        ;
    if (!yes)
        print_error("no state %s; trace: %s\n", state_name(state), rig->trace);
    pthread_mutex_unlock(&rig->lock); /* before an assertion leaves: teardown takes it */
    assert_true(yes);
}

void rig_wait_true(struct rig *rig, bool (*fn)(struct rig *rig, int64_t n), int64_t n)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    const struct timespec step = {.tv_nsec = 2000000};

    while (!fn(rig, n) && clock_ms() < until)
        nanosleep(&step, NULL);
    if (!fn(rig, n))
        print_error("did not happen; trace: %s\n", rig->trace);
    assert_true(fn(rig, n));
}

static bool is_quiet(struct rig *rig, int64_t n)
{
    return task_lease_quiet(rig->task);
}

void rig_lose_lease(struct rig *rig, int64_t hard_in_ms)
{
    task_lease_lost(rig->task, clock_boot_ms() + hard_in_ms);
    rig_wait_true(rig, is_quiet, 0);
}

void rig_topics_are(struct rig *rig, const char *topics)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    char told[sizeof(rig->topics)];

    pthread_mutex_lock(&rig->lock);
    while (strcmp(rig->topics, topics) != 0 && wait_changed(rig, until))
        ;
    memcpy(told, rig->topics, sizeof(told));
    pthread_mutex_unlock(&rig->lock);
    assert_string_equal(told, topics);
}

void rig_wait_end(struct rig *rig)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    bool ended;

    pthread_mutex_lock(&rig->lock);
    while (!(ended = rig->ended) && wait_changed(rig, until))
        ;
    rig->ticking = !ended;
    pthread_mutex_unlock(&rig->lock);
    assert_true(ended);
    pthread_join(rig->ticker, NULL);
    task_free(&rig->task);
}

int64_t rig_stop(struct rig *rig)
{
    int64_t began = clock_ms();

    task_stop(rig->task);
    pthread_mutex_lock(&rig->lock);
    rig->nudging = true;
    pthread_mutex_unlock(&rig->lock);
    rig_wait_end(rig);
    return clock_ms() - began;
}

void rig_deinit(struct rig *rig)
{
    if (rig->task != NULL)
        rig_stop(rig);
    /* The cluster stays until the process ends: taking it down costs a second. Kept reachable for
     * leak checkers. */
    assert_true(old_count + 2 <= OLD_MAX);
    old[old_count++] = rig->mock;
    old[old_count++] = rig->cluster;
    props_deinit(&rig->worker);
    props_deinit(&rig->config);
    json_decref(rig->plugins);
    providers_free(&rig->providers);
    json_decref(rig->offsets);
    json_decref(rig->held_entries);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

int64_t rig_stored(struct rig *rig, const char *partition, const char *key)
{
    int64_t next = -1;
    json_t *member;

    pthread_mutex_lock(&rig->lock);
    member = json_object_get(json_object_get(rig->offsets, partition), key);
    if (json_is_integer(member))
        next = json_integer_value(member);
    pthread_mutex_unlock(&rig->lock);
    return next;
}

void rig_store(struct rig *rig, const char *partition, const char *key, int64_t next)
{
    pthread_mutex_lock(&rig->lock);
    json_object_set_new(rig->offsets, partition, json_pack("{s:I}", key, (json_int_t)next));
    pthread_mutex_unlock(&rig->lock);
}

/* --- clients of the test's own ---------------------------------------------------------------- */

static rd_kafka_t *client(struct rig *rig, rd_kafka_type_t type)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
    rd_kafka_conf_set(conf, "group.id", "reader", why, sizeof(why));
    rd_kafka_conf_set(conf, "linger.ms", "0", why, sizeof(why));
    rk = rd_kafka_new(type, conf, why, sizeof(why));
    assert_non_null(rk);
    return rk;
}

static void assign_all(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(4);

    assert_int_equal(rd_kafka_metadata(rk, 0, rkt, &metadata, 5000), 0);
    for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
        rd_kafka_topic_partition_list_add(parts, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, parts);
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(rkt);
}

json_t *rig_read_topic(struct rig *rig, const char *topic, size_t expected)
{
    rd_kafka_t *rk = client(rig, RD_KAFKA_CONSUMER);
    json_t *values = json_array();
    int64_t quiet_from = clock_ms();

    rd_kafka_poll_set_consumer(rk);
    assign_all(rk, topic);
    while (clock_ms() - quiet_from < (json_array_size(values) >= expected ? 150 : 5000)) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 20);

        if (msg != NULL && msg->err == 0) {
            json_array_append_new(values,
                                  json_stringn(msg->payload == NULL ? "" : msg->payload, msg->len));
            quiet_from = clock_ms();
        }
        if (msg != NULL)
            rd_kafka_message_destroy(msg);
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return values;
}

int64_t rig_topic_end(struct rig *rig, const char *topic)
{
    rd_kafka_t *rk = client(rig, RD_KAFKA_CONSUMER);
    int64_t low = 0, high = 0;

    assert_int_equal(rd_kafka_query_watermark_offsets(rk, topic, 0, &low, &high, 5000), 0);
    rd_kafka_destroy(rk);
    return high;
}

void rig_write_topic(struct rig *rig, const char *topic, int partitions, int from, int count)
{
    rd_kafka_t *rk = client(rig, RD_KAFKA_PRODUCER);
    char value[32];

    rd_kafka_mock_topic_create(rig->cluster, topic, partitions, 1);
    for (int i = from; i < from + count; i++) {
        int n = snprintf(value, sizeof(value), "%d", i);

        assert_int_equal(
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(i % partitions),
                              RD_KAFKA_V_VALUE(value, (size_t)n),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
            0);
    }
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_destroy(rk);
}

int64_t rig_committed(struct rig *rig, const char *group, const char *topic, int32_t partition)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    char why[256];
    rd_kafka_t *rk;
    int64_t offset;

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
    rd_kafka_conf_set(conf, "group.id", group, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    rd_kafka_topic_partition_list_add(parts, topic, partition);
    rd_kafka_committed(rk, parts, 5000);
    offset = parts->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_destroy(rk);
    return offset < 0 ? -1 : offset;
}
