/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the references of a configuration for the worker's loop, which must not wait for files.
 * Owner: the loop. */
#ifndef WORKER_RESOLVER_H
#define WORKER_RESOLVER_H

#include "base/loop.h"
#include "base/provider.h"

struct resolver;

/* config, *secrets, *why (as of a provider_job): taken by the callee if it wants them (freed
 * otherwise); secrets and why NULL after an error. err NULL, or why not: MR_ERR_IO in Java's words, MR_ERR_FULL, MR_ERR_CLOSED (the resolver
 * is freed). */
typedef void (*resolver_fn)(void *arg, struct props *config, struct secrets **secrets,
                            struct map **why, const struct mr_error *err);

struct resolver *resolver_new(struct loop *loop, const struct providers *providers); /* borrowed */
void resolver_free(struct resolver **resolver); /* all that wait are answered */

/* config: copied. fn runs exactly once, never inside this call but in resolver_free. */
void resolver_ask(struct resolver *resolver, const struct props *config, resolver_fn fn, void *arg);

#endif
