/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in an order that the seed makes: each kind once, then each once more. */
#ifndef TESTS_CHAOS_MIX_H
#define TESTS_CHAOS_MIX_H

#include "chaos/chaos.h"
#include "chaos/chaos_proxy.h"

#define CHAOS_MIX_KINDS 16

struct chaos_mix {
    struct chaos_cluster *cluster; /* its workers come through the proxy */
    struct chaos_proxy *proxy;
    bool brokers;  /* they die too: three of them */
    int freeze_ms; /* at most */
    unsigned dead; /* workers, a bit each */
    int done[CHAOS_MIX_KINDS];
    int deck[CHAOS_MIX_KINDS], left;
};

/* Another worker, through the proxy. */
void chaos_mix_join(struct chaos_mix *mix);
/* The next fault, and its end: nothing goes on but that some workers are dead and some requests are
 * still to meet their mishap. */
void chaos_mix_fault(struct chaos_mix *mix);
/* This one, by its name in chaos_mix.c. */
void chaos_mix_do(struct chaos_mix *mix, const char *name);
/* All workers live, the wire is good. */
void chaos_mix_heal(struct chaos_mix *mix);
/* Print how many of each. */
void chaos_mix_tell(const struct chaos_mix *mix);

#endif
