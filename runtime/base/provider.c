/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the references of a configuration, value by value. Used by the worker for its own
 * properties and, on a thread of its own, for validation; by a host's connector and task threads
 * when they start. What is stored, and what REST shows, is never resolved.
 *
 * As in Java: a name without a class is no provider, a reference to none stays as it is, and so
 * does one to a key that is not there; what a provider can't read is an error of the whole. Built
 * in is provider_kind.c. */
#include "base/provider.h"

#include "base/buf.h"
#include "base/config_ref.h"
#include "base/provider_kind.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "config.providers"
#define PROVIDERS_MAX 64
#define VALUE_MAX ((size_t)4 << 20)
#define NAME_MAX_BYTES 4096 /* of a path or key in a reference */
#define REMARK_MAX 512

struct named {
    char *name;
    struct provider *provider;
};

struct providers {
    atomic_int refs;
    struct named list[PROVIDERS_MAX];
    size_t count;
};

/* --- made by a worker's properties ------------------------------------------------------------ */

static int wrong(char **key, char *property, const char *value, struct mr_error *err,
                 const struct mr_error *why)
{
    if (why->code == MR_ERR_NOT_FOUND)
        mr_fail(err, MR_ERR_CONFIG, "Invalid value %.200s for configuration %s: %s", value,
                property, why->text);
    else
        mr_fail(err, MR_ERR_CONFIG, "%s: %s", property, why->text);
    if (key != NULL)
        *key = property;
    else
        free(property);
    return MR_ERR_CONFIG;
}

static int add(struct providers *providers, const struct props *worker, const char *name, bool look,
               char **key, struct mr_error *err)
{
    char *property = NULL, *prefix = NULL;
    struct named *to = &providers->list[providers->count];
    struct mr_error why = {0};
    struct props params;
    const char *class_name;
    int rc = 0;

    mr_assert(asprintf(&property, PREFIX ".%s.class", name) > 0 &&
              asprintf(&prefix, PREFIX ".%s.param.", name) > 0);
    class_name = props_get(worker, property);
    props_init(&params);
    if (class_name != NULL) {
        mr_assert(props_subset(worker, prefix, &params) == 0);
        to->provider = provider_kind_new(class_name, &params, look, &why);
    }
    if (to->provider != NULL) {
        to->name = text_dup(name);
        providers->count++;
    } else if (class_name != NULL) {
        rc = wrong(key, property, class_name, err, &why);
        property = NULL;
    }
    props_deinit(&params);
    free(property);
    free(prefix);
    return rc;
}

static struct provider *find(const struct providers *providers, struct config_ref_part name)
{
    for (size_t i = 0; i < providers->count; i++)
        if (strlen(providers->list[i].name) == name.len &&
            memcmp(providers->list[i].name, name.at, name.len) == 0)
            return providers->list[i].provider;
    return NULL;
}

/* The next name of a list, without blanks around it; NULL: the list is at its end. */
static char *next_name(const char **list)
{
    const char *from = *list, *to;
    char *name;

    if (*from == '\0')
        return NULL;
    to = from + strcspn(from, ",");
    *list = to + (*to == ',' ? 1 : 0);
    while (from < to && (unsigned char)*from <= ' ')
        from++;
    while (to > from && (unsigned char)to[-1] <= ' ')
        to--;
    name = text_dup_len(from, (size_t)(to - from));
    return name;
}

struct providers *providers_new(const struct props *worker, bool look, char **key,
                                struct mr_error *err)
{
    struct providers *providers = calloc(1, sizeof(*providers));
    const char *list = props_get(worker, PREFIX);
    char *name;
    int rc = 0;

    mr_assert(providers != NULL);
    atomic_init(&providers->refs, 1);
    while (rc == 0 && list != NULL && (name = next_name(&list)) != NULL) {
        if (find(providers, (struct config_ref_part){name, strlen(name)}) != NULL)
            ; /* named twice */
        else if (providers->count == PROVIDERS_MAX)
            rc = mr_fail(err, MR_ERR_CONFIG, PREFIX ": more than %d providers", PROVIDERS_MAX);
        else
            rc = add(providers, worker, name, look, key, err);
        free(name);
    }
    if (rc != 0)
        providers_free(&providers);
    return providers;
}

void providers_free(struct providers **providersp)
{
    struct providers *providers = *providersp;

    *providersp = NULL;
    if (providers == NULL || atomic_fetch_sub(&providers->refs, 1) > 1)
        return;
    for (size_t i = 0; i < providers->count; i++) {
        free(providers->list[i].name);
        provider_kind_free(&providers->list[i].provider);
    }
    free(providers);
}

struct providers *providers_ref(const struct providers *providers)
{
    struct providers *shared = (struct providers *)(uintptr_t)providers;

    if (shared != NULL)
        atomic_fetch_add(&shared->refs, 1);
    return shared;
}

/* --- references ------------------------------------------------------------------------------- */

bool providers_refer(const struct providers *providers, const char *text, bool quick, bool slow)
{
    struct config_ref ref;

    while (providers != NULL && text != NULL && config_ref_next(text, &ref)) {
        const struct provider *provider = find(providers, ref.provider);

        if (provider != NULL && (provider_kind_is_quick(provider) ? quick : slow))
            return true;
        text = ref.whole.at + ref.whole.len;
    }
    return false;
}

bool providers_refer_any(const struct providers *providers, const struct props *config)
{
    for (size_t i = 0; providers != NULL && i < config->count; i++)
        if (providers_refer(providers, config->entries[i].value, true, true))
            return true;
    return false;
}

const char *providers_left(const struct providers *providers, const char *raw, const char *value)
{
    struct config_ref ref;

    while (raw != NULL && value != NULL && config_ref_next(raw, &ref)) {
        char *whole = text_dup_len(ref.whole.at, ref.whole.len);
        bool left = strstr(value, whole) != NULL;
        bool known = providers_refer(providers, whole, true, true);

        free(whole);
        if (left)
            return known ? "its config provider has no such value"
                         : "the worker's config.providers have no such name";
        raw = ref.whole.at + ref.whole.len;
    }
    return NULL;
}

struct resolving {
    const struct providers *providers;
    const struct provider_job *job;
    bool quick; /* read no files */
    struct provider_cache cache;
};

static char *text_of(struct config_ref_part part)
{
    char *text = text_dup_len(part.at, part.len);

    return text;
}

/* What a reference stands for, into *value; NULL: nothing, it stays. */
static int look_up(struct resolving *r, const struct config_ref *ref, char **value,
                   struct mr_error *err)
{
    const struct provider *provider = find(r->providers, ref->provider);
    char remark[REMARK_MAX], *path, *key;
    int rc;

    *value = NULL;
    if (provider == NULL || (r->quick && !provider_kind_is_quick(provider)) ||
        ref->path.len > NAME_MAX_BYTES || ref->key.len > NAME_MAX_BYTES)
        return 0;
    path = text_of(ref->path);
    key = text_of(ref->key);
    rc = provider_kind_get(provider, path, key, &r->cache, value, remark, err);
    if (remark[0] != '\0' && r->job->remark != NULL)
        r->job->remark(r->job->arg, remark);
    free(path);
    free(key);
    return rc;
}

static int replace(struct resolving *r, const struct config_ref *ref, struct buf *out,
                   struct mr_error *err)
{
    char *value = NULL, *reference;
    int rc = look_up(r, ref, &value, err);

    if (rc != 0)
        return rc;
    if (value == NULL) {
        buf_append(out, ref->whole.at, ref->whole.len);
        return 0;
    }
    buf_puts(out, value);
    if (r->job->secrets != NULL) {
        reference = text_of(ref->whole);
        secrets_add(r->job->secrets, reference, value);
        free(reference);
    }
    explicit_bzero(value, strlen(value));
    free(value);
    return 0;
}

/* NULL with err. */
static char *resolve_text(struct resolving *r, const char *text, struct mr_error *err)
{
    struct config_ref ref;
    struct buf value;
    char *resolved = NULL;
    int rc = 0;

    buf_init(&value, VALUE_MAX);
    buf_append(&value, "", 0);
    while (rc == 0 && config_ref_next(text, &ref)) {
        buf_append(&value, text, (size_t)(ref.whole.at - text));
        rc = replace(r, &ref, &value, err);
        text = ref.whole.at + ref.whole.len;
    }
    buf_puts(&value, text);
    if (rc == 0 && value.failed)
        mr_fail(err, MR_ERR_IO, "A value is larger than %zu bytes when resolved", VALUE_MAX);
    else if (rc == 0)
        resolved = buf_take(&value);
    buf_deinit(&value);
    return resolved;
}

char *providers_glance(const struct providers *providers, const char *text)
{
    struct provider_job job = {.in = NULL};
    struct resolving r = {.providers = providers, .job = &job, .quick = true};
    char *seen = NULL;

    if (providers_refer(providers, text, true, false)) {
        provider_cache_init(&r.cache);
        seen = resolve_text(&r, text, NULL);
        provider_cache_deinit(&r.cache);
    }
    if (seen == NULL)
        seen = text_dup(text);
    return seen;
}

void providers_glance_all(const struct providers *providers, const struct props *config,
                          struct props *out)
{
    mr_assert(props_copy(out, config) == 0);
    for (size_t i = 0; i < out->count; i++) {
        char *seen = config_ref_any(config->entries[i].value)
                         ? providers_glance(providers, config->entries[i].value)
                         : NULL;

        if (seen != NULL)
            mr_assert(props_set(out, config->entries[i].key, seen) == 0);
        free(seen);
    }
}

int providers_resolve(const struct providers *providers, const struct provider_job *job,
                      struct props *out, struct mr_error *err)
{
    struct resolving r = {.providers = providers, .job = job};
    int rc = 0;

    mr_assert(props_copy(out, job->in) == 0);
    provider_cache_init(&r.cache);
    for (size_t i = 0; rc == 0 && i < out->count; i++) {
        const struct props_entry *entry = &job->in->entries[i];
        char *value;

        if (!providers_refer(providers, entry->value, true, true) ||
            (job->except != NULL && strcmp(job->except, entry->key) == 0))
            continue;
        value = resolve_text(&r, entry->value, err);
        rc = value != NULL ? 0 : MR_ERR_IO;
        if (value != NULL)
            mr_assert(props_set(out, entry->key, value) == 0);
        out->entries[i].line = entry->line;
        free(value);
    }
    provider_cache_deinit(&r.cache);
    if (rc != 0)
        props_deinit(out);
    return rc;
}
