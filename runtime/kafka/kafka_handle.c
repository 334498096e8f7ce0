/* SPDX-License-Identifier: Apache-2.0 */
/* The way from Java settings to a client handle of librdkafka, the same for producers and
 * consumers.
 *
 * producer.c and consumer.c ask for a conf, add their callbacks, and have the handle made.
 * librdkafka's own log lines go to base/log at debug level: what a user must know comes as an
 * error, and is logged by whoever gets it. The log callback runs on librdkafka's threads. */
#include "kafka/kafka_private.h"
#include "kafka/steady_wait.h"

#define LOGGER "kafka"
#include "base/log.h"

#include <string.h>

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)level;
    log_debug("%s: %s: %s", rk != NULL ? rd_kafka_name(rk) : "conf", facility, text);
}

static int fill(rd_kafka_conf_t *conf, const struct props *settings, struct mr_error *err)
{
    char why[512];

    for (size_t i = 0; i < settings->count; i++) {
        const struct props_entry *e = &settings->entries[i];

        if (rd_kafka_conf_set(conf, e->key, e->value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
            return mr_fail(err, MR_ERR_CONFIG, "librdkafka does not accept its setting %s", e->key);
    }
    return 0;
}

rd_kafka_conf_t *kafka_handle_conf(enum client_kind kind, const struct props *java,
                                   client_conf_warn warn, void *arg, struct mr_error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct props settings;
    int rc;

    props_init(&settings);
    rc = client_conf_map(kind, java, &settings, warn, arg, err);
    if (rc == 0)
        rc = fill(conf, &settings, err);
    if (rc == 0)
        client_token_prepare(conf, &settings);
    props_deinit(&settings);
    if (rc != 0) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_log_cb(conf, on_log);
    return conf;
}

rd_kafka_t *kafka_handle_new(enum client_kind kind, rd_kafka_conf_t **conf, struct mr_error *err)
{
    char why[512] = "";
    bool tokens = client_token_wanted(*conf);
    rd_kafka_t *rk;

    steady_wait_begin();
    rk = rd_kafka_new(kind == CLIENT_CONSUMER ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, *conf, why,
                      sizeof(why));
    if (rk == NULL) {
        char text[640];

        kafka_error_text(why, text, sizeof(text));
        rd_kafka_conf_destroy(*conf);
        mr_fail(err, MR_ERR_CONFIG, "The Kafka client can't be made with these settings: %s", text);
    }
    *conf = NULL;
    if (rk != NULL && tokens && client_token_begin(rk, err) != 0) {
        rd_kafka_destroy(rk);
        rk = NULL;
    }
    return rk;
}
