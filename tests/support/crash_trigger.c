/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into tests, which set it, and into the binary of `make VARIANT=crashing`, which dies by
 * it. */
#include "support/crash_trigger.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(name) #name,
static const char *const names[] = {CRASH_POINTS(NAME)};

struct crash_trigger *crash_trigger_map(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(struct crash_trigger)) == 0)
        map = mmap(NULL, sizeof(struct crash_trigger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

void crash_trigger_set(struct crash_trigger *trigger, enum crash_point point, int nth)
{
    atomic_store(&trigger->left, 0);
    atomic_store(&trigger->victim, 0);
    atomic_store(&trigger->point, (int)point);
    atomic_store(&trigger->left, nth);
}

const char *crash_trigger_name(enum crash_point point)
{
    return names[point];
}

/* --- in the worker and its hosts -------------------------------------------------------------- */

static struct crash_trigger *trigger;

static void find(void)
{
    const char *file = getenv("CRASH_TRIGGER");

    if (file != NULL)
        trigger = crash_trigger_map(file);
}

void crash_point_met(enum crash_point point)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find);
    if (trigger == NULL)
        return;
    atomic_fetch_add(&trigger->met[point], 1);
    if (atomic_load(&trigger->point) != (int)point || atomic_load(&trigger->left) <= 0 ||
        atomic_fetch_sub(&trigger->left, 1) != 1)
        return;
    atomic_store(&trigger->victim, (int)getpid());
    kill(getpid(), SIGKILL);
}
