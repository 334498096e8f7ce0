/* SPDX-License-Identifier: Apache-2.0 */
/* A connector's own offsets topic: kafka/topic_log feeds model/offset_records, which answers.
 *
 *   own_offsets_open:  create, or look at what is there ─► own_offsets_read
 *   own_offsets_put:   a record for each key ─► topic_log ─► all confirmed, or one refused
 *                                                           ─► own_offsets_ended
 *
 * What is written comes back as records and is the table's then. The worker's topic is not known
 * here: who asks for an offset that is not found, or has written one, turns to the worker next
 * (source_commit.c).
 *
 * Invariant: own_offsets_ended says that all went well only when all in-sync replicas have every
 * record (promise 1). */
#include "host/task/source/own_offsets.h"

#include "base/clock.h"
#include "host/task/topic_patience.h"
#include "kafka/topic_log.h"
#include "model/offset_records.h"
#include "model/offsets_topic.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOGGER "host.task.offsets"
#include "base/log.h"

#define ASK_MS 1500      /* one request */
#define PAUSE_MS 100     /* between two of them */
#define REFUSED_MS 10000 /* refused for now: so long */
#define ANSWER_MS 60000  /* default.api.timeout.ms of Java's admin client */
#define READ_MS 2000     /* until a look at whether to give up */
#define TELL_MS 10000
#define ENTRIES_MAX ((size_t)4000000)
#define BYTES_MAX ((size_t)64 << 20)

struct own_offsets {
    struct own_offsets_spec spec;
    char *topic;
    struct props admin_java;
    struct props consumer;
    struct props producer;
    struct topic_admin *admin;
    int partitions;
    struct topic_log *log;
    struct offset_table *table;
    bool putting; /* a write is under way: what follows is valid */
    const json_t *entries;
    size_t next; /* of them: not handed over yet */
    size_t unconfirmed;
    struct mr_error failure;
};

/* --- asking the brokers ----------------------------------------------------------------------- */

typedef int (*ask_fn)(struct own_offsets *own, struct mr_error *err);

/* An answer that may come out differently soon: none at all, or a topic that does not show yet. */
static bool may_change(int rc)
{
    return rc == MR_ERR_RETRY || rc == MR_ERR_NOT_FOUND || rc == MR_ERR_TIMEOUT;
}

static int called_off(struct mr_error *err)
{
    err_clear(err);
    return mr_fail(err, MR_ERR_CLOSED, "called off");
}

static int insist(struct own_offsets *own, ask_fn ask, struct mr_error *err)
{
    struct topic_patience patience = {
        .silent_ms =
            task_client_number(&own->admin_java, "default.api.timeout.ms", ANSWER_MS, 0, INT32_MAX),
        .refused_ms = REFUSED_MS,
        .began_ms = clock_ms()};

    for (;;) {
        int64_t asked_ms = clock_ms(), now_ms;
        int rc;

        err_clear(err);
        rc = ask(own, err);
        now_ms = clock_ms();
        if (!may_change(rc) || !topic_patience_lasts(&patience, now_ms - asked_ms < ASK_MS, now_ms))
            return rc;
        if (!own->spec.wait(own->spec.arg, PAUSE_MS))
            return called_off(err);
    }
}

/* As the worker's own offsets topic would be created. */
static int ask_create(struct own_offsets *own, struct mr_error *err)
{
    const struct props *worker = own->spec.client.worker;
    struct props settings;
    struct topic_admin_spec spec = {
        .topic = own->topic,
        .partitions =
            (int)task_client_number(worker, "offset.storage.partitions", 25, -1, INT32_MAX),
        .replication =
            (int)task_client_number(worker, "offset.storage.replication.factor", 3, -1, INT16_MAX),
        .settings = &settings};
    int rc;

    props_init(&settings);
    mr_assert(props_subset(worker, "offset.storage.", &settings) == 0);
    props_remove(&settings, "topic");
    props_remove(&settings, "partitions");
    props_remove(&settings, "replication.factor");
    mr_assert(props_set(&settings, "cleanup.policy", "compact") == 0);
    rc = topic_admin_create(own->admin, &spec, ASK_MS, err);
    props_deinit(&settings);
    return rc;
}

static int ask_policy(struct own_offsets *own, struct mr_error *err)
{
    char policy[128];
    int rc = topic_admin_setting(own->admin, own->topic, "cleanup.policy", ASK_MS, policy,
                                 sizeof(policy), err);

    if (rc != MR_OK || topic_admin_keeps(policy))
        return rc;
    return mr_fail(
        err, MR_ERR_CONFIG,
        "Topic '%.249s' supplied via the 'offsets.storage.topic' property is required to have "
        "'cleanup.policy=compact' to guarantee consistency and durability of source connector "
        "offsets, but found the topic currently has 'cleanup.policy=%s'. Set the topic right, or "
        "name another one",
        own->topic, policy);
}

static int ask_partitions(struct own_offsets *own, struct mr_error *err)
{
    return topic_admin_partitions(own->admin, own->topic, ASK_MS, &own->partitions, err);
}

/* --- the topic -------------------------------------------------------------------------------- */

/* Words before what the client said. */
static int fail(struct mr_error *err, const char *words, const char *topic, const char *behind)
{
    struct mr_error why = *err;

    err_clear(err);
    return mr_fail(err, why.code == MR_ERR_CLOSED ? MR_ERR_CLOSED : MR_ERR_FATAL,
                   "%s '%.249s'%s: %.500s", words, topic, behind, why.text);
}

/* Who may not create it may still use one that is there. */
static int create(struct own_offsets *own, bool *fresh, bool *denied, struct mr_error *err)
{
    int rc = insist(own, ask_create, err);

    *fresh = rc == MR_OK;
    *denied = rc == MR_ERR_UNSUPPORTED;
    if (*fresh)
        log_info("created offsets topic %s", own->topic);
    if (*denied)
        log_warn("offsets topic %s: %s; it is taken to be there", own->topic, err->text);
    if (rc != MR_OK && rc != MR_ERR_EXISTS && !*denied)
        return fail(err, "Error while attempting to create/find topic(s)", own->topic, "");
    err_clear(err);
    return MR_OK;
}

static int verify(struct own_offsets *own, struct mr_error *err)
{
    int rc = insist(own, ask_policy, err);

    if (rc != MR_ERR_UNSUPPORTED && rc != MR_ERR_NOT_FOUND)
        return rc;
    if (rc == MR_ERR_UNSUPPORTED)
        log_info("offsets topic %s: its cleanup.policy can't be read (%s); it is taken to be "
                 "compact",
                 own->topic, err->text);
    err_clear(err);
    return MR_OK;
}

static int ensure(struct own_offsets *own, struct mr_error *err)
{
    bool fresh, denied;
    int rc = create(own, &fresh, &denied, err);

    if (rc == MR_OK && !fresh)
        rc = verify(own, err);
    if (rc != MR_OK)
        return rc;
    rc = insist(own, ask_partitions, err);
    if (rc == MR_ERR_UNSUPPORTED)
        return fail(err, "Offsets topic", own->topic,
                    " may not be used: the principal of the connector's clients needs the ACLs "
                    "Read, Write and Describe on it");
    if (rc != MR_OK)
        return fail(err, "Offsets topic", own->topic,
                    denied ? " is not there, and may not be created: create it, compacted, or give "
                             "the principal of the connector's admin client the ACL Create on it"
                           : " can't be used");
    return MR_OK;
}

/* --- records ---------------------------------------------------------------------------------- */

static void on_record(void *arg, const struct topic_log_record *rec)
{
    struct own_offsets *own = arg;
    struct mr_error err = {0};
    const struct offset_record record = {.key = rec->key,
                                         .key_len = rec->key_len,
                                         .value = rec->value,
                                         .value_len = rec->value_len,
                                         .timestamp_ms = rec->timestamp_ms,
                                         .offset = rec->offset};

    if (offset_table_apply(own->table, &record, &err) != 0 && err.text[0] != '\0')
        log_warn("topic %s, partition %d, offset %lld: a record is skipped: %s", own->topic,
                 (int)rec->partition, (long long)rec->offset, err.text);
}

static void on_moved(void *arg, int32_t partition, int64_t offset)
{
    const struct own_offsets *own = arg;

    log_warn(
        "topic %s, partition %d: its log begins again at offset %lld: it was cut, or the topic "
        "made anew. What it holds is read again, what was in memory stays",
        own->topic, (int)partition, (long long)offset);
}

static int open_log(struct own_offsets *own, struct mr_error *err)
{
    static const struct topic_log_events events = {on_record, on_moved};
    const struct topic_log_options options = {
        .topic = own->topic,
        .partitions = own->partitions,
        .consumer = &own->consumer,
        .producer = own->spec.producer != NULL ? &own->producer : NULL,
        .seldom = true,
        .admin = own->admin,
        .max_bytes = BYTES_MAX,
        .events = &events,
        .arg = own,
    };

    own->log = topic_log_open(&options, err);
    return own->log != NULL ? MR_OK : err->code;
}

int own_offsets_read(struct own_offsets *own, struct mr_error *err)
{
    int64_t told_ms = clock_ms();
    int rc;

    for (;;) {
        err_clear(err);
        rc = topic_log_read_to_end(own->log, clock_ms() + READ_MS, err);
        if (rc != MR_ERR_TIMEOUT)
            break;
        if (clock_ms() - told_ms >= TELL_MS) {
            log_warn("waits for its source offsets: %s", err->text);
            told_ms = clock_ms();
        }
        if (!own->spec.wait(own->spec.arg, PAUSE_MS))
            return called_off(err);
    }
    return rc == MR_OK ? MR_OK : fail(err, "Offsets topic", own->topic, " can't be read");
}

const json_t *own_offsets_get(const struct own_offsets *own, const json_t *partition)
{
    return offset_table_get(own->table, own->spec.client.connector, partition);
}

json_t *own_offsets_list(const struct own_offsets *own)
{
    return offset_table_list(own->table, own->spec.client.connector);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct rendering {
    own_offsets_record fn;
    void *arg;
    const struct buf *value; /* NULL: a tombstone */
    struct mr_error *err;
};

static int render_key(void *arg, const char *key, size_t len)
{
    const struct rendering *r = arg;

    return r->fn(r->arg, key, len, r->value != NULL ? r->value->data : NULL,
                 r->value != NULL ? r->value->len : 0, r->err);
}

static int render(const struct own_offsets *own, const json_t *entry, const struct rendering *to)
{
    const json_t *offset = json_array_get(entry, 1);
    struct rendering r = *to;
    struct buf value;
    int rc = 0;

    buf_init(&value, BYTES_MAX);
    r.value = json_is_null(offset) ? NULL : &value;
    if (r.value != NULL)
        rc = offset_records_render(offset, &value);
    if (rc == 0)
        rc = offset_table_keys(own->table, own->spec.client.connector, json_array_get(entry, 0),
                               r.value == NULL, render_key, &r);
    buf_deinit(&value);
    if (rc != 0) /* fn has said why, if it was fn */
        mr_fail(to->err, rc, "an offset can't be written: out of memory, or too large");
    return rc;
}

int own_offsets_render(const struct own_offsets *own, const json_t *entries, own_offsets_record fn,
                       void *arg, struct mr_error *err)
{
    const struct rendering to = {.fn = fn, .arg = arg, .err = err};
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        int rc = render(own, entry, &to);

        if (rc != 0)
            return rc;
    }
    return 0;
}

static void on_confirmed(void *arg, int code, const char *text)
{
    struct own_offsets *own = arg;

    own->unconfirmed--;
    if (code != 0)
        mr_fail(&own->failure, code, "%s", text != NULL ? text : "not delivered");
}

static int append(void *arg, const void *key, size_t key_len, const void *value, size_t value_len,
                  struct mr_error *err)
{
    struct own_offsets *own = arg;
    int rc = topic_log_append(own->log,
                              &(struct topic_log_append){.key = key,
                                                         .key_len = key_len,
                                                         .value = value,
                                                         .value_len = value_len,
                                                         .done = on_confirmed,
                                                         .arg = own},
                              err);

    if (rc == 0)
        own->unconfirmed++;
    return rc;
}

static bool all_handed_over(const struct own_offsets *own)
{
    return own->failure.code != 0 || own->next == json_array_size(own->entries);
}

/* As much as the producer takes; the rest as what is under way makes room. */
static void hand_over(struct own_offsets *own)
{
    int rc = 0;

    while (rc == 0 && !all_handed_over(own)) {
        const json_t *entry = json_array_get(own->entries, own->next);
        bool alone = own->unconfirmed == 0;
        struct mr_error err = {0};

        rc = render(own, entry, &(struct rendering){.fn = append, .arg = own, .err = &err});
        if (rc == 0)
            own->next++;
        else if (rc == MR_ERR_FULL && alone) /* it never fits */
            mr_fail(&own->failure, MR_ERR_TOO_LARGE, "a source offset is too large: %s", err.text);
        else if (rc != MR_ERR_FULL)
            own->failure = err;
    }
}

void own_offsets_put(struct own_offsets *own, const json_t *entries)
{
    mr_assert(!own->putting);
    own->putting = true;
    own->entries = entries;
    own->next = 0;
    own->failure = (struct mr_error){0};
    hand_over(own);
}

bool own_offsets_ended(struct own_offsets *own, struct mr_error *err)
{
    if (!own->putting || own->unconfirmed > 0 || !all_handed_over(own))
        return false;
    own->putting = false;
    *err = own->failure;
    return true;
}

void own_offsets_purge(struct own_offsets *own)
{
    topic_log_purge(own->log);
}

int own_offsets_fd(struct own_offsets *own)
{
    return topic_log_fd(own->log);
}

/* Trouble of the reader is told when somebody reads; that of the writer comes with the write. */
void own_offsets_serve(struct own_offsets *own)
{
    (void)topic_log_serve(own->log, NULL);
    if (own->putting)
        hand_over(own);
}

/* --- life ------------------------------------------------------------------------------------- */

static int read_committed(struct own_offsets *own, struct mr_error *err)
{
    const char *given = props_get(&own->consumer, "isolation.level");

    if (!offsets_topic_transactions(own->spec.client.worker) ||
        (given != NULL && strcasecmp(given, "read_committed") == 0))
        return MR_OK;
    log_warn("the consumer's isolation.level=%s gives way to read_committed: source offsets are "
             "read so under exactly-once",
             given != NULL ? given : "");
    return props_set(&own->consumer, "isolation.level", "read_committed") == 0
               ? MR_OK
               : mr_fail(err, MR_ERR_NOMEM, "out of memory for the consumer's settings");
}

/* Written to one Kafka and read from another, no offset would be found again. */
static void compare_kafkas(const struct own_offsets *own)
{
    const char *in = props_get(&own->consumer, "bootstrap.servers");
    const char *out = props_get(&own->producer, "bootstrap.servers");

    if (in != NULL && out != NULL && strcmp(in, out) != 0)
        log_warn("source offsets are written to topic %s of the Kafka at %s, and read from the one "
                 "at %s: if these are two, set consumer.override.bootstrap.servers and "
                 "admin.override.bootstrap.servers to the first",
                 own->topic, out, in);
}

static int make_settings(struct own_offsets *own, struct mr_error *err)
{
    const struct task_client_spec *client = &own->spec.client;
    char id[512];
    int rc;

    task_client_id(client, "adminclient", id, sizeof(id));
    rc = task_client_admin(client, id, &own->admin_java, err);
    if (rc == MR_OK)
        rc = task_client_offsets(client, &own->consumer, err);
    if (rc == MR_OK)
        rc = read_committed(own, err);
    if (rc == MR_OK && own->spec.producer != NULL &&
        props_subset(own->spec.producer, "", &own->producer) != 0)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for the producer's settings");
    props_remove(&own->producer, "transactional.id"); /* that id is the task's producer's */
    if (rc == MR_OK)
        compare_kafkas(own);
    return rc;
}

int own_offsets_open(const struct own_offsets_spec *spec, struct own_offsets **out,
                     struct mr_error *err)
{
    char *topic = offsets_topic_own(spec->client.worker, spec->client.config);
    struct own_offsets *own;
    int rc;

    *out = NULL;
    if (topic == NULL)
        return MR_OK;
    own = calloc(1, sizeof(*own));
    mr_assert(own != NULL);
    own->spec = *spec;
    own->topic = topic;
    own->table = offset_table_new(ENTRIES_MAX);
    rc = make_settings(own, err);
    if (rc == MR_OK && (own->admin = topic_admin_new(&own->admin_java, NULL, NULL, err)) == NULL)
        rc = MR_ERR_CONFIG;
    if (rc == MR_OK)
        rc = ensure(own, err);
    if (rc == MR_OK)
        rc = open_log(own, err);
    if (rc == MR_OK)
        rc = own_offsets_read(own, err);
    if (rc == MR_OK)
        *out = own;
    else
        own_offsets_close(&own);
    return rc;
}

const char *own_offsets_topic(const struct own_offsets *own)
{
    return own->topic;
}

void own_offsets_close(struct own_offsets **ownp)
{
    struct own_offsets *own = *ownp;

    *ownp = NULL;
    if (own == NULL)
        return;
    topic_log_close(&own->log);
    topic_admin_free(&own->admin);
    offset_table_free(&own->table);
    props_deinit(&own->admin_java);
    props_deinit(&own->consumer);
    props_deinit(&own->producer);
    free(own->topic);
    free(own);
}
