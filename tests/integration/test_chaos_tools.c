/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of exactly-once tests, tried by themselves: what the proxy does to the transactions of
 * a producer that is nobody's, on librdkafka's mock brokers; what becomes of packets on the bad
 * wire; and what the oracle sees. */
#include "chaos/chaos.h"
#include "chaos/chaos_link.h"
#include "chaos/chaos_naive.h"
#include "chaos/chaos_numbers.h"
#include "chaos/chaos_proxy.h"

#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BOUND_MS 30000
#define BEFORE 3 /* transactions, before what happens and behind it */

/* --- the proxy -------------------------------------------------------------------------------- */

struct mock {
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *cluster;
};

static void end_mock(void *arg)
{
    struct mock *mock = arg;

    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->rk);
}

static const char *start_mock(void)
{
    struct mock *mock = scratch_keep(calloc(1, sizeof(*mock)));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];

    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    mock->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(mock->rk);
    mock->cluster = rd_kafka_mock_cluster_new(mock->rk, 3);
    assert_non_null(mock->cluster);
    scratch_at_end(end_mock, mock);
    rd_kafka_mock_topic_create(mock->cluster, "t", 1, 1);
    rd_kafka_mock_topic_create(mock->cluster, "u", 1, 1);
    return rd_kafka_mock_cluster_bootstraps(mock->cluster);
}

struct plan {
    struct chaos_proxy *proxy;
    enum chaos_mishap what;
    int looks;
    int left; /* once it has happened */
};

/* Looked at before each transaction. */
static bool is_over(void *arg)
{
    struct plan *plan = arg;
    struct chaos_proxy_counts counts = chaos_proxy_counts(plan->proxy);
    bool happened = plan->what == CHAOS_MISHAPS ? counts.resets > 0
                    : plan->what == CHAOS_LATE  ? counts.overtaken > 0
                                                : counts.met[plan->what] > 0;

    if (++plan->looks == BEFORE && plan->what == CHAOS_MISHAPS)
        chaos_proxy_reset(plan->proxy);
    else if (plan->looks == BEFORE)
        chaos_proxy_mishap(plan->proxy, plan->what, CHAOS_END_TXN);
    return happened && plan->left-- == 0;
}

static struct chaos_proxy_counts run(enum chaos_mishap what)
{
    const char *servers = start_mock();
    struct plan plan = {chaos_proxy_new(servers, "mine"), what, 0, BEFORE};

    if (what == CHAOS_MISHAPS)
        chaos_proxy_slow(plan.proxy, 20, 20);
    assert_true(chaos_naive_run(plan.proxy, servers, "mine-1", "t", is_over, &plan) >= 2 * BEFORE);
    return chaos_proxy_counts(plan.proxy);
}

static void a_lost_end_is_sent_again(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_LOST);

    (void)state;
    assert_int_equal(counts.met[CHAOS_LOST], 1);
    assert_true(counts.ends > 2 * BEFORE);
}

static void an_unanswered_end_is_sent_again(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_UNANSWERED);

    (void)state;
    assert_int_equal(counts.met[CHAOS_UNANSWERED], 1);
    assert_true(counts.ends > 2 * BEFORE);
}

/* All commits are well for librdkafka, and one transaction was ended by the end of another. */
static void a_late_end_tears_a_later_transaction(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_LATE);

    (void)state;
    assert_int_equal(counts.met[CHAOS_LATE], 1);
    assert_int_equal(counts.overtaken, 1);
    assert_int_equal(counts.torn, 1);
}

static void connections_of_a_slow_wire_end_and_begin_anew(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_MISHAPS);

    (void)state;
    assert_true(counts.resets > 0);
    assert_int_equal(counts.torn, 0);
}

struct doubt {
    struct chaos_proxy *proxy;
    pthread_t thread;
    atomic_int looks;
    int meanwhile; /* looks, when it was sent again and not let go */
};

/* Sent well, and sent again twice, in vain. */
static bool is_in_doubt(const struct doubt *doubt)
{
    return chaos_proxy_doubted(doubt->proxy) != NULL &&
           chaos_proxy_counts(doubt->proxy).ends >= BEFORE + 2;
}

static void *release_in_doubt(void *arg)
{
    struct doubt *doubt = arg;
    int64_t from = scratch_now_ms();

    while (!is_in_doubt(doubt) && scratch_since(from) < BOUND_MS)
        scratch_pause(1);
    doubt->meanwhile = atomic_load(&doubt->looks);
    chaos_proxy_release(doubt->proxy);
    return NULL;
}

static bool is_past_doubt(void *arg)
{
    struct doubt *doubt = arg;

    if (atomic_fetch_add(&doubt->looks, 1) == BEFORE - 1) {
        chaos_proxy_doubt(doubt->proxy, "mine-");
        assert_int_equal(pthread_create(&doubt->thread, NULL, release_in_doubt, doubt), 0);
    }
    return atomic_load(&doubt->looks) > 2 * BEFORE;
}

static void a_commit_is_in_doubt_until_it_is_released(void **state)
{
    const char *servers = start_mock();
    struct doubt doubt = {.proxy = chaos_proxy_new(servers, "mine")};

    (void)state;
    assert_int_equal(chaos_naive_run(doubt.proxy, servers, "mine-1", "t", is_past_doubt, &doubt),
                     2 * BEFORE);
    pthread_join(doubt.thread, NULL);
    assert_int_equal(doubt.meanwhile, BEFORE);
    assert_null(chaos_proxy_doubted(doubt.proxy));
}

static void end_reader(void *rk)
{
    rd_kafka_destroy(rk);
}

static rd_kafka_t *reader(struct chaos_proxy *proxy, const char *servers, const char *topic)
{
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text));
    rd_kafka_conf_set(conf, "group.id", "readers", text, sizeof(text));
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    chaos_naive_through(conf, proxy);
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    assert_non_null(rk);
    scratch_at_end(end_reader, rk);
    rd_kafka_topic_partition_list_add(parts, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    assert_int_equal(rd_kafka_assign(rk, parts), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(parts);
    return rk;
}

static bool reads(rd_kafka_t *rk, int ms)
{
    rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, ms);
    bool read = msg != NULL && msg->err == RD_KAFKA_RESP_ERR_NO_ERROR;

    if (msg != NULL)
        rd_kafka_message_destroy(msg);
    return read;
}

static bool is_second(void *looks)
{
    return ++*(int *)looks > 1;
}

static void write_one(const char *servers, const char *topic)
{
    int looks = 0;

    assert_int_equal(chaos_naive_run(NULL, servers, "writer", topic, is_second, &looks), 1);
}

/* Of one worker: a topic is not read, another is. */
static void a_topic_is_kept_from_its_reader(void **state)
{
    const char *servers = start_mock();
    struct chaos_proxy *proxy = chaos_proxy_new(servers, "mine");
    rd_kafka_t *blind = reader(proxy, servers, "t"), *other;

    (void)state;
    write_one(servers, "t");
    wait_until(BOUND_MS, reads(blind, 100));
    chaos_proxy_blind(proxy, 0, "t");
    wait_until(BOUND_MS, !reads(blind, 10) && chaos_proxy_counts(proxy).blinded > 0);
    write_one(servers, "t");
    write_one(servers, "u");
    other = reader(proxy, servers, "u");
    wait_until(BOUND_MS, reads(other, 100));
    assert_false(reads(blind, 100));
    chaos_proxy_blind(proxy, 0, NULL);
    wait_until(BOUND_MS, reads(blind, 100));
}

static bool is_third(void *looks)
{
    return ++*(int *)looks > BEFORE;
}

static void what_is_not_ours_meets_nothing(void **state)
{
    const char *servers = start_mock();
    struct chaos_proxy *proxy = chaos_proxy_new(servers, "another");
    int looks = 0;

    (void)state;
    chaos_proxy_mishap(proxy, CHAOS_LOST, CHAOS_END_TXN);
    assert_int_equal(chaos_naive_run(proxy, servers, "mine-1", "t", is_third, &looks), BEFORE);
    assert_int_equal(chaos_proxy_counts(proxy).met[CHAOS_LOST], 0);
    assert_int_equal(chaos_proxy_counts(proxy).ends, 0);
}

/* --- the bad wire ----------------------------------------------------------------------------- */

#define PORT 9092
#define GOOD_PORT 8083
#define SENT 1000
#define HARM ((struct chaos_link_harm){.lost_percent = 5, .ms = 100, .jitter_ms = 50})

static struct sockaddr_in at(const char *address, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    assert_int_equal(inet_pton(AF_INET, address, &addr.sin_addr), 1);
    return addr;
}

/* Of the network that the thread is in. */
static int udp_socket(const char *address, int port)
{
    struct sockaddr_in addr = at(address, port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), bytes = 1 << 22;

    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
    return fd;
}

struct arrivals {
    int count, overtaken;
    int64_t soonest_ms, latest_ms;
};

struct datagram {
    int number;
    int64_t sent_ms;
};

static struct arrivals read_arrivals(int fd)
{
    struct arrivals seen = {.soonest_ms = INT64_MAX};
    struct pollfd p = {fd, POLLIN, 0};
    struct datagram d;
    int highest = -1;

    while (poll(&p, 1, 1000) > 0 && recv(fd, &d, sizeof(d), 0) == sizeof(d)) {
        int64_t took_ms = scratch_since(d.sent_ms);

        seen.count++;
        seen.overtaken += d.number < highest;
        highest = d.number > highest ? d.number : highest;
        seen.soonest_ms = took_ms < seen.soonest_ms ? took_ms : seen.soonest_ms;
        seen.latest_ms = took_ms > seen.latest_ms ? took_ms : seen.latest_ms;
    }
    return seen;
}

static struct arrivals send_there(const struct chaos_link *link, int port)
{
    struct sockaddr_in to = at(CHAOS_LINK_THERE, port);
    int out = udp_socket(CHAOS_LINK_HERE, 0), in;
    struct arrivals seen;

    chaos_link_go(link, CHAOS_THERE);
    in = udp_socket(CHAOS_LINK_THERE, port);
    chaos_link_go(link, CHAOS_HERE);
    for (int i = 0; i < SENT; i++) {
        struct datagram d = {i, scratch_now_ms()};

        assert_int_equal(sendto(out, &d, sizeof(d), 0, (struct sockaddr *)&to, sizeof(to)),
                         sizeof(d));
        if (i % 50 == 49)
            scratch_pause(1); /* a device keeps 500 */
    }
    seen = read_arrivals(in);
    close(in);
    close(out);
    return seen;
}

static struct chaos_link *start_link(void)
{
    const char *lacks = chaos_link_lacks();
    struct chaos_link *link;

    if (lacks != NULL) {
        printf("             no wire of its own: %s\n", lacks);
        skip();
    }
    link = chaos_link_new();
    chaos_link_set(link, (int[]){PORT, 0}, HARM);
    return link;
}

static void a_bad_wire_loses_delays_and_reorders(void **state)
{
    struct chaos_link *link = start_link();
    struct arrivals seen = send_there(link, PORT);
    struct chaos_link_counts counts = chaos_link_counts(link);

    (void)state;
    assert_int_equal(counts.packets, SENT);
    assert_int_equal(counts.lost, SENT - seen.count);
    assert_in_range(counts.lost, SENT / 50, SENT / 10);
    assert_true(seen.overtaken > 0);
    assert_true(seen.soonest_ms >= 49 && seen.soonest_ms < 100);
    assert_true(seen.latest_ms > 100);
}

#define STREAM_BYTES 40000

static int tcp_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

/* What is lost is sent again, and put in order. */
static void streams_arrive_whole(void **state)
{
    struct chaos_link *link = start_link();
    struct sockaddr_in here = at(CHAOS_LINK_HERE, PORT);
    int listener = tcp_socket(), out, in;
    unsigned char sent[STREAM_BYTES], got[STREAM_BYTES];
    int64_t from = scratch_now_ms();

    (void)state;
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (unsigned char)(i * 31 >> 3);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(listener, 1), 0);
    chaos_link_go(link, CHAOS_THERE);
    out = tcp_socket();
    chaos_link_go(link, CHAOS_HERE);
    assert_int_equal(connect(out, (struct sockaddr *)&here, sizeof(here)), 0);
    in = accept(listener, NULL, NULL);
    assert_int_equal(send(out, sent, sizeof(sent), 0), sizeof(sent));
    assert_int_equal(recv(in, got, sizeof(got), MSG_WAITALL), sizeof(got));
    assert_memory_equal(sent, got, sizeof(got));
    printf("             %d bytes in %lld ms, %lld of %lld packets lost\n", STREAM_BYTES,
           (long long)scratch_since(from), chaos_link_counts(link).lost,
           chaos_link_counts(link).packets);
    close(in);
    close(out);
    close(listener);
}

static void other_ports_packets_pass(void **state)
{
    struct chaos_link *link = start_link();
    struct arrivals seen = send_there(link, GOOD_PORT);

    (void)state;
    assert_int_equal(seen.count, SENT);
    assert_int_equal(seen.overtaken, 0);
    assert_int_equal(chaos_link_counts(link).packets, 0);
}

/* --- the oracle ------------------------------------------------------------------------------- */

static struct chaos_numbers numbers(const int64_t *all, size_t count)
{
    struct chaos_numbers n = {.of = "numbers"};

    for (size_t i = 0; i < count; i++)
        chaos_numbers_take(&n, all[i]);
    return n;
}

static void numbers_in_order_are_right(void **state)
{
    struct chaos_numbers n = {.of = "many"};

    (void)state;
    for (int64_t i = 0; i < 200000; i++)
        chaos_numbers_take(&n, i);
    assert_int_equal(n.next, 200000);
    assert_true(chaos_numbers_right(&n));
}

static void what_is_lost_twice_or_late_is_seen(void **state)
{
    static const int64_t lost[] = {0, 1, 3}, twice[] = {0, 1, 1, 2}, late[] = {0, 2, 1, 3};
    struct chaos_numbers n = numbers(lost, 3);

    (void)state;
    assert_int_equal(n.next - n.count, 1);
    assert_false(chaos_numbers_right(&n));
    n = numbers(twice, 4);
    assert_int_equal(n.twice, 1);
    assert_false(chaos_numbers_right(&n));
    n = numbers(late, 4);
    assert_int_equal(n.late, 1);
    assert_int_equal(n.next - n.count, 0);
    assert_false(chaos_numbers_right(&n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_lost_end_is_sent_again),
        scratch_test(an_unanswered_end_is_sent_again),
        scratch_test(a_late_end_tears_a_later_transaction),
        scratch_test(connections_of_a_slow_wire_end_and_begin_anew),
        scratch_test(a_commit_is_in_doubt_until_it_is_released),
        scratch_test(a_topic_is_kept_from_its_reader),
        scratch_test(what_is_not_ours_meets_nothing),
        scratch_test(a_bad_wire_loses_delays_and_reorders),
        scratch_test(streams_arrive_whole),
        scratch_test(other_ports_packets_pass),
        scratch_test(numbers_in_order_are_right),
        scratch_test(what_is_lost_twice_or_late_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
