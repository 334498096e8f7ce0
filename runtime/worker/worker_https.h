/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a worker's HTTP: what it serves with, and what it calls other workers with. Read at
 * start. */
#ifndef WORKER_WORKER_HTTPS_H
#define WORKER_WORKER_HTTPS_H

#include "wire/tls_material.h"
#include "worker/worker_config.h"

enum worker_client_auth { WORKER_CLIENT_NONE, WORKER_CLIENT_REQUESTED, WORKER_CLIENT_REQUIRED };

struct worker_https {
    struct tls_material material;
    enum worker_client_auth client_auth; /* ssl.client.auth */
    /* Of workers that are called: ssl.endpoint.identification.algorithm is not empty. */
    bool check_host;
};

#define WORKER_HTTPS_MAIN "listeners.https."
#define WORKER_HTTPS_ADMIN "admin.listeners.https."

/* The settings below this prefix; where there is none at all, those without it, as Connect has it.
 * 0, or MR_ERR_CONFIG naming the key as it stands in the file; out needs no deinit then.
 * Spec: AbstractConfig.valuesWithPrefixAllOrNothing, runtime.rest.util.SSLUtils. */
int worker_https_load(const struct worker_config *config, const char *prefix,
                      struct worker_https *out, struct mr_error *err);
/* Likewise, for a listener: a certificate must be there, and authorities where clients are to
 * show theirs. */
int worker_https_load_server(const struct worker_config *config, const char *prefix,
                             struct worker_https *out, struct mr_error *err);
void worker_https_deinit(struct worker_https *https);

#endif
