/* SPDX-License-Identifier: Apache-2.0 */
/* Finds converters. Only the library that the worker's catalog names is opened, never all of them to look inside: a library
 * that crashes when opened must not hurt connectors that don't use it. Called at a task's start, on its thread. */
#include "host/task/converter_find.h"

#include <string.h>

#define SUFFIX "Converter"

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot == NULL ? name : dot + 1;
}

static size_t stem(const char *name)
{
    size_t len = strlen(name);
    size_t suffix = strlen(SUFFIX);

    return len > suffix && strcmp(name + len - suffix, SUFFIX) == 0 ? len - suffix : len;
}

static bool exactly(const char *known, const char *name)
{
    return strcmp(known, name) == 0;
}

static bool loosely(const char *known, const char *name)
{
    const char *a = last_part(known);

    return stem(a) == stem(name) && memcmp(a, name, stem(a)) == 0;
}

static bool is_called(const json_t *entry, const char *name,
                      bool (*called)(const char *known, const char *name))
{
    const char *known;
    const json_t *alias;
    size_t i;

    if (json_get_text(entry, "name", &known) && called(known, name))
        return true;
    json_array_foreach(json_object_get(entry, "aliases"), i,
                       alias) if (json_is_string(alias) &&
                                  called(json_string_value(alias), name)) return true;
    return false;
}

static bool is_converter(const json_t *entry)
{
    int64_t kind;

    return json_get_int(entry, "kind", 0, UINT32_MAX, &kind) && kind == MR_PLUGIN_CONVERTER;
}

static const json_t *find_entry(const json_t *plugins, const char *name)
{
    bool (*const passes[])(const char *, const char *) = {exactly, loosely};
    const json_t *entry;
    size_t i;

    for (size_t pass = 0; pass < 2; pass++)
        json_array_foreach(plugins, i,
                           entry) if (is_converter(entry) &&
                                      is_called(entry, name, passes[pass])) return entry;
    return NULL;
}

static int not_found(const json_t *plugins, const char *name, struct mr_error *err)
{
    struct buf names;
    const json_t *entry;
    const char *known;
    size_t i;
    int rc;

    buf_init(&names, 700);
    json_array_foreach(plugins, i,
                       entry) if (is_converter(entry) && json_get_text(entry, "name", &known))
        buf_printf(&names, "%s%s", names.len == 0 ? "" : ", ", known);
    rc = mr_fail(err, MR_ERR_CONFIG, "no converter called %.200s is installed; there are: %s", name,
                 names.len == 0 ? "none" : names.data);
    buf_deinit(&names);
    return rc;
}

const struct plugin *converter_find(const json_t *plugins, const char *name, struct mr_error *err)
{
    const json_t *entry = find_entry(plugins, name);
    const char *library;
    const char *real;

    if (entry == NULL) {
        not_found(plugins, name, err);
        return NULL;
    }
    if (!json_get_text(entry, "library", &library) || !json_get_text(entry, "name", &real)) {
        mr_fail(err, MR_ERR_PROTOCOL,
                "the worker's list of plugins has no library for converter %.200s", name);
        return NULL;
    }
    return plugin_load_find(library, MR_PLUGIN_CONVERTER, real, err);
}
