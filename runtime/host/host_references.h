/* SPDX-License-Identifier: Apache-2.0 */
/* References to config providers in what a host is given: resolved where plugin code and clients
 * begin to use them, and put back in what the host says. Connector and task threads. */
#ifndef HOST_HOST_REFERENCES_H
#define HOST_HOST_REFERENCES_H

#include "base/provider.h"

/* providers  NULL: there are none
 * ttl_ms     as in struct provider_job; NULL: nobody wants it
 * tell       what stays as it is in it is logged, the same once a process */
struct host_references {
    const struct providers *providers;
    const struct props *config;
    int64_t *ttl_ms;
    bool tell;
};

/* As providers_resolve; from then on what was resolved is hidden in the log and in frames
 * (base/log_hide.h). */
int host_references_resolve(const struct host_references *of, struct props *out,
                            struct mr_error *err);

/* The configuration of a task as its connector made it, with references back in their places: those
 * of the same key of the connector's configuration as it is stored (raw), as in Java; and those for
 * whatever else holds a resolved value, unless the user wrote just that. */
void host_references_restore(const struct props *raw, struct props *task);

#endif
