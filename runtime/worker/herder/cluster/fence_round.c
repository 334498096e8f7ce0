/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a fencing round, and how it is let go of.
 *
 *   loop ── new ──► thread: settings, files they name, one InitProducerId an id ──► loop: done
 *     └── free: called off; the thread ends by itself, and frees what is left
 *
 * The thread belongs to nobody: it may hang in a broker's answer for as long as its calls may last,
 * while the worker ends. It touches the loop only under the lock, and not once it is called off. */
#include "worker/herder/cluster/fence_round.h"

#include "base/clock.h"
#include "kafka/client_conf.h"
#include "wire/wire_call.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOGGER "worker.herder.fence"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"

#define ROUND_MS 90000

struct fence_round {
    pthread_mutex_t lock;
    bool called_off; /* whoever has it next frees it: the thread, or deliver */
    bool delivered;  /* the loop's alone */
    struct loop *loop;
    fence_round_done done;
    void *arg;
    /* The thread's until it has posted. */
    struct props settings;
    struct providers *providers;
    char *prefix; /* of the ids */
    char *conn;
    int32_t *tasks;
    size_t count;
    struct mr_error err;
};

static void destroy(struct fence_round *round)
{
    pthread_mutex_destroy(&round->lock);
    props_deinit(&round->settings);
    providers_free(&round->providers);
    free(round->tasks);
    free(round->prefix);
    free(round->conn);
    free(round);
}

/* On the loop. */
static void deliver(void *arg)
{
    struct fence_round *round = arg;

    round->delivered = true;
    if (round->called_off)
        destroy(round);
    else
        round->done(round->arg, round->err.code != 0 ? &round->err : NULL);
}

static bool is_called_off(struct fence_round *round)
{
    bool off;

    pthread_mutex_lock(&round->lock);
    off = round->called_off;
    pthread_mutex_unlock(&round->lock);
    return off;
}

/* References may lead to files, so they are followed here. */
static struct wire_call *make_client(struct fence_round *round)
{
    const struct provider_job resolve = {.in = &round->settings};
    struct wire_call *call;
    struct props settings;

    if (providers_resolve(round->providers, &resolve, &settings, &round->err) != 0)
        return NULL;
    call = wire_call_new(&settings, &round->err);
    props_deinit(&settings);
    return call;
}

static int fence_all(struct fence_round *round)
{
    int64_t until_ms = clock_ms() + ROUND_MS;
    struct wire_call *call = make_client(round);
    struct mr_error why = {0};
    int rc = call != NULL ? 0 : round->err.code;
    char *id = NULL;

    for (size_t i = 0; rc == 0 && i < round->count && !is_called_off(round); i++) {
        int64_t left = until_ms - clock_ms();

        free(id);
        mr_assert(asprintf(&id, "%s%d", round->prefix, (int)round->tasks[i]) > 0);
        rc = wire_call_fence(call, &(struct wire_call_fence){id, ROUND_MS}, left > 1 ? left : 1,
                             &why);
    }
    if (call != NULL && rc != 0)
        mr_fail(&round->err, rc, "The producer with transactional id %.300s can't be fenced: %s",
                id, why.text);
    free(id);
    wire_call_free(&call);
    return rc;
}

static void *run(void *arg)
{
    struct fence_round *round = arg;
    bool off;

    pthread_setname_np(pthread_self(), "fence");
    log_context(round->conn, -1);
    if (fence_all(round) == 0)
        log_debug("%zu transactional ids are fenced", round->count);
    log_context(NULL, -1);
    pthread_mutex_lock(&round->lock);
    off = round->called_off;
    if (!off)
        mr_assert(loop_post(round->loop, deliver, round) == 0);
    pthread_mutex_unlock(&round->lock);
    if (off)
        destroy(round);
    return NULL;
}

static int start(struct fence_round *round, struct mr_error *err)
{
    pthread_t thread;

    errno = thread_start(&thread, run, round);
    if (errno == 0)
        pthread_detach(thread);
    return errno == 0 ? 0 : err_errno(err, "no thread to fence the producers of %s", round->conn);
}

static int layer(struct fence_round *round, const struct fence_order *order)
{
    struct props built_in;
    char *id = NULL;
    int rc;

    props_init(&built_in);
    mr_assert(asprintf(&id, "connector-worker-adminclient-%s", order->conn) > 0);
    rc = props_set(&built_in, "client.id", id);
    if (rc == 0)
        rc = client_conf_layer(&(struct client_conf_layers){.kind = CLIENT_ADMIN,
                                                            .worker = order->worker,
                                                            .connector = order->connector,
                                                            .built_in = &built_in},
                               &round->settings);
    props_deinit(&built_in);
    free(id);
    return rc;
}

struct fence_round *fence_round_new(struct loop *loop, const struct fence_order *order,
                                    fence_round_done done, void *arg, struct mr_error *err)
{
    struct fence_round *round = calloc(1, sizeof(*round));

    mr_assert(round != NULL);
    pthread_mutex_init(&round->lock, NULL);
    round->loop = loop;
    round->done = done;
    round->arg = arg;
    round->count = order->count;
    round->providers = providers_ref(order->providers);
    round->conn = text_dup(order->conn);
    round->tasks = calloc(order->count + 1, sizeof(*round->tasks));
    mr_assert(round->tasks != NULL &&
              asprintf(&round->prefix, "%s-%s-", order->group, order->conn) > 0 &&
              layer(round, order) == 0);
    for (size_t i = 0; i < order->count; i++)
        round->tasks[i] = order->tasks != NULL ? order->tasks[i] : (int32_t)i;
    if (start(round, err) == 0)
        return round;
    destroy(round);
    return NULL;
}

void fence_round_free(struct fence_round **roundp)
{
    struct fence_round *round = *roundp;

    *roundp = NULL;
    if (round == NULL)
        return;
    pthread_mutex_lock(&round->lock);
    round->called_off = true;
    pthread_mutex_unlock(&round->lock);
    if (round->delivered)
        destroy(round);
}
