/* SPDX-License-Identifier: Apache-2.0 */
/* A POSIX timer that ends this process. Used for the lease (a host that the group has given up must
 * not go on) and for orphans (a host whose worker is gone). It is the kernel's, so no plugin that
 * spins, blocks every signal or holds every lock can outlive it; SIGKILL reaches stopped processes
 * too. Not inherited by forked children. Thread: control. */
#include "host/kill_timer.h"

#include <signal.h>

int kill_timer_init(struct kill_timer *timer, struct mr_error *err)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};

    timer->made = timer_create(CLOCK_BOOTTIME, &event, &timer->id) == 0;
    return timer->made ? 0 : err_errno(err, "cannot make a kill timer");
}

int kill_timer_arm(struct kill_timer *timer, int64_t boot_ms, struct mr_error *err)
{
    struct itimerspec at = {0};

    /* Zero would disarm it: a moment that is long past is "at once". */
    if (boot_ms < 1)
        boot_ms = 1;
    at.it_value.tv_sec = (time_t)(boot_ms / 1000);
    at.it_value.tv_nsec = (long)(boot_ms % 1000) * 1000000;
    if (timer_settime(timer->id, TIMER_ABSTIME, &at, NULL) != 0)
        return err_errno(err, "cannot arm a kill timer");
    return 0;
}

void kill_timer_disarm(struct kill_timer *timer)
{
    struct itimerspec never = {0};

    if (timer->made)
        timer_settime(timer->id, 0, &never, NULL);
}
