/* SPDX-License-Identifier: Apache-2.0 */
/* Where the worker listens and how it is reached: sockets, and the advertised host and port.
 * Thread: whoever starts the server; blocks for name look-ups. Spec: `listeners`,
 * `rest.advertised.*` of Connect. */
#ifndef WORKER_LISTENER_H
#define WORKER_LISTENER_H

#include "worker/worker_config.h"

/* A listening socket, close-on-exec and non-blocking; *port: the one bound. An empty host binds
 * every interface, IPv6 and IPv4. Negative: MR_ERR_IO or MR_ERR_CONFIG, naming `listeners`, the
 * address, the reason and the remedy. */
int listener_open(const struct worker_listener *listener, int *port, struct mr_error *err);

/* Does it listen where only this machine reaches it? By its name alone: no look-up. */
bool listener_is_local(const struct worker_listener *listener);

/* Where others reach this worker: "host:port", malloc'ed, and *https. ports: the bound one of
 * each of config->listeners. rest.advertised.listener chooses the scheme, else http where a
 * listener has it. NULL with MR_ERR_CONFIG. */
char *listener_advertised(const struct worker_config *config, const int *ports, bool *https,
                          struct mr_error *err);

#endif
