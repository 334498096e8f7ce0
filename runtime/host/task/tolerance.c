/* SPDX-License-Identifier: Apache-2.0 */
/* errors.tolerance: called by the pipeline for what a converter refused, and by source_task for what a topic can't take.
 * A skipped record counts as done, so its offset is stored in order with the others. The log says so at once and then only
 * now and then, since a topic full of bad records must not fill a disk. Thread: the task's. */
#include "host/task/tolerance.h"

#include "host/trace.h"
#include "model/conn_config.h"

#include <string.h>

#define LOGGER "host.task.tolerance"
#include "base/log.h"

int tolerance_init(struct tolerance *t, const struct props *config, struct mr_error *err)
{
    struct config_value value;
    int rc = conn_config_get("errors.tolerance", config, &value, err);

    *t = (struct tolerance){.all = rc == 0 && value.text != NULL && strcmp(value.text, "all") == 0};
    config_value_deinit(&value);
    return rc;
}

static void tell(struct tolerance *t, const struct mr_error *err, const char *where, int64_t now_ms)
{
    t->skipped++;
    if (t->logged > 0 && now_ms < t->next_log_ms)
        return;
    log_warn("skipped %llu record%s by errors.tolerance=all; this one: %s: %s",
             (unsigned long long)(t->skipped - t->logged), t->skipped - t->logged == 1 ? "" : "s",
             where, err->text);
    t->logged = t->skipped;
    t->next_log_ms = now_ms + TOLERANCE_LOG_MS;
}

bool tolerance_skips(struct tolerance *t, struct mr_error *err, const char *where, int64_t now_ms)
{
    struct mr_error cause;

    if (t->all) {
        tell(t, err, where, now_ms);
        err_clear(err);
        return true;
    }
    cause = *err;
    err_clear(err);
    mr_fail(err, MR_ERR_FATAL, "Tolerance exceeded in error handler\nCaused by: %s: %s\n\tin %s",
            trace_class(cause.code), cause.text, where);
    return false;
}
