/* SPDX-License-Identifier: Apache-2.0 */
/* From the worker's file to three topics that can be relied on. A topic that forgets records by age
 * (cleanup.policy=delete) would lose connectors and offsets weeks later, without a sign: so it is
 * refused by name at the start. What a worker has no right to ask is assumed to be well, as in
 * Java, with a line in the log.
 *
 * Clients get the worker's unprefixed properties that a client of that kind knows, then what must
 * be so. delivery.timeout.ms is not Java's infinity: a write is over, one way or the other, when
 * the call that asked for it gives up. */
#include "worker/store/internal_topics.h"

#include "base/clock.h"
#include "worker/store/cluster_store.h"

#define LOGGER "worker.store"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <strings.h>

#define ASK_MS 10000  /* one question */
#define BRIEF_MS 2000 /* one about an optional topic, for which nothing else shall wait long */
#define SAY_MS 5000   /* between two lines about the same trouble */
#define QUIET_MS 1000 /* before the first: a topic that was just made takes a moment to show */
#define AGAIN_MS 250  /* between two tries */

static const struct kind {
    const char *prefix; /* of its settings */
    const char *name_key;
    const char *client; /* end of its clients' ids */
    const char *purpose;
    const char *missing;
    const char *partitions; /* by default; NULL: exactly one */
} kinds[INTERNAL_TOPICS] = {
    [TOPIC_OFFSETS] = {"offset.storage.", "offset.storage.topic", "offsets",
                       "source connector offsets", "Offset storage topic must be specified", "25"},
    [TOPIC_STATUS] = {"status.storage.", "status.storage.topic", "statuses",
                      "connector and task statuses", "Must specify topic for connector status.",
                      "5"},
    [TOPIC_CONFIG] = {"config.storage.", "config.storage.topic", "configs",
                      "connector configurations", "Must specify topic for connector configuration.",
                      NULL},
};

/* <group.id>-millrace. */
static const struct kind words = {
    .name_key = "group.id", .client = "words", .purpose = "words between workers"};

/* --- settings --------------------------------------------------------------------------------- */

static int bad_value(const char *key, const char *value, const char *why, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CONFIG, "Invalid value %s for configuration %s: %s", value, key,
                   why);
}

/* A whole number from 1 on, or -1 for the broker's default. */
static int read_number(const struct props *worker, const char *prefix, const char *name,
                       const char *fallback, int *out, struct mr_error *err)
{
    char key[128], *end;
    const char *value;
    long number;

    snprintf(key, sizeof(key), "%s%s", prefix, name);
    value = props_get(worker, key);
    value = value != NULL ? value : fallback;
    errno = 0;
    number = strtol(value, &end, 10);
    end += strspn(end, " \t");
    if (errno != 0 || end == value || *end != '\0' || number > 100000)
        return bad_value(key, value, "not a number that a topic can have", err);
    if (number < 1 && number != -1)
        return bad_value(key, value, "Value must be at least 1, or -1 for the broker's default",
                         err);
    *out = (int)number;
    return 0;
}

/* What else stands below the prefix goes to the topic. */
static void read_settings(const struct props *worker, const struct kind *kind,
                          struct internal_topic *topic)
{
    mr_assert(props_subset(worker, kind->prefix, &topic->settings) == 0);
    props_remove(&topic->settings, "topic");
    props_remove(&topic->settings, "replication.factor");
    if (kind->partitions == NULL && props_find(&topic->settings, "partitions") != NULL)
        log_warn("%spartitions is ignored: that topic must have exactly one partition",
                 kind->prefix);
    props_remove(&topic->settings, "partitions");
    if (props_find(&topic->settings, "cleanup.policy") != NULL)
        log_warn("%scleanup.policy is ignored: that topic must be compacted, and only compacted",
                 kind->prefix);
    props_set(&topic->settings, "cleanup.policy", "compact");
}

/* --- clients ---------------------------------------------------------------------------------- */

static void base_id(const struct props *worker, char *out, size_t size)
{
    const char *client = props_get(worker, "client.id");

    if (client != NULL && client[strspn(client, " \t")] != '\0')
        snprintf(out, size, "%s-%s-", props_get(worker, "group.id"), client);
    else
        snprintf(out, size, "%s-", props_get(worker, "group.id"));
}

/* What a client of this kind knows of the worker's own settings, with its id. */
static void inherit(const struct props *worker, enum client_kind kind, const char *id,
                    struct props *out)
{
    char base[1024], whole[1100];

    props_init(out);
    for (const char *const *name = client_conf_names(kind); *name != NULL; name++) {
        const char *value = props_get(worker, *name);

        if (value != NULL)
            mr_assert(props_set(out, *name, value) == 0);
    }
    base_id(worker, base, sizeof(base));
    snprintf(whole, sizeof(whole), "%s%s", base, id);
    mr_assert(props_set(out, "client.id", whole) == 0);
}

static void force(struct props *out, const char *const settings[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        mr_assert(props_set(out, settings[i][0], settings[i][1]) == 0);
}

/* A delivery may not be given up before its first request is (Java's rule too). */
static void set_delivery(const struct props *worker, struct props *producer)
{
    const char *request = props_get(worker, "request.timeout.ms"),
               *linger = props_get(worker, "linger.ms");
    long least = (request != NULL ? strtol(request, NULL, 10) : 0) +
                 (linger != NULL ? strtol(linger, NULL, 10) : 0);
    char text[24];

    snprintf(text, sizeof(text), "%ld",
             least > CLUSTER_STORE_WRITE_MS ? least : (long)CLUSTER_STORE_WRITE_MS);
    mr_assert(props_set(producer, "delivery.timeout.ms", text) == 0);
}

/* Whoever leads writes under one id, so that a leader of before can't any more. */
static void set_leader(const struct props *worker, struct internal_topic *topic)
{
    static const char *const settings[][2] = {
        {"acks", "all"},
        {"enable.idempotence", "true"},
        {"max.in.flight.requests.per.connection", "5"},
    };
    const char *support = props_get(worker, "exactly.once.source.support");
    char *id = NULL;

    topic->fenced = topic->kind == TOPIC_CONFIG && support != NULL &&
                    (strcasecmp(support, "enabled") == 0 || strcasecmp(support, "preparing") == 0);
    inherit(worker, CLIENT_PRODUCER, "configs-leader", &topic->leader);
    force(&topic->leader, settings, sizeof(settings) / sizeof(*settings));
    set_delivery(worker, &topic->leader);
    mr_assert(asprintf(&id, "connect-cluster-%s", props_get(worker, "group.id")) > 0 &&
              props_set(&topic->leader, "transactional.id", id) == 0);
    free(id);
}

static void make_clients(const struct props *worker, const struct kind *kind,
                         struct internal_topic *topic)
{
    static const char *const producer[][2] = {
        {"acks", "all"},
        {"max.in.flight.requests.per.connection", "1"},
        {"enable.idempotence", "false"},
    };
    const char *exactly_once = props_get(worker, "exactly.once.source.support");

    inherit(worker, CLIENT_CONSUMER, kind->client, &topic->consumer);
    props_remove(&topic->consumer, "group.id");
    props_remove(&topic->consumer, "group.instance.id");
    if (exactly_once != NULL && strcasecmp(exactly_once, "enabled") == 0)
        props_set(&topic->consumer, "isolation.level", "read_committed");
    inherit(worker, CLIENT_PRODUCER, kind->client, &topic->producer);
    props_remove(&topic->producer, "transactional.id");
    force(&topic->producer, producer, sizeof(producer) / sizeof(*producer));
    set_delivery(worker, &topic->producer);
    set_leader(worker, topic);
    if (topic->kind == TOPIC_STATUS) /* a status may be stale by the second try: the loop decides */
        props_set(&topic->producer, "retries", "0");
}

/* --- reading the worker's file ---------------------------------------------------------------- */

static int init_topic(struct internal_topics *topics, enum internal_topic_kind number,
                      const struct props *worker, struct mr_error *err)
{
    const struct kind *kind = &kinds[number];
    struct internal_topic *topic = &topics->topics[number];
    const char *name = props_get(worker, kind->name_key);
    int rc;

    *topic = (struct internal_topic){
        .kind = number, .name_key = kind->name_key, .purpose = kind->purpose, .partitions = 1};
    props_init(&topic->settings);
    props_init(&topic->consumer);
    props_init(&topic->producer);
    if (name == NULL || name[strspn(name, " \t")] == '\0')
        return mr_fail(err, MR_ERR_CONFIG, "%s Set %s", kind->missing, kind->name_key);
    mr_assert(props_set(&topics->names, kind->name_key, name) == 0);
    rc = read_number(worker, kind->prefix, "replication.factor", "3", &topic->replication, err);
    if (rc == 0 && kind->partitions != NULL)
        rc = read_number(worker, kind->prefix, "partitions", kind->partitions, &topic->partitions,
                         err);
    if (rc != 0)
        return rc;
    read_settings(worker, kind, topic);
    make_clients(worker, kind, topic);
    return 0;
}

/* Replicated as the config topic is. */
static void init_words(struct internal_topics *topics, const struct props *worker)
{
    struct internal_topic *topic = &topics->topics[TOPIC_WORDS];
    char *name = NULL;

    mr_assert(asprintf(&name, "%s-millrace", props_get(worker, "group.id")) > 0);
    mr_assert(props_set(&topics->names, words.name_key, name) == 0);
    free(name);
    *topic = (struct internal_topic){.kind = TOPIC_WORDS,
                                     .optional = true,
                                     .name_key = words.name_key,
                                     .purpose = words.purpose,
                                     .partitions = 1,
                                     .replication = topics->topics[TOPIC_CONFIG].replication};
    props_init(&topic->settings);
    mr_assert(props_set(&topic->settings, "cleanup.policy", "compact") == 0);
    make_clients(worker, &words, topic);
    topic->name = props_get(&topics->names, words.name_key);
}

int internal_topics_init(struct internal_topics *topics, const struct props *worker,
                         struct mr_error *err)
{
    const char *group = props_get(worker, "group.id");
    int rc = 0;

    *topics = (struct internal_topics){0};
    props_init(&topics->names);
    props_init(&topics->admin);
    if (group == NULL || group[strspn(group, " \t")] == '\0')
        return mr_fail(err, MR_ERR_CONFIG,
                       "Missing required configuration \"group.id\" which has no default value.");
    for (int i = 0; rc == 0 && i < INTERNAL_TOPICS; i++)
        rc = init_topic(topics, (enum internal_topic_kind)i, worker, err);
    if (rc == 0)
        init_words(topics, worker);
    for (int i = 0; rc == 0 && i < INTERNAL_TOPICS; i++)
        topics->topics[i].name = props_get(&topics->names, kinds[i].name_key);
    if (rc == 0)
        inherit(worker, CLIENT_ADMIN, "shared-admin", &topics->admin);
    else
        internal_topics_deinit(topics);
    return rc;
}

void internal_topics_deinit(struct internal_topics *topics)
{
    for (int i = 0; i < ALL_TOPICS; i++) {
        props_deinit(&topics->topics[i].settings);
        props_deinit(&topics->topics[i].consumer);
        props_deinit(&topics->topics[i].producer);
        props_deinit(&topics->topics[i].leader);
    }
    props_deinit(&topics->names);
    props_deinit(&topics->admin);
}

/* --- brokers ---------------------------------------------------------------------------------- */

struct tries {
    int64_t since_ms;
    int64_t said_ms;
};

/* After MR_ERR_RETRY: say it now and then, wait a little. */
static void try_again(struct tries *tries, const struct internal_topic *topic, struct mr_error *err)
{
    int64_t now = clock_ms();

    if (now - tries->since_ms >= QUIET_MS &&
        (tries->said_ms == 0 || now - tries->said_ms >= SAY_MS)) {
        log_warn("topic %s (%s): not ready yet, tried again: %s", topic->name, topic->name_key,
                 err->text);
        tries->said_ms = now;
    }
    err_clear(err);
    poll(NULL, 0, AGAIN_MS);
}

static int64_t ask_ms(const struct internal_topic *topic)
{
    return topic->optional ? BRIEF_MS : ASK_MS;
}

static int create(const struct internal_topic *topic, struct topic_admin *admin, int64_t give_up_ms,
                  struct mr_error *err)
{
    struct topic_admin_spec spec = {topic->name, topic->partitions, topic->replication,
                                    &topic->settings};
    struct tries tries = {clock_ms(), 0};
    int rc;

    for (;;) {
        bool answered;

        rc = topic_admin_create(admin, &spec, ask_ms(topic), err);
        /* The broker's own words begin so when there are too few brokers; without an answer it is
         * waited for ever. */
        answered = strncmp(err->text, "Unable to replicate", 19) == 0 ||
                   strstr(err->text, "eplication factor") != NULL;
        if (rc != MR_ERR_RETRY)
            return rc;
        if (answered && topic->optional && spec.replication > 0) {
            spec.replication = -1; /* the broker's own will do */
            err_clear(err);
            continue;
        }
        if ((answered || topic->optional) && clock_ms() - tries.since_ms >= give_up_ms) {
            err_prefix(err, "Unable to create topic(s) %s", topic->name);
            err->code = MR_ERR_CONFIG;
            return MR_ERR_CONFIG;
        }
        try_again(&tries, topic, err);
    }
}

static int check_policy(const struct internal_topic *topic, struct topic_admin *admin,
                        int64_t timeout_ms, struct mr_error *err)
{
    struct mr_error own = {0};
    char policy[128];
    int rc = topic_admin_setting(admin, topic->name, "cleanup.policy", timeout_ms, policy,
                                 sizeof(policy), &own);

    if (rc == MR_ERR_UNSUPPORTED) {
        log_warn("topic %s: its cleanup.policy can't be read (%s); it is taken to be compact. The "
                 "ACL DescribeConfigs on the topic lets the worker check",
                 topic->name, own.text);
        return 0;
    }
    if (rc != 0)
        return mr_fail(err, rc, "%s", own.text);
    if (topic_admin_keeps(policy))
        return 0;
    if (topic->optional)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Topic '%s' has 'cleanup.policy=%s' and must have 'compact': set it right "
                       "(kafka-configs.sh --alter --topic %s --add-config cleanup.policy=compact)",
                       topic->name, policy, topic->name);
    return mr_fail(
        err, MR_ERR_CONFIG,
        "Topic '%s' supplied via the '%s' property is required to have 'cleanup.policy=compact' to "
        "guarantee consistency and durability of %s, but found the topic currently has "
        "'cleanup.policy=%s'. Kafka would delete them by age: set the topic right "
        "(kafka-configs.sh "
        "--alter --topic %s --add-config cleanup.policy=compact), or name another topic in %s",
        topic->name, topic->name_key, topic->purpose, policy, topic->name, topic->name_key);
}

static int check_partitions(const struct internal_topic *topic, struct topic_admin *admin,
                            int64_t timeout_ms, int *partitions, struct mr_error *err)
{
    int rc = topic_admin_partitions(admin, topic->name, timeout_ms, partitions, err);

    if (rc == MR_ERR_UNSUPPORTED)
        err_prefix(err,
                   "Topic '%s' (%s) may not be used: the worker's principal needs the ACLs Read, "
                   "Write and Describe on it",
                   topic->name, topic->name_key);
    if (rc != 0 || topic->kind != TOPIC_CONFIG || *partitions == 1)
        return rc;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Topic '%s' supplied via the '%s' property is required to have a single "
                   "partition in order to guarantee consistency of connector configurations, but "
                   "found %d partitions. Name another topic in %s, or delete this one",
                   topic->name, topic->name_key, *partitions, topic->name_key);
}

int internal_topics_verify(const struct internal_topic *topic, struct topic_admin *admin,
                           int64_t timeout_ms, int *partitions, struct mr_error *err)
{
    int rc = check_policy(topic, admin, timeout_ms, err);

    return rc == 0 ? check_partitions(topic, admin, timeout_ms, partitions, err) : rc;
}

/* Creating may not be allowed: then the topic must be there, or come. */
static int denied(const struct internal_topic *topic, struct mr_error *err)
{
    char text[sizeof(err->text)];

    snprintf(text, sizeof(text), "%s", err->text);
    err_clear(err);
    return mr_fail(
        err, MR_ERR_UNSUPPORTED,
        "Topic '%s' (%s) does not exist, and may not be created: %s. Create it (compacted"
        "%s), or give the worker's principal the ACL Create on it",
        topic->name, topic->name_key, text, topic->kind == TOPIC_CONFIG ? ", one partition" : "");
}

int internal_topics_ensure(const struct internal_topic *topic, struct topic_admin *admin,
                           int64_t give_up_ms, int *partitions, struct mr_error *err)
{
    struct mr_error refusal = {0};
    struct tries tries = {clock_ms(), 0};
    int rc = create(topic, admin, give_up_ms, &refusal);
    bool fresh = rc == 0;

    if (fresh)
        log_info("topic %s (%s) was created", topic->name, topic->name_key);
    else if (rc != MR_ERR_EXISTS && rc != MR_ERR_UNSUPPORTED)
        return rc == MR_ERR_CLOSED ? mr_fail(err, rc, "%s", refusal.text)
                                   : mr_fail(err, rc, "%s: %s", topic->name_key, refusal.text);
    for (;;) {
        struct mr_error own = {0};

        rc = internal_topics_verify(topic, admin, ask_ms(topic), partitions, &own);
        if (rc == 0)
            return 0;
        if (rc == MR_ERR_NOT_FOUND && !fresh && refusal.code == MR_ERR_UNSUPPORTED)
            return mr_fail(err, MR_ERR_UNSUPPORTED, "%s", (denied(topic, &refusal), refusal.text));
        if ((rc == MR_ERR_NOT_FOUND || (rc == MR_ERR_RETRY && topic->optional)) &&
            clock_ms() - tries.since_ms >= give_up_ms)
            return mr_fail(err, MR_ERR_TIMEOUT,
                           "Timed out while checking for or creating topic(s) '%s': %s",
                           topic->name, own.text);
        if (rc != MR_ERR_RETRY && rc != MR_ERR_NOT_FOUND)
            return mr_fail(err, rc, "%s", own.text);
        try_again(&tries, topic, &own);
    }
}
