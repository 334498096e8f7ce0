/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `get` of a config provider: from the question's JSON to a handle for the plugin, and from
 * what the plugin sets to the answer's JSON. Called by service.c, on its only thread.
 *
 * What a plugin gives is looked at before it is read: its length first, then UTF-8 and NULs. The
 * first mistake is noted, and fails the call; no text names a value. */
#include "host/service_lookup.h"

#include "base/utf8.h"

#include <millrace/lookup.h>

#include <string.h>

#define LOOKUP_MAGIC 0x6c6f6f6bu
#define KEY_SHOWN 200 /* bytes of a key in a text */
#define TTL_MAX ((int64_t)INT32_MAX * 1000)

struct lookup {
    struct mr_lookup pub; /* first */
    uint32_t magic;
    struct instance *inst;
    const char *path;
    const json_t *keys;
    json_t *values;
    int64_t ttl_ms; /* 0: none */
};

static struct lookup *lookup_of(const struct mr_lookup *at)
{
    struct lookup *lookup = (struct lookup *)(uintptr_t)at;

    mr_assert(lookup->magic == LOOKUP_MAGIC);
    return lookup;
}

const char *service_lookup_path(const struct mr_lookup *at)
{
    return lookup_of(at)->path;
}

const char *service_lookup_key(const struct mr_lookup *at, size_t i)
{
    return json_string_value(json_array_get(lookup_of(at)->keys, i));
}

void service_lookup_set(struct mr_lookup *at, size_t i, const char *value, size_t len)
{
    struct lookup *lookup = lookup_of(at);
    const char *key = service_lookup_key(at, i);

    if (key == NULL)
        instance_misused(lookup->inst, "it gave a value for key number %zu, of %zu", i,
                         json_array_size(lookup->keys));
    else if (len > MR_LOOKUP_VALUE_MAX)
        instance_misused(lookup->inst,
                         "its value for key %.*s has %zu bytes, where %zu are possible", KEY_SHOWN,
                         key, len, MR_LOOKUP_VALUE_MAX);
    else if (value == NULL || memchr(value, '\0', len) != NULL || !utf8_valid(value, len))
        instance_misused(lookup->inst, "its value for key %.*s is no UTF-8 text, or holds a NUL",
                         KEY_SHOWN, key);
    else
        json_object_set_new(lookup->values, key, json_stringn_nocheck(value, len));
}

void service_lookup_ttl(struct mr_lookup *at, int64_t ms)
{
    struct lookup *lookup = lookup_of(at);

    if (ms < 1 || ms > TTL_MAX)
        instance_misused(lookup->inst, "its time to live of %lld ms is not possible",
                         (long long)ms);
    else if (lookup->ttl_ms == 0 || ms < lookup->ttl_ms)
        lookup->ttl_ms = ms;
}

static bool are_texts(const json_t *keys)
{
    size_t i;
    const json_t *key;

    json_array_foreach(keys, i, key)
    {
        if (!json_is_string(key))
            return false;
    }
    return json_is_array(keys);
}

static json_t *call(struct lookup *lookup, struct mr_error *err)
{
    int rc = lookup->inst->plugin->provider.get(lookup->inst->self, &lookup->pub, err);

    if (rc < 0) {
        err_without_text(err, rc, "it");
        return NULL;
    }
    if (lookup->ttl_ms == 0)
        return json_pack("{s:O}", "values", lookup->values);
    return json_pack("{s:O, s:I}", "values", lookup->values, "ttl", (json_int_t)lookup->ttl_ms);
}

json_t *service_lookup_run(struct instance *inst, const json_t *question, struct mr_error *err)
{
    struct lookup lookup = {.pub = {&host_api_table},
                            .magic = LOOKUP_MAGIC,
                            .inst = inst,
                            .keys = json_object_get(question, "keys")};
    json_t *answer = NULL;

    if (!json_get_text(question, "path", &lookup.path) || !are_texts(lookup.keys)) {
        mr_fail(err, MR_ERR_PROTOCOL, "the question names no path or no keys");
        return NULL;
    }
    lookup.values = json_object();
    if (lookup.values == NULL)
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
    else if (json_array_size(lookup.keys) == 0)
        answer = json_pack("{s:O}", "values", lookup.values);
    else
        answer = call(&lookup, err);
    json_decref(lookup.values);
    lookup.magic = 0;
    return answer;
}
