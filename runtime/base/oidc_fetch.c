/* SPDX-License-Identifier: Apache-2.0 */
/* One token, by HTTP: POST grant_type=client_credentials, client id and secret in the Authorization
 * header.
 *
 * On a thread of the caller's that may wait: wire/wire_token.c has one a fetch,
 * kafka/client_token.c is called on librdkafka's background thread. libcurl's multi interface is
 * used for one transfer, since its waiting can be ended from another thread. The answer is bounded;
 * redirects are not followed, since the secret would go along; certificates are checked against the
 * system's authorities. Of a refusal only the status and the well-known error words are told,
 * because an endpoint may repeat the secret in its answer. */
#include "base/oidc_fetch.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX ((size_t)1 << 20)
#define POLL_MS 60000 /* libcurl and oidc_fetch_cancel end it sooner */

struct oidc_fetch {
    const struct oidc *oidc;
    CURLM *multi;
    atomic_bool cancelled;
};

/* One attempt. */
struct attempt {
    struct buf body;
    struct curl_slist *headers;
    char *form;
    CURL *easy;
    char error[CURL_ERROR_SIZE];
};

/* --- the request ------------------------------------------------------------------------------ */

/* As application/x-www-form-urlencoded has it. */
static void put_encoded(struct buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._*";

    for (; *text != '\0'; text++)
        if (strchr(plain, *text) != NULL)
            buf_putc(out, *text);
        else if (*text == ' ')
            buf_putc(out, '+');
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
}

static void wipe(struct buf *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->cap);
    buf_deinit(b);
}

static bool add_header(struct attempt *a, const char *line)
{
    struct curl_slist *more = curl_slist_append(a->headers, line);

    a->headers = more != NULL ? more : a->headers;
    return more != NULL;
}

static bool add_authorization(struct attempt *a, const struct oidc *o)
{
    struct buf pair;
    struct buf line;
    bool ok;

    buf_init(&pair, 1 << 18);
    buf_init(&line, 1 << 19);
    if (o->encoded)
        put_encoded(&pair, o->client_id);
    else
        buf_puts(&pair, o->client_id);
    buf_putc(&pair, ':');
    if (o->encoded)
        put_encoded(&pair, o->secret);
    else
        buf_puts(&pair, o->secret);
    buf_puts(&line, "Authorization: Basic ");
    ok = !pair.failed && base64_encode(&line, pair.data, pair.len) == 0 && add_header(a, line.data);
    wipe(&pair);
    wipe(&line);
    return ok;
}

static bool prepare(struct attempt *a, const struct oidc *o)
{
    struct buf form;
    bool ok;

    buf_init(&a->body, ANSWER_MAX);
    buf_init(&form, 1 << 18);
    buf_puts(&form, "grant_type=client_credentials");
    if (o->scope != NULL) {
        buf_puts(&form, "&scope=");
        put_encoded(&form, o->scope);
    }
    ok = !form.failed && add_authorization(a, o) && add_header(a, "Accept: application/json") &&
         add_header(a, "Cache-Control: no-cache") && add_header(a, "Expect:");
    a->form = form.failed ? NULL : buf_take(&form);
    buf_deinit(&form);
    a->easy = curl_easy_init();
    return ok && a->form != NULL && a->easy != NULL;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct attempt *a = arg;

    return buf_append(&a->body, data, size * count) == 0 ? size * count : 0;
}

static void set_options(struct attempt *a, const struct oidc *o)
{
    CURL *easy = a->easy;

    curl_easy_setopt(easy, CURLOPT_URL, o->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, a->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, a->form);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kafka-connect");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a name that can't be resolved holds nobody */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(o->connect_ms + o->read_ms));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, a->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, a);
}

static void attempt_deinit(struct attempt *a)
{
    if (a->easy != NULL)
        curl_easy_cleanup(a->easy);
    for (struct curl_slist *s = a->headers; s != NULL; s = s->next)
        explicit_bzero(s->data, strlen(s->data));
    curl_slist_free_all(a->headers);
    free(a->form);
    wipe(&a->body);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The error of RFC 6749 5.2 that the answer names; NULL: none of them. */
static const char *known_error(const struct attempt *a)
{
    static const char *const known[] = {"invalid_request",        "invalid_client",
                                        "invalid_grant",          "unauthorized_client",
                                        "unsupported_grant_type", "invalid_scope"};
    json_t *answer = json_parse(a->body.data != NULL ? a->body.data : "", a->body.len, NULL);
    const char *word = json_string_value(json_object_get(answer, "error"));
    const char *found = NULL;

    for (size_t i = 0; word != NULL && i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(known[i], word) == 0)
            found = known[i];
    json_decref(answer);
    return found;
}

static int refused(const struct oidc *o, const struct attempt *a, long status, struct mr_error *err)
{
    bool passing = status >= 500 || status == 408 || status == 429;
    const char *error = known_error(a);
    const char *remedy = "";

    if (status >= 300 && status < 400)
        remedy = ": redirects are not followed, since the secret would go along; set "
                 "sasl.oauthbearer.token.endpoint.url to where it leads";
    else if (!passing)
        remedy = ": check sasl.oauthbearer.token.endpoint.url, client id, secret and scope";
    return mr_fail(err, passing ? MR_ERR_IO : MR_ERR_FATAL,
                   "the token endpoint %.300s answered with status %ld%s%s%s", o->shown_url, status,
                   error != NULL ? " and " : "", error != NULL ? error : "", remedy);
}

static int transfer_failed(const struct oidc *o, const struct attempt *a, CURLcode code,
                           struct mr_error *err)
{
    bool trust = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;

    if (a->body.failed)
        return mr_fail(err, MR_ERR_FATAL,
                       "the token endpoint %.300s answered with more than %zu bytes: is the URL "
                       "that of a token endpoint?",
                       o->shown_url, ANSWER_MAX);
    return mr_fail(
        err, trust ? MR_ERR_FATAL : MR_ERR_IO, "the token endpoint %.300s can't be asked: %.200s%s",
        o->shown_url, a->error[0] != '\0' ? a->error : curl_easy_strerror(code),
        trust ? "; its authority must be one of this system's (update-ca-certificates)" : "");
}

static int judge(const struct oidc *o, const struct attempt *a, CURLcode code,
                 struct oidc_token *out, struct mr_error *err)
{
    long status = 0;

    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        return transfer_failed(o, a, code, err);
    if (status != 200)
        return refused(o, a, status, err);
    return oidc_read(o, a->body.data != NULL ? a->body.data : "", a->body.len, clock_wall_ms(), out,
                     err);
}

/* --- the run ---------------------------------------------------------------------------------- */

static int called_off(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CLOSED, "asking for a token was called off");
}

/* MR_AGAIN: called off. */
static int transfer(struct oidc_fetch *fetch, CURLcode *code)
{
    int running = 1;
    int left;
    CURLMsg *msg;

    while (running > 0 && !atomic_load(&fetch->cancelled)) {
        curl_multi_perform(fetch->multi, &running);
        if (running > 0)
            curl_multi_poll(fetch->multi, NULL, 0, POLL_MS, NULL);
    }
    msg = curl_multi_info_read(fetch->multi, &left);
    if (msg == NULL)
        return MR_AGAIN;
    *code = msg->data.result;
    return 0;
}

static int try_once(struct oidc_fetch *fetch, struct oidc_token *out, struct mr_error *err)
{
    struct attempt a = {0};
    CURLcode code = CURLE_OK;
    int rc;

    if (!prepare(&a, fetch->oidc)) {
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory while asking for a token");
    } else {
        set_options(&a, fetch->oidc);
        curl_multi_add_handle(fetch->multi, a.easy);
        rc = transfer(fetch, &code) == 0 ? judge(fetch->oidc, &a, code, out, err) : called_off(err);
        curl_multi_remove_handle(fetch->multi, a.easy);
    }
    attempt_deinit(&a);
    return rc;
}

static void wait_ms(struct oidc_fetch *fetch, int64_t ms)
{
    int64_t until = clock_ms() + ms;

    while (!atomic_load(&fetch->cancelled) && (ms = until - clock_ms()) > 0)
        curl_multi_poll(fetch->multi, NULL, 0, (int)ms, NULL);
}

int oidc_fetch_run(struct oidc_fetch *fetch, struct oidc_token *out, struct mr_error *err)
{
    const struct oidc *o = fetch->oidc;
    int64_t until = clock_ms() + o->backoff_max_ms;
    int64_t pause = o->backoff_ms;
    struct mr_error why = {0};
    int rc;

    while ((rc = try_once(fetch, out, &why)) == MR_ERR_IO && clock_ms() + pause < until) {
        wait_ms(fetch, pause);
        if (atomic_load(&fetch->cancelled))
            return called_off(err);
        pause = pause > 0 ? pause * 2 : 1;
        why = (struct mr_error){0};
    }
    return rc == 0 ? 0 : mr_fail(err, rc, "%s", why.text);
}

void oidc_fetch_cancel(struct oidc_fetch *fetch)
{
    atomic_store(&fetch->cancelled, true);
    curl_multi_wakeup(fetch->multi);
}

struct oidc_fetch *oidc_fetch_new(const struct oidc *o, struct mr_error *err)
{
    struct oidc_fetch *fetch = calloc(1, sizeof(*fetch));

    mr_assert(fetch != NULL);
    fetch->oidc = o;
    atomic_init(&fetch->cancelled, false);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    fetch->multi = curl_multi_init();
    if (fetch->multi == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory or descriptors for asking for a token");
        oidc_fetch_free(&fetch);
    }
    return fetch;
}

void oidc_fetch_free(struct oidc_fetch **fp)
{
    struct oidc_fetch *fetch = *fp;

    *fp = NULL;
    if (fetch == NULL)
        return;
    if (fetch->multi != NULL)
        curl_multi_cleanup(fetch->multi);
    free(fetch);
}
