/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that drives all open requests by libcurl's multi interface. The loop hands requests
 * over under a lock and wakes it; answers go back by loop_post. What a peer sends is bounded, each
 * answer and all together, and not interpreted here. Used by rest/forward.c (requests of clients)
 * and in herder/cluster by task_writer.c and cluster_fence.c (what the leader is asked to do).
 *
 *   loop:    peer_send ─► inbox ─ wake ─►  thread: curl_multi ─► loop_post ─► done
 *   loop:    peer_give_up ─► drops ─ wake ─► thread: those of its requests that go there end
 *   loop:    peer_free ─► stopping ─ wake ─► thread ends; what is left is answered here */
#include "worker/peer.h"

#include "base/buf.h"
#include "base/text.h"
#include "worker/worker_https.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 5000L
#define POLL_MS 60000

struct request {
    struct peer *peer;
    char *url;
    char *method;
    char *body;
    size_t len;
    struct curl_slist *headers;
    int64_t timeout_ms;
    struct buf answer;
    size_t held;         /* bytes of both bodies, of the budget */
    const char *refused; /* why the rest of the answer was; NULL: it was not */
    long status;
    char error[CURL_ERROR_SIZE + 32];
    CURL *easy; /* the thread's */
    bool given_up;
    bool posted; /* the thread's; after it the loop's */
    peer_done done;
    void *arg;
    struct request *next;            /* in the inbox, then among the thread's active ones */
    struct request *after, **before; /* all that are open: the loop's */
};

/* Nobody is to wait for this URL any more. */
struct drop {
    char *base; /* ends in a slash */
    const char *error;
    struct drop *next;
};

struct peer {
    struct loop *loop;
    const struct worker_https *https;
    CURLM *multi;
    pthread_t thread;
    pthread_mutex_t lock; /* of inbox, drops and stopping */
    struct request *inbox;
    struct drop *drops;
    struct request *active; /* the thread's: curl has them */
    bool stopping;
    struct request *open; /* the loop's */
    size_t open_count;
    atomic_size_t held; /* by all requests that are not freed */
};

static const char over_budget[] =
    "what this worker and others say to each other takes too much memory now: try again later";

/* --- requests --------------------------------------------------------------------------------- */

static void add_header(struct request *req, const char *name, const char *value)
{
    char *line = NULL;
    struct curl_slist *more;

    if (value == NULL)
        return;
    mr_assert(asprintf(&line, "%s: %s", name, value) > 0);
    more = curl_slist_append(req->headers, line);
    mr_assert(more != NULL);
    req->headers = more;
    free(line);
}

static struct request *request_new(struct peer *peer, const struct peer_request *from,
                                   peer_done done, void *arg)
{
    struct request *req = calloc(1, sizeof(*req));

    mr_assert(req != NULL);
    *req = (struct request){.peer = peer, .timeout_ms = from->timeout_ms, .done = done, .arg = arg};
    req->url = text_dup(from->url);
    req->method = text_dup(from->method);
    buf_init(&req->answer, PEER_ANSWER_MAX);
    if (from->body != NULL) {
        req->body = malloc(from->len + 1);
        mr_assert(req->body != NULL);
        memcpy(req->body, from->body, from->len);
        req->len = from->len;
    }
    add_header(req, "Accept", "application/json");
    add_header(req, "Expect", ""); /* no 100-continue */
    add_header(req, "Content-Type", from->body != NULL ? "application/json" : NULL);
    add_header(req, "Authorization", from->authorization);
    add_header(req, "X-Connect-Authorization", from->signature);
    add_header(req, "X-Connect-Request-Signature-Algorithm", from->signature_algorithm);
    return req;
}

/* Both threads take and give back. */
static bool take_bytes(struct peer *peer, struct request *req, size_t bytes)
{
    if (atomic_fetch_add(&peer->held, bytes) + bytes > PEER_BYTES_MAX) {
        atomic_fetch_sub(&peer->held, bytes);
        return false;
    }
    req->held += bytes;
    return true;
}

static void request_free(struct request *req)
{
    if (req->easy != NULL)
        curl_easy_cleanup(req->easy);
    curl_slist_free_all(req->headers);
    buf_deinit(&req->answer);
    free(req->url);
    free(req->method);
    free(req->body);
    free(req);
}

/* Tell who asked; the request is none of the open ones any more. */
static void answer(struct peer *peer, struct request *req)
{
    struct peer_answer told = {.status = (int)req->status,
                               .body = req->answer.len > 0 ? req->answer.data : "",
                               .len = req->answer.len,
                               .error = req->status == 0 ? req->error : NULL,
                               .given_up = req->given_up};

    *req->before = req->after;
    if (req->after != NULL)
        req->after->before = req->before;
    peer->open_count--;
    req->peer = NULL;
    req->done(req->arg, &told);
    atomic_fetch_sub(&peer->held, req->held);
}

/* On the loop: the last of a request, which peer_free may have answered already. */
static void deliver(void *arg)
{
    struct request *req = arg;

    if (req->peer != NULL)
        answer(req->peer, req);
    request_free(req);
}

/* --- the thread ------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct request *req = arg;

    if (!take_bytes(req->peer, req, size * count))
        req->refused = over_budget;
    else if (buf_append(&req->answer, data, size * count) != 0)
        req->refused = "its answer is too large";
    return req->refused == NULL ? size * count : 0;
}

static void finish(struct request *req, const char *error)
{
    if (error != NULL)
        req->status = 0;
    if (error != NULL && error != req->error)
        snprintf(req->error, sizeof(req->error), "%s", error);
    req->posted = true;
    mr_assert(loop_post(req->peer->loop, deliver, req) == 0);
}

static void set_pem(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem, pem != NULL ? strlen(pem) : 0,
                             CURL_BLOB_NOCOPY};

    if (pem != NULL)
        curl_easy_setopt(easy, option, &blob);
}

/* Whom this worker trusts, and how it shows who it is: as its own https listeners do. */
static void set_tls(CURL *easy, const struct worker_https *https)
{
    set_pem(easy, CURLOPT_CAINFO_BLOB, https->material.trust);
    set_pem(easy, CURLOPT_SSLCERT_BLOB, https->material.chain);
    set_pem(easy, CURLOPT_SSLKEY_BLOB, https->material.key);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, https->check_host ? 2L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                     https->material.tls12
                         ? CURL_SSLVERSION_TLSv1_2 |
                               (https->material.tls13 ? 0 : (long)CURL_SSLVERSION_MAX_TLSv1_2)
                         : (long)CURL_SSLVERSION_TLSv1_3);
}

static void begin(struct peer *peer, struct request *req)
{
    CURL *easy = curl_easy_init();

    if (easy == NULL) {
        finish(req, "out of memory");
        return;
    }
    req->easy = easy;
    curl_easy_setopt(easy, CURLOPT_URL, req->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* a connector may be called ".." */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, req->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kafka-connect");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, req->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, req);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, req);
    if (peer->https != NULL)
        set_tls(easy, peer->https);
    if (req->body != NULL) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, req->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->len);
    }
    if (curl_multi_add_handle(peer->multi, easy) != CURLM_OK) {
        finish(req, "out of memory");
        return;
    }
    req->next = peer->active;
    peer->active = req;
}

/* Curl has it no more. */
static void let_go(struct peer *peer, struct request *req)
{
    struct request **at = &peer->active;

    while (*at != req)
        at = &(*at)->next;
    *at = req->next;
    curl_multi_remove_handle(peer->multi, req->easy);
}

static void give_up(struct peer *peer, const struct drop *drop)
{
    size_t len = strlen(drop->base);

    for (struct request *req = peer->active, *next; req != NULL; req = next) {
        next = req->next;
        if (strncmp(req->url, drop->base, len) != 0)
            continue;
        let_go(peer, req);
        req->given_up = true;
        finish(req, drop->error);
    }
}

static void drops_free(struct drop *drop)
{
    for (struct drop *next; drop != NULL; drop = next) {
        next = drop->next;
        free(drop->base);
        free(drop);
    }
}

static void take_answers(struct peer *peer)
{
    CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(peer->multi, &left)) != NULL) {
        struct request *req = NULL;
        CURLcode code = msg->data.result;

        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&req);
        let_go(peer, req);
        curl_easy_getinfo(req->easy, CURLINFO_RESPONSE_CODE, &req->status);
        if (req->refused != NULL)
            finish(req, req->refused);
        else if (code != CURLE_OK && req->error[0] == '\0')
            finish(req, curl_easy_strerror(code));
        else
            finish(req, code != CURLE_OK ? req->error : NULL);
    }
}

/* false: the end. */
static bool take_inbox(struct peer *peer)
{
    struct request *first;
    struct drop *drops;
    bool stopping;

    pthread_mutex_lock(&peer->lock);
    first = peer->inbox;
    drops = peer->drops;
    peer->inbox = NULL;
    peer->drops = NULL;
    stopping = peer->stopping;
    pthread_mutex_unlock(&peer->lock);
    while (first != NULL) {
        struct request *next = first->next;

        if (!stopping) /* else peer_free answers it */
            begin(peer, first);
        first = next;
    }
    for (const struct drop *drop = drops; drop != NULL && !stopping; drop = drop->next)
        give_up(peer, drop);
    drops_free(drops);
    return !stopping;
}

static void *run(void *arg)
{
    struct peer *peer = arg;
    int running;

    pthread_setname_np(pthread_self(), "peer");
    while (take_inbox(peer)) {
        curl_multi_perform(peer->multi, &running);
        take_answers(peer);
        curl_multi_poll(peer->multi, NULL, 0, POLL_MS, NULL);
    }
    return NULL;
}

/* --- the loop's ------------------------------------------------------------------------------- */

void peer_send(struct peer *peer, const struct peer_request *request, peer_done done, void *arg)
{
    struct request *req = request_new(peer, request, done, arg);

    loop_assert_owner(peer->loop);
    req->before = &peer->open;
    req->after = peer->open;
    if (peer->open != NULL)
        peer->open->before = &req->after;
    peer->open = req;
    if (++peer->open_count > PEER_OPEN_MAX) {
        finish(req, "too many requests to other workers are open");
        return;
    }
    if (!take_bytes(peer, req, req->len)) {
        finish(req, over_budget);
        return;
    }
    pthread_mutex_lock(&peer->lock);
    req->next = peer->inbox;
    peer->inbox = req;
    pthread_mutex_unlock(&peer->lock);
    curl_multi_wakeup(peer->multi);
}

void peer_give_up(struct peer *peer, const char *base, const char *error)
{
    struct drop *drop = calloc(1, sizeof(*drop));

    loop_assert_owner(peer->loop);
    mr_assert(drop != NULL);
    *drop = (struct drop){.base = peer_url(base, "/"), .error = error};
    pthread_mutex_lock(&peer->lock);
    drop->next = peer->drops;
    peer->drops = drop;
    pthread_mutex_unlock(&peer->lock);
    curl_multi_wakeup(peer->multi);
}

char *peer_escape(const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    struct buf out;

    buf_init(&out, 3 * strlen(text) + 1);
    buf_puts(&out, "");
    for (; *text != '\0'; text++)
        if (strchr(plain, *text) != NULL)
            buf_putc(&out, *text);
        else
            buf_printf(&out, "%%%02X", (unsigned char)*text);
    mr_assert(!out.failed);
    return out.data != NULL ? buf_take(&out) : text_dup("");
}

char *peer_url(const char *base, const char *path)
{
    size_t len = strlen(base);
    char *url = NULL;

    if (len > 0 && base[len - 1] == '/')
        len--;
    mr_assert(asprintf(&url, "%.*s%s", (int)len, base, path) >= 0);
    return url;
}

struct peer *peer_new(struct loop *loop, const struct worker_https *https, struct mr_error *err)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    int rc;

    mr_assert(peer != NULL);
    peer->loop = loop;
    peer->https = https;
    pthread_mutex_init(&peer->lock, NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    peer->multi = curl_multi_init();
    mr_assert(peer->multi != NULL);
    rc = pthread_create(&peer->thread, NULL, run, peer);
    if (rc == 0)
        return peer;
    mr_fail(err, MR_ERR_IO, "cannot start the thread that talks to other workers: %s",
            strerror(rc));
    curl_multi_cleanup(peer->multi);
    free(peer);
    return NULL;
}

/* Nobody posts any more. What was posted and did not run yet is answered here, and its post has
 * only to free it. */
static void answer_all(struct peer *peer)
{
    while (peer->open != NULL) {
        struct request *req = peer->open;
        bool posted = req->posted;

        if (!posted) {
            snprintf(req->error, sizeof(req->error), "the worker is stopping");
            req->status = 0;
        }
        answer(peer, req);
        if (posted)
            continue;
        if (req->easy != NULL)
            curl_multi_remove_handle(peer->multi, req->easy);
        request_free(req);
    }
}

void peer_free(struct peer **peerp)
{
    struct peer *peer = *peerp;

    *peerp = NULL;
    if (peer == NULL)
        return;
    pthread_mutex_lock(&peer->lock);
    peer->stopping = true;
    pthread_mutex_unlock(&peer->lock);
    curl_multi_wakeup(peer->multi);
    pthread_join(peer->thread, NULL);
    answer_all(peer);
    curl_multi_cleanup(peer->multi);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}
