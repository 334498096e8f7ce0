/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of a worker that are no connector's, such as config providers: each in a process of
 * its own, asked by whoever resolves a configuration (base/service_link.h), with a deadline a
 * call. */
#ifndef WORKER_SERVICES_H
#define WORKER_SERVICES_H

#include "base/props.h"

#include <stdint.h>

struct services;

/* One of them.
 *
 * name     as questions name it
 * what     for texts and the log: "config provider vault"
 * library  path, class_name: of a descriptor in it, kind: enum mr_plugin_kind
 * params   its configuration */
struct services_spec {
    const char *name;
    const char *what;
    const char *library;
    const char *class_name;
    uint32_t kind;
    const struct props *params;
};

/* exe          binary to run as `exe service NAME`; copied, as the specs are
 * patience_ms  for one call, and for the start before the first one; then its process is killed */
struct services_options {
    const char *exe;
    const struct services_spec *specs;
    size_t count;
    int64_t patience_ms;
};

/* Begin to serve, on a thread of its own. A process begins with the first question to it; one that
 * has crashed or was killed begins anew with the next. NULL with err (MR_ERR_IO): no socket, no
 * thread. */
struct services *services_new(const struct services_options *options, struct mr_error *err);
/* The name of the socket to ask at. Any thread. */
const char *services_socket(const struct services *services);
/* Ends the processes: half a second to stop in order, then they are killed. Blocks for that. */
void services_free(struct services **services);

#endif
