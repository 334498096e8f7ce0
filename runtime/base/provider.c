/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the references of a configuration, value by value. Used by the worker for its own
 * properties and, on a thread of its own, for validation; by a host's connector and task threads
 * when they start. What is stored, and what REST shows, is never resolved.
 *
 * As in Java: a name without a class is no provider, a reference to none stays as it is, and so
 * does one to a key that is not there; what a provider can't read is an error of the whole. Built
 * in is provider_kind.c; all others are services of the worker's (provider_service.c), which are
 * asked once a path for all keys of a configuration. */
#include "base/provider.h"

#include "base/buf.h"
#include "base/config_ref.h"
#include "base/map.h"
#include "base/provider_kind.h"
#include "base/provider_service.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "config.providers"
#define PROVIDERS_MAX 64
#define RESOLVED_MAX ((size_t)4 << 20) /* bytes of all values with references */
#define NAME_MAX_BYTES 4096            /* of a path or key in a reference */
#define REMARK_MAX 512
#define LEFT_MAX 2000  /* bytes of what is said of one value's references */
#define LEFT_SHOWN 200 /* of one reference */

struct named {
    char *name;
    bool unset;                /* it has no class, so it is none; what follows is empty */
    struct provider *provider; /* NULL: a service */
};

struct providers {
    atomic_int refs;
    char *socket; /* of services; NULL: there are none */
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

static bool is_quick(const struct named *named)
{
    return named->provider != NULL && provider_kind_is_quick(named->provider);
}

/* It has read its parameters, and is ready. */
static int look_at_service(const struct providers *providers, const char *name,
                           struct mr_error *err)
{
    const struct provider_service service = {providers->socket, name};
    json_t *none = json_array();
    struct props values;
    int64_t ttl_ms;
    int rc;

    mr_assert(none != NULL);
    props_init(&values);
    rc = provider_service_get(&service, "", none, &values, &ttl_ms, err);
    props_deinit(&values);
    json_decref(none);
    return rc;
}

static int make(const struct providers *providers, struct named *to, const char *class_name,
                const struct props *params, bool look, struct mr_error *err)
{
    if (providers->socket != NULL && !provider_kind_known(class_name))
        return look ? look_at_service(providers, to->name, err) : 0;
    to->provider = provider_kind_new(class_name, params, look, err);
    return to->provider != NULL ? 0 : err->code;
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
    *to = (struct named){.name = text_dup(name), .unset = class_name == NULL};
    if (class_name != NULL) {
        mr_assert(props_subset(worker, prefix, &params) == 0);
        rc = make(providers, to, class_name, &params, look, &why);
    }
    providers->count += rc == 0 ? 1 : 0;
    if (rc != 0) {
        free(to->name);
        rc = wrong(key, property, class_name, err, &why);
        property = NULL;
    }
    props_deinit(&params);
    free(property);
    free(prefix);
    return rc;
}

static const struct named *find_name(const struct providers *providers, struct config_ref_part name)
{
    for (size_t i = 0; i < providers->count; i++)
        if (strlen(providers->list[i].name) == name.len &&
            memcmp(providers->list[i].name, name.at, name.len) == 0)
            return &providers->list[i];
    return NULL;
}

static const struct named *find(const struct providers *providers, struct config_ref_part name)
{
    const struct named *named = find_name(providers, name);

    return named != NULL && !named->unset ? named : NULL;
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
    providers->socket = text_dup(props_get(worker, PROVIDER_SOCKET_KEY));
    while (rc == 0 && list != NULL && (name = next_name(&list)) != NULL) {
        if (find_name(providers, (struct config_ref_part){name, strlen(name)}) != NULL)
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

bool providers_foreign(const struct props *worker,
                       void (*fn)(void *arg, const char *name, const char *class_name), void *arg)
{
    const char *list = props_get(worker, PREFIX);
    char *name, *property = NULL;
    bool any = false;

    while (list != NULL && (name = next_name(&list)) != NULL) {
        const char *class_name;

        mr_assert(asprintf(&property, PREFIX ".%s.class", name) > 0);
        class_name = props_get(worker, property);
        if (class_name != NULL && !provider_kind_known(class_name)) {
            any = true;
            if (fn != NULL)
                fn(arg, name, class_name);
        }
        free(property);
        free(name);
    }
    return any;
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
    free(providers->socket);
    free(providers);
}

const char *providers_name(const struct providers *providers, size_t i, bool *unset)
{
    if (i >= providers->count)
        return NULL;
    *unset = providers->list[i].unset;
    return providers->list[i].name;
}

struct providers *providers_ref(const struct providers *providers)
{
    struct providers *shared = (struct providers *)(uintptr_t)providers;

    if (shared != NULL)
        atomic_fetch_add(&shared->refs, 1);
    return shared;
}

/* --- references ------------------------------------------------------------------------------- */

static char *text_of(struct config_ref_part part)
{
    return text_dup_len(part.at, part.len);
}

bool providers_refer(const struct providers *providers, const char *text, bool quick, bool slow)
{
    struct config_ref ref;

    while (providers != NULL && text != NULL && config_ref_next(text, &ref)) {
        const struct named *named = find(providers, ref.provider);

        if (named != NULL && (is_quick(named) ? quick : slow))
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

/* The references that stand in a text, as written. */
static struct map *wholes_in(const char *text)
{
    struct map *wholes = map_new();
    struct config_ref ref;

    while (config_ref_next(text, &ref)) {
        char *whole = text_of(ref.whole);

        map_set(wholes, whole, wholes);
        free(whole);
        text = ref.whole.at + ref.whole.len;
    }
    return wholes;
}

/* "${file:/etc/x:key}: why it stays". Of a text that may be none of ours, so that it may be a part
 * of a password, no more than the name of a provider. */
static void tell_left(const struct providers *providers, const struct config_ref *ref,
                      const char *why, struct buf *out)
{
    const struct named *named = providers != NULL ? find_name(providers, ref->provider) : NULL;
    int shown = (int)(ref->whole.len < LEFT_SHOWN ? ref->whole.len : LEFT_SHOWN);

    buf_puts(out, out->len == 0 ? "has a reference " : "; and ");
    if (named == NULL)
        buf_printf(out,
                   "${%.*s:...} that stays as it is: the worker's config.providers have no "
                   "such name",
                   (int)(ref->provider.len < LEFT_SHOWN ? ref->provider.len : LEFT_SHOWN),
                   ref->provider.at);
    else if (named->unset)
        buf_printf(out, "%.*s that stays as it is: " PREFIX ".%s.class is not set", shown,
                   ref->whole.at, named->name);
    else if (named->provider != NULL && provider_kind_has_paths(named->provider) &&
             (ref->path.len == 0 || ref->key.len == 0))
        buf_printf(out,
                   "%.*s that stays as it is: not both a path and a key are given, as in "
                   "${%s:PATH:KEY}",
                   shown, ref->whole.at, named->name);
    else
        buf_printf(out, "%.*s that stays as it is: %s", shown, ref->whole.at,
                   why != NULL ? why : "its config provider has no such value");
}

char *providers_left(const struct providers *providers, const char *raw, const char *value,
                     const struct map *why)
{
    struct map *standing = raw != NULL && config_ref_any(value) ? wholes_in(value) : NULL;
    struct config_ref ref;
    struct buf told;

    buf_init(&told, LEFT_MAX);
    while (standing != NULL && told.len < LEFT_MAX / 2 && config_ref_next(raw, &ref)) {
        char *whole = text_of(ref.whole);

        if (map_remove(standing, whole) != NULL)
            tell_left(providers, &ref, why != NULL ? map_get(why, whole) : NULL, &told);
        free(whole);
        raw = ref.whole.at + ref.whole.len;
    }
    map_free(&standing, NULL);
    return told.len > 0 ? buf_take(&told) : NULL;
}

struct resolving {
    const struct providers *providers;
    const struct provider_job *job;
    bool quick; /* wait for nothing */
    struct provider_cache cache;
    struct map *answers; /* of services: "name:path" → struct props; NULL: none was asked */
    struct map *wanted;  /* likewise: → the keys, members of a JSON object */
    int64_t ttl_ms;
    size_t bytes; /* that values have become already */
};

/* Of what a service is asked at one path. */
static char *place_of(const char *name, struct config_ref_part path)
{
    char *place = NULL;

    mr_assert(asprintf(&place, "%s:%.*s", name, (int)path.len, path.at) > 0);
    return place;
}

static bool too_long(const struct config_ref *ref)
{
    return ref->path.len > NAME_MAX_BYTES || ref->key.len > NAME_MAX_BYTES;
}

static void want(struct resolving *r, const struct config_ref *ref)
{
    const struct named *named = find(r->providers, ref->provider);
    json_t *keys;
    char *place;

    if (named == NULL || named->provider != NULL || too_long(ref))
        return;
    place = place_of(named->name, ref->path);
    keys = map_get(r->wanted, place);
    if (keys == NULL) {
        keys = json_object();
        mr_assert(keys != NULL);
        map_set(r->wanted, place, keys);
    }
    json_object_setn_new(keys, ref->key.at, ref->key.len, json_true());
    free(place);
}

/* All that the configuration wants of services. */
static void gather_wants(struct resolving *r)
{
    const struct provider_job *job = r->job;

    r->wanted = map_new();
    for (size_t i = 0; i < job->in->count; i++) {
        const char *text = job->in->entries[i].value;
        struct config_ref ref;

        if (job->except != NULL && strcmp(job->except, job->in->entries[i].key) == 0)
            continue;
        while (text != NULL && config_ref_next(text, &ref)) {
            want(r, &ref);
            text = ref.whole.at + ref.whole.len;
        }
    }
}

static void free_wanted(void *keys)
{
    json_decref(keys);
}

static json_t *keys_of(const struct resolving *r, const char *place)
{
    json_t *keys = json_array();
    const char *key;
    const json_t *yes;

    mr_assert(keys != NULL);
    json_object_foreach((json_t *)map_get(r->wanted, place), key, yes)
    {
        (void)yes;
        json_array_append_new(keys, json_string(key));
    }
    return keys;
}

static void free_answer(void *answer)
{
    struct props *values = answer;

    for (size_t i = 0; i < values->count; i++)
        explicit_bzero(values->entries[i].value, strlen(values->entries[i].value));
    props_deinit(values);
    free(values);
}

/* What the service called name has at path; NULL with err. */
static const struct props *ask_service(struct resolving *r, const struct config_ref *ref,
                                       const char *name, const char *path, struct mr_error *err)
{
    const struct provider_service service = {r->providers->socket, name};
    struct props *values;
    json_t *keys;
    char *place = place_of(name, ref->path);
    int64_t ttl_ms;
    int rc;

    if (r->answers == NULL) {
        r->answers = map_new();
        gather_wants(r);
    }
    values = map_get(r->answers, place);
    if (values == NULL) {
        values = calloc(1, sizeof(*values));
        mr_assert(values != NULL);
        props_init(values);
        keys = keys_of(r, place);
        rc = provider_service_get(&service, path, keys, values, &ttl_ms, err);
        json_decref(keys);
        if (rc != 0) {
            free_answer(values);
            values = NULL;
        } else {
            map_set(r->answers, place, values);
            r->ttl_ms = ttl_ms < r->ttl_ms ? ttl_ms : r->ttl_ms;
        }
    }
    free(place);
    return values;
}

static int get_of_service(struct resolving *r, const struct config_ref *ref,
                          const struct named *named, char **value, struct mr_error *err)
{
    char *path = text_of(ref->path), *key = text_of(ref->key);
    const struct props *values = ask_service(r, ref, named->name, path, err);
    const char *found = values != NULL ? props_get(values, key) : NULL;

    *value = text_dup(found);
    free(path);
    free(key);
    return values != NULL ? 0 : MR_ERR_IO;
}

static void note_why(struct resolving *r, const struct config_ref *ref, const char *text)
{
    char *whole = text_of(ref->whole);

    free(map_set(r->job->why, whole, text_dup(text)));
    free(whole);
}

static int get_of_kind(struct resolving *r, const struct config_ref *ref, const struct named *named,
                       char **value, struct mr_error *err)
{
    char remark[REMARK_MAX], *path = text_of(ref->path), *key = text_of(ref->key);
    int rc = provider_kind_get(named->provider, path, key, &r->cache, value, remark, err);

    if (remark[0] != '\0' && r->job->why != NULL)
        note_why(r, ref, remark);
    free(path);
    free(key);
    return rc;
}

/* What a reference stands for, into *value; NULL: nothing, it stays. */
static int look_up(struct resolving *r, const struct config_ref *ref, char **value,
                   struct mr_error *err)
{
    const struct named *named = find(r->providers, ref->provider);

    *value = NULL;
    if (named == NULL || (r->quick && !is_quick(named)) || too_long(ref))
        return 0;
    return named->provider != NULL ? get_of_kind(r, ref, named, value, err)
                                   : get_of_service(r, ref, named, value, err);
}

/* What can't be hidden is not used. */
static int note_secret(struct resolving *r, const struct config_ref *ref, const char *value,
                       struct mr_error *err)
{
    char *reference = text_of(ref->whole);
    bool noted = r->job->secrets == NULL || secrets_add(r->job->secrets, reference, value);

    free(reference);
    return noted ? 0
                 : mr_fail(err, MR_ERR_IO,
                           "A configuration refers to more than %d values of config providers",
                           SECRETS_MAX);
}

static int replace(struct resolving *r, const struct config_ref *ref, struct buf *out,
                   struct mr_error *err)
{
    char *value = NULL;
    int rc = look_up(r, ref, &value, err);

    if (rc != 0)
        return rc;
    if (value == NULL) {
        buf_append(out, ref->whole.at, ref->whole.len);
        return 0;
    }
    buf_puts(out, value);
    rc = note_secret(r, ref, value, err);
    explicit_bzero(value, strlen(value));
    free(value);
    return rc;
}

/* NULL with err. */
static char *resolve_text(struct resolving *r, const char *text, struct mr_error *err)
{
    struct config_ref ref;
    struct buf value;
    char *resolved = NULL;
    int rc = 0;

    buf_init(&value, RESOLVED_MAX - r->bytes);
    buf_append(&value, "", 0);
    while (rc == 0 && config_ref_next(text, &ref)) {
        buf_append(&value, text, (size_t)(ref.whole.at - text));
        rc = replace(r, &ref, &value, err);
        text = ref.whole.at + ref.whole.len;
    }
    buf_puts(&value, text);
    if (rc == 0 && value.failed)
        mr_fail(err, MR_ERR_IO, "A configuration is larger than %zu bytes when resolved",
                RESOLVED_MAX);
    if (rc == 0 && !value.failed) {
        r->bytes += value.len;
        resolved = buf_take(&value);
    }
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
    struct resolving r = {.providers = providers, .job = job, .ttl_ms = PROVIDER_SERVICE_NO_TTL};
    int rc = props_copy(out, job->in);

    if (rc != 0)
        mr_fail(err, rc, "out of memory");
    provider_cache_init(&r.cache);
    for (size_t i = 0; rc == 0 && i < out->count; i++) {
        const struct props_entry *entry = &job->in->entries[i];
        char *value;

        if (!providers_refer(providers, entry->value, true, true) ||
            (job->except != NULL && strcmp(job->except, entry->key) == 0))
            continue;
        value = resolve_text(&r, entry->value, err);
        rc = value == NULL ? MR_ERR_IO : props_set(out, entry->key, value);
        if (rc != 0 && job->failed != NULL)
            *job->failed = entry->key;
        if (value != NULL && rc != 0)
            mr_fail(err, rc, "out of memory");
        out->entries[i].line = entry->line;
        free(value);
    }
    provider_cache_deinit(&r.cache);
    map_free(&r.answers, free_answer);
    map_free(&r.wanted, free_wanted);
    if (rc != 0)
        props_deinit(out);
    else if (job->ttl_ms != NULL)
        *job->ttl_ms = r.ttl_ms;
    return rc;
}
