/* SPDX-License-Identifier: Apache-2.0 */
/* What people write by hand: a transactional producer of librdkafka alone, through the proxy. It
 * shows that what the proxy does to transactions is real. */
#ifndef TESTS_CHAOS_NAIVE_H
#define TESTS_CHAOS_NAIVE_H

#include "chaos/chaos_proxy.h"

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

/* What this becomes connects through the proxy, by its first entrance; NULL: directly. */
void chaos_naive_through(rd_kafka_conf_t *conf, struct chaos_proxy *proxy);

/* Transactions of one record each to the topic, one after another, until done(arg). A commit that
 * librdkafka calls well is well; one that fails ends it. Gives how many were well. */
int chaos_naive_run(struct chaos_proxy *proxy, const char *servers, const char *id,
                    const char *topic, bool (*done)(void *arg), void *arg);

/* As a producer that takes an id over would: whoever has it is fenced. */
void chaos_naive_take_over(const char *servers, const char *id);

#endif
