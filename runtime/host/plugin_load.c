/* SPDX-License-Identifier: Apache-2.0 */
/* Opens plugin libraries. Called by the connector thread and by task threads (converters) of a
 * host, and by `millrace scan`; the only file that knows dlfcn.h.
 *
 * Order of checks: elf_check (before the dynamic linker maps anything), dlopen, the symbol, then
 * descriptor.c. Libraries are opened now and locally, never unloaded: their threads, exit handlers
 * and thread-local destructors may still run. The registry of what is open is process-wide, as the
 * libraries themselves are; one lock guards it and is held over dlopen, which holds a lock of its
 * own there anyway. */
#include "host/plugin_load.h"

#include "host/descriptor.h"
#include "host/elf_check.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define SYMBOL "millrace_module"

struct library {
    struct library *next;
    char *path; /* as it was asked for */
    struct descriptor_set set;
};

static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;
static struct library *libraries;

/* dlerror's own texts begin with the path mostly; one path is enough. */
static void linker_error(const char *path, struct mr_error *err)
{
    const char *text = dlerror();
    size_t len = strlen(path);

    if (text == NULL)
        text = "unknown error of the dynamic linker";
    if (strncmp(text, path, len) == 0 && strncmp(text + len, ": ", 2) == 0)
        text += len + 2;
    mr_fail(err, MR_ERR_PROTOCOL, "cannot be loaded: %s", text);
}

static int open_library(const char *path, struct descriptor_set *set, struct mr_error *err)
{
    const struct mr_module *(*module)(void);
    void *handle;
    void *symbol;

    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        linker_error(path, err);
        return MR_ERR_PROTOCOL;
    }
    symbol = dlsym(handle, SYMBOL);
    if (symbol == NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "exports no " SYMBOL ": no Millrace plugin");
    memcpy(&module, &symbol, sizeof(module));
    return descriptor_read(module(), path, set, err);
}

/* By its absolute path: a name without a slash would be searched elsewhere. */
static int check_and_open(const char *path, struct descriptor_set *set, struct mr_error *err)
{
    char *absolute = realpath(path, NULL);
    int rc;

    if (absolute == NULL)
        return err_errno(err, "cannot be read");
    rc = elf_check_file(absolute, err);
    if (rc == 0)
        rc = open_library(absolute, set, err);
    free(absolute);
    return rc;
}

static struct library *library_new(const char *path, struct mr_error *err)
{
    struct library *library = calloc(1, sizeof(*library));

    if (library != NULL)
        library->path = strdup(path);
    if (library != NULL && library->path != NULL && check_and_open(path, &library->set, err) == 0)
        return library;
    if (library == NULL || library->path == NULL)
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
    if (library != NULL)
        free(library->path);
    free(library);
    return NULL;
}

static struct library *find_or_open(const char *path, struct mr_error *err)
{
    struct library *library;

    for (library = libraries; library != NULL; library = library->next)
        if (strcmp(library->path, path) == 0)
            return library;
    library = library_new(path, err);
    if (library != NULL) {
        library->next = libraries;
        libraries = library;
    }
    return library;
}

const struct plugin *plugin_load(const char *path, size_t *count, struct mr_error *err)
{
    struct library *library;

    pthread_mutex_lock(&libraries_lock);
    library = find_or_open(path, err);
    pthread_mutex_unlock(&libraries_lock);
    if (library == NULL) {
        err_prefix(err, "%s", path);
        return NULL;
    }
    *count = library->set.count;
    return library->set.plugins;
}

/* --- finding by name -------------------------------------------------------------------------- */

static bool kind_fits(const struct plugin *plugin, uint32_t kind)
{
    if (kind == 0)
        return plugin->kind == MR_PLUGIN_SOURCE || plugin->kind == MR_PLUGIN_SINK;
    if (kind == MR_PLUGIN_HEADER_CONVERTER && plugin->kind == MR_PLUGIN_CONVERTER)
        return true;
    return plugin->kind == kind;
}

const char *plugin_load_kind_name(uint32_t kind)
{
    static const char *const names[] = {[MR_PLUGIN_CONVERTER] = "converter",
                                        [MR_PLUGIN_HEADER_CONVERTER] = "converter",
                                        [MR_PLUGIN_TRANSFORM] = "transform",
                                        [MR_PLUGIN_PREDICATE] = "predicate",
                                        [MR_PLUGIN_CONFIG_PROVIDER] = "config provider",
                                        [MR_PLUGIN_REST_FILTER] = "REST filter"};

    return kind < sizeof(names) / sizeof(names[0]) && names[kind] != NULL ? names[kind]
                                                                          : "connector";
}

static bool looks_like_java(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && isupper((unsigned char)dot[1]) &&
           name[strspn(
               name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$")] == '\0';
}

const char *plugin_load_class(const struct plugin *plugin)
{
    for (size_t i = 0; plugin->aliases[i] != NULL; i++)
        if (looks_like_java(plugin->aliases[i]))
            return plugin->aliases[i];
    return plugin->name;
}

const struct plugin *plugin_load_find(const char *path, uint32_t kind, const char *name,
                                      struct mr_error *err)
{
    size_t count = 0;
    const struct plugin *plugins = plugin_load(path, &count, err);

    if (plugins == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (kind_fits(&plugins[i], kind) && strcmp(plugins[i].name, name) == 0)
            return &plugins[i];
    mr_fail(err, MR_ERR_NOT_FOUND, "%s: holds no %s called %s", path, plugin_load_kind_name(kind),
            name);
    return NULL;
}
