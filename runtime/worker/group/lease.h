/* SPDX-License-Identifier: Apache-2.0 */
/* How long the hosts may work: until when the group surely still counts this worker a member. A
 * value; pure.
 *
 *   hard  the group may have given the work away: last answered request sent + session timeout
 *   soft  tasks must begin to be quiet: hard - min(graceful timeout, session timeout / 3)
 *
 * All times are CLOCK_BOOTTIME in ms, which goes on while the machine sleeps. What counts is when a
 * request was sent, since the broker counts from when it came. Spec: reference group-protocol 12;
 * design, Lease. */
#ifndef WORKER_GROUP_LEASE_H
#define WORKER_GROUP_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* Set the first three; the rest zeroed. */
struct lease {
    int64_t session_ms;   /* session.timeout.ms */
    int64_t graceful_ms;  /* task.shutdown.graceful.timeout.ms */
    int64_t rebalance_ms; /* rebalance.timeout.ms */
    int64_t sent_ms;      /* of the newest request that was answered as from a member; 0 none */
    int64_t cap_ms; /* a round began that we have not joined: it may end without us then; 0 none */
};

struct lease_times {
    int64_t soft_ms;
    int64_t hard_ms; /* 0: there never was a lease */
};

/* A JoinGroup, SyncGroup or Heartbeat that was sent at sent_ms was answered with success. Older
 * than the newest: no change. */
void lease_renew(struct lease *lease, int64_t sent_ms);
/* A heartbeat was answered with REBALANCE_IN_PROGRESS. joining: our JoinGroup had been sent before
 * this answer came. */
void lease_rebalancing(struct lease *lease, int64_t sent_ms, bool joining);
/* JoinGroup was answered with success: the round did not end without us. */
void lease_joined(struct lease *lease);
/* This request was sent when the lease was over: an answer to it proves nothing, since a
 * coordinator that is loading the group answers a heartbeat with success without looking. Only a
 * new round does. */
bool lease_lapsed(const struct lease *lease, int64_t sent_ms);
/* The group does not know us any longer: quiet at now_ms; hard no later than it was, nor than a
 * margin from now. */
struct lease_times lease_ended(const struct lease *lease, int64_t now_ms);

struct lease_times lease_times(const struct lease *lease);

#endif
