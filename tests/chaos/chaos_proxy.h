/* SPDX-License-Identifier: Apache-2.0 */
/* A wire to the brokers that knows what it carries: it can lose a request of a transaction, its
 * answer, or bring it late; slow everything down; end all connections; and keep a worker from
 * reading a topic. It sees the numbers and lengths of requests, of those about transactions whose
 * they are, and which topic is read. */
#ifndef TESTS_CHAOS_PROXY_H
#define TESTS_CHAOS_PROXY_H

struct chaos_proxy;

/* By Kafka's numbers. */
enum chaos_request {
    CHAOS_PRODUCE = 0,
    CHAOS_FETCH = 1,
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
    int blinded;   /* requests for a topic that were held */
};

/* Ends with the scenario. servers: as in bootstrap.servers; id: what the transactional ids begin
 * with whose requests meet mishaps. */
struct chaos_proxy *chaos_proxy_new(const char *servers, const char *id);
/* From here on what is started goes through it, by an entrance of its own: 0 to
 * CHAOS_PROXY_ENTRANCES - 1. NULL: directly. */
#define CHAOS_PROXY_ENTRANCES 6
void chaos_proxy_use(const struct chaos_proxy *proxy, int entrance);

/* Where this program's own clients are to connect to, in place of a broker's port. */
int chaos_proxy_port(const struct chaos_proxy *proxy, int port);

/* The next request of this kind. */
void chaos_proxy_mishap(struct chaos_proxy *proxy, enum chaos_mishap what,
                        enum chaos_request which);
/* The next EndTxn whose id begins so arrives and is answered well; its connection ends then, and
 * each more of that id waits until the release: nobody can learn how the transaction ended. */
void chaos_proxy_doubt(struct chaos_proxy *proxy, const char *id);
/* That id, kept for the scenario; NULL: it did not come yet. */
const char *chaos_proxy_doubted(struct chaos_proxy *proxy);
void chaos_proxy_release(struct chaos_proxy *proxy);
/* From here on all that comes waits so long, and up to jitter_ms more. */
void chaos_proxy_slow(struct chaos_proxy *proxy, int ms, int jitter_ms);
void chaos_proxy_reset(struct chaos_proxy *proxy);
/* From here on whoever came by this entrance reads nothing more of this topic: its requests for it
 * wait, and what else they need does not. NULL: they arrive. */
void chaos_proxy_blind(struct chaos_proxy *proxy, int entrance, const char *topic);
/* No more mishaps; what is held back arrives. */
void chaos_proxy_heal(struct chaos_proxy *proxy);
struct chaos_proxy_counts chaos_proxy_counts(struct chaos_proxy *proxy);

#endif
