/* SPDX-License-Identifier: Apache-2.0 */
/* Who may reach a worker's REST, by real workers: TLS that asks clients for certificates, also
 * between workers; users; what is served on which listener. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/unit/certificates.h"
#include "support/worker_run.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_MS 60000

/* --- certificates ----------------------------------------------------------------------------- */

static void free_pair(void *arg)
{
    certificates_free(arg);
}

static const struct certificates_pair *keep(struct certificates_pair made)
{
    struct certificates_pair *pair = scratch_keep(malloc(sizeof(*pair)));

    *pair = made;
    scratch_at_end(free_pair, pair);
    return pair;
}

/* One file: its key, its certificate. */
static const char *pem_of(const char *name, const struct certificates_pair *pair)
{
    const char *path = scratch_path(name);

    scratch_write_text(path, scratch_text("%s%s", pair->key, pair->certificate));
    return path;
}

struct world {
    const struct certificates_pair *authority;
    const char *trust; /* file */
    const char *local; /* file: for 127.0.0.1, and as a client */
    const char *alien; /* file: of another authority */
};

static struct world make_world(void)
{
    struct world w = {.authority = keep(certificates_authority("tests")),
                      .trust = scratch_path("trust.pem")};
    const struct certificates_pair *other = keep(certificates_authority("others"));

    scratch_write_text(w.trust, w.authority->certificate);
    w.local = pem_of("local.pem", keep(certificates_for(w.authority, "127.0.0.1", NULL)));
    w.alien = pem_of("alien.pem", keep(certificates_for(other, "127.0.0.1", NULL)));
    return w;
}

/* --- calls ------------------------------------------------------------------------------------ */

static size_t collect(char *data, size_t size, size_t count, void *arg)
{
    return fwrite(data, size, count, arg);
}

struct caller {
    const char *trust; /* NULL: http */
    const char *pem;   /* of the client; NULL none */
    const char *user;  /* user:password; NULL none */
    const char *origin;
};

static const char *last_text, *last_headers;

/* The status; 0: no answer. */
static int call(const struct caller *as, const char *method, const char *url)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = NULL;
    char *body = NULL, *heads = NULL;
    size_t body_len, heads_len;
    FILE *out = open_memstream(&body, &body_len), *head = open_memstream(&heads, &heads_len);
    long status = 0;

    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(curl, CURLOPT_CAINFO, as->trust);
    curl_easy_setopt(curl, CURLOPT_SSLCERT, as->pem);
    curl_easy_setopt(curl, CURLOPT_SSLKEY, as->pem);
    curl_easy_setopt(curl, CURLOPT_USERPWD, as->user);
    if (as->origin != NULL)
        headers = curl_slist_append(NULL, scratch_text("Origin: %s", as->origin));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, head);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    fclose(out);
    fclose(head);
    last_text = scratch_keep(body);
    last_headers = scratch_keep(heads);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return (int)status;
}

static const char *tls(const char *prefix, const char *pem, const char *trust, const char *auth)
{
    return scratch_text("%sssl.keystore.type=PEM\n"
                        "%sssl.keystore.location=%s\n"
                        "%sssl.truststore.type=PEM\n"
                        "%sssl.truststore.location=%s\n"
                        "%sssl.client.auth=%s\n",
                        prefix, prefix, pem, prefix, prefix, trust, prefix, auth);
}

/* --- one worker ------------------------------------------------------------------------------- */

static bool serves(const char *url)
{
    return call(&(struct caller){0}, "GET", url) != 0;
}

static void listeners_ask_for_certificates_and_users_and_serve_what_is_theirs(void **state)
{
    struct world w = make_world();
    int http = worker_run_free_port(), https = worker_run_free_port(),
        asks = worker_run_free_port(), admin = worker_run_free_port();
    const char *users = scratch_path("users");
    const struct caller alice = {.user = "alice:secret"}, nobody = {0},
                        shown = {.trust = w.trust, .pem = w.local, .user = "alice:secret"};

    (void)state;
    scratch_write_text(users, "alice=secret\n");
    worker_run_start(&(struct worker_run_options){
        .dont_wait = true,
        .props = scratch_text(
            "listeners=http://127.0.0.1:%d,https://127.0.0.1:%d\n%s"
            "admin.listeners=http://127.0.0.1:%d,https://127.0.0.1:%d\n%s"
            "rest.extension.classes=org.apache.kafka.connect.rest.basic.auth.extension."
            "BasicAuthSecurityRestExtension\nmillrace.rest.users.file=%s\n"
            "access.control.allow.origin=http://ui\n"
            "response.http.headers.config=set X-Frame-Options: DENY\n",
            http, https, tls("listeners.https.", w.local, w.trust, "required"), admin, asks,
            tls("admin.listeners.https.", w.local, w.trust, "requested"), users)});
    wait_until(JOIN_MS, serves(scratch_text("http://127.0.0.1:%d/", http)));
    wait_until(JOIN_MS, call(&alice, "GET", scratch_text("http://127.0.0.1:%d/", http)) == 200);

    /* users */
    assert_int_equal(call(&nobody, "GET", scratch_text("http://127.0.0.1:%d/health", http)), 401);
    assert_string_equal(last_text, "User cannot access the resource.");
    assert_non_null(strstr(last_headers, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(last_headers, "X-Frame-Options: DENY\r\n"));
    assert_int_equal(call(&nobody, "OPTIONS", scratch_text("http://127.0.0.1:%d/", http)), 401);
    assert_non_null(strstr(last_headers, "Content-Type: text/plain\r\n"));
    assert_int_equal(call(&nobody, "GET", scratch_text("http://127.0.0.1:%d/nope", http)), 404);
    assert_int_equal(
        call(&nobody, "PUT", scratch_text("http://127.0.0.1:%d/connectors/x/fence", http)), 500);
    assert_int_equal(
        call(&nobody, "GET", scratch_text("http://127.0.0.1:%d/connectors/x/tasks", http)), 401);

    /* browsers */
    assert_int_equal(call(&(struct caller){.user = "alice:secret", .origin = "http://ui"}, "GET",
                          scratch_text("http://127.0.0.1:%d/", http)),
                     200);
    assert_non_null(strstr(last_headers, "Access-Control-Allow-Origin: http://ui\r\n"));
    assert_non_null(strstr(last_headers, "Vary: Origin\r\n"));

    /* certificates */
    assert_int_equal(call(&shown, "GET", scratch_text("https://127.0.0.1:%d/", https)), 200);
    assert_int_equal(call(&(struct caller){.trust = w.trust, .user = "alice:secret"}, "GET",
                          scratch_text("https://127.0.0.1:%d/", https)),
                     0);
    assert_int_equal(
        call(&(struct caller){.trust = w.trust, .pem = w.alien, .user = "alice:secret"}, "GET",
             scratch_text("https://127.0.0.1:%d/", https)),
        0);
    assert_int_equal(call(&shown, "GET", scratch_text("http://127.0.0.1:%d/", https)), 0);

    /* administration: elsewhere, without users, headers or anything else */
    assert_int_equal(call(&alice, "GET", scratch_text("http://127.0.0.1:%d/admin/loggers", http)),
                     404);
    assert_int_equal(call(&nobody, "GET", scratch_text("http://127.0.0.1:%d/", admin)), 404);
    assert_null(strstr(last_headers, "X-Frame-Options"));
    assert_int_equal(call(&(struct caller){.trust = w.trust}, "GET",
                          scratch_text("https://127.0.0.1:%d/", asks)),
                     404);
    assert_int_equal(call(&(struct caller){.trust = w.trust, .pem = w.alien}, "GET",
                          scratch_text("https://127.0.0.1:%d/", asks)),
                     0);
}

/* --- a cluster -------------------------------------------------------------------------------- */

static struct worker_run *member(const struct world *w, const char *group, const char *name,
                                 const char *pem)
{
    int http = worker_run_free_port(), https = worker_run_free_port();
    struct worker_run *worker = worker_run_start(&(struct worker_run_options){
        .group = group,
        .name = name,
        .dont_wait = true,
        .props = scratch_text("listeners=http://127.0.0.1:%d,https://127.0.0.1:%d\n"
                              "rest.advertised.listener=https\n"
                              "scheduled.rebalance.max.delay.ms=0\n%s",
                              http, https, tls("listeners.https.", pem, w->trust, "required"))});

    worker->url = scratch_text("http://127.0.0.1:%d", http);
    wait_until(JOIN_MS, http_get(scratch_text("%s/health", worker->url)).status == 200);
    return worker;
}

static bool creates(const struct worker_run *worker, const char *conn)
{
    const char *file = scratch_path(conn);
    struct http_reply reply;

    scratch_write_text(file, "a\n");
    reply = worker_run_call(
        worker, "PUT", scratch_text("/connectors/%s/config", conn),
        scratch_text("{\"connector.class\":\"FileStreamSource\",\"file\":\"%s\",\"topic\":\"%s\"}",
                     file, scratch_name("made")));
    return reply.status == 201 || reply.status == 200;
}

static void workers_call_each_other_by_tls_and_show_who_they_are(void **state)
{
    struct world w = make_world();
    const char *group = scratch_name("locked");
    struct worker_run *workers[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        workers[i] = member(&w, group, scratch_text("w%d", i), w.local);
    for (int i = 0; i < 3; i++)
        wait_until(JOIN_MS, creates(workers[i], scratch_text("c%d", i)));
    for (int i = 0; i < 3; i++)
        worker_run_await(workers[i], scratch_text("c%d", (i + 1) % 3), "RUNNING", 1, JOIN_MS);
    for (int i = 0; i < 3; i++)
        wait_until(JOIN_MS,
                   worker_run_call(workers[i], "POST", "/connectors/c0/restart", NULL).status ==
                       204);
}

/* A worker whose certificate is for another host: nobody sends it anything. */
static void a_worker_by_another_name_is_not_called(void **state)
{
    struct world w = make_world();
    const char *elsewhere =
        pem_of("elsewhere.pem", keep(certificates_for(w.authority, "127.0.0.9", NULL)));
    const char *group = scratch_name("names");
    struct worker_run *leader = member(&w, group, "leader", elsewhere);
    struct worker_run *other = member(&w, group, "other", w.local);
    struct http_reply reply;

    (void)state;
    wait_until(JOIN_MS, creates(leader, "c"));
    reply = worker_run_call(other, "PUT", "/connectors/c/stop", NULL);
    wait_until(JOIN_MS,
               (reply = worker_run_call(other, "PUT", "/connectors/c/stop", NULL)).status != 409);
    assert_int_equal(reply.status, 500);
    if (strstr(reply.body, "IO Error trying to forward REST request: ") == NULL ||
        strstr(reply.body, "127.0.0.1") == NULL)
        fail_msg("%s", reply.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(listeners_ask_for_certificates_and_users_and_serve_what_is_theirs),
        scratch_test(workers_call_each_other_by_tls_and_show_who_they_are),
        scratch_test(a_worker_by_another_name_is_not_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
