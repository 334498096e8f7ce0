/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's questions to Kafka. The client is a librdkafka producer that produces nothing: it
 * bootstraps, learns the cluster id with its first metadata, and asks for the brokers' names now
 * and then. Errors come by librdkafka's own threads into its queue; they are taken from there
 * inside cluster_id, so this file has one owner thread and no lock. */
#include "kafka/cluster.h"

#include "kafka/kafka_private.h"

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

struct cluster *cluster_new(const struct props *java, struct mr_error *err)
{
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    rd_kafka_conf_t *conf = kafka_handle_conf(CLIENT_ADMIN, java, NULL, NULL, err);

    mr_assert(cluster != NULL);
    if (conf != NULL) {
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_opaque(conf, cluster);
        cluster->rk = kafka_handle_new(CLIENT_ADMIN, &conf, err);
    }
    if (cluster->rk == NULL) {
        free(cluster);
        return NULL;
    }
    return cluster;
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

static int no_answer(struct cluster *cluster, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_TIMEOUT, "%s",
                   cluster->trouble[0] != '\0' ? cluster->trouble : "no answer yet");
}

int cluster_id(struct cluster *cluster, int64_t timeout_ms, char *out, size_t size,
               struct mr_error *err)
{
    char *id = rd_kafka_clusterid(cluster->rk, (int)timeout_ms);
    int rc = 0;

    while (rd_kafka_poll(cluster->rk, 0) > 0)
        ;
    if (id == NULL)
        return no_answer(cluster, err);
    if (snprintf(out, size, "%s", id) >= (int)size)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "the cluster id is longer than %zu bytes", size - 1);
    rd_kafka_mem_free(cluster->rk, id);
    return rc;
}

/* Metadata of no topic: a request that any broker answers from memory. */
int cluster_answers(struct cluster *cluster, int64_t timeout_ms, struct mr_error *err)
{
    const struct rd_kafka_metadata *brokers = NULL;
    rd_kafka_resp_err_t code = rd_kafka_metadata(cluster->rk, 0, NULL, &brokers, (int)timeout_ms);

    while (rd_kafka_poll(cluster->rk, 0) > 0)
        ;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return no_answer(cluster, err);
    rd_kafka_metadata_destroy(brokers);
    cluster->trouble[0] = '\0';
    return 0;
}
