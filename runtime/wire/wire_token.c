/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of an OIDC endpoint, for all connections of one conf.
 *
 *   NONE ──get──► ASKING ──► VALID ──due, tend──► VALID and ASKING ──► VALID …
 *                   └─failed─► NONE: waits hear why       └─failed─► VALID, while it lasts
 * After a failure the endpoint is not asked for 10 s, however often somebody logs in: who does
 * hears the same again.
 *
 * broker_login.c gets the token for each login, and waits for it where there is none; broker_conn.c
 * tends it with every request that it sends, so a group's heartbeats keep it fresh. Everything
 * stands under one lock, which is never held while anything waits. The thread that fetches knows no
 * loop: it rings the eventfd of each wait. Times are of CLOCK_BOOTTIME: a token ages while the
 * machine sleeps. Errors hold neither secret nor token. */
#include "wire/wire_token.h"

#include "base/clock.h"
#include "base/jaas.h"
#include "base/oidc_fetch.h"
#include "base/text.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AGAIN_MS 10000 /* after a failure; as Java */

struct wire_token_wait {
    struct wire_token *token;
    int ring;
    struct loop_fd *watch;
    wire_token_fn fn;
    void *arg;
    struct wire_token_wait *next;
};

struct wire_token {
    struct oidc *oidc;
    struct oidc_fetch *fetch; /* the thread's while `asking` */
    pthread_mutex_t lock;     /* of all below */
    struct oidc_token token;
    uint64_t number; /* of it; 0: there was none yet */
    bool proved;     /* a broker took one of ours */
    int64_t due_ms;
    int64_t dies_ms;
    bool asking;
    bool begun; /* a thread is to be joined */
    pthread_t thread;
    struct mr_error failure; /* of the newest fetch */
    struct wire_token_wait *waits;
};

/* --- fetching --------------------------------------------------------------------------------- */

static void ring(const struct wire_token_wait *wait)
{
    uint64_t one = 1;

    if (write(wait->ring, &one, sizeof(one)) < 0)
        mr_assert(false);
}

static void take(struct wire_token *t, struct oidc_token *token)
{
    double random = (double)(clock_boot_ms() % 1000) / 1000;

    oidc_token_deinit(&t->token);
    t->token = *token;
    t->failure = (struct mr_error){0};
    t->number++;
    t->due_ms = clock_boot_ms() + oidc_refresh_ms(t->oidc, token->life_ms, random);
    t->dies_ms = clock_boot_ms() + token->life_ms;
}

/* What is wrong with an endpoint that gave tokens before may pass. */
static void note_failure(struct wire_token *t, const struct mr_error *err)
{
    t->failure = *err;
    if (t->number > 0 || t->failure.code != MR_ERR_FATAL)
        t->failure.code = MR_ERR_IO;
    t->due_ms = clock_boot_ms() + AGAIN_MS;
}

static void *run(void *arg)
{
    struct wire_token *t = arg;
    struct oidc_token token = {0};
    struct mr_error err = {0};
    int rc;

    pthread_setname_np(pthread_self(), "token");
    rc = oidc_fetch_run(t->fetch, &token, &err);
    pthread_mutex_lock(&t->lock);
    if (rc == 0)
        take(t, &token);
    else
        note_failure(t, &err);
    t->asking = false;
    for (struct wire_token_wait *wait = t->waits; wait != NULL; wait = wait->next)
        ring(wait);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool valid(const struct wire_token *t)
{
    return t->number > 0 && clock_boot_ms() < t->dies_ms;
}

/* Under the lock. The thread before has nothing left to do but to end. */
static int ask(struct wire_token *t, struct mr_error *err)
{
    sigset_t all;
    sigset_t before;
    int rc;

    if (t->asking || (valid(t) && clock_boot_ms() < t->due_ms))
        return 0;
    if (t->failure.code != 0 && clock_boot_ms() < t->due_ms)
        return mr_fail(err, t->failure.code, "%s", t->failure.text);
    if (t->begun)
        pthread_join(t->thread, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = pthread_create(&t->thread, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->begun = t->asking = rc == 0;
    return rc == 0 ? 0 : mr_fail(err, MR_ERR_IO, "no thread to fetch a token: %s", strerror(rc));
}

/* --- the door --------------------------------------------------------------------------------- */

void wire_token_tend(struct wire_token *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->number > 0) /* the first one is for those who log in */
        ask(t, NULL);
    pthread_mutex_unlock(&t->lock);
}

int wire_token_get(struct wire_token *t, char **text, uint64_t *number, struct mr_error *err)
{
    int rc;

    pthread_mutex_lock(&t->lock);
    rc = ask(t, err);
    if (valid(t)) {
        *text = text_dup(t->token.text);
        *number = t->number;
        rc = 0;
    } else if (rc == 0) {
        rc = MR_AGAIN;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void wire_token_accepted(struct wire_token *t)
{
    pthread_mutex_lock(&t->lock);
    t->proved = true;
    pthread_mutex_unlock(&t->lock);
}

bool wire_token_refused(struct wire_token *t, uint64_t number)
{
    bool again;

    pthread_mutex_lock(&t->lock);
    again = t->proved;
    if (number == t->number)
        t->dies_ms = 0;
    pthread_mutex_unlock(&t->lock);
    return again;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void rung(void *arg, uint32_t events)
{
    struct wire_token_wait *wait = arg;
    struct wire_token *t = wait->token;
    struct mr_error err = {0};
    uint64_t count;
    bool got;

    (void)events;
    if (read(wait->ring, &count, sizeof(count)) < 0)
        return;
    loop_fd_events(wait->watch, 0);
    pthread_mutex_lock(&t->lock);
    got = valid(t);
    if (!got && t->failure.code != 0)
        err = t->failure;
    else if (!got)
        mr_fail(&err, MR_ERR_IO, "the token that came was over before it could be used");
    pthread_mutex_unlock(&t->lock);
    wait->fn(wait->arg, got ? NULL : &err);
}

struct wire_token_wait *wire_token_wait_new(struct wire_token *t, struct loop *loop,
                                            wire_token_fn fn, void *arg, struct mr_error *err)
{
    struct wire_token_wait *wait = calloc(1, sizeof(*wait));

    mr_assert(wait != NULL);
    *wait = (struct wire_token_wait){.token = t, .fn = fn, .arg = arg};
    wait->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wait->ring < 0)
        err_errno(err, "no descriptor to wait for a token with");
    else
        wait->watch = loop_fd_add(loop, wait->ring, EPOLLIN, rung, wait, err);
    pthread_mutex_lock(&t->lock);
    wait->next = t->waits;
    t->waits = wait;
    if (!t->asking && wait->ring >= 0)
        ring(wait); /* it ended just now */
    pthread_mutex_unlock(&t->lock);
    if (wait->watch == NULL)
        wire_token_wait_free(&wait);
    return wait;
}

void wire_token_wait_free(struct wire_token_wait **wp)
{
    struct wire_token_wait *wait = *wp;
    struct wire_token_wait **at;

    *wp = NULL;
    if (wait == NULL)
        return;
    pthread_mutex_lock(&wait->token->lock);
    for (at = &wait->token->waits; *at != wait;)
        at = &(*at)->next;
    *at = wait->next;
    pthread_mutex_unlock(&wait->token->lock);
    loop_fd_remove(&wait->watch);
    if (wait->ring >= 0)
        close(wait->ring);
    free(wait);
}

/* --- life ------------------------------------------------------------------------------------- */

static struct oidc *read_settings(const struct props *settings, struct mr_error *err)
{
    const char *text = props_get(settings, "sasl.jaas.config");
    struct oidc *oidc = NULL;
    struct props jaas;

    props_init(&jaas);
    if (text == NULL || jaas_parse(text, &jaas, NULL, err) == 0)
        oidc = oidc_new(settings, &jaas, err);
    props_deinit(&jaas);
    return oidc;
}

struct wire_token *wire_token_new(const struct props *settings, struct mr_error *err)
{
    struct wire_token *t = calloc(1, sizeof(*t));

    mr_assert(t != NULL);
    pthread_mutex_init(&t->lock, NULL);
    t->oidc = read_settings(settings, err);
    if (t->oidc != NULL)
        t->fetch = oidc_fetch_new(t->oidc, err);
    if (t->fetch == NULL)
        wire_token_free(&t);
    return t;
}

void wire_token_free(struct wire_token **tp)
{
    struct wire_token *t = *tp;

    *tp = NULL;
    if (t == NULL)
        return;
    if (t->fetch != NULL)
        oidc_fetch_cancel(t->fetch);
    if (t->begun)
        pthread_join(t->thread, NULL);
    oidc_fetch_free(&t->fetch);
    oidc_free(&t->oidc);
    oidc_token_deinit(&t->token);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
