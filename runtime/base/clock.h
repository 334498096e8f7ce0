/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Intervals are monotonic; wall time only where it is shown or stored. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_ms(void); /* CLOCK_MONOTONIC */
/* clock_ms in so many milliseconds, below 0: now. For waits that a plugin or a user gives: what is
 * beyond all time is INT64_MAX, which is never. */
int64_t clock_in_ms(int64_t ms);
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: counts while suspended; leases */
int64_t clock_wall_ms(void); /* CLOCK_REALTIME */
void clock_iso(int64_t wall_ms, char *out, size_t size); /* 2026-11-29T14:03:07.123Z; size >= 25 */

#endif
