/* SPDX-License-Identifier: Apache-2.0 */
/* server: many clients that are slow, and many that send what no client should. What is sent is
 * made by chance from good requests: MILLRACE_MUTATIONS=n sends so many (else a few thousand),
 * MILLRACE_SEED=n others. */
#include "base/log.h"
#include "server_rig.h"

#include <poll.h>
#include <sys/resource.h>

/* --- slow ones -------------------------------------------------------------------------------- */

#define CROWD 1000
#define READ_MS 50             /* that a read may take beside them, in the middle */
#define CROWD_BYTES (20 << 20) /* that they may cost */

static size_t resident_bytes(void)
{
    FILE *in = fopen("/proc/self/statm", "re");
    size_t all, resident;

    assert_non_null(in);
    assert_int_equal(fscanf(in, "%zu %zu", &all, &resident), 2);
    fclose(in);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static int compare_ms(const void *a, const void *b)
{
    return (int)(*(const int64_t *)a - *(const int64_t *)b);
}

/* Every one that is not cut yet sends another byte, then somebody reads: how long that took. */
static int64_t drip(struct fixture *f, const int *fds)
{
    int64_t from;

    for (int i = 0; i < CROWD; i++)
        (void)!send(fds[i], "a", 1, MSG_NOSIGNAL);
    from = clock_ms();
    assert_int_equal(ask(f, "GET", "/connectors/a/status", NULL).status, 200);
    return clock_ms() - from;
}

static void a_thousand_dripping_connections_hold_up_nobody_and_are_cut(void **state)
{
    enum { READS = 21 };
    struct fixture *f = fixture_new();
    int64_t took[READS];
    static int fds[CROWD];
    size_t before;

    (void)state;
    f->limits.reading_ms = 3000;
    f->limits.sweep_ms = 50;
    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    before = resident_bytes();
    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(f);
        say(fds[i], "GET / HTTP/1.1\r\nHost: x\r\nX-A: ");
    }
    for (int i = 0; i < READS; i++)
        took[i] = drip(f, fds);
    assert_true(resident_bytes() - before < CROWD_BYTES);
    qsort(took, READS, sizeof(took[0]), compare_ms);
    assert_true(took[READS / 2] <= READ_MS);
    for (int i = 0; i < CROWD; i++) {
        assert_true(ended(fds[i]));
        close(fds[i]);
    }
    fixture_free(f);
}

/* A quarter of a minute and a sweep: slow ones are gone after half a minute at most. */
static void nobody_is_waited_for_longer_than_half_a_minute(void **state)
{
    (void)state;
    assert_true(server_limits.reading_ms + server_limits.sweep_ms <= 30000);
}

/* --- odd ones --------------------------------------------------------------------------------- */

#define BATCH 256
#define REQUEST_MAX 16384
#define HEAR_MS 50 /* nobody waits for the rest of a request */

static const char *const good[] = {
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /connectors?expand=status&expand=info HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
    "GET /connectors/a%20b/status HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n",
    "POST /connectors HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 55\r\n\r\n"
    "{\"name\":\"n\",\"config\":{\"a\":\"1\",\"b\":2.50,\"c\":true,\"d\":null}}",
    "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 20\r\n\r\n"
    "{\"x\":\"\\u00e9\",\"y\":1e3}",
    "PUT /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON "Transfer-Encoding: chunked\r\n\r\n"
    "5\r\n{\"x\":\r\n4;e=1\r\n \"1\"\r\n1\r\n}\r\n0\r\n\r\n",
    "PATCH /connectors/a/config HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 10\r\n\r\n"
    "{\"x\":null}",
    "PATCH /connectors/a/offsets HTTP/1.1\r\nHost: x\r\n" JSON "Content-Length: 52\r\n\r\n"
    "{\"offsets\":[{\"partition\":{\"a\":1},\"offset\":{\"b\":2}}]}",
    "DELETE /connectors/a HTTP/1.1\r\nHost: x\r\n\r\n",
    "PUT /connectors/a/pause HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "POST /connectors/a/restart?includeTasks=true&onlyFailed=false HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /connectors/a/tasks/0/restart HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /connectors/a/tasks HTTP/1.1\r\nHost: x\r\nX-Connect-Authorization: right\r\n"
    "Content-Length: 9\r\n\r\n[{\"a\":\"1\"}]",
    "PUT /connector-plugins/X/config/validate HTTP/1.1\r\nHost: x\r\n" JSON
    "Content-Length: 23\r\n\r\n{\"connector.class\":\"X\"}",
    "PUT /admin/loggers/root?scope=cluster HTTP/1.1\r\nHost: x\r\n" JSON
    "Content-Length: 16\r\n\r\n{\"level\":\"INFO\"}",
    "OPTIONS /connectors HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n\r\n",
    "HEAD /connector-plugins?connectorsOnly=false HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
};

static const char *const odd[] = {
    "%2F",
    "%00",
    "%zz",
    "%",
    "%c3%28",
    "..",
    "//",
    ";a=b",
    "?",
    "#",
    "+",
    "\xF0\x9F\x92\xA9",
    "\xff",
    "\r\n",
    "\n",
    " ",
    "\t",
    "\"",
    "\\",
    "\\ud800",
    "\\u0000",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1",
    "1e999",
    "99999999999999999999",
    "\xEF\xBB\xBF",
    "0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x\r\n",
    "Expect: 100-continue\r\n",
    "Content-Type: text/plain\r\n",
    "Accept: text/html\r\n",
    "Host: y\r\n",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
    "X-A: b\r\n",
    "HTTP/2",
    "HTTP/0.9",
    "{\"name\":",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct request {
    char data[REQUEST_MAX];
    size_t len;
};

static uint64_t chance;

static size_t any(size_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(chance >> 33) % below;
}

static void replace(struct request *r, size_t at, size_t cut, const char *with, size_t len)
{
    if (cut > r->len - at)
        cut = r->len - at;
    if (r->len - cut + len > sizeof(r->data))
        return;
    memmove(r->data + at + len, r->data + at + cut, r->len - at - cut);
    memcpy(r->data + at, with, len);
    r->len += len - cut;
}

static void mutate(struct request *r)
{
    size_t at = any(r->len + 1), other = any(COUNT(good)), way = any(6);
    size_t from = any(strlen(good[other])), len = any(strlen(good[other]) - from) + 1;
    const char *word = odd[any(COUNT(odd))];
    char byte = (char)any(256), run[64];

    memset(run, byte, sizeof(run));
    if (way == 0)
        replace(r, at, 1, &byte, 1);
    else if (way == 1)
        replace(r, at, any(20), "", 0);
    else if (way == 2)
        replace(r, at, 0, good[other] + from, len);
    else if (way == 3)
        for (size_t n = any(300); n > 0; n--)
            replace(r, at, 0, run, sizeof(run));
    else
        replace(r, at, any(3), word, strlen(word));
}

static void make_request(struct request *r)
{
    const char *seed = good[any(COUNT(good))];

    r->len = strlen(seed);
    memcpy(r->data, seed, r->len);
    for (size_t n = any(4) + 1; n > 0; n--)
        mutate(r);
}

/* What came first on each, as long as somebody has something to say. An answer of 500 and above
 * says that it is our fault, but for a version of HTTP that is none of ours. */
static void listen_to(const int *fds, const struct request *requests)
{
    int64_t until_ms = clock_ms() + HEAR_MS;
    struct pollfd polls[BATCH];
    int left = BATCH;

    for (int i = 0; i < BATCH; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (left > 0 && clock_ms() < until_ms && poll(polls, BATCH, HEAR_MS) > 0)
        for (int i = 0; i < BATCH; i++) {
            char head[64] = "";
            int status = 0;

            if (polls[i].fd < 0 || polls[i].revents == 0)
                continue;
            if (recv(fds[i], head, sizeof(head) - 1, MSG_DONTWAIT) > 0 &&
                (sscanf(head, "HTTP/1.%*d %d", &status) != 1 || (status >= 500 && status != 505)))
                fail_msg("%s\nwas answered with %s", requests[i].data, head);
            polls[i].fd = -1;
            left--;
        }
}

static void send_batch(struct fixture *f)
{
    static struct request requests[BATCH];
    int fds[BATCH];

    for (int i = 0; i < BATCH; i++) {
        make_request(&requests[i]);
        fds[i] = dial(f);
        (void)!send(fds[i], requests[i].data, requests[i].len, MSG_NOSIGNAL);
        requests[i].data[requests[i].len < REQUEST_MAX ? requests[i].len : REQUEST_MAX - 1] = '\0';
    }
    listen_to(fds, requests);
    for (int i = 0; i < BATCH; i++) {
        /* Without a trace: a million of them would use up all ports. */
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        close(fds[i]);
    }
}

static void whatever_comes_is_no_fault_of_ours(void **state)
{
    const char *count = getenv("MILLRACE_MUTATIONS"), *seed = getenv("MILLRACE_SEED");
    long left = count != NULL ? strtol(count, NULL, 10) : 4096;
    struct fixture *f = *state;

    chance = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    for (; left > 0; left -= BATCH)
        send_batch(f);
    assert_int_equal(ask(f, "GET", "/connectors/a/status", NULL).status, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_dripping_connections_hold_up_nobody_and_are_cut),
        cmocka_unit_test(nobody_is_waited_for_longer_than_half_a_minute),
        cmocka_unit_test_setup_teardown(whatever_comes_is_no_fault_of_ours, set_up, tear_down),
    };

    log_set_level(LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
