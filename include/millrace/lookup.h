/* SPDX-License-Identifier: Apache-2.0 */
/* What a config provider is asked, and answers: the handle of one call of its `get`. The host makes
 * it, and it ends with the call.
 * Spec: org.apache.kafka.common.config.provider.ConfigProvider, ConfigData (KIP-297, KIP-421). */
#ifndef MILLRACE_LOOKUP_H
#define MILLRACE_LOOKUP_H

#include <millrace/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of one value. */
#define MR_LOOKUP_VALUE_MAX ((size_t)1 << 20)

struct mr_lookup {
    const struct mr_host *host;
};

/* The path of ${provider:path:key}: NUL-terminated UTF-8, "" where there is none. Lives as long as
 * the call. Thread: the call's. */
static inline const char *mr_lookup_path(const struct mr_lookup *at)
{
    return at->host->lookup_path(at);
}

/* The key i of those that are asked of this path, from 0 on without a hole; NULL: there are no
 * more. The rest as for the path. */
static inline const char *mr_lookup_key(const struct mr_lookup *at, size_t i)
{
    return at->host->lookup_key(at, i);
}

/* The value of key i: len bytes of UTF-8 without a NUL, at most MR_LOOKUP_VALUE_MAX, copied. A key
 * that has none is left out: its reference then stays as it is. What is no such text, or for a key
 * that was not asked, is the plugin's mistake: the call fails, and the error names the key.
 * Thread: the call's. */
static inline void mr_lookup_set(struct mr_lookup *at, size_t i, const char *value, size_t len)
{
    at->host->lookup_set(at, i, value, len);
}

/* What was given is to be read again in ms milliseconds (1 and more; not more often than ten times
 * a second, and five seconds after it could not be read). Where it is something else then, a
 * connector that uses it is started again with its tasks, unless it says config.action.reload=none.
 * The least of a configuration counts.
 * Thread: the call's. Spec: ConfigData.ttl. */
static inline void mr_lookup_ttl(struct mr_lookup *at, int64_t ms)
{
    at->host->lookup_ttl(at, ms);
}

#ifdef __cplusplus
}
#endif

#endif
