/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker asks its group for the next round, where nothing is lost by a moment's wait: after
 * changes of the config topic, and after rounds that did not bring it where it should be. A value;
 * pure. */
#ifndef WORKER_ROUND_PACE_H
#define WORKER_ROUND_PACE_H

#include <stdint.h>

#define ROUND_PACE_FIRST_MS 50 /* after a round, doubling with each that follows without a calm */
#define ROUND_PACE_MOST_MS 400
#define ROUND_PACE_CALM_MS 1000
#define ROUND_PACE_STUCK_FIRST_MS 250 /* doubling */
#define ROUND_PACE_STUCK_MOST_MS 10000

/* Zeroed before use, but for offset: -1. */
struct round_pace {
    int64_t ended_ms; /* of the last round; 0 none */
    int64_t offset;   /* of the config topic, that was read when it ended */
    int in_a_row;     /* rounds that were asked for since the last calm */
    int stuck;        /* rounds on end that ended elsewhere than we are, without our reading on */
};

/* How long to wait from now on before the next round is asked for; 0: ask. */
int64_t round_pace_wait_ms(const struct round_pace *pace, int64_t now_ms);
/* It is asked for now. */
void round_pace_asked(struct round_pace *pace, int64_t now_ms);
/* A round is over. own: how far the config topic was read here; given: how far the round's
 * assignment was made for. */
void round_pace_ended(struct round_pace *pace, int64_t now_ms, int64_t own, int64_t given);

#endif
