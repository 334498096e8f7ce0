/* SPDX-License-Identifier: Apache-2.0 */
/* The config providers that are built in, under their Java names (or the last part of these):
 * FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider. Immutable once made: any
 * thread may ask. Spec: org.apache.kafka.common.config.provider. */
#ifndef BASE_PROVIDER_KIND_H
#define BASE_PROVIDER_KIND_H

#include "base/props.h"

struct provider;

/* Is there one for a class of this name? */
bool provider_kind_known(const char *class_name);

/* The one parameter that such a class has; NULL: it is not built in. */
const char *provider_kind_param(const char *class_name);

/* params: what stands below config.providers.NAME.param. look: allowed.paths must exist. NULL with
 * MR_ERR_CONFIG (what is wrong with a parameter), or MR_ERR_NOT_FOUND: no such class. */
struct provider *provider_kind_new(const char *class_name, const struct props *params, bool look,
                                   struct mr_error *err);
void provider_kind_free(struct provider **provider);

/* It has values at paths only: without one there is none. */
bool provider_kind_has_paths(const struct provider *provider);

/* It never waits for anything: no file is read. */
bool provider_kind_is_quick(const struct provider *provider);

/* What was read last, for the next key of the same file. */
struct provider_cache {
    const struct provider *provider;
    char *path;
    struct props all;
};
void provider_cache_init(struct provider_cache *cache);
void provider_cache_deinit(struct provider_cache *cache);

/* The value of a key, malloc'ed into *out; NULL: there is none. remark: "" or why there is none, as
 * in Java's log; 512 bytes. An error (MR_ERR_IO) has Java's text, and behind it the reason. Blocks on
 * files. */
int provider_kind_get(const struct provider *provider, const char *path, const char *key,
                      struct provider_cache *cache, char **out, char *remark, struct mr_error *err);

#endif
