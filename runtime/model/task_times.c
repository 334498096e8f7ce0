/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the times of tasks. The worker has checked its file already; a task that is given
 * something else says so instead of going on with a default. Called once at a task's start. */
#include "model/task_times.h"

#include <errno.h>
#include <stdlib.h>

#define MOST (INT64_MAX / 4)

static int read_one(const struct props *worker, const char *key, const char *fallback,
                    int64_t least, int64_t most, int64_t *out, struct mr_error *err)
{
    const char *text = props_get(worker, key);
    char *end;
    long long n;

    if (text == NULL)
        text = fallback;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end != text)
        end += strspn(end, " \t");
    if (end == text || *end != '\0' || errno != 0 || n < least || n > most)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.100s for configuration %s: it must be a whole number of "
                       "milliseconds from %lld to %lld",
                       text, key, (long long)least, (long long)most);
    *out = n < MOST ? n : MOST;
    return MR_OK;
}

int task_times_read(const struct props *worker, struct task_times *out, struct mr_error *err)
{
    struct task_times times = {0};
    int rc = read_one(worker, TASK_TIMES_GRACEFUL, TASK_TIMES_GRACEFUL_DEFAULT,
                      TASK_TIMES_GRACEFUL_MIN, TASK_TIMES_GRACEFUL_MAX, &times.graceful_ms, err);

    if (rc == MR_OK)
        rc = read_one(worker, TASK_TIMES_FLUSH_INTERVAL, TASK_TIMES_FLUSH_INTERVAL_DEFAULT,
                      TASK_TIMES_FLUSH_INTERVAL_MIN, TASK_TIMES_FLUSH_INTERVAL_MAX,
                      &times.flush_interval_ms, err);
    if (rc == MR_OK)
        rc = read_one(worker, TASK_TIMES_FLUSH_TIMEOUT, TASK_TIMES_FLUSH_TIMEOUT_DEFAULT,
                      TASK_TIMES_FLUSH_TIMEOUT_MIN, TASK_TIMES_FLUSH_TIMEOUT_MAX,
                      &times.flush_timeout_ms, err);
    if (rc == MR_OK)
        *out = times;
    return rc;
}
