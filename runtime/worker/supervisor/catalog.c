/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog of plugins: made once at start-up by catalog_scan.c, read by the herder, the
 * supervisor and REST ever after.
 *
 * Each plugin keeps the JSON object it was read from, and all its text points into that. Two
 * orders: `added` is that of the folders, and decides between equals; `shown` is that of REST. */
#include "worker/supervisor/catalog.h"

#include "link/scan_format.h"
#include "model/plugin_version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PLUGINS_MAX 10000

struct entry {
    struct catalog_plugin pub;
    json_t *source; /* all text of pub points into it */
    char *library;
    const char **aliases;
    struct mr_config_key *keys;
};

struct catalog {
    struct entry **added;
    size_t count;
    const struct catalog_plugin **shown;
};

/* --- names ------------------------------------------------------------------------------------ */

static const char *kind_suffix(uint32_t kind)
{
    static const char *const suffixes[] = {[MR_PLUGIN_SOURCE] = "Connector",
                                           [MR_PLUGIN_SINK] = "Connector",
                                           [MR_PLUGIN_CONVERTER] = "Converter",
                                           [MR_PLUGIN_HEADER_CONVERTER] = "Converter",
                                           [MR_PLUGIN_TRANSFORM] = "",
                                           [MR_PLUGIN_PREDICATE] = "",
                                           [MR_PLUGIN_CONFIG_PROVIDER] = "ConfigProvider",
                                           [MR_PLUGIN_REST_FILTER] = "RestExtension"};

    return suffixes[kind];
}

static size_t without_suffix(const char *name, uint32_t kind)
{
    const char *suffix = kind_suffix(kind);
    size_t len = strlen(name), end = strlen(suffix);

    return len > end && strcmp(name + len - end, suffix) == 0 ? len - end : len;
}

static const char *simple_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot == NULL || dot[1] == '\0' ? name : dot + 1;
}

static bool looks_like_java(const char *name)
{
    const char *simple = simple_name(name);

    if (simple == name || !isupper((unsigned char)simple[0]))
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && strchr("._$", *name) == NULL)
            return false;
    return true;
}

static bool same_stem(const char *a, const char *b, uint32_t kind)
{
    size_t len = without_suffix(a, kind);

    return len == without_suffix(b, kind) && strncmp(a, b, len) == 0;
}

/* How well a name fits one of the plugin's: 3 whole, 2 but for the suffix, 1 as the last part of a
 * class name. */
static int rank_name(const char *own, const char *wanted, uint32_t kind)
{
    if (strcmp(own, wanted) == 0)
        return 3;
    if (same_stem(own, wanted, kind))
        return 2;
    return strchr(wanted, '.') == NULL && same_stem(simple_name(own), wanted, kind) ? 1 : 0;
}

static int rank_plugin(const struct catalog_plugin *plugin, const char *wanted)
{
    int best = rank_name(plugin->name, wanted, plugin->kind);

    for (size_t i = 0; plugin->aliases[i] != NULL; i++) {
        int rank = rank_name(plugin->aliases[i], wanted, plugin->kind);

        if (rank > best)
            best = rank;
    }
    return best;
}

/* --- reading one plugin ----------------------------------------------------------------------- */

static bool is_visible(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++)
        if (*p <= 0x20 || *p == 0x7f)
            return false;
    return text[0] != '\0';
}

/* A name without blanks or control characters. */
static int get_name(const json_t *object, const char *key, const char **out, struct mr_error *err)
{
    if (!json_get_text(object, key, out) || !is_visible(*out) ||
        strlen(*out) > SCAN_FORMAT_NAME_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "its %s is missing, longer than %d bytes or no name",
                       key, SCAN_FORMAT_NAME_MAX);
    return 0;
}

/* Text that may be absent or null. */
static int get_text(const json_t *object, const char *key, const char **out, struct mr_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = NULL;
    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_get_text(object, key, out) || strlen(*out) > SCAN_FORMAT_TEXT_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "its %s is no text of at most %d bytes", key,
                       SCAN_FORMAT_TEXT_MAX);
    return 0;
}

static int get_number(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out,
                      struct mr_error *err)
{
    *out = 0;
    if (json_object_get(object, key) == NULL)
        return 0;
    if (!json_get_int(object, key, min, max, out))
        return mr_fail(err, MR_ERR_PROTOCOL, "its %s is no number in range", key);
    return 0;
}

static int read_key_numbers(const json_t *object, struct mr_config_key *key, struct mr_error *err)
{
    int64_t type, flags, importance, order, width;
    int rc = get_number(object, "type", 0, MR_CFG_PASSWORD, &type, err);

    if (rc == 0)
        rc = get_number(object, "flags", 0, UINT32_MAX, &flags, err);
    if (rc == 0)
        rc = get_number(object, "min", INT64_MIN, INT64_MAX, &key->min, err);
    if (rc == 0)
        rc = get_number(object, "max", INT64_MIN, INT64_MAX, &key->max, err);
    if (rc == 0)
        rc = get_number(object, "importance", 0, MR_CFG_HIGH, &importance, err);
    if (rc == 0)
        rc = get_number(object, "order", INT32_MIN, INT32_MAX, &order, err);
    if (rc == 0)
        rc = get_number(object, "width", 0, MR_CFG_WIDTH_LONG, &width, err);
    if (rc != 0)
        return rc;
    json_get_bool(object, "has_range", &key->has_range);
    key->type = (uint32_t)type;
    key->flags = (uint32_t)flags;
    key->importance = (uint32_t)importance;
    key->order = (int32_t)order;
    key->width = (uint32_t)width;
    return 0;
}

static int read_key(const json_t *object, struct mr_config_key *key, struct mr_error *err)
{
    int rc = get_name(object, "name", &key->name, err);

    if (rc == 0)
        rc = get_text(object, "fallback", &key->fallback, err);
    if (rc == 0)
        rc = get_text(object, "doc", &key->doc, err);
    if (rc == 0)
        rc = get_text(object, "choices", &key->choices, err);
    if (rc == 0)
        rc = get_text(object, "group", &key->group, err);
    if (rc == 0)
        rc = get_text(object, "display_name", &key->display_name, err);
    return rc != 0 ? rc : read_key_numbers(object, key, err);
}

static int read_keys(struct entry *e, struct mr_error *err)
{
    const json_t *list = json_object_get(e->source, "keys");
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > SCAN_FORMAT_KEYS_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "it has no list of at most %d keys",
                       SCAN_FORMAT_KEYS_MAX);
    e->keys = calloc(count + 1, sizeof(*e->keys));
    if (e->keys == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    e->pub.keys = e->keys;
    for (size_t i = 0; i < count; i++) {
        int rc = read_key(json_array_get(list, i), &e->keys[i], err);

        if (rc != 0) {
            err_prefix(err, "key %zu", i);
            return rc;
        }
    }
    return 0;
}

static int read_aliases(struct entry *e, struct mr_error *err)
{
    const json_t *list = json_object_get(e->source, "aliases");
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > SCAN_FORMAT_ALIASES_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "it has no list of at most %d aliases",
                       SCAN_FORMAT_ALIASES_MAX);
    e->aliases = calloc(count + 1, sizeof(*e->aliases));
    if (e->aliases == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    e->pub.aliases = e->aliases;
    for (size_t i = 0; i < count; i++) {
        const json_t *alias = json_array_get(list, i);

        e->aliases[i] = json_string_value(alias);
        if (e->aliases[i] == NULL || !is_visible(e->aliases[i]) ||
            json_string_length(alias) > SCAN_FORMAT_NAME_MAX)
            return mr_fail(err, MR_ERR_PROTOCOL, "alias %zu is no name", i);
        if (e->pub.java_class == NULL && looks_like_java(e->aliases[i]))
            e->pub.java_class = e->aliases[i];
    }
    return 0;
}

static int read_plugin(struct entry *e, struct mr_error *err)
{
    int64_t kind = 0;
    int rc = get_name(e->source, "name", &e->pub.name, err);

    if (rc == 0)
        rc = get_name(e->source, "version", &e->pub.version, err);
    if (rc == 0)
        rc = get_text(e->source, "doc", &e->pub.doc, err);
    if (rc == 0)
        rc = get_text(e->source, "exactly_once", &e->pub.exactly_once, err);
    if (rc == 0)
        rc = get_text(e->source, "stores_offsets", &e->pub.stores_offsets, err);
    if (rc == 0 && !json_get_int(e->source, "kind", MR_PLUGIN_SOURCE, MR_PLUGIN_REST_FILTER, &kind))
        rc = mr_fail(err, MR_ERR_PROTOCOL, "its kind is none that this worker knows");
    if (rc != 0)
        return rc;
    e->pub.kind = (uint32_t)kind;
    json_get_bool(e->source, "boundaries", &e->pub.boundaries);
    json_get_bool(e->source, "emits", &e->pub.emits);
    json_get_bool(e->source, "checks", &e->pub.checks);
    rc = read_aliases(e, err);
    if (rc == 0)
        rc = read_keys(e, err);
    if (e->pub.java_class == NULL)
        e->pub.java_class = e->pub.name;
    return rc;
}

static void entry_free(struct entry *e)
{
    json_decref(e->source);
    free(e->library);
    free(e->aliases);
    free(e->keys);
    free(e);
}

static int compare_shown(const void *pa, const void *pb)
{
    static const int order[] = {[MR_PLUGIN_SINK] = 0,
                                [MR_PLUGIN_SOURCE] = 1,
                                [MR_PLUGIN_TRANSFORM] = 2,
                                [MR_PLUGIN_PREDICATE] = 3,
                                [MR_PLUGIN_CONVERTER] = 4,
                                [MR_PLUGIN_HEADER_CONVERTER] = 4,
                                [MR_PLUGIN_CONFIG_PROVIDER] = 5,
                                [MR_PLUGIN_REST_FILTER] = 6};
    const struct catalog_plugin *a = *(const struct catalog_plugin *const *)pa;
    const struct catalog_plugin *b = *(const struct catalog_plugin *const *)pb;
    int c = order[a->kind] - order[b->kind];

    if (c == 0)
        c = strcmp(a->java_class, b->java_class);
    if (c == 0)
        c = plugin_version_compare(a->version, b->version);
    return c != 0 ? c : strcmp(a->library, b->library);
}

static void show(struct catalog *cat)
{
    for (size_t i = 0; i < cat->count; i++)
        cat->shown[i] = &cat->added[i]->pub;
    if (cat->count > 0)
        qsort(cat->shown, cat->count, sizeof(*cat->shown), compare_shown);
}

static int reserve(struct catalog *cat)
{
    struct entry **added;
    const struct catalog_plugin **shown;

    if (cat->count >= PLUGINS_MAX)
        return MR_ERR_FULL;
    added = realloc(cat->added, (cat->count + 1) * sizeof(*added));
    if (added == NULL)
        return MR_ERR_NOMEM;
    cat->added = added;
    shown = realloc(cat->shown, (cat->count + 1) * sizeof(*shown));
    if (shown == NULL)
        return MR_ERR_NOMEM;
    cat->shown = shown;
    return 0;
}

int catalog_add(struct catalog *cat, const char *library, const json_t *plugin,
                struct mr_error *err)
{
    struct entry *e = calloc(1, sizeof(*e));
    int rc = e == NULL ? MR_ERR_NOMEM : reserve(cat);

    if (rc != 0) {
        free(e);
        return mr_fail(err, rc, rc == MR_ERR_FULL ? "more than 10000 plugins" : "out of memory");
    }
    e->source = json_incref((json_t *)(uintptr_t)plugin);
    e->library = strdup(library);
    e->pub.library = e->library;
    rc = e->library == NULL ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : read_plugin(e, err);
    if (rc != 0) {
        entry_free(e);
        return rc;
    }
    cat->added[cat->count++] = e;
    show(cat);
    return 0;
}

void catalog_cut(struct catalog *cat, size_t count)
{
    while (cat->count > count)
        entry_free(cat->added[--cat->count]);
    show(cat);
}

/* --- use -------------------------------------------------------------------------------------- */

struct catalog *catalog_new(void)
{
    struct catalog *cat = calloc(1, sizeof(*cat));

    mr_assert(cat != NULL);
    return cat;
}

void catalog_free(struct catalog **catp)
{
    struct catalog *cat = *catp;

    *catp = NULL;
    if (cat == NULL)
        return;
    catalog_cut(cat, 0);
    free(cat->added);
    free(cat->shown);
    free(cat);
}

size_t catalog_count(const struct catalog *cat)
{
    return cat->count;
}

const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i)
{
    mr_assert(i < cat->count);
    return cat->shown[i];
}

static bool kind_fits(uint32_t kind, uint32_t wanted)
{
    if (wanted == 0)
        return kind <= MR_PLUGIN_SINK;
    return kind == wanted || (wanted == MR_PLUGIN_HEADER_CONVERTER && kind == MR_PLUGIN_CONVERTER);
}

const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind,
                                          const char *name)
{
    const struct catalog_plugin *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; i < cat->count; i++) {
        const struct catalog_plugin *plugin = &cat->added[i]->pub;
        int rank;

        if (!kind_fits(plugin->kind, kind))
            continue;
        rank = rank_plugin(plugin, name);
        if (rank > best_rank || (rank > 0 && rank == best_rank &&
                                 plugin_version_compare(plugin->version, best->version) > 0)) {
            best = plugin;
            best_rank = rank;
        }
    }
    return best;
}
