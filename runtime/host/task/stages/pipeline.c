/* SPDX-License-Identifier: Apache-2.0 */
/* The stages between plugin and Kafka, a batch at a time.
 *
 *   source_task ─► transforms ─► header, key, value ─► producer
 *   consumer ─► key, value, header ─► transforms ─► sink_task
 *                 └── a stage fails: again? skip, with a dead letter? or fail
 *
 * Each record passes its stages in Connect's order. A stage that fails with MR_ERR_RETRY is tried
 * again as errors.retry.timeout says, and what fails for good goes to tolerance.c. A plugin is one
 * call through a function pointer for each value, no allocation here. Bytes that converters borrow
 * from a value or a message are not copied.
 *
 * Header values are converted by SimpleHeaderConverter unless another header.converter is set.
 * Thread: the task's. */
#include "host/task/stages/pipeline.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "host/data/logical.h"
#include "host/plugin_places.h"
#include "host/task/stages/dead_letters.h"
#include "host/task/stages/transform_chain.h"
#include "kafka/producer.h"
#include "model/conn_config.h"
#include "model/conn_extras.h"

#include <stdlib.h>

#define SIMPLE_HEADERS "SimpleHeaderConverter"

static const struct {
    const char *property;
    const char *prefix;
    const char *type;  /* converter.type */
    const char *stage; /* Connect's name, for logs and traces */
} roles[PLUGIN_ROLES] = {
    [PLUGIN_KEY] = {"key.converter", "key.converter.", "key", "KEY_CONVERTER"},
    [PLUGIN_VALUE] = {"value.converter", "value.converter.", "value", "VALUE_CONVERTER"},
    [PLUGIN_HEADER] = {"header.converter", "header.converter.", "header", "HEADER_CONVERTER"},
};

struct pipeline {
    struct plugin_stage stages[PLUGIN_ROLES]; /* of the header role none: none is installed */
    struct transform_chain *chain;
    bool transforms; /* there are any */
    bool (*wait)(void *arg, int64_t ms);
    void (*seen)(void *arg, const char *topic);
    void *arg;
    const char *seen_last;     /* in this batch */
    struct dead_letters *dead; /* NULL: none */
    struct tolerance tolerance;
};

/* Of one stage for one record. */
struct tries {
    unsigned count;
    int64_t since_ms;
};

/* --- life ------------------------------------------------------------------------------------- */

static int stage_config(enum plugin_role role, const struct props *from, struct props *out,
                        struct mr_error *err)
{
    props_init(out);
    if (props_subset(from, roles[role].prefix, out) == 0 &&
        props_set(out, "converter.type", roles[role].type) == 0)
        return MR_OK;
    return mr_fail(err, MR_ERR_NOMEM, "out of memory for the configuration of %s",
                   roles[role].property);
}

/* The connector's converter with the connector's settings, or else the worker's with the worker's:
 * never mixed. */
static int start_converter(struct pipeline *p, const struct pipeline_spec *spec,
                           enum plugin_role role, struct mr_error *err)
{
    const char *property = roles[role].property;
    const struct props *from =
        props_get(spec->connector, property) != NULL ? spec->connector : spec->worker;
    const char *named = props_get(from, property);
    const struct plugin *plugin;
    struct props config;
    int rc;

    if (named == NULL && role != PLUGIN_HEADER)
        return mr_fail(err, MR_ERR_CONFIG, "neither the connector nor the worker sets %s",
                       property);
    if (named == NULL && plugin_places_find(spec->plugins, property).library == NULL)
        return MR_OK; /* the default is not installed: matters to records with headers only */
    plugin = plugin_places_load(
        spec->plugins, property,
        role == PLUGIN_HEADER ? MR_PLUGIN_HEADER_CONVERTER : MR_PLUGIN_CONVERTER, named, err);
    if (plugin == NULL)
        return err->code;
    rc = stage_config(role, from, &config, err);
    if (rc == MR_OK)
        rc = plugin_stage_start(&p->stages[role], &spec->owner, plugin, &config, roles[role].prefix,
                                err);
    props_deinit(&config);
    err_prefix(err, "%s %s", property, plugin->name);
    return rc;
}

/* For sinks Connect's properties; sources have one of ours, since Connect has none for them. */
static int open_dead_letters(struct pipeline *p, const struct pipeline_spec *spec,
                             struct mr_error *err)
{
    static const char *const keys[] = {"errors.deadletterqueue.topic.name",
                                       "errors.deadletterqueue.topic.replication.factor",
                                       "errors.deadletterqueue.context.headers.enable"};
    struct config_value values[3] = {{0}};
    const char *topic = NULL;
    int rc = MR_OK;

    for (size_t i = 0; rc == MR_OK && i < 3; i++)
        rc = conn_config_get(keys[i], spec->connector, &values[i], err);
    if (rc == MR_OK)
        topic =
            spec->source ? props_get(spec->connector, CONN_EXTRAS_DEAD_LETTERS) : values[0].text;
    if (topic != NULL && topic[0] != '\0') {
        p->tolerance.dead = p->dead = dead_letters_open(
            &(struct dead_letters_spec){
                .client = {spec->owner.connector, spec->owner.task, spec->worker, spec->connector},
                .topic = topic,
                .replication = (int)values[1].i,
                .context = values[2].i != 0,
                .wait = spec->wait,
                .arg = spec->arg,
                .carry = spec->carry,
                .carrier = spec->carrier},
            err);
        rc = p->dead == NULL ? err->code : MR_OK;
    }
    for (size_t i = 0; i < 3; i++)
        config_value_deinit(&values[i]);
    return rc;
}

struct pipeline *pipeline_new(const struct pipeline_spec *spec, struct mr_error *err)
{
    struct pipeline *p = calloc(1, sizeof(*p));
    int rc;

    if (p == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for the converters");
        return NULL;
    }
    p->wait = spec->wait;
    p->seen = spec->seen;
    p->arg = spec->arg;
    rc = tolerance_init(&p->tolerance, spec->connector, err);
    p->tolerance.connector = spec->owner.connector;
    p->tolerance.task = spec->owner.task;
    for (enum plugin_role role = 0; rc == MR_OK && role < PLUGIN_ROLES; role++)
        rc = start_converter(p, spec, role, err);
    if (rc == MR_OK) {
        p->chain = transform_chain_new(&spec->owner, spec->connector, spec->plugins, err);
        rc = p->chain == NULL ? err->code : MR_OK;
    }
    if (rc == MR_OK) {
        p->transforms = transform_chain_length(p->chain) > 0;
        rc = open_dead_letters(p, spec, err);
    }
    if (rc != MR_OK)
        pipeline_free(&p);
    return p;
}

void pipeline_free(struct pipeline **p)
{
    if (*p == NULL)
        return;
    for (enum plugin_role role = 0; role < PLUGIN_ROLES; role++)
        plugin_stage_stop(&(*p)->stages[role]);
    transform_chain_free(&(*p)->chain);
    dead_letters_close(&(*p)->dead);
    free(*p);
    *p = NULL;
}

bool pipeline_writes_dead_letters(const struct pipeline *p)
{
    return p->dead != NULL;
}

struct tolerance *pipeline_tolerance(struct pipeline *p)
{
    return &p->tolerance;
}

/* --- what can go wrong ------------------------------------------------------------------------ */

/* A plugin broke a rule: no tolerance helps. */
static int check_plugins(struct pipeline *p, const struct batch *batch, struct mr_error *err)
{
    if (batch->over)
        return mr_fail(err, MR_ERR_FATAL, "%s", batch->fault);
    for (enum plugin_role role = 0; role < PLUGIN_ROLES; role++)
        if (plugin_stage_check(&p->stages[role], err) != MR_OK)
            return err->code;
    return transform_chain_check(p->chain, err);
}

static const char *class_of(const struct pipeline *p, enum plugin_role role)
{
    return p->stages[role].plugin == NULL ? SIMPLE_HEADERS
                                          : plugin_load_class(p->stages[role].plugin);
}

/* Try it once more? The wait before that is in here. */
static bool again(struct pipeline *p, struct tries *tries, struct mr_error *err)
{
    int64_t now_ms = clock_ms(), wait_ms;

    if (tries->count++ == 0)
        tries->since_ms = now_ms;
    wait_ms = tolerance_retry_in(&p->tolerance, tries->since_ms, tries->count, now_ms);
    if (wait_ms >= 0 && err->retry_after_ms > wait_ms)
        wait_ms = err->retry_after_ms;
    if (wait_ms < 0 || !p->wait(p->arg, wait_ms))
        return false;
    err_clear(err);
    return true;
}

/* A stage gave rec up. MR_OK: leave the record out. Only what is the record's own fault can be
 * tolerated, or lasted longer than errors.retry.timeout: what else fails (memory, a full table)
 * would fail for the next record too, and all would be lost. */
static int stage_failed(struct pipeline *p, const struct failure *failure, int rc,
                        struct mr_error *err)
{
    char where[600];

    err_without_text(err, rc, "it");
    if (rc == MR_ERR_RETRY && !p->wait(p->arg, 0))
        return err->code = MR_ERR_CLOSED;
    if (rc == MR_ERR_DATA || rc == MR_ERR_RETRY)
        return tolerance_skips(&p->tolerance, failure, err) ? MR_OK : err->code;
    err->code = rc;
    tolerance_place(failure, where, sizeof(where));
    err_prefix(err, "%s", where);
    return rc;
}

int pipeline_reject(struct pipeline *p, const struct record *rec, struct mr_error *err)
{
    const struct failure failure = {"TASK_PUT", "org.apache.kafka.connect.sink.SinkTask", rec};

    return stage_failed(p, &failure, MR_ERR_DATA, err);
}

int pipeline_settle(struct pipeline *p, struct mr_error *err)
{
    return p->dead == NULL ? MR_OK : dead_letters_settle(p->dead, err);
}

void pipeline_drop_letters(struct pipeline *p)
{
    if (p->dead != NULL)
        dead_letters_drop(p->dead);
}

void pipeline_take_letters_back(struct pipeline *p)
{
    if (p->dead != NULL)
        dead_letters_take_back(p->dead);
}

void pipeline_send_letters_again(struct pipeline *p)
{
    if (p->dead != NULL)
        dead_letters_send_again(p->dead);
}

/* --- transforms ------------------------------------------------------------------------------- */

/* MR_OK; MR_DROP: left out, by a transform or by tolerance. */
static int transform(struct pipeline *p, struct record *rec, struct mr_error *err)
{
    struct tries tries = {0};
    size_t at = 0;
    int rc;

    for (size_t tried = 0;; tried = at) {
        rc = transform_chain_apply(p->chain, rec, &at, err);
        if (at != tried)
            tries = (struct tries){0};
        if (rc != MR_ERR_RETRY || !again(p, &tries, err))
            break;
    }
    if (rc < 0) {
        const struct failure failure = {"TRANSFORMATION", transform_chain_class(p->chain, at), rec};

        rc = stage_failed(p, &failure, rc, err);
        return rc == MR_OK ? MR_DROP : rc;
    }
    return rc;
}

/* --- to Kafka --------------------------------------------------------------------------------- */

static int from_connect(struct plugin_stage *stage, struct record *rec,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    return stage->plugin->converter.from_connect(stage->inst.self, rec->batch->pub.arena,
                                                 rec->pub.topic, schema, value, data, len, err);
}

static int no_header_converter(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CONFIG,
                   "a record has headers, but no header converter is set and %s is not installed: "
                   "it is in Millrace's plugin folder",
                   SIMPLE_HEADERS);
}

static int headers_to_kafka(struct plugin_stage *stage, struct record *rec, struct mr_error *err)
{
    struct producer_header *out =
        mr_alloc(rec->batch->pub.arena, rec->pub.header_count * sizeof(*out));

    if (stage->plugin == NULL)
        return no_header_converter(err);
    for (uint32_t i = 0; i < rec->pub.header_count; i++) {
        const struct mr_header *header = mr_header_at(&rec->pub, i);
        int rc;

        out[i] = (struct producer_header){.name = header->name};
        rc = from_connect(stage, rec, header->schema, header->value, &out[i].value,
                          &out[i].value_len, err);
        if (rc < 0)
            return rc;
    }
    rec->wire_headers = out;
    rec->wire_header_count = rec->pub.header_count;
    return MR_OK;
}

/* What Java's ProducerRecord refuses; no tolerance there. */
static int check_target(const struct record *rec, struct mr_error *err)
{
    if (rec->pub.timestamp < MR_NO_TIMESTAMP)
        return mr_fail(err, MR_ERR_DATA, "Invalid record timestamp %lld",
                       (long long)rec->pub.timestamp);
    if (rec->pub.partition < MR_NO_PARTITION)
        return mr_fail(
            err, MR_ERR_DATA,
            "Invalid partition: %d. Partition number should always be non-negative or null.",
            rec->pub.partition);
    return MR_OK;
}

static int part_to_kafka(struct pipeline *p, enum plugin_role role, struct record *rec,
                         struct mr_error *err)
{
    struct plugin_stage *stage = &p->stages[role];

    if (role == PLUGIN_HEADER)
        return headers_to_kafka(stage, rec, err);
    if (role == PLUGIN_KEY)
        return from_connect(stage, rec, rec->pub.key_schema, rec->pub.key, &rec->key_bytes,
                            &rec->key_len, err);
    return from_connect(stage, rec, rec->pub.value_schema, rec->pub.value, &rec->value_bytes,
                        &rec->value_len, err);
}

/* MR_OK, also for a record that is dropped. */
static int record_to_kafka(struct pipeline *p, struct record *rec, struct mr_error *err)
{
    static const enum plugin_role order[] = {PLUGIN_HEADER, PLUGIN_KEY, PLUGIN_VALUE};
    int rc = p->transforms ? transform(p, rec, err) : MR_OK;

    if (rc == MR_OK && check_target(rec, err) != MR_OK)
        return err->code;
    for (size_t i = rec->pub.header_count > 0 ? 0 : 1; rc == MR_OK && i < PLUGIN_ROLES; i++) {
        struct tries tries = {0};

        do
            rc = part_to_kafka(p, order[i], rec, err);
        while (rc == MR_ERR_RETRY && again(p, &tries, err));
        if (rc >= 0)
            continue;
        rc = stage_failed(p, &(struct failure){roles[order[i]].stage, class_of(p, order[i]), rec},
                          rc, err);
        rec->dropped = true;
        return rc;
    }
    rec->dropped = rc != MR_OK;
    return rc == MR_DROP ? MR_OK : rc;
}

int pipeline_to_kafka(struct pipeline *p, struct batch *batch, size_t *done, struct mr_error *err)
{
    int rc = check_plugins(p, batch, err);
    size_t i;

    for (i = 0; rc == MR_OK && i < batch->pub.count; i++) {
        struct record *rec = batch_at(batch, i);

        rc = record_to_kafka(p, rec, err);
        if (batch->over && rc == MR_OK)
            rc = mr_fail(err, MR_ERR_FATAL, "%s", batch->fault);
        if (rc != MR_OK)
            break;
    }
    *done = i;
    return rc != MR_OK ? rc : check_plugins(p, batch, err);
}

static int emitted_to_kafka(struct pipeline *p, struct record *rec, struct mr_error *err)
{
    static const enum plugin_role order[] = {PLUGIN_HEADER, PLUGIN_KEY, PLUGIN_VALUE};
    int rc = check_target(rec, err);

    for (size_t i = rec->pub.header_count > 0 ? 0 : 1; rc == MR_OK && i < PLUGIN_ROLES; i++) {
        struct tries tries = {0};

        do
            rc = part_to_kafka(p, order[i], rec, err);
        while (rc == MR_ERR_RETRY && again(p, &tries, err));
        if (rc >= 0)
            continue;
        err_without_text(err, rc, "it");
        if (rc == MR_ERR_RETRY)
            err->code = p->wait(p->arg, 0) ? MR_ERR_DATA : MR_ERR_CLOSED;
        err_prefix(err, "%s of %.200s, a record emitted to topic %.249s", roles[order[i]].stage,
                   class_of(p, order[i]), rec->pub.topic);
    }
    return rc < 0 ? err->code : MR_OK;
}

int pipeline_emitted(struct pipeline *p, struct batch *batch, size_t from, struct mr_error *err)
{
    int rc = check_plugins(p, batch, err);

    for (size_t i = from; rc == MR_OK && i < batch->pub.count; i++)
        rc = emitted_to_kafka(p, batch_at(batch, i), err);
    return rc != MR_OK ? rc : check_plugins(p, batch, err);
}

/* --- from Kafka ------------------------------------------------------------------------------- */

static int to_connect(struct plugin_stage *stage, struct record *rec, const void *data, size_t len,
                      const struct mr_schema **schema, struct mr_value *value, struct mr_error *err)
{
    return stage->plugin->converter.to_connect(stage->inst.self, rec->batch->pub.arena,
                                               rec->pub.topic, data, len, schema, value, err);
}

static int headers_from_kafka(struct plugin_stage *stage, const struct consumer_msg *msg,
                              struct record *rec, struct mr_error *err)
{
    struct mr_header *out = mr_alloc(rec->batch->pub.arena, msg->header_count * sizeof(*out));

    if (stage->plugin == NULL)
        return no_header_converter(err);
    for (size_t i = 0; i < msg->header_count; i++) {
        struct consumer_header header = consumer_header_at(msg, i);
        int rc;

        out[i] = (struct mr_header){.name = header.name, .name_len = strlen(header.name)};
        rc = to_connect(stage, rec, header.value, header.value_len, &out[i].schema, &out[i].value,
                        err);
        if (rc >= 0)
            rc = logical_header_check(rec->batch->pub.arena, out[i].schema, out[i].value, err);
        if (rc < 0)
            return rc;
    }
    rec->pub.headers = out;
    rec->pub.header_count = (uint32_t)msg->header_count;
    return MR_OK;
}

static inline int part_from_kafka(struct pipeline *p, enum plugin_role role, struct record *rec,
                                  struct mr_error *err)
{
    struct plugin_stage *stage = &p->stages[role];

    if (role == PLUGIN_HEADER)
        return headers_from_kafka(stage, rec->from, rec, err);
    if (role == PLUGIN_KEY)
        return to_connect(stage, rec, rec->key_bytes, rec->key_len, &rec->pub.key_schema,
                          &rec->pub.key, err);
    return to_connect(stage, rec, rec->value_bytes, rec->value_len, &rec->pub.value_schema,
                      &rec->pub.value, err);
}

static struct record *record_of(const struct consumer_msg *msg, struct batch *batch)
{
    struct record *rec = batch_add_borrowed(batch, msg->topic);

    rec->from = msg;
    rec->from_topic = msg->topic;
    rec->from_partition = msg->partition;
    rec->from_timestamp = msg->timestamp_ms;
    rec->key_bytes = msg->key;
    rec->key_len = msg->key_len;
    rec->value_bytes = msg->value;
    rec->value_len = msg->value_len;
    rec->pub.partition = msg->partition;
    rec->pub.offset = msg->offset;
    rec->pub.timestamp = msg->timestamp_ms;
    return rec;
}

/* A converter failed with rc: once more, as often as that helps. As read_part. */
static int part_failed(struct pipeline *p, enum plugin_role role, struct record *rec, int rc,
                       struct mr_error *err)
{
    struct tries tries = {0};

    while (rc == MR_ERR_RETRY && again(p, &tries, err))
        rc = part_from_kafka(p, role, rec, err);
    if (rc >= 0)
        return MR_OK;
    rc = stage_failed(p, &(struct failure){roles[role].stage, class_of(p, role), rec}, rc, err);
    return rc == MR_OK ? MR_DROP : rc;
}

/* MR_OK; MR_DROP: the record is left out. */
static inline int read_part(struct pipeline *p, enum plugin_role role, struct record *rec,
                            struct mr_error *err)
{
    int rc = part_from_kafka(p, role, rec, err);

    return rc >= 0 ? MR_OK : part_failed(p, role, rec, rc, err);
}

/* MR_OK, also for a message that is left out. */
static int record_from_kafka(struct pipeline *p, const struct consumer_msg *msg,
                             struct batch *batch, struct mr_error *err)
{
    struct record *rec = record_of(msg, batch);
    int rc = read_part(p, PLUGIN_KEY, rec, err);

    if (rc == MR_OK)
        rc = read_part(p, PLUGIN_VALUE, rec, err);
    if (rc == MR_OK && msg->header_count > 0)
        rc = read_part(p, PLUGIN_HEADER, rec, err);
    if (rc != MR_OK) {
        batch_remove_last(batch);
        return rc == MR_DROP ? MR_OK : rc;
    }
    if (msg->topic != p->seen_last && p->seen != NULL)
        p->seen(p->arg, p->seen_last = msg->topic);
    if (p->transforms)
        rc = transform(p, rec, err);
    if (rc != MR_OK)
        batch_remove_last(batch);
    return rc == MR_DROP ? MR_OK : rc;
}

int pipeline_from_kafka(struct pipeline *p, const struct consumer_msg *msgs, size_t count,
                        struct batch *batch, size_t *done, struct mr_error *err)
{
    size_t borrowed = 0;
    int rc = MR_OK;
    size_t i;

    p->seen_last = NULL; /* once a batch: the list of them may be emptied meanwhile */
    for (i = 0; rc == MR_OK && i < count && batch->bytes + borrowed < PIPELINE_FULL_BYTES; i++) {
        borrowed += msgs[i].key_len + msgs[i].value_len;
        rc = record_from_kafka(p, &msgs[i], batch, err);
        if (batch->over && rc == MR_OK)
            rc = mr_fail(err, MR_ERR_FATAL, "%s", batch->fault);
    }
    *done = i;
    return rc != MR_OK ? rc : check_plugins(p, batch, err);
}
