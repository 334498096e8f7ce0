/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for a topic before the first record goes to it, and creates it by the rules of its group
 * (model/topic_groups). Called by sender.c, and made by source_task.c; on the task's thread.
 *
 * What is there, or was created meanwhile by somebody else, is not looked at again. Where Connect
 * fails the task it fails here, with the same text: rights that are missing, settings that the
 * brokers refuse, no answer within default.api.timeout.ms. An answer that may come out differently
 * soon (a broker too few while they start) is asked for again for some seconds. The admin client
 * lives from the first unknown topic of a batch to the end of that batch: most tasks need it
 * once. */
#include "host/task/send/topic_create.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "host/task/topic_patience.h"
#include "kafka/topic_admin.h"
#include "model/topic_groups.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.send"
#include "base/log.h"

#define ASK_MS 1500       /* one request */
#define PAUSE_MS 100      /* between two of them */
#define REFUSED_MS 10000  /* refused for now: so long */
#define ANSWER_MS 60000   /* default.api.timeout.ms of Java's admin client */
#define DESCRIBED_MAX 700 /* bytes of a topic's description in an error */

struct topic_create {
    struct topic_create_spec spec;
    struct topic_groups groups;
    struct props java;         /* the admin client's settings */
    struct topic_admin *admin; /* NULL while nothing is asked */
    struct map *known;         /* names of topics that are there */
    int64_t answer_ms;
};

/* --- texts ------------------------------------------------------------------------------------ */

static const char *number(int n, char *out, size_t size)
{
    snprintf(out, size, n == -1 ? "default" : "%d", n);
    return out;
}

/* As Java prints a NewTopic. */
static void describe(const struct topic_group *group, const char *topic, struct buf *out)
{
    char partitions[16], replication[16];

    buf_printf(
        out,
        "(name=%s, numPartitions=%s, replicationFactor=%s, replicasAssignments=null, configs={",
        topic, number(group->partitions, partitions, sizeof(partitions)),
        number(group->replication, replication, sizeof(replication)));
    for (size_t i = 0; i < group->settings.count; i++) {
        const struct props_entry *e = &group->settings.entries[i];

        buf_printf(out, "%s%s=%s", i > 0 ? ", " : "", e->key, e->value != NULL ? e->value : "null");
    }
    buf_puts(out, "})");
}

static int not_authorised(const struct topic_group *group, const char *topic, struct mr_error *err)
{
    struct buf text;

    buf_init(&text, DESCRIBED_MAX);
    describe(group, topic, &text);
    log_warn("topic %s can't be created: %s", topic, err->text);
    err_clear(err);
    mr_fail(err, MR_ERR_FATAL,
            "Task failed to create new topic %s. Ensure that the task is authorized to create "
            "topics or that the topic exists and restart the task",
            text.data != NULL ? text.data : topic);
    buf_deinit(&text);
    return MR_ERR_FATAL;
}

/* --- asking ----------------------------------------------------------------------------------- */

typedef int (*ask_fn)(struct topic_create *t, const struct topic_group *group, const char *topic,
                      struct mr_error *err);

static int ask_exists(struct topic_create *t, const struct topic_group *group, const char *topic,
                      struct mr_error *err)
{
    (void)group;
    return topic_admin_exists(t->admin, topic, ASK_MS, err);
}

static int ask_create(struct topic_create *t, const struct topic_group *group, const char *topic,
                      struct mr_error *err)
{
    const struct topic_admin_spec spec = {.topic = topic,
                                          .partitions = group->partitions,
                                          .replication = group->replication,
                                          .settings = &group->settings};

    return topic_admin_create(t->admin, &spec, ASK_MS, err);
}

/* Ask until there is an answer that stays; MR_ERR_RETRY: there was none in time; MR_ERR_FULL:
 * called off. What comes back before the request's time is up is an answer, if not a lasting
 * one. */
static int ask(struct topic_create *t, ask_fn request, const struct topic_group *group,
               const char *topic, struct mr_error *err)
{
    struct topic_patience patience = {
        .silent_ms = t->answer_ms, .refused_ms = REFUSED_MS, .began_ms = clock_ms()};

    for (;;) {
        int64_t asked_ms = clock_ms(), now_ms;
        int rc;

        err_clear(err);
        rc = request(t, group, topic, err);
        now_ms = clock_ms();
        if (rc != MR_ERR_RETRY ||
            !topic_patience_lasts(&patience, now_ms - asked_ms < ASK_MS, now_ms))
            return rc;
        if (!t->spec.wait(t->spec.arg, PAUSE_MS))
            return MR_ERR_FULL;
    }
}

/* Words before what the client said. */
static int fail(struct mr_error *err, const char *words, const char *topic)
{
    struct mr_error why = *err;

    err_clear(err);
    return mr_fail(err, MR_ERR_FATAL, "%s '%.249s': %.600s", words, topic, why.text);
}

static int look_for(struct topic_create *t, const char *topic, struct mr_error *err)
{
    int rc = ask(t, ask_exists, NULL, topic, err);

    if (rc == MR_OK || rc == MR_ERR_NOT_FOUND || rc == MR_ERR_FULL)
        return rc;
    return fail(err,
                rc == MR_ERR_UNSUPPORTED ? "Not authorized to describe topic(s)"
                : rc == MR_ERR_RETRY     ? "Timed out while describing topics"
                                         : "Error while attempting to describe topics",
                topic);
}

static int create(struct topic_create *t, const char *topic, struct mr_error *err)
{
    const struct topic_group *group = topic_groups_find(&t->groups, topic, err);
    int rc = group != NULL ? ask(t, ask_create, group, topic, err) : MR_ERR_DATA;

    switch (rc) {
    case MR_OK:
        log_info("created topic %s by topic creation group %s", topic, group->name);
        return MR_OK;
    case MR_ERR_EXISTS:
        err_clear(err);
        log_info("topic %s, of topic creation group %s, is there", topic, group->name);
        return MR_OK;
    case MR_ERR_FULL:
        return rc;
    case MR_ERR_UNSUPPORTED:
        return not_authorised(group, topic, err);
    case MR_ERR_CONFIG:
        return fail(err, "Unable to create topic(s)", topic);
    default:
        return fail(err, "Error while attempting to create/find topic(s)", topic);
    }
}

static int open_admin(struct topic_create *t, struct mr_error *err)
{
    if (t->admin == NULL)
        t->admin = topic_admin_new(&t->java, NULL, NULL, err);
    return t->admin == NULL ? MR_ERR_FATAL : MR_OK;
}

int topic_create_ensure(struct topic_create *topics, const char *topic, struct mr_error *err)
{
    int rc;

    if (topics == NULL || map_get(topics->known, topic) != NULL)
        return MR_OK;
    rc = open_admin(topics, err);
    if (rc == MR_OK)
        rc = look_for(topics, topic, err);
    if (rc == MR_ERR_NOT_FOUND) {
        err_clear(err);
        rc = create(topics, topic, err);
    }
    if (rc == MR_ERR_FULL)
        err_clear(err);
    if (rc == MR_OK)
        map_set(topics->known, topic, topics);
    return rc;
}

void topic_create_rest(struct topic_create *topics)
{
    if (topics != NULL)
        topic_admin_free(&topics->admin);
}

/* --- life ------------------------------------------------------------------------------------- */

static int open_client(struct topic_create *t, struct mr_error *err)
{
    char id[512];
    int rc;

    task_client_id(&t->spec.client, "adminclient", id, sizeof(id));
    rc = task_client_admin(&t->spec.client, id, &t->java, err);
    if (rc == MR_OK)
        rc = client_conf_check(CLIENT_ADMIN, &t->java, err);
    t->answer_ms = task_client_number(&t->java, "default.api.timeout.ms", ANSWER_MS, 0, INT32_MAX);
    return rc;
}

int topic_create_open(const struct topic_create_spec *spec, struct topic_create **out,
                      struct mr_error *err)
{
    struct topic_create *t;
    int rc;

    *out = NULL;
    if (!topic_groups_wanted(spec->client.worker, spec->client.config))
        return MR_OK;
    t = calloc(1, sizeof(*t));
    mr_assert(t != NULL);
    t->spec = *spec;
    t->known = map_new();
    rc = topic_groups_read(spec->client.config, &t->groups, err);
    if (rc == MR_OK)
        rc = open_client(t, err);
    if (rc == MR_OK)
        *out = t;
    else
        topic_create_close(&t);
    return rc;
}

void topic_create_close(struct topic_create **topics)
{
    struct topic_create *t = *topics;

    *topics = NULL;
    if (t == NULL)
        return;
    topic_create_rest(t);
    topic_groups_deinit(&t->groups);
    props_deinit(&t->java);
    map_free(&t->known, NULL);
    free(t);
}
