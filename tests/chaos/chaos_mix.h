/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in an order that the seed makes: each kind once, then each once more. */
#ifndef TESTS_CHAOS_MIX_H
#define TESTS_CHAOS_MIX_H

#include "chaos/chaos_flows.h"
#include "chaos/chaos_proxy.h"

#define CHAOS_MIX_KINDS 20

struct chaos_mix {
    struct chaos_cluster *cluster; /* its workers come through the proxy */
    struct chaos_proxy *proxy;
    struct chaos_flows *flows;
    bool brokers;  /* they die too: three of them */
    int freeze_ms; /* at most */
    unsigned dead; /* workers, a bit each */
    int overtaken; /* times that tasks went on beside those that they replace */
    int relays_doubted, sources_doubted; /* whose id was taken behind an unanswered EndTxn */
    int done[CHAOS_MIX_KINDS];
    int deck[CHAOS_MIX_KINDS], left;
};

/* So many workers, through a proxy, and what they run. */
struct chaos_mix chaos_mix_start(struct chaos_cluster *c, int workers,
                                 const struct chaos_flows_terms *terms);
/* The next fault, and its end: nothing goes on but that some workers are dead and some requests are
 * still to meet their mishap. */
void chaos_mix_fault(struct chaos_mix *mix);
/* This one, by its name in chaos_mix.c. */
void chaos_mix_do(struct chaos_mix *mix, const char *name);
/* All workers live, the wire is good. */
void chaos_mix_heal(struct chaos_mix *mix);
/* What came of it, or the scenario fails with what should not have; prints how many of each
 * fault. */
void chaos_mix_judge(struct chaos_mix *mix);

#endif
