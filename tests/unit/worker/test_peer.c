/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP to other workers, against a socket that this file serves: what is sent, what is taken over,
 * and that every request is answered exactly once, also when nobody answers or the worker ends
 * first. */
#include "base/clock.h"
#include "base/loop.h"
#include "worker/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000

static struct server {
    int fd;
    int port;
    const char *answer; /* NULL: none, until the test is over */
    char got[4096];
    pthread_t thread;
    int held;
} server;

static size_t read_request(int fd)
{
    size_t len = 0;
    char *end;
    ssize_t n;

    while (len + 1 < sizeof(server.got) &&
           (n = read(fd, server.got + len, sizeof(server.got) - 1 - len)) > 0) {
        len += (size_t)n;
        server.got[len] = '\0';
        end = strstr(server.got, "\r\n\r\n");
        if (end != NULL && (strstr(server.got, "Content-Length: 2") == NULL || end[4] != '\0'))
            break;
    }
    return len;
}

static void *serve(void *arg)
{
    int fd = accept(server.fd, NULL, NULL);

    if (fd < 0 || read_request(fd) == 0)
        return NULL;
    if (server.answer == NULL) {
        server.held = fd;
        return NULL;
    }
    assert_true(write(fd, server.answer, strlen(server.answer)) > 0);
    close(fd);
    return NULL;
}

struct fixture {
    struct loop *loop;
    struct peer *peer;
    int answers;
    int status;
    bool given_up;
    char body[256];
    char error[256];
    struct loop_timer guard;
};

static void on_answer(void *arg, const struct peer_answer *answer)
{
    struct fixture *f = arg;

    f->answers++;
    f->status = answer->status;
    f->given_up = answer->given_up;
    snprintf(f->body, sizeof(f->body), "%s", answer->body);
    snprintf(f->error, sizeof(f->error), "%s", answer->error != NULL ? answer->error : "");
    loop_stop(f->loop);
}

static void on_guard(void *arg)
{
    loop_stop(((struct fixture *)arg)->loop);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);

    memset(&server, 0, sizeof(server));
    server.held = -1;
    server.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(server.fd, 16), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&addr, &len), 0);
    server.port = ntohs(addr.sin_port);
    f->loop = loop_new(NULL);
    f->peer = peer_new(f->loop, NULL, NULL);
    assert_non_null(f->peer);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    peer_free(&f->peer);
    loop_timer_cancel(&f->guard);
    loop_free(&f->loop);
    shutdown(server.fd, SHUT_RDWR);
    close(server.fd);
    if (server.thread != 0)
        pthread_join(server.thread, NULL);
    if (server.held >= 0)
        close(server.held);
    free(f);
    return 0;
}

static void start_serving(const char *answer)
{
    server.answer = answer;
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void send_to_server(struct fixture *f, const struct peer_request *like, int port)
{
    struct peer_request request = *like;
    char url[128];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d/connectors/a%%20b/tasks?forward=true", port);
    request.url = url;
    peer_send(f->peer, &request, on_answer, f);
}

static void run(struct fixture *f)
{
    loop_timer_start(f->loop, &f->guard, WAIT_MS, on_guard, f);
    loop_run(f->loop);
}

static void requests_and_answers_are_carried_whole(void **state)
{
    struct fixture *f = *state;

    start_serving("HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\n{\"a\":1}\n");
    send_to_server(f,
                   &(struct peer_request){.method = "POST",
                                          .body = "[]",
                                          .len = 2,
                                          .authorization = "Basic x",
                                          .signature = "sig",
                                          .signature_algorithm = "HmacSHA256",
                                          .timeout_ms = WAIT_MS},
                   server.port);
    run(f);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->status, 201);
    assert_string_equal(f->body, "{\"a\":1}\n");
    assert_non_null(strstr(server.got, "POST /connectors/a%20b/tasks?forward=true HTTP/1.1\r\n"));
    assert_non_null(strstr(server.got, "\r\nAuthorization: Basic x\r\n"));
    assert_non_null(strstr(server.got, "\r\nX-Connect-Authorization: sig\r\n"));
    assert_non_null(
        strstr(server.got, "\r\nX-Connect-Request-Signature-Algorithm: HmacSHA256\r\n"));
    assert_non_null(strstr(server.got, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(server.got, "\r\nUser-Agent: kafka-connect\r\n"));
    assert_non_null(strstr(server.got, "\r\n\r\n[]"));
}

static void a_method_without_a_body_stays_one(void **state)
{
    struct fixture *f = *state;

    start_serving("HTTP/1.1 204 No Content\r\n\r\n");
    send_to_server(f, &(struct peer_request){.method = "DELETE", .timeout_ms = WAIT_MS},
                   server.port);
    run(f);
    assert_int_equal(f->status, 204);
    assert_non_null(strstr(server.got, "DELETE /"));
    assert_null(strstr(server.got, "Content-Length"));
    assert_null(strstr(server.got, "Authorization"));
}

static void who_cannot_be_reached_is_an_error_and_not_a_wait(void **state)
{
    struct fixture *f = *state;

    close(server.fd);
    send_to_server(f, &(struct peer_request){.method = "GET", .timeout_ms = WAIT_MS}, server.port);
    run(f);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->status, 0);
    assert_string_not_equal(f->error, "");
}

static void who_does_not_answer_is_waited_for_no_longer_than_asked(void **state)
{
    struct fixture *f = *state;
    int64_t from = clock_ms();

    start_serving(NULL);
    send_to_server(f, &(struct peer_request){.method = "GET", .timeout_ms = 100}, server.port);
    run(f);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->status, 0);
    assert_true(clock_ms() - from < WAIT_MS / 2);
}

static void what_is_open_at_the_end_is_answered(void **state)
{
    struct fixture *f = *state;

    start_serving(NULL);
    for (int i = 0; i < 3; i++)
        send_to_server(f, &(struct peer_request){.method = "GET", .timeout_ms = WAIT_MS},
                       server.port);
    peer_free(&f->peer);
    assert_int_equal(f->answers, 3);
    assert_string_equal(f->error, "the worker is stopping");
}

static void who_is_given_up_is_waited_for_no_longer_and_nobody_else(void **state)
{
    struct fixture *f = *state;
    int64_t from = clock_ms();
    char base[64];

    start_serving(NULL);
    send_to_server(f, &(struct peer_request){.method = "PUT", .timeout_ms = WAIT_MS}, server.port);
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port / 10);
    peer_give_up(f->peer, base, "another");
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    peer_give_up(f->peer, base, "it leads no more");
    run(f);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->status, 0);
    assert_true(f->given_up);
    assert_string_equal(f->error, "it leads no more");
    assert_true(clock_ms() - from < WAIT_MS / 2);
}

/* Answers of this size to as many connections as come. */
#define BIG ((size_t)14 << 20)
#define BIGS 6

static atomic_int served;

static void *serve_big(void *arg)
{
    size_t size = *(size_t *)arg;
    char *body = calloc(1, size), head[64];
    int n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
    int fd;

    while ((fd = accept(server.fd, NULL, NULL)) >= 0) {
        size_t at = 0;
        ssize_t wrote = 1;

        read_request(fd);
        assert_int_equal(write(fd, head, (size_t)n), n);
        for (; at < size && wrote > 0; at += (size_t)wrote)
            wrote = send(fd, body + at, size - at, MSG_NOSIGNAL);
        close(fd);
        atomic_fetch_add(&served, 1);
    }
    free(body);
    return NULL;
}

struct tally {
    struct fixture *f;
    int good;
    int refused;
};

static void on_big(void *arg, const struct peer_answer *answer)
{
    struct tally *tally = arg;

    tally->good += answer->status == 200 && answer->len == BIG;
    tally->refused += answer->error != NULL && strstr(answer->error, "too much memory") != NULL;
    if (++tally->f->answers == BIGS)
        loop_stop(tally->f->loop);
}

/* While the loop is held up, nothing that came is given back. */
static void all_answers_together_stay_within_one_budget(void **state)
{
    struct fixture *f = *state;
    struct tally tally = {.f = f};
    size_t size = BIG;
    char url[64];

    atomic_store(&served, 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve_big, &size), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
    for (int round = 0; round < 2; round++) {
        f->answers = tally.good = tally.refused = 0;
        for (int i = 0; i < BIGS; i++)
            peer_send(f->peer,
                      &(struct peer_request){.url = url, .method = "GET", .timeout_ms = WAIT_MS},
                      on_big, &tally);
        while (atomic_load(&served) < (round + 1) * BIGS)
            poll(NULL, 0, 1);
        run(f);
        assert_int_equal(tally.good + tally.refused, BIGS);
        assert_in_range(tally.good, 1, PEER_BYTES_MAX / BIG);
    }
}

static void an_answer_that_is_too_large_is_an_error(void **state)
{
    struct fixture *f = *state;
    size_t size = PEER_ANSWER_MAX + 1;

    assert_int_equal(pthread_create(&server.thread, NULL, serve_big, &size), 0);
    send_to_server(f, &(struct peer_request){.method = "GET", .timeout_ms = WAIT_MS}, server.port);
    run(f);
    assert_int_equal(f->status, 0);
    assert_string_equal(f->error, "its answer is too large");
}

static void urls_are_joined_by_one_slash(void **state)
{
    char *url = peer_url("http://a:1/", "/b"), *other = peer_url("http://a:1", "/b"),
         *piece = peer_escape("a b/\xC3\xA4%~");

    (void)state;
    assert_string_equal(url, "http://a:1/b");
    assert_string_equal(other, "http://a:1/b");
    assert_string_equal(piece, "a%20b%2F%C3%A4%25~");
    free(url);
    free(other);
    free(piece);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(requests_and_answers_are_carried_whole),
        test(a_method_without_a_body_stays_one),
        test(who_cannot_be_reached_is_an_error_and_not_a_wait),
        test(who_does_not_answer_is_waited_for_no_longer_than_asked),
        test(what_is_open_at_the_end_is_answered),
        test(who_is_given_up_is_waited_for_no_longer_and_nobody_else),
        test(all_answers_together_stay_within_one_budget),
        test(an_answer_that_is_too_large_is_an_error),
        cmocka_unit_test(urls_are_joined_by_one_slash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
