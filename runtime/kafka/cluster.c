/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's first question to Kafka. The client is a librdkafka producer that produces nothing: it bootstraps, learns the
 * cluster id with its first metadata, and is freed. Errors come by librdkafka's own threads into its queue; they are taken
 * from there inside cluster_id, so this file has one owner thread and no lock. */
#include "kafka/cluster.h"

#include <librdkafka/rdkafka.h>

struct cluster {
    rd_kafka_t *rk;
    char trouble[512]; /* what the client last complained about; "" nothing */
};

/* Runs inside rd_kafka_poll. */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    struct cluster *cluster = opaque;
    char *detail;

    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && cluster->trouble[0] != '\0')
        return; /* says less than the one before it */
    snprintf(cluster->trouble, sizeof(cluster->trouble), "%s", reason);
    detail = strstr(cluster->trouble, " (after "); /* the library's own bookkeeping */
    if (detail != NULL)
        *detail = '\0';
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk;
    (void)level;
    (void)facility;
    (void)text;
}

static int set_all(rd_kafka_conf_t *conf, const struct props *mapped, struct mr_error *err)
{
    char why[256];

    for (size_t i = 0; i < mapped->count; i++)
        if (rd_kafka_conf_set(conf, mapped->entries[i].key, mapped->entries[i].value, why,
                              sizeof(why)) != RD_KAFKA_CONF_OK)
            return mr_fail(err, MR_ERR_CONFIG, "%s", why);
    return 0;
}

struct cluster *cluster_new(const struct props *java, struct mr_error *err)
{
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct props mapped;
    char why[256];

    mr_assert(cluster != NULL);
    props_init(&mapped);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_opaque(conf, cluster);
    if (client_conf_map(CLIENT_ADMIN, java, &mapped, NULL, NULL, err) == 0 &&
        set_all(conf, &mapped, err) == 0) {
        cluster->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
        if (cluster->rk == NULL)
            mr_fail(err, MR_ERR_CONFIG, "cannot create a Kafka client: %s", why);
    }
    props_deinit(&mapped);
    if (cluster->rk != NULL)
        return cluster;
    rd_kafka_conf_destroy(conf);
    free(cluster);
    return NULL;
}

void cluster_free(struct cluster **clusterp)
{
    struct cluster *cluster = *clusterp;

    *clusterp = NULL;
    if (cluster == NULL)
        return;
    rd_kafka_destroy(cluster->rk);
    free(cluster);
}

int cluster_id(struct cluster *cluster, int64_t timeout_ms, char *out, size_t size,
               struct mr_error *err)
{
    char *id = rd_kafka_clusterid(cluster->rk, (int)timeout_ms);
    int rc = 0;

    while (rd_kafka_poll(cluster->rk, 0) > 0)
        ;
    if (id == NULL)
        return mr_fail(err, MR_ERR_TIMEOUT, "%s",
                       cluster->trouble[0] != '\0' ? cluster->trouble : "no answer yet");
    if (snprintf(out, size, "%s", id) >= (int)size)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "the cluster id is longer than %zu bytes", size - 1);
    rd_kafka_mem_free(cluster->rk, id);
    return rc;
}
