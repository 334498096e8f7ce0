/* SPDX-License-Identifier: Apache-2.0 */
/* The config providers of a worker, by the names that its properties give them, and configurations
 * with references resolved. Immutable once made: any thread may resolve. Where providers are
 * borrowed, NULL means none. Spec: org.apache.kafka.common.config.ConfigTransformer,
 * WorkerConfigTransformer. */
#ifndef BASE_PROVIDER_H
#define BASE_PROVIDER_H

#include "base/map.h"
#include "base/props.h"
#include "base/secrets.h"

#include <stdint.h>

/* Set among the worker's properties by itself (worker_services.c), and by nobody else: the socket
 * where those providers are asked whose classes are not built in (service_link.h). */
#define PROVIDER_SOCKET_KEY "config.providers.millrace.socket"

struct providers;

/* Those of config.providers, with config.providers.NAME.class and …NAME.param.*. look: what they
 * are restricted to must exist, and those that are services must have started, as when a worker
 * starts. NULL with MR_ERR_CONFIG; *key, if not NULL: the property that is wrong, malloc'ed. Blocks
 * on services where they are looked at. */
struct providers *providers_new(const struct props *worker, bool look, char **key,
                                struct mr_error *err);
void providers_free(struct providers **providers);
/* Does config.providers name one with a class that is not built in? fn, which may be NULL, is told
 * of each. */
bool providers_foreign(const struct props *worker,
                       void (*fn)(void *arg, const char *name, const char *class_name), void *arg);
/* The i-th name that config.providers has; NULL: there are no more. *unset: it has no class, so that
 * references to it stay as they are. */
const char *providers_name(const struct providers *providers, size_t i, bool *unset);
/* One more owner, on any thread: freed when the last calls providers_free. */
struct providers *providers_ref(const struct providers *providers);

/* except   a key whose value stays as it is; NULL: none
 * secrets  what was resolved is added; NULL: nobody wants it
 * failed   set to the key (of in, borrowed) whose reference could not be read; NULL: nobody wants it
 * ttl_ms   set to the least time after which a provider wants a value to be read again, in
 *          milliseconds, or INT64_MAX: none; NULL: nobody wants it
 * why      of a reference that stays as it is, where its provider says more than that it has no such
 *          value: "${…}" → a malloc'ed text; NULL: nobody wants it */
struct provider_job {
    const struct props *in;
    const char *except;
    struct secrets *secrets;
    const char **failed;
    int64_t *ttl_ms;
    struct map *why;
};

/* A copy of the configuration with every reference replaced that is to a provider of ours and to
 * something that it has; others stay as they are, and nothing is resolved twice. out: initialised
 * by this, and on failure left as if never touched. MR_ERR_IO: what a reference names cannot be
 * read, in Java's words and the reason behind them. Blocks on files and services, on these for a minute each at most. */
int providers_resolve(const struct providers *providers, const struct provider_job *job,
                      struct props *out, struct mr_error *err);

/* The same for who may not wait, such as the worker's loop: what is to be read from files, or can't
 * be had, stays as it is. One value (malloc'ed), or all of a configuration (out: initialised by
 * this). */
char *providers_glance(const struct providers *providers, const char *text);
void providers_glance_all(const struct providers *providers, const struct props *config,
                          struct props *out);

/* Which references in raw still stand in value, which raw was resolved to, and why, malloc'ed, to be
 * told behind a key: "has a reference ${env:X} that stays as it is: …"; NULL: none does. Both may be
 * NULL, as may why, of the provider_job. Of a reference to a provider that the worker does not name only the name is told, and else
 * no part of either: they may be a password. */
char *providers_left(const struct providers *providers, const char *raw, const char *value,
                     const struct map *why);

/* Has the text a reference to a provider of ours? quick: to one that waits for nothing; slow: to
 * one that reads files, or is a service. */
bool providers_refer(const struct providers *providers, const char *text, bool quick, bool slow);
/* Any value of a configuration? */
bool providers_refer_any(const struct providers *providers, const struct props *config);

#endif
