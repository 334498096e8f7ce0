/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of a process, for the log and for whoever puts a plugin's words into a frame. A part
 * of the logger, so one of the few globals (style 7). A value that has changed at its provider
 * stays hidden: lines about it may still be on their way. */
#include "base/log_hide.h"

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct secrets *hidden; /* under lock */
static atomic_bool any;        /* there is something to hide */

void log_hide(const struct secrets *secrets)
{
    const char *reference, *value;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; secrets_at(secrets, i, &reference, &value); i++) {
        if (hidden == NULL)
            hidden = secrets_new();
        secrets_keep(hidden, reference, value);
        atomic_store(&any, true);
    }
    pthread_mutex_unlock(&lock);
}

char *log_hidden(const char *text)
{
    char *shown;

    if (!atomic_load(&any))
        return NULL;
    pthread_mutex_lock(&lock);
    shown = secrets_hide(hidden, text);
    pthread_mutex_unlock(&lock);
    return shown;
}
