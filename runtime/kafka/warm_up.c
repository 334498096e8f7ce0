/* SPDX-License-Identifier: Apache-2.0 */
/* Sets librdkafka up in a process that forks others, before it does so. Called once by
 * host/nest_main.c.
 *
 * The library has no call for this: what is global is set up by the first rd_kafka_new, which also
 * starts threads, and these do not survive a fork. A client that fails between the two does it: the
 * mechanism is looked for after all global parts are set up (the SASL library with its modules
 * among them) and before the first thread. A TLS context would be refused there as well, but its
 * tables cost every worker 2 MB, and save a host 0.2 MB where TLS is used. */
#include "kafka/warm_up.h"

#include "kafka/kafka_private.h"

void warm_up(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[512];

    /* A library without SASL refuses these, and has little to set up. */
    if (rd_kafka_conf_set(conf, "security.protocol", "sasl_plaintext", why, sizeof(why)) ==
            RD_KAFKA_CONF_OK &&
        rd_kafka_conf_set(conf, "sasl.mechanisms", "NONE", why, sizeof(why)) == RD_KAFKA_CONF_OK)
        mr_assert(rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why)) == NULL);
    rd_kafka_conf_destroy(conf);
}
