/* SPDX-License-Identifier: Apache-2.0 */
/* Two machines and the wire between them, which loses packets and is slow. Both are network
 * namespaces of the test's own, with nothing else in them, each with one end of the wire (TUN): the
 * network of the machine that the test runs on is neither used nor touched. */
#ifndef TESTS_CHAOS_LINK_H
#define TESTS_CHAOS_LINK_H

struct chaos_link;

enum chaos_end { CHAOS_HERE, CHAOS_THERE };
#define CHAOS_LINK_HERE "198.18.0.1" /* of a range that is for measuring networks (RFC 2544) */
#define CHAOS_LINK_THERE "198.18.0.2"
#define CHAOS_LINK_PORTS 8

/* What each packet of some ports meets, both ways. */
struct chaos_link_harm {
    int lost_percent;
    int ms; /* each waits so long, up to jitter_ms less or more: some overtake others */
    int jitter_ms;
};

struct chaos_link_counts {
    long long packets; /* of these ports */
    long long lost;
};

/* NULL, or in words why this machine can't have one. */
const char *chaos_link_lacks(void);
/* The calling thread is at the first end from now on, with all that it starts; it is back where it
 * came from with the scenario's end. */
struct chaos_link *chaos_link_new(void);
/* The calling thread goes to that end, and from now on starts there what it starts. */
void chaos_link_go(const struct chaos_link *link, enum chaos_end end);
/* ports: of either end, ended by 0, CHAOS_LINK_PORTS at most. All others' packets pass at once. */
void chaos_link_set(struct chaos_link *link, const int *ports, struct chaos_link_harm harm);
struct chaos_link_counts chaos_link_counts(struct chaos_link *link);

#endif
