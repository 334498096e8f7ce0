/* SPDX-License-Identifier: Apache-2.0 */
/* A wire to the brokers that knows what it carries: it can lose a request of a transaction, its
 * answer, or bring it late; slow everything down; and end all connections. It sees the numbers and
 * lengths of requests, and of those about transactions whose they are. */
#ifndef TESTS_CHAOS_PROXY_H
#define TESTS_CHAOS_PROXY_H

struct chaos_proxy;

/* By Kafka's numbers. */
enum chaos_request {
    CHAOS_PRODUCE = 0,
    CHAOS_ADD_PARTITIONS = 24,
    CHAOS_ADD_OFFSETS = 25,
    CHAOS_END_TXN = 26,
    CHAOS_REQUESTS = 32,
};

enum chaos_mishap {
    CHAOS_LATE, /* arrives when a later transaction of its id goes on behind its back, over another
                   connection; at the latest after CHAOS_LATE_MS */
    CHAOS_LOST, /* its connection ends, and it never arrives */
    CHAOS_UNANSWERED, /* it arrives, and its connection ends */
    CHAOS_MISHAPS,
};
#define CHAOS_LATE_MS 20000

struct chaos_proxy_counts {
    int ends; /* EndTxn that were sent, of transactional ids that meet mishaps */
    int met[CHAOS_MISHAPS];
    int overtaken; /* late ones that found a later transaction */
    int torn;      /* of these: accepted, and so the end of what they did not belong to */
    int refused;   /* of these: told that their producer is of the past */
    int resets;    /* connections that were ended */
};

/* Ends with the scenario. servers: as in bootstrap.servers; id: what the transactional ids begin
 * with whose requests meet mishaps. */
struct chaos_proxy *chaos_proxy_new(const char *servers, const char *id);
/* From here on what is started goes through it; NULL: directly. */
void chaos_proxy_use(const struct chaos_proxy *proxy);

/* Where this program's own clients are to connect to, in place of a broker's port. */
int chaos_proxy_port(const struct chaos_proxy *proxy, int port);

/* The next request of this kind. */
void chaos_proxy_mishap(struct chaos_proxy *proxy, enum chaos_mishap what,
                        enum chaos_request which);
/* From here on all that comes waits so long, and up to jitter_ms more. */
void chaos_proxy_slow(struct chaos_proxy *proxy, int ms, int jitter_ms);
void chaos_proxy_reset(struct chaos_proxy *proxy);
/* No more mishaps; what is held back arrives. */
void chaos_proxy_heal(struct chaos_proxy *proxy);
struct chaos_proxy_counts chaos_proxy_counts(struct chaos_proxy *proxy);

#endif
