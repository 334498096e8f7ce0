/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls: a loop of our own, run until the answer is there.
 *
 * attempt() sends one request and runs the loop; insist() repeats it while the answer says that
 * another try may help and the time lasts, with retry.backoff.ms between. The coordinator of the
 * newest group or transactional id is kept, so that a run of calls about one group shares its
 * connection. */
#include "wire/wire_call.h"

#include "base/clock.h"
#include "wire/kafka_code.h"
#include "wire_private.h"
#include "wire_route.h"

#include <stdlib.h>
#include <string.h>

struct wire_call {
    struct loop *loop;
    struct wire_conf *conf;
    struct wire_client *client;
    struct coordinator *coordinator;
    struct coordinator_to to; /* of coordinator; key owned */
};

/* One call of the caller's. take: look at an answer while it is there, once it has no error that is
 * for the whole. */
struct job {
    struct wire_call *call;
    struct request request;
    const char *key; /* NULL: any broker, or `broker` */
    enum request_key_type type;
    int32_t broker; /* -1: any */
    int64_t due_ms;
    int (*take)(struct job *job, const struct answer *answer, struct mr_error *err);
    void *arg;
    /* of one attempt */
    bool again; /* what came may be tried again */
    int rc;
    struct mr_error err;
    /* By an earlier attempt: says more than that the last one ran out of time. */
    struct mr_error told;
};

static int64_t left_ms(const struct job *job)
{
    int64_t ms = job->due_ms - clock_ms();

    return ms > 0 ? ms : 0;
}

/* --- one attempt ------------------------------------------------------------------------------ */

/* An error code in words. MR_ERR_FATAL, or MR_ERR_IO where another attempt may help. */
static int code_in_words(struct job *job, int16_t code, struct mr_error *err)
{
    const char *hint = kafka_code_hint(code);
    bool again = kafka_code_act(code) != KAFKA_CODE_FATAL;

    job->again = again;
    return mr_fail(err, again ? MR_ERR_IO : MR_ERR_FATAL, "%s was answered with %s (%d)%s%s",
                   request_name(job->request.api), kafka_code_name(code), code,
                   hint[0] != '\0' ? ": " : "", hint);
}

static void on_answer(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct job *job = arg;

    if (err != NULL) {
        job->err = *err;
        job->rc = err->code;
        job->again = !wire_route_fatal(err);
    } else {
        job->rc = job->take(job, answer, &job->err);
    }
    loop_stop(job->call->loop);
}

static int aim(struct job *job)
{
    struct wire_call *call = job->call;

    if (call->coordinator != NULL && call->to.type == job->type &&
        strcmp(call->to.key, job->key) == 0)
        return 0;
    coordinator_free(&call->coordinator);
    free((char *)(uintptr_t)call->to.key);
    call->to = (struct coordinator_to){.key = strdup(job->key), .type = job->type};
    if (call->to.key == NULL)
        return mr_fail(&job->err, MR_ERR_NOMEM, "out of memory");
    call->coordinator = coordinator_new(call->client, &call->to, NULL, NULL, &job->err);
    return call->coordinator != NULL ? 0 : MR_ERR_NOMEM;
}

static int send_job(struct job *job)
{
    struct wire_call *call = job->call;
    int64_t ms = left_ms(job);

    ms = ms < call->conf->request_timeout_ms ? ms : call->conf->request_timeout_ms;
    if (job->key == NULL)
        return job->broker >= 0
                   ? wire_client_call_broker(call->client, job->broker, &job->request, ms,
                                             on_answer, job, &job->err)
                   : wire_client_call(call->client, &job->request, ms, on_answer, job, &job->err);
    if (aim(job) != 0)
        return job->err.code;
    return coordinator_call(call->coordinator, COORDINATOR_MAIN, &job->request, ms, on_answer, job,
                            &job->err);
}

static void attempt(struct job *job)
{
    if (job->err.code != 0 && job->err.code != MR_ERR_TIMEOUT)
        job->told = job->err;
    err_clear(&job->err);
    job->again = false;
    job->rc = send_job(job);
    if (job->rc == 0)
        loop_run(job->call->loop);
}

/* --- until it is done ------------------------------------------------------------------------- */

static void stop(void *arg)
{
    loop_stop(arg);
}

static void pause_a_little(struct job *job)
{
    struct loop_timer timer = {0};
    int64_t ms = job->call->conf->retry_backoff_ms;

    loop_timer_start(job->call->loop, &timer, ms < left_ms(job) ? ms : left_ms(job), stop,
                     job->call->loop);
    loop_run(job->call->loop);
}

static int fail_job(const struct job *job, struct mr_error *err)
{
    const struct mr_error *why =
        job->err.code == MR_ERR_TIMEOUT && job->told.code != 0 ? &job->told : &job->err;

    return mr_fail(err, why->code, "%s", why->text);
}

static int insist(struct job *job, struct mr_error *err)
{
    for (;;) {
        attempt(job);
        if (job->rc == 0)
            return 0;
        if (!job->again || left_ms(job) == 0)
            return fail_job(job, err);
        pause_a_little(job);
    }
}

/* --- the calls -------------------------------------------------------------------------------- */

static int take_members(struct job *job, const struct answer *answer, struct mr_error *err)
{
    const struct wire_call_members *what = job->arg;
    const struct answer_describe_group *d = &answer->describe_group;

    if (answer->error == KAFKA_CODE_GROUP_ID_NOT_FOUND)
        return 0;
    if (answer->error != 0)
        return code_in_words(job, answer->error, err);
    for (size_t i = 0; i < d->member_count; i++)
        if (what->client_id == NULL || strcmp(what->client_id, d->members[i].client_id) == 0)
            what->fn(what->arg, &d->members[i]);
    return 0;
}

int wire_call_members(struct wire_call *call, const struct wire_call_members *what,
                      int64_t timeout_ms, struct mr_error *err)
{
    struct job job = {
        .call = call,
        .request = {.api = REQUEST_DESCRIBE_GROUP, .describe_group.group = what->group},
        .key = what->group,
        .type = REQUEST_KEY_GROUP,
        .due_ms = clock_ms() + timeout_ms,
        .take = take_members,
        .arg = (void *)(uintptr_t)what};

    return insist(&job, err);
}

static int take_leave(struct job *job, const struct answer *answer, struct mr_error *err)
{
    if (answer->error == 0 || answer->error == KAFKA_CODE_UNKNOWN_MEMBER_ID ||
        answer->error == KAFKA_CODE_GROUP_ID_NOT_FOUND)
        return 0;
    return code_in_words(job, answer->error, err);
}

int wire_call_leave(struct wire_call *call, const char *group, const char *member,
                    int64_t timeout_ms, struct mr_error *err)
{
    struct job job = {
        .call = call,
        .request = {.api = REQUEST_LEAVE_GROUP, .leave_group = {.group = group, .member = member}},
        .key = group,
        .type = REQUEST_KEY_GROUP,
        .due_ms = clock_ms() + timeout_ms,
        .take = take_leave};

    return insist(&job, err);
}

static int take_fence(struct job *job, const struct answer *answer, struct mr_error *err)
{
    return answer->error == 0 ? 0 : code_in_words(job, answer->error, err);
}

int wire_call_fence(struct wire_call *call, const struct wire_call_fence *what, int64_t timeout_ms,
                    struct mr_error *err)
{
    struct job job = {
        .call = call,
        .request = {.api = REQUEST_INIT_PRODUCER_ID,
                    .init_producer_id = {.transactional_id = what->transactional_id,
                                         .transaction_timeout_ms = what->transaction_timeout_ms}},
        .key = what->transactional_id,
        .type = REQUEST_KEY_TRANSACTION,
        .due_ms = clock_ms() + timeout_ms,
        .take = take_fence};

    return insist(&job, err);
}

struct text_out {
    char *text;
    size_t size;
};

static int take_cluster_id(struct job *job, const struct answer *answer, struct mr_error *err)
{
    const struct text_out *out = job->arg;
    const char *id = answer->metadata.cluster_id != NULL ? answer->metadata.cluster_id : "";
    size_t len = strlen(id);

    if (len >= out->size)
        return mr_fail(err, MR_ERR_TOO_LARGE, "the cluster id is longer than %zu bytes",
                       out->size - 1);
    memcpy(out->text, id, len + 1);
    return 0;
}

int wire_call_cluster_id(struct wire_call *call, int64_t timeout_ms, char *out, size_t size,
                         struct mr_error *err)
{
    struct text_out to = {.text = out, .size = size};
    struct job job = {.call = call,
                      .request = {.api = REQUEST_METADATA},
                      .broker = -1,
                      .due_ms = clock_ms() + timeout_ms,
                      .take = take_cluster_id,
                      .arg = &to};

    return insist(&job, err);
}

/* --- offsets: leaders first, then each leader for its partitions ------------------------------ */

struct offsets {
    const struct request_list_offsets *what;
    int32_t *leaders; /* of what->partitions[i]; -1: not known yet */
    bool *done;
    int64_t *found;
};

static size_t place_of(const struct offsets *o, int32_t partition)
{
    size_t i = 0;

    while (i < o->what->partition_count && o->what->partitions[i] != partition)
        i++;
    return i;
}

static int take_leaders(struct job *job, const struct answer *answer, struct mr_error *err)
{
    struct offsets *o = job->arg;
    const struct answer_topic *t = answer->metadata.topics;

    if (answer->metadata.topic_count != 1)
        return mr_fail(err, MR_ERR_PROTOCOL, "Metadata does not tell of topic %.249s",
                       o->what->topic);
    if (t->error != 0)
        return code_in_words(job, t->error, err);
    for (size_t i = 0; i < o->what->partition_count; i++)
        o->leaders[i] = -1;
    for (size_t i = 0; i < t->partition_count; i++) {
        size_t at = place_of(o, t->partitions[i].index);

        if (at < o->what->partition_count)
            o->leaders[at] = t->partitions[i].leader;
    }
    for (size_t i = 0; i < o->what->partition_count; i++)
        if (o->leaders[i] < 0) {
            job->again = true;
            return mr_fail(err, MR_ERR_IO, "partition %d of topic %.249s has no leader",
                           o->what->partitions[i], o->what->topic);
        }
    return 0;
}

static int take_offsets(struct job *job, const struct answer *answer, struct mr_error *err)
{
    struct offsets *o = job->arg;
    const struct answer_list_offsets *l = &answer->list_offsets;

    for (size_t i = 0; i < l->offset_count; i++) {
        size_t at = place_of(o, l->offsets[i].partition);

        if (l->offsets[i].error != 0)
            return code_in_words(job, l->offsets[i].error, err);
        if (at < o->what->partition_count) {
            o->found[at] = l->offsets[i].offset;
            o->done[at] = true;
        }
    }
    return 0;
}

/* Ask the leader of the first partition that is not done for all of its own. */
static int ask_one_leader(struct job *job, struct offsets *o, size_t first, int32_t *asked)
{
    size_t count = 0;

    for (size_t i = first; i < o->what->partition_count; i++)
        if (!o->done[i] && o->leaders[i] == o->leaders[first])
            asked[count++] = o->what->partitions[i];
    job->broker = o->leaders[first];
    job->request = (struct request){.api = REQUEST_LIST_OFFSETS, .list_offsets = *o->what};
    job->request.list_offsets.partitions = asked;
    job->request.list_offsets.partition_count = count;
    job->take = take_offsets;
    attempt(job);
    if (job->rc == 0 && !o->done[first])
        job->rc = mr_fail(&job->err, MR_ERR_PROTOCOL,
                          "ListOffsets does not tell of partition %d of topic %.249s",
                          o->what->partitions[first], o->what->topic);
    return job->rc;
}

static int one_round(struct job *job, struct offsets *o, int32_t *asked)
{
    job->request = (struct request){.api = REQUEST_METADATA,
                                    .metadata = {.topics = &o->what->topic, .topic_count = 1}};
    job->broker = -1;
    job->take = take_leaders;
    attempt(job);
    for (size_t i = 0; job->rc == 0 && i < o->what->partition_count; i++)
        if (!o->done[i])
            ask_one_leader(job, o, i, asked);
    return job->rc;
}

int wire_call_offsets(struct wire_call *call, const struct request_list_offsets *what,
                      int64_t timeout_ms, int64_t *offsets, struct mr_error *err)
{
    size_t count = what->partition_count;
    struct offsets o = {.what = what,
                        .leaders = calloc(count + 1, sizeof(int32_t)),
                        .done = calloc(count + 1, sizeof(bool)),
                        .found = calloc(count + 1, sizeof(int64_t))};
    int32_t *asked = calloc(count + 1, sizeof(int32_t));
    struct job job = {.call = call, .due_ms = clock_ms() + timeout_ms, .arg = &o};
    int rc;

    mr_assert(o.leaders != NULL && o.done != NULL && o.found != NULL && asked != NULL);
    while ((rc = one_round(&job, &o, asked)) != 0 && job.again && left_ms(&job) > 0)
        pause_a_little(&job);
    if (rc == 0 && count > 0)
        memcpy(offsets, o.found, count * sizeof(*offsets));
    else if (rc != 0)
        rc = fail_job(&job, err);
    free(o.leaders);
    free(o.done);
    free(o.found);
    free(asked);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

struct wire_call *wire_call_new(const struct props *settings, struct mr_error *err)
{
    struct wire_call *call = calloc(1, sizeof(*call));

    mr_assert(call != NULL);
    call->conf = wire_conf_new(settings, err);
    if (call->conf != NULL)
        call->loop = loop_new(err);
    if (call->loop != NULL)
        call->client = wire_client_new(call->loop, call->conf, err);
    if (call->client == NULL)
        wire_call_free(&call);
    return call;
}

void wire_call_free(struct wire_call **cp)
{
    struct wire_call *call = *cp;

    *cp = NULL;
    if (call == NULL)
        return;
    coordinator_free(&call->coordinator);
    wire_client_free(&call->client);
    loop_free(&call->loop);
    wire_conf_free(&call->conf);
    free((char *)(uintptr_t)call->to.key);
    free(call);
}
