/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly once three ways, one behind the other, and what judges them:
 *
 *   LedgerSource ─► topic <s>-<n> ─► AbacusRelay ─► topic <s>-<n>-out ─► AbacusSink ─► file
 *
 * Every topic has one partition; in each, and in the file, there must be the numbers 0, 1, 2 … as a
 * reader of committed records sees them. */
#ifndef TESTS_CHAOS_FLOWS_H
#define TESTS_CHAOS_FLOWS_H

#include "chaos/chaos.h"
#include "chaos/chaos_group.h"

struct chaos_flows {
    struct chaos_source *source;
    const char *more;           /* of its configuration, JSON */
    int shift;                  /* of its tasks against the topics they write to */
    const char *relay;          /* connector */
    const char *sink;           /* connector */
    struct chaos_group in, out; /* of relay and sink */
    const char *file;
};

/* How long both groups wait for a member that is in a call, or silent. */
#define CHAOS_FLOWS_POLL_MS 6000

struct chaos_flows_terms {
    int tasks;           /* of each connector, and so many topics */
    int rate;            /* records a second and task of the source */
    int interval_ms;     /* of transactions of the source; 0: one a poll */
    int poll_ms;         /* in place of CHAOS_FLOWS_POLL_MS; 0: that */
    const char *clients; /* further fields of JSON for the connectors that write to Kafka, or "" */
};

struct chaos_flows *chaos_flows_start(struct chaos_cluster *c,
                                      const struct chaos_flows_terms *terms);
/* The source has so many tasks from here on; topics stay as many as at the start. */
void chaos_flows_scale(const struct chaos_flows *flows, int tasks);
/* The source's tasks change topics among them: each goes on where another has been. This worker is
 * asked for it; false: it could not do it by now. */
bool chaos_flows_swap(struct chaos_flows *flows, struct worker_run *through);
/* Something new of every topic has come to the end of all this, since now. */
void chaos_flows_await(const struct chaos_flows *flows, int ms);
/* Heal first. The source stops, what it has committed arrives everywhere, and each of the three is
 * what it should be, or the scenario fails with what is not. Gives the records of all three. */
int64_t chaos_flows_judge(const struct chaos_flows *flows);
/* After that, and where the brokers are those of the tests: their files say the same
 * (chaos_atomic.c). */
void chaos_atomic_judge(const struct chaos_flows *flows);

#endif
