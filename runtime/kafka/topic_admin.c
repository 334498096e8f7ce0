/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and orders about topics, each one a blocking call with a deadline. The client is a
 * librdkafka consumer that consumes nothing: unlike a producer's, its metadata requests never make
 * brokers create a topic, and its isolation level, read_uncommitted here, is the one of end
 * offsets. librdkafka's own calls can't be interrupted, so they are made in slices; a slice that
 * brings nothing is followed by a longer one, so that slow brokers are waited for too. Owner: one
 * thread; topic_admin_cancel only sets a flag. */
#include "kafka/topic_admin.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"

#define SLICE_MS 500
#define SLICE_MAX_MS 4000

struct topic_admin {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    atomic_bool cancelled;
    char trouble[512]; /* what the client last complained about; "" nothing */
    bool hopeless;     /* no retry helps */
};

/* Runs inside rd_kafka_poll, on the owner's thread. */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    struct topic_admin *admin = opaque;

    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && admin->trouble[0] != '\0')
        return; /* says less than what is known */
    admin->hopeless = kafka_error_hopeless((rd_kafka_resp_err_t)code, reason);
    kafka_error_text(reason, admin->trouble, sizeof(admin->trouble));
}

struct topic_admin *topic_admin_new(const struct props *java, client_conf_warn warn, void *arg,
                                    struct mr_error *err)
{
    rd_kafka_conf_t *conf = kafka_handle_conf(CLIENT_ADMIN, java, warn, arg, err);
    struct topic_admin *admin = conf != NULL ? calloc(1, sizeof(*admin)) : NULL;
    char why[256];

    if (conf == NULL)
        return NULL;
    mr_assert(admin != NULL);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_opaque(conf, admin);
    mr_assert(rd_kafka_conf_set(conf, "isolation.level", "read_uncommitted", why, sizeof(why)) ==
                  RD_KAFKA_CONF_OK &&
              rd_kafka_conf_set(conf, "allow.auto.create.topics", "false", why, sizeof(why)) ==
                  RD_KAFKA_CONF_OK);
    admin->rk = kafka_handle_new(CLIENT_CONSUMER, &conf, err);
    if (admin->rk == NULL) {
        free(admin);
        return NULL;
    }
    admin->queue = rd_kafka_queue_new(admin->rk);
    return admin;
}

void topic_admin_free(struct topic_admin **adminp)
{
    struct topic_admin *admin = *adminp;

    *adminp = NULL;
    if (admin == NULL)
        return;
    rd_kafka_queue_destroy(admin->queue);
    rd_kafka_destroy(admin->rk);
    free(admin);
}

void topic_admin_cancel(struct topic_admin *admin)
{
    atomic_store(&admin->cancelled, true);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void hear(struct topic_admin *admin)
{
    while (rd_kafka_poll(admin->rk, 0) > 0)
        ;
}

static int closed(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CLOSED, "called off");
}

/* Nobody answered in time. */
static int no_answer(struct topic_admin *admin, struct mr_error *err)
{
    hear(admin);
    return mr_fail(err, admin->hopeless ? MR_ERR_FATAL : MR_ERR_RETRY, "%s",
                   admin->trouble[0] != '\0' ? admin->trouble : "no broker answered in time");
}

static const struct {
    rd_kafka_resp_err_t code;
    int meaning;
} meanings[] = {
    {RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, MR_ERR_EXISTS},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, MR_ERR_NOT_FOUND},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, MR_ERR_NOT_FOUND},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, MR_ERR_NOT_FOUND},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MR_ERR_UNSUPPORTED},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, MR_ERR_UNSUPPORTED},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, MR_ERR_UNSUPPORTED},
    {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, MR_ERR_UNSUPPORTED},
    {RD_KAFKA_RESP_ERR_INVALID_CONFIG, MR_ERR_CONFIG},
    {RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, MR_ERR_CONFIG},
    {RD_KAFKA_RESP_ERR_INVALID_REQUEST, MR_ERR_CONFIG},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, MR_ERR_CONFIG},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, MR_ERR_CONFIG},
    /* brokers may still be registering */
    {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_NOT_CONTROLLER, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, MR_ERR_RETRY},
    {RD_KAFKA_RESP_ERR__WAIT_COORD, MR_ERR_RETRY},
};

static int meaning_of(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
        if (meanings[i].code == code)
            return meanings[i].meaning;
    return kafka_error_consume(code, "");
}

int topic_admin_failed(struct topic_admin *admin, rd_kafka_resp_err_t code, const char *text,
                       struct mr_error *err)
{
    if (code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE ||
        code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
        return no_answer(admin, err);
    return mr_fail(err, meaning_of(code), "%s",
                   text != NULL && text[0] != '\0' ? text : rd_kafka_err2str(code));
}

/* --- waiting ---------------------------------------------------------------------------------- */

struct wait {
    int64_t until_ms;
    int64_t slice_ms;
};

static struct wait wait_for(int64_t timeout_ms)
{
    return (struct wait){clock_ms() + timeout_ms, SLICE_MS};
}

/* Length of the next slice, the last one included; 0: time is over. */
static int next_slice(struct wait *wait)
{
    int64_t left = wait->until_ms - clock_ms();
    int64_t slice = wait->slice_ms;

    wait->slice_ms = slice * 2 < SLICE_MAX_MS ? slice * 2 : SLICE_MAX_MS;
    return left <= 0 ? 0 : (int)(left < slice ? left : slice);
}

bool topic_admin_cancelled(const struct topic_admin *admin)
{
    return atomic_load(&admin->cancelled);
}

rd_kafka_AdminOptions_t *topic_admin_options(struct topic_admin *admin, rd_kafka_admin_op_t op,
                                             int64_t timeout_ms)
{
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(admin->rk, op);
    int ms = timeout_ms > 300000 ? 300000 : timeout_ms < 1 ? 1 : (int)timeout_ms;
    char why[256];

    mr_assert(options != NULL);
    mr_assert(rd_kafka_AdminOptions_set_request_timeout(options, ms, why, sizeof(why)) ==
              RD_KAFKA_RESP_ERR_NO_ERROR);
    return options;
}

/* The answer to the admin request that was just sent. One that comes after all is of an earlier
 * request, whose type differs or whose content says so; the queue is drained before each. */
rd_kafka_event_t *topic_admin_await(struct topic_admin *admin, int64_t timeout_ms,
                                    struct mr_error *err)
{
    int64_t until = clock_ms() + timeout_ms + SLICE_MS;
    rd_kafka_event_t *event = NULL;

    while (event == NULL && !topic_admin_cancelled(admin) && clock_ms() < until)
        event = rd_kafka_queue_poll(admin->queue, SLICE_MS / 5);
    if (event == NULL)
        (void)(topic_admin_cancelled(admin) ? closed(err) : no_answer(admin, err));
    return event;
}

rd_kafka_queue_t *topic_admin_queue(struct topic_admin *admin)
{
    rd_kafka_queue_destroy(admin->queue);
    admin->queue = rd_kafka_queue_new(admin->rk);
    return admin->queue;
}

rd_kafka_t *topic_admin_client(const struct topic_admin *admin)
{
    return admin->rk;
}

/* --- creating --------------------------------------------------------------------------------- */

static int new_topic(const struct topic_admin_spec *spec, rd_kafka_NewTopic_t **out,
                     struct mr_error *err)
{
    char why[256] = "";
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(spec->topic, spec->partitions, spec->replication, why, sizeof(why));

    if (topic == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "%s", why);
    for (size_t i = 0; spec->settings != NULL && i < spec->settings->count; i++) {
        const struct props_entry *entry = &spec->settings->entries[i];

        rd_kafka_NewTopic_set_config(topic, entry->key, entry->value);
    }
    *out = topic;
    return 0;
}

static int created(struct topic_admin *admin, rd_kafka_event_t *event, struct mr_error *err)
{
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    const rd_kafka_topic_result_t **topics;
    size_t count = 0;

    if (result == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return topic_admin_failed(admin, rd_kafka_event_error(event),
                                  rd_kafka_event_error_string(event), err);
    topics = rd_kafka_CreateTopics_result_topics(result, &count);
    if (count != 1)
        return mr_fail(err, MR_ERR_RETRY, "an answer about %zu topics", count);
    if (rd_kafka_topic_result_error(topics[0]) == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    return topic_admin_failed(admin, rd_kafka_topic_result_error(topics[0]),
                              rd_kafka_topic_result_error_string(topics[0]), err);
}

int topic_admin_create(struct topic_admin *admin, const struct topic_admin_spec *spec,
                       int64_t timeout_ms, struct mr_error *err)
{
    rd_kafka_NewTopic_t *topic;
    rd_kafka_AdminOptions_t *options;
    rd_kafka_event_t *event;
    struct mr_error why = {0};
    int rc;

    if (topic_admin_cancelled(admin))
        return closed(err);
    rc = new_topic(spec, &topic, err);
    if (rc != 0)
        return rc;
    options = topic_admin_options(admin, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout_ms);
    rd_kafka_CreateTopics(admin->rk, &topic, 1, options, topic_admin_queue(admin));
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    event = topic_admin_await(admin, timeout_ms, &why);
    if (event == NULL)
        return mr_fail(err, why.code, "%s", why.text);
    rc = created(admin, event, err);
    rd_kafka_event_destroy(event);
    return rc;
}

/* --- settings --------------------------------------------------------------------------------- */

static int pick_setting(const rd_kafka_ConfigResource_t *resource, const char *key, char *out,
                        size_t size, struct mr_error *err)
{
    size_t count = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);

    for (size_t i = 0; i < count; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);

        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), key) != 0)
            continue;
        snprintf(out, size, "%s", value != NULL ? value : "");
        return 0;
    }
    return mr_fail(err, MR_ERR_NOT_FOUND, "the brokers know no setting %s of it", key);
}

static int described(struct topic_admin *admin, rd_kafka_event_t *event, const char *key, char *out,
                     size_t size, struct mr_error *err)
{
    const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
    const rd_kafka_ConfigResource_t **resources;
    size_t count = 0;

    if (result == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return topic_admin_failed(admin, rd_kafka_event_error(event),
                                  rd_kafka_event_error_string(event), err);
    resources = rd_kafka_DescribeConfigs_result_resources(result, &count);
    if (count != 1)
        return mr_fail(err, MR_ERR_RETRY, "an answer about %zu topics", count);
    if (rd_kafka_ConfigResource_error(resources[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return topic_admin_failed(admin, rd_kafka_ConfigResource_error(resources[0]),
                                  rd_kafka_ConfigResource_error_string(resources[0]), err);
    return pick_setting(resources[0], key, out, size, err);
}

int topic_admin_setting(struct topic_admin *admin, const char *topic, const char *key,
                        int64_t timeout_ms, char *out, size_t size, struct mr_error *err)
{
    rd_kafka_ConfigResource_t *resource;
    rd_kafka_AdminOptions_t *options;
    rd_kafka_event_t *event;
    struct mr_error why = {0};
    int rc;

    if (topic_admin_cancelled(admin))
        return closed(err);
    resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    if (resource == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "\"%.249s\" is no topic's name", topic);
    options = topic_admin_options(admin, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout_ms);
    rd_kafka_DescribeConfigs(admin->rk, &resource, 1, options, topic_admin_queue(admin));
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(resource);
    event = topic_admin_await(admin, timeout_ms, &why);
    if (event == NULL)
        return mr_fail(err, why.code, "%s", why.text);
    rc = described(admin, event, key, out, size, err);
    rd_kafka_event_destroy(event);
    return rc;
}

bool topic_admin_keeps(const char *policy)
{
    while (*policy == ' ')
        policy++;
    return strncmp(policy, "compact", 7) == 0 && policy[7 + strspn(policy + 7, " ")] == '\0';
}

/* --- partitions ------------------------------------------------------------------------------- */

static int counted(struct topic_admin *admin, const struct rd_kafka_metadata *metadata, int *count,
                   struct mr_error *err)
{
    const struct rd_kafka_metadata_topic *topic = &metadata->topics[0];

    if (metadata->topic_cnt != 1)
        return mr_fail(err, MR_ERR_RETRY, "an answer about %d topics", metadata->topic_cnt);
    if (topic->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return topic_admin_failed(admin, topic->err, NULL, err);
    if (topic->partition_cnt <= 0)
        return mr_fail(err, MR_ERR_RETRY, "its partitions are not known yet");
    for (int i = 0; i < topic->partition_cnt; i++)
        if (topic->partitions[i].leader < 0)
            return mr_fail(err, MR_ERR_RETRY, "partition %d has no leader",
                           (int)topic->partitions[i].id);
    *count = topic->partition_cnt;
    return 0;
}

static int replicated(struct topic_admin *admin, const struct rd_kafka_metadata *metadata,
                      int *count, struct mr_error *err)
{
    int partitions = 0, fewest;
    int rc = counted(admin, metadata, &partitions, err);

    if (rc != 0)
        return rc;
    fewest = metadata->topics[0].partitions[0].replica_cnt;
    for (int i = 1; i < partitions; i++)
        if (metadata->topics[0].partitions[i].replica_cnt < fewest)
            fewest = metadata->topics[0].partitions[i].replica_cnt;
    *count = fewest;
    return 0;
}

static int found(struct topic_admin *admin, const struct rd_kafka_metadata *metadata, int *count,
                 struct mr_error *err)
{
    rd_kafka_resp_err_t code =
        metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;

    (void)count;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
        return 0;
    return topic_admin_failed(admin, code, NULL, err);
}

typedef int (*metadata_reader)(struct topic_admin *admin, const struct rd_kafka_metadata *metadata,
                               int *count, struct mr_error *err);

static int ask_metadata(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                        metadata_reader read, int *count, struct mr_error *err)
{
    struct wait wait = wait_for(timeout_ms);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(admin->rk, topic, NULL);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    const struct rd_kafka_metadata *metadata = NULL;
    int slice, rc;

    if (rkt == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "\"%.249s\" is no topic's name", topic);
    while (metadata == NULL && !topic_admin_cancelled(admin) && (slice = next_slice(&wait)) > 0)
        code = rd_kafka_metadata(admin->rk, 0, rkt, &metadata, slice);
    rd_kafka_topic_destroy(rkt);
    if (metadata == NULL)
        return topic_admin_cancelled(admin) ? closed(err)
                                            : topic_admin_failed(admin, code, NULL, err);
    rc = read(admin, metadata, count, err);
    rd_kafka_metadata_destroy(metadata);
    return rc;
}

int topic_admin_exists(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                       struct mr_error *err)
{
    return ask_metadata(admin, topic, timeout_ms, found, NULL, err);
}

int topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                           int *count, struct mr_error *err)
{
    return ask_metadata(admin, topic, timeout_ms, counted, count, err);
}

int topic_admin_replicas(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                         int *count, struct mr_error *err)
{
    return ask_metadata(admin, topic, timeout_ms, replicated, count, err);
}

/* --- ends ------------------------------------------------------------------------------------- */

static rd_kafka_topic_partition_list_t *all_ends(const char *topic, int count)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);

    for (int i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_END;
    return list;
}

static int ended(struct topic_admin *admin, const rd_kafka_topic_partition_list_t *list,
                 int64_t *ends, struct mr_error *err)
{
    for (int i = 0; i < list->cnt; i++) {
        if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR)
            return topic_admin_failed(admin, list->elems[i].err, NULL, err);
        if (list->elems[i].offset < 0)
            return mr_fail(err, MR_ERR_RETRY, "the end of partition %d is not known",
                           (int)list->elems[i].partition);
    }
    for (int i = 0; i < list->cnt; i++)
        ends[list->elems[i].partition] = list->elems[i].offset;
    return 0;
}

int topic_admin_ends(struct topic_admin *admin, const char *topic, int count, int64_t timeout_ms,
                     int64_t *ends, struct mr_error *err)
{
    struct wait wait = wait_for(timeout_ms);
    struct mr_error last = {0};
    int slice, rc = MR_ERR_RETRY;

    while (rc == MR_ERR_RETRY && !topic_admin_cancelled(admin) && (slice = next_slice(&wait)) > 0) {
        rd_kafka_topic_partition_list_t *list = all_ends(topic, count);
        rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(admin->rk, list, slice);

        err_clear(&last);
        rc = code != RD_KAFKA_RESP_ERR_NO_ERROR ? topic_admin_failed(admin, code, NULL, &last)
                                                : ended(admin, list, ends, &last);
        rd_kafka_topic_partition_list_destroy(list);
    }
    if (rc == 0)
        return 0;
    if (topic_admin_cancelled(admin))
        return closed(err);
    return mr_fail(err, rc, "%s", last.text[0] != '\0' ? last.text : "no time to ask");
}
