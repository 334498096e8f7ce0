/* SPDX-License-Identifier: Apache-2.0 */
/* The three built-in config providers: a properties file, a directory of files, the environment.
 * Asked by provider.c, in the worker (its own properties, validation) and in hosts (connectors and
 * tasks).
 *
 * allowed.paths holds as in Java, part by part of the path as it is written; besides, what the path
 * leads to by symbolic links must lie there too. The environment is that of the process's start. */
#include "base/provider_kind.h"

#include "base/file.h"
#include "base/java_pattern.h"
#include "base/text.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_MAX ((size_t)1 << 20)
#define REMARK_MAX 512
#define PATHS "allowed.paths"
#define PATTERN "allowlist.pattern"
#define PACKAGE "org.apache.kafka.common.config.provider."

extern char **environ;

struct ask {
    const struct provider *provider;
    const char *path;
    const char *key;
    struct provider_cache *cache;
    char *remark;
};

struct kind {
    const char *name; /* of the class, without its package */
    bool quick;
    bool has_paths;
    const char *param;
    int (*configure)(struct provider *p, const struct props *params, bool look,
                     struct mr_error *err);
    int (*get)(const struct ask *ask, char **out, struct mr_error *err);
};

struct provider {
    const struct kind *kind;
    bool restricted;
    char **allowed; /* normal forms, ended by NULL; where restricted */
    struct props environment;
};

static int found(char **out, const char *value)
{
    *out = text_dup(value);
    return 0;
}

/* --- paths that may be read ------------------------------------------------------------------- */

/* As Path.normalize: no ".", no "..", one slash between parts. out: PATH_MAX. */
static bool normalise(const char *path, char *out)
{
    size_t n = 0;

    if (strlen(path) + 2 > PATH_MAX)
        return false;
    if (path[0] == '/')
        out[n++] = '/';
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        bool up = len == 2 && memcmp(path, "..", 2) == 0;

        if (up && n > 1) {
            while (n > 1 && out[n - 1] != '/')
                n--;
            n -= n > 1 ? 1 : 0;
        } else if (len > 0 && !up && !(len == 1 && *path == '.')) {
            if (n > 0 && out[n - 1] != '/')
                out[n++] = '/';
            memcpy(out + n, path, len);
            n += len;
        }
        path += len;
        path += strspn(path, "/");
    }
    out[n] = '\0';
    return true;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || folder[len - 1] == '/');
}

static bool lies_in_any(const struct provider *p, const char *path, bool linked)
{
    char folder[PATH_MAX];

    for (char **allowed = p->allowed; *allowed != NULL; allowed++) {
        if (linked && realpath(*allowed, folder) == NULL)
            continue;
        if (lies_in(path, linked ? folder : *allowed))
            return true;
    }
    return false;
}

/* The path to be read, into out (PATH_MAX). false: it may not be. What does not exist may: its
 * reader says so. */
static bool permit(const struct provider *p, const char *path, char *out)
{
    char real[PATH_MAX];

    if (!p->restricted) {
        snprintf(out, PATH_MAX, "%s", path);
        return strlen(path) < PATH_MAX;
    }
    if (!normalise(path, out) || !lies_in_any(p, out, false))
        return false;
    return realpath(out, real) == NULL || lies_in_any(p, real, true);
}

static int allow(struct provider *p, size_t count, const char *item, size_t len, bool look,
                 struct mr_error *err)
{
    char path[PATH_MAX], raw[PATH_MAX];

    if (len >= sizeof(raw))
        return mr_fail(err, MR_ERR_CONFIG, "a path of allowed.paths is too long");
    snprintf(raw, sizeof(raw), "%.*s", (int)len, item);
    if (!normalise(raw, path) || path[0] != '/')
        return mr_fail(err, MR_ERR_CONFIG, "Path %.500s is not absolute", raw);
    if (look && access(path, F_OK) != 0)
        return mr_fail(err, MR_ERR_CONFIG, "Path %.500s does not exist", path);
    p->allowed = realloc(p->allowed, (count + 2) * sizeof(char *));
    mr_assert(p->allowed != NULL);
    p->allowed[count] = text_dup(path);
    p->allowed[count + 1] = NULL;
    return 0;
}

static int configure_paths(struct provider *p, const struct props *params, bool look,
                           struct mr_error *err)
{
    const char *list = props_get(params, PATHS);
    size_t count = 0;
    int rc = 0;

    p->restricted = list != NULL && list[0] != '\0';
    while (rc == 0 && p->restricted && *list != '\0') {
        size_t len = strcspn(list, ",");

        rc = allow(p, count++, list, len, look, err);
        list += len + (list[len] == ',' ? 1 : 0);
    }
    return rc;
}

/* --- a properties file ------------------------------------------------------------------------ */

void provider_cache_init(struct provider_cache *cache)
{
    *cache = (struct provider_cache){.path = NULL};
    props_init(&cache->all);
}

void provider_cache_deinit(struct provider_cache *cache)
{
    free(cache->path);
    props_deinit(&cache->all);
    provider_cache_init(cache);
}

static int load(const struct ask *ask, const char *path, struct mr_error *err)
{
    struct provider_cache *cache = ask->cache;
    struct mr_error why = {0};

    provider_cache_deinit(cache);
    if (props_load(&cache->all, path, &why) != 0)
        return mr_fail(err, MR_ERR_IO, "Could not read properties from file %.400s: %.500s",
                       ask->path, why.text);
    cache->provider = ask->provider;
    cache->path = text_dup(ask->path);
    return 0;
}

static int get_of_file(const struct ask *ask, char **out, struct mr_error *err)
{
    struct provider_cache *cache = ask->cache;
    char path[PATH_MAX];
    const char *value;
    int rc;

    if (ask->path[0] == '\0')
        return 0;
    if (!permit(ask->provider, ask->path, path)) {
        snprintf(ask->remark, REMARK_MAX, "The path %.400s is not allowed to be accessed",
                 ask->path);
        return 0;
    }
    if (cache->path == NULL || cache->provider != ask->provider ||
        strcmp(cache->path, ask->path) != 0) {
        rc = load(ask, path, err);
        if (rc != 0)
            return rc;
    }
    value = props_get(&cache->all, ask->key);
    return value != NULL ? found(out, value) : 0;
}

/* --- a directory of files --------------------------------------------------------------------- */

static int read_whole(const struct ask *ask, const char *path, char **out, struct mr_error *err)
{
    struct mr_error why = {0};
    struct buf text;
    bool fit;

    buf_init(&text, VALUE_MAX);
    fit = file_read(path, &text, &why) == 0;
    if (!fit || strlen(text.data != NULL ? text.data : "") != text.len ||
        !utf8_valid(text.data != NULL ? text.data : "", text.len)) {
        mr_fail(err, MR_ERR_IO, "Could not read file %.400s for property %.200s: %.300s", path,
                ask->key, fit ? "it is no UTF-8 text" : why.text);
        buf_deinit(&text);
        return MR_ERR_IO;
    }
    found(out, text.data != NULL ? text.data : "");
    buf_deinit(&text);
    return 0;
}

static int get_of_directory(const struct ask *ask, char **out, struct mr_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct stat st;

    if (ask->path[0] == '\0')
        return 0;
    if (!permit(ask->provider, ask->path, folder)) {
        snprintf(ask->remark, REMARK_MAX, "The path %.400s is not allowed to be accessed",
                 ask->path);
        return 0;
    }
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)) {
        snprintf(ask->remark, REMARK_MAX, "The path %.400s is not a directory", ask->path);
        return 0;
    }
    if (ask->key[0] == '\0' || strchr(ask->key, '/') != NULL ||
        (size_t)snprintf(path, sizeof(path), "%s/%s", folder, ask->key) >= sizeof(path) ||
        stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    if (ask->provider->restricted && !permit(ask->provider, path, folder)) {
        snprintf(ask->remark, REMARK_MAX, "The path %.400s is not allowed to be accessed", path);
        return 0;
    }
    return read_whole(ask, path, out, err);
}

/* --- the environment -------------------------------------------------------------------------- */

static int configure_environment(struct provider *p, const struct props *params, bool look,
                                 struct mr_error *err)
{
    const char *regex = props_get(params, PATTERN);
    struct java_pattern *pattern = regex != NULL ? java_pattern_make(regex, err) : NULL;

    (void)look;
    if (regex != NULL && pattern == NULL) {
        err_prefix(err, PATTERN " %.200s", regex);
        return MR_ERR_CONFIG;
    }
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const char *value = strchr(*variable, '=');
        char *name = value != NULL ? strndup(*variable, (size_t)(value - *variable)) : NULL;

        if (name != NULL && utf8_valid(value + 1, strlen(value + 1)) &&
            (pattern == NULL || java_pattern_matches(pattern, name, NULL) == 1))
            mr_assert(props_set(&p->environment, name, value + 1) == 0);
        free(name);
    }
    java_pattern_free(&pattern);
    return 0;
}

static int get_of_environment(const struct ask *ask, char **out, struct mr_error *err)
{
    const char *value = props_get(&ask->provider->environment, ask->key);

    if (ask->path[0] != '\0')
        return mr_fail(err, MR_ERR_IO,
                       "Path is not supported for EnvVarConfigProvider, invalid value '%.500s'",
                       ask->path);
    return value != NULL ? found(out, value) : 0;
}

/* --- the door --------------------------------------------------------------------------------- */

static const struct kind kinds[] = {
    {"FileConfigProvider", false, true, PATHS, configure_paths, get_of_file},
    {"DirectoryConfigProvider", false, true, PATHS, configure_paths, get_of_directory},
    {"EnvVarConfigProvider", true, false, PATTERN, configure_environment, get_of_environment},
};

static const struct kind *kind_of(const char *class_name)
{
    const char *name = class_name;

    if (strncmp(name, PACKAGE, sizeof(PACKAGE) - 1) == 0)
        name += sizeof(PACKAGE) - 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    return NULL;
}

bool provider_kind_known(const char *class_name)
{
    return kind_of(class_name) != NULL;
}

const char *provider_kind_param(const char *class_name)
{
    const struct kind *kind = kind_of(class_name);

    return kind != NULL ? kind->param : NULL;
}

struct provider *provider_kind_new(const char *class_name, const struct props *params, bool look,
                                   struct mr_error *err)
{
    const struct kind *kind = kind_of(class_name);
    struct provider *p;

    if (kind == NULL) {
        mr_fail(err, MR_ERR_NOT_FOUND,
                "Could not load config provider class or one of its dependencies (built in are "
                "FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider of "
                "org.apache.kafka.common.config.provider; others are found by plugin.path)");
        return NULL;
    }
    p = calloc(1, sizeof(*p));
    mr_assert(p != NULL);
    p->kind = kind;
    props_init(&p->environment);
    if (kind->configure(p, params, look, err) != 0)
        provider_kind_free(&p);
    return p;
}

void provider_kind_free(struct provider **pp)
{
    struct provider *p = *pp;

    *pp = NULL;
    if (p == NULL)
        return;
    for (size_t i = 0; p->allowed != NULL && p->allowed[i] != NULL; i++)
        free(p->allowed[i]);
    free(p->allowed);
    props_deinit(&p->environment);
    free(p);
}

bool provider_kind_has_paths(const struct provider *provider)
{
    return provider->kind->has_paths;
}

bool provider_kind_is_quick(const struct provider *provider)
{
    return provider->kind->quick;
}

int provider_kind_get(const struct provider *provider, const char *path, const char *key,
                      struct provider_cache *cache, char **out, char *remark, struct mr_error *err)
{
    struct ask ask = {provider, path, key, cache, remark};

    *out = NULL;
    remark[0] = '\0';
    return provider->kind->get(&ask, out, err);
}
