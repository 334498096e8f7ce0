/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, in milliseconds. Any thread. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t clock_in_ms(int64_t ms)
{
    int64_t now_ms = clock_ms();

    return ms < 0 ? now_ms : ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + ms;
}

int64_t clock_boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

void clock_iso(int64_t wall_ms, char *out, size_t size)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    size_t n;

    gmtime_r(&seconds, &tm);
    n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, size - n, ".%03dZ", (int)(wall_ms % 1000));
}
