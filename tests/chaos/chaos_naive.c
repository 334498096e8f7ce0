/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that everybody writes: begin, produce, commit, begin. */
#include "chaos/chaos_naive.h"

#include "chaos/chaos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define CALL_MS 30000
#define OPEN_MS 150 /* that a transaction with its record stays open */

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char text[256];

    if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        fail_msg("%s", text);
}

static int connect_through(int fd, const struct sockaddr *addr, int len, const char *id,
                           void *opaque)
{
    struct sockaddr_in to = *(const struct sockaddr_in *)(const void *)addr;

    (void)id, (void)len;
    if (opaque != NULL)
        to.sin_port = htons((uint16_t)chaos_proxy_port(opaque, ntohs(to.sin_port)));
    return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS ? 0 : errno;
}

void chaos_naive_through(rd_kafka_conf_t *conf, struct chaos_proxy *proxy)
{
    rd_kafka_conf_set_connect_cb(conf, connect_through);
    rd_kafka_conf_set_opaque(conf, proxy);
}

static void init(rd_kafka_t *rk)
{
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, CALL_MS);

    if (error == NULL)
        return;
    rd_kafka_destroy(rk); /* before the proxy goes */
    fail_msg("%s", scratch_text("%s", rd_kafka_error_string(error)));
}

static rd_kafka_t *producer(struct chaos_proxy *proxy, const char *servers, const char *id)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    set(conf, "bootstrap.servers", servers);
    set(conf, "transactional.id", id);
    set(conf, "socket.timeout.ms", "1500");
    set(conf, "log_level", "0");
    chaos_naive_through(conf, proxy);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (rk == NULL)
        fail_msg("%s", text);
    init(rk);
    return rk;
}

static void stay_open(rd_kafka_t *rk)
{
    int64_t from = scratch_now_ms();

    while (scratch_since(from) < OPEN_MS)
        rd_kafka_poll(rk, OPEN_MS);
}

static bool commit_one(rd_kafka_t *rk, const char *topic)
{
    rd_kafka_error_t *error = rd_kafka_begin_transaction(rk);

    if (error == NULL) {
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_VALUE((void *)(uintptr_t) "naive", 5),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        rd_kafka_flush(rk, CALL_MS);
        stay_open(rk);
        error = rd_kafka_commit_transaction(rk, CALL_MS);
    }
    if (error == NULL)
        return true;
    rd_kafka_error_destroy(error);
    return false;
}

int chaos_naive_run(struct chaos_proxy *proxy, const char *servers, const char *id,
                    const char *topic, bool (*done)(void *arg), void *arg)
{
    rd_kafka_t *rk = producer(proxy, servers, id);
    int count = 0;

    while (!done(arg) && commit_one(rk, topic))
        count++;
    rd_kafka_destroy(rk);
    return count;
}

void chaos_naive_take_over(const char *servers, const char *id)
{
    rd_kafka_destroy(producer(NULL, servers, id));
}
