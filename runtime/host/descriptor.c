/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the descriptors that a library's millrace_module gives. Called by plugin_load.c after
 * dlopen, on the thread that loads; calls no code of the library's.
 *
 * Sizes: every struct says how long it is. The host takes the shorter of that and its own, so slots
 * that the plugin's headers did not have yet are NULL, and what they have beyond ours is never
 * read. Cutting goes by whole words: half of a pointer is none.
 * Trust: all bytes and texts are copied by peek.c, so a descriptor full of nonsense is refused with
 * a sentence. Only function pointers are believed. */
#include "host/descriptor.h"

#include "base/log.h"
#include "base/utf8.h"
#include "host/peek.h"
#include "link/scan_format.h"
#include "model/config_def.h"

#include <ctype.h>
#include <string.h>

#define LOGGER "host.plugins"

#define STRUCT_MAX 65536u /* bytes a descriptor may claim */
#define KEY_MAX 4096u     /* bytes one configuration key may claim */
#define STATE_MAX (64u * 1024 * 1024)
#define MODULE_MIN (offsetof(struct mr_module, plugins) + sizeof(void *))
#define KEY_MIN (offsetof(struct mr_config_key, flags) + sizeof(uint32_t))
#define HEAD_SIZE sizeof(struct mr_plugin)

struct slot {
    const char *name;
    size_t at;
};

/* at: the copy's place in struct plugin. must: slots that may not be NULL. */
static const struct kind {
    uint32_t kind;
    const char *name;
    size_t at;
    size_t size;
    struct slot must[3];
} kinds[] = {
    {MR_PLUGIN_SOURCE,
     "source",
     offsetof(struct plugin, source),
     sizeof(struct mr_source),
     {{"poll", offsetof(struct mr_source, poll)}, {NULL, 0}, {NULL, 0}}},
    {MR_PLUGIN_SINK,
     "sink",
     offsetof(struct plugin, sink),
     sizeof(struct mr_sink),
     {{NULL, 0}, {NULL, 0}, {NULL, 0}}}, /* check_sink */
    {MR_PLUGIN_CONVERTER,
     "converter",
     offsetof(struct plugin, converter),
     sizeof(struct mr_converter),
     {{"from_connect", offsetof(struct mr_converter, from_connect)},
      {"to_connect", offsetof(struct mr_converter, to_connect)},
      {NULL, 0}}},
    {MR_PLUGIN_HEADER_CONVERTER,
     "header converter",
     offsetof(struct plugin, converter),
     sizeof(struct mr_converter),
     {{"from_connect", offsetof(struct mr_converter, from_connect)},
      {"to_connect", offsetof(struct mr_converter, to_connect)},
      {NULL, 0}}},
    {MR_PLUGIN_TRANSFORM,
     "transform",
     offsetof(struct plugin, transform),
     sizeof(struct mr_transform),
     {{"apply", offsetof(struct mr_transform, apply)}, {NULL, 0}, {NULL, 0}}},
    {MR_PLUGIN_PREDICATE,
     "predicate",
     offsetof(struct plugin, predicate),
     sizeof(struct mr_predicate),
     {{"test", offsetof(struct mr_predicate, test)}, {NULL, 0}, {NULL, 0}}},
    {MR_PLUGIN_CONFIG_PROVIDER,
     "config provider",
     offsetof(struct plugin, provider),
     sizeof(struct mr_config_provider),
     {{"get", offsetof(struct mr_config_provider, get)}, {NULL, 0}, {NULL, 0}}},
    {MR_PLUGIN_REST_FILTER,
     "REST filter",
     offsetof(struct plugin, filter),
     sizeof(struct mr_rest_filter),
     {{"admit", offsetof(struct mr_rest_filter, admit)}, {NULL, 0}, {NULL, 0}}},
};

/* One reading: what is needed everywhere. who names the descriptor in errors. */
struct reader {
    struct peek peek;
    struct descriptor_set *set;
    struct mr_error *err;
    char who[SCAN_FORMAT_NAME_MAX + 32];
};

static const struct kind *kind_of(uint32_t number)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].kind == number)
            return &kinds[i];
    return NULL;
}

static int bad(struct reader *r, const char *what)
{
    return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: %s", r->who, what);
}

static int no_memory(struct reader *r)
{
    return mr_fail(r->err, MR_ERR_NOMEM, "out of memory while reading its descriptors");
}

/* The set frees it when the library is refused, and keeps it for ever otherwise. */
static int keep(struct reader *r, void *memory)
{
    struct descriptor_set *set = r->set;

    if (set->kept_count == set->kept_cap) {
        size_t cap = set->kept_cap == 0 ? 64 : set->kept_cap * 2;
        void **grown = realloc(set->kept, cap * sizeof(*grown));

        if (grown == NULL) {
            free(memory);
            return no_memory(r);
        }
        set->kept = grown;
        set->kept_cap = cap;
    }
    set->kept[set->kept_count++] = memory;
    return 0;
}

static void *new_array(struct reader *r, size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        no_memory(r);
        return NULL;
    }
    return keep(r, memory) == 0 ? memory : NULL;
}

/* A text of at most max bytes; NULL stays NULL. what names it in errors. */
static int read_text(struct reader *r, const char *from, size_t max, const char *what,
                     const char **out)
{
    char *text = NULL;
    int rc;

    *out = NULL;
    if (from == NULL)
        return 0;
    rc = peek_text(&r->peek, from, max, &text);
    if (rc == MR_ERR_NOMEM)
        return no_memory(r);
    if (rc == MR_ERR_PROTOCOL)
        return mr_fail(r->err, rc, "%s: its %s points to no readable memory", r->who, what);
    if (rc != 0)
        return mr_fail(r->err, rc, "%s: its %s has no end within %zu bytes", r->who, what, max);
    rc = keep(r, text);
    if (rc != 0)
        return rc;
    if (!utf8_valid(text, strlen(text)))
        return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: its %s is not UTF-8", r->who, what);
    *out = text;
    return 0;
}

/* Names are written into JSON, logs and configurations: letters, digits and a few marks, as Java
 * class names have. */
static bool is_name(const char *text, const char *marks)
{
    if (text == NULL || text[0] == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && strchr(marks, *text) == NULL)
            return false;
    return true;
}

static bool copy_or_fail(struct reader *r, void *to, const void *from, size_t len, const char *what)
{
    if (peek_copy(&r->peek, to, from, len))
        return true;
    mr_fail(r->err, MR_ERR_PROTOCOL, "%s: %s point to no readable memory", r->who, what);
    return false;
}

/* --- configuration keys ----------------------------------------------------------------------- */

struct text_field {
    const char *what;
    size_t at;
    size_t max;
};

static const struct text_field key_texts[] = {
    {"default", offsetof(struct mr_config_key, fallback), SCAN_FORMAT_TEXT_MAX},
    {"doc", offsetof(struct mr_config_key, doc), SCAN_FORMAT_TEXT_MAX},
    {"choices", offsetof(struct mr_config_key, choices), SCAN_FORMAT_TEXT_MAX},
    {"group", offsetof(struct mr_config_key, group), SCAN_FORMAT_NAME_MAX - 1},
    {"display name", offsetof(struct mr_config_key, display_name), SCAN_FORMAT_NAME_MAX - 1},
};

static int read_key_texts(struct reader *r, struct mr_config_key *key)
{
    for (size_t i = 0; i < sizeof(key_texts) / sizeof(key_texts[0]); i++) {
        const char **place = (const char **)(void *)((char *)key + key_texts[i].at);
        char what[SCAN_FORMAT_NAME_MAX + 64];
        int rc;

        snprintf(what, sizeof(what), "key %.200s: %s", key->name, key_texts[i].what);
        rc = read_text(r, *place, key_texts[i].max, what, place);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Connect parses a default when a key is defined; a plugin's mistake shows at load and not in a
 * user's config. */
static int check_fallback(struct reader *r, const struct mr_config_key *key)
{
    struct config_value value = {0};
    struct mr_error err = {0};

    if (key->fallback == NULL)
        return 0;
    if (config_def_parse(key, key->fallback, &value, &err) != 0)
        return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: key %s has a bad default: %s", r->who,
                       key->name, err.text);
    config_value_deinit(&value);
    return 0;
}

static int check_key(struct reader *r, const struct plugin *plugin, const struct mr_config_key *key)
{
    if (!is_name(key->name, "._-$*/"))
        return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: configuration key %zu has no usable name",
                       r->who, plugin->key_count);
    if (key->type > MR_CFG_PASSWORD)
        return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: key %s has the unknown type %u", r->who,
                       key->name, key->type);
    for (size_t i = 0; i < plugin->key_count; i++)
        if (strcmp(plugin->keys[i].name, key->name) == 0)
            return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: key %s is there twice", r->who, key->name);
    return 0;
}

static int read_key(struct reader *r, const struct plugin *plugin, const char *from,
                    size_t key_size, struct mr_config_key *key)
{
    size_t len = (key_size < sizeof(*key) ? key_size : sizeof(*key)) & ~(sizeof(void *) - 1);
    int rc;

    if (!copy_or_fail(r, key, from, len, "its keys"))
        return MR_ERR_PROTOCOL;
    if (len < offsetof(struct mr_config_key, max) + sizeof(key->max))
        key->has_range = false;
    rc = read_text(r, key->name, SCAN_FORMAT_NAME_MAX - 1, "key's name", &key->name);
    if (rc == 0)
        rc = check_key(r, plugin, key);
    if (rc == 0)
        rc = read_key_texts(r, key);
    return rc == 0 ? check_fallback(r, key) : rc;
}

/* Keys before the zeroed entry, or a negative code. */
static int count_keys(struct reader *r, const struct mr_plugin *head)
{
    if (head->key_size < KEY_MIN || head->key_size > KEY_MAX)
        return mr_fail(r->err, MR_ERR_PROTOCOL,
                       "%s: its key_size of %zu is not that of a configuration key", r->who,
                       head->key_size);
    for (int n = 0; n <= SCAN_FORMAT_KEYS_MAX; n++) {
        const char *name;

        if (!copy_or_fail(r, &name, (const char *)head->keys + (size_t)n * head->key_size,
                          sizeof(name), "its keys"))
            return MR_ERR_PROTOCOL;
        if (name == NULL)
            return n;
    }
    return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: its keys have no zeroed entry within %d", r->who,
                   SCAN_FORMAT_KEYS_MAX);
}

static int read_keys(struct reader *r, struct plugin *plugin, const struct mr_plugin *head)
{
    int count = head->keys == NULL ? 0 : count_keys(r, head);

    if (count < 0)
        return count;
    plugin->keys = new_array(r, (size_t)count + 1, sizeof(*plugin->keys));
    if (plugin->keys == NULL)
        return MR_ERR_NOMEM;
    for (int i = 0; i < count; i++) {
        int rc = read_key(r, plugin, (const char *)head->keys + (size_t)i * head->key_size,
                          head->key_size, &plugin->keys[i]);

        if (rc != 0)
            return rc;
        plugin->key_count++;
    }
    return 0;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static int read_aliases(struct reader *r, struct plugin *plugin, const char *const *from)
{
    const char **aliases = new_array(r, SCAN_FORMAT_ALIASES_MAX + 1, sizeof(*aliases));

    if (aliases == NULL)
        return MR_ERR_NOMEM;
    plugin->aliases = aliases;
    for (size_t i = 0; from != NULL; i++) {
        const char *alias;
        int rc;

        if (!copy_or_fail(r, &alias, from + i, sizeof(alias), "its aliases"))
            return MR_ERR_PROTOCOL;
        if (alias == NULL)
            break;
        if (i == SCAN_FORMAT_ALIASES_MAX)
            return bad(r, "its aliases have no NULL at the end");
        rc = read_text(r, alias, SCAN_FORMAT_NAME_MAX - 1, "alias", &aliases[i]);
        if (rc != 0)
            return rc;
        if (!is_name(aliases[i], "._-$"))
            return bad(r, "one of its aliases is no class name");
    }
    return 0;
}

static int read_head(struct reader *r, struct plugin *plugin, const struct mr_plugin *head)
{
    int rc = read_text(r, head->name, SCAN_FORMAT_NAME_MAX - 1, "name", &plugin->name);

    if (rc != 0)
        return rc;
    if (!is_name(plugin->name, "._-$"))
        return bad(r, "its name is empty or no class name");
    snprintf(r->who, sizeof(r->who), "plugin %s", plugin->name);
    if (head->state_size > STATE_MAX)
        return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: its state_size of %zu bytes is above %u",
                       r->who, head->state_size, STATE_MAX);
    plugin->state_size = head->state_size;
    rc = read_text(r, head->version, SCAN_FORMAT_NAME_MAX - 1, "version", &plugin->version);
    if (rc == 0)
        rc = read_text(r, head->doc, SCAN_FORMAT_TEXT_MAX, "doc", &plugin->doc);
    if (rc == 0)
        rc = read_aliases(r, plugin, head->aliases);
    if (plugin->version == NULL)
        plugin->version = "";
    return rc == 0 ? read_keys(r, plugin, head) : rc;
}

/* What the descriptor says of itself becomes the checked copy's. */
static void point_to_copies(const struct plugin *plugin, struct mr_plugin *head)
{
    head->name = plugin->name;
    head->version = plugin->version;
    head->doc = plugin->doc;
    head->aliases = plugin->aliases;
    head->keys = plugin->keys;
    head->key_size = sizeof(struct mr_config_key);
}

static int check_slots(struct reader *r, const struct kind *kind, const char *copy)
{
    for (const struct slot *slot = kind->must; slot->name != NULL; slot++) {
        void *function;

        memcpy(&function, copy + slot->at, sizeof(function));
        if (function == NULL)
            return mr_fail(r->err, MR_ERR_PROTOCOL, "%s: this %s has no %s", r->who, kind->name,
                           slot->name);
    }
    return 0;
}

/* How it is to be asked where it stands, and by whom its offsets are changed, must be known. */
static int read_stores_offsets(struct reader *r, struct plugin *plugin)
{
    struct mr_sink *sink = &plugin->sink;
    int rc = read_text(r, sink->stores_offsets, SCAN_FORMAT_NAME_MAX - 1, "stores_offsets",
                       &sink->stores_offsets);

    if (rc != 0 || sink->stores_offsets == NULL)
        return rc;
    if (sink->open == NULL || sink->alter_offsets == NULL)
        return bad(r, "a sink with stores_offsets needs open and alter_offsets");
    if (sink->stores_offsets[0] == '\0')
        return 0;
    for (size_t i = 0; i < plugin->key_count; i++)
        if (strcmp(plugin->keys[i].name, sink->stores_offsets) == 0 &&
            plugin->keys[i].type == MR_CFG_BOOLEAN)
            return 0;
    return bad(r, "its stores_offsets is the name of no BOOLEAN key");
}

/* One way in, and no say of the plugin's about offsets that go with its emits. */
static int check_sink(struct reader *r, const struct mr_sink *sink)
{
    if (sink->put == NULL && sink->emits == NULL)
        return bad(r, "this sink has no put");
    if (sink->put != NULL && sink->emits != NULL)
        return bad(r, "this sink has put and emits: it is one or the other");
    if (sink->emits != NULL && (sink->pre_commit != NULL || sink->stores_offsets != NULL))
        return bad(r, "a sink with emits has neither pre_commit nor stores_offsets: its offsets go "
                      "with what it emits");
    return 0;
}

static int read_plugin(struct reader *r, const struct kind *kind, const void *from, uint32_t size,
                       struct plugin *plugin)
{
    size_t len = (size < kind->size ? size : kind->size) & ~(sizeof(void *) - 1);
    char *copy = (char *)plugin + kind->at;
    int rc;

    plugin->kind = kind->kind;
    if (!copy_or_fail(r, copy, from, len, "its slots"))
        return MR_ERR_PROTOCOL;
    rc = read_head(r, plugin, (const struct mr_plugin *)(const void *)copy);
    if (rc != 0)
        return rc;
    point_to_copies(plugin, (struct mr_plugin *)(void *)copy);
    if (kind->kind == MR_PLUGIN_SOURCE) {
        rc = read_text(r, plugin->source.exactly_once, SCAN_FORMAT_NAME_MAX - 1, "exactly_once",
                       &plugin->exactly_once);
        if (rc != 0)
            return rc;
        plugin->source.exactly_once = plugin->exactly_once;
    }
    if (kind->kind == MR_PLUGIN_SINK) {
        rc = read_stores_offsets(r, plugin);
        if (rc == 0)
            rc = check_sink(r, &plugin->sink);
    }
    if (rc != 0)
        return rc;
    return check_slots(r, kind, copy);
}

static bool known_already(const struct descriptor_set *set, const struct plugin *plugin)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->plugins[i].kind == plugin->kind && strcmp(set->plugins[i].name, plugin->name) == 0)
            return true;
    return false;
}

/* The descriptor at one place of the module's list; the set grows by one if its kind is known
 * here. */
static int read_descriptor(struct reader *r, const void *from, const char *library)
{
    struct plugin *plugin = &r->set->plugins[r->set->count];
    uint32_t opening[2]; /* size, kind */
    const struct kind *kind;
    int rc;

    if (from == NULL || !peek_copy(&r->peek, opening, from, sizeof(opening)))
        return bad(r, "points to no readable memory");
    if (opening[0] < HEAD_SIZE || opening[0] > STRUCT_MAX)
        return mr_fail(r->err, MR_ERR_PROTOCOL,
                       "%s: its size of %u bytes is not that of a descriptor", r->who, opening[0]);
    kind = kind_of(opening[1]);
    if (kind == NULL) {
        log_debug("%s: %s is of kind %u, which this Millrace does not know: left out", library,
                  r->who, opening[1]);
        return 0;
    }
    rc = read_plugin(r, kind, from, opening[0], plugin);
    if (rc != 0)
        return rc;
    if (known_already(r->set, plugin))
        return bad(r, "is there twice");
    plugin->library = library;
    r->set->count++;
    return 0;
}

static int read_descriptors(struct reader *r, const struct mr_module *module, const char *library)
{
    r->set->plugins = calloc(module->plugin_count, sizeof(*r->set->plugins));
    if (r->set->plugins == NULL)
        return no_memory(r);
    for (uint32_t i = 0; i < module->plugin_count; i++) {
        const void *from;
        int rc;

        snprintf(r->who, sizeof(r->who), "descriptor %u", i);
        if (!copy_or_fail(r, &from, module->plugins + i, sizeof(from), "the module's plugins"))
            return MR_ERR_PROTOCOL;
        rc = read_descriptor(r, from, library);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- the module ------------------------------------------------------------------------------- */

/* Nothing past magic, size and versions is read before these agree. */
static int check_opening(const struct mr_module *module, struct mr_error *err)
{
    if (module->magic != MR_MODULE_MAGIC)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "millrace_module gives magic 0x%08x in place of 0x%08x: no Millrace plugin",
                       module->magic, MR_MODULE_MAGIC);
    if (module->abi_major != MR_ABI_MAJOR)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "built for plugin ABI %u.%u, this Millrace has %d.%d: build the plugin with "
                       "its headers",
                       module->abi_major, module->abi_minor, MR_ABI_MAJOR, MR_ABI_MINOR);
    if (module->abi_minor > MR_ABI_MINOR)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "needs plugin ABI %u.%u, this Millrace has %d.%d: use a newer Millrace, or "
                       "build the plugin "
                       "with its headers",
                       module->abi_major, module->abi_minor, MR_ABI_MAJOR, MR_ABI_MINOR);
    if (module->size < MODULE_MIN || module->size > STRUCT_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "its module's size of %u bytes is not that of a module", module->size);
    return 0;
}

static int read_module(struct reader *r, const struct mr_module *from, struct mr_module *module)
{
    int rc;

    if (from == NULL)
        return mr_fail(r->err, MR_ERR_PROTOCOL, "millrace_module gives NULL");
    if (!peek_copy(&r->peek, module, from, offsetof(struct mr_module, plugin_count)))
        return mr_fail(r->err, MR_ERR_PROTOCOL,
                       "millrace_module gives a pointer to no readable memory");
    rc = check_opening(module, r->err);
    if (rc != 0)
        return rc;
    if (!peek_copy(&r->peek, module, from, MODULE_MIN))
        return mr_fail(r->err, MR_ERR_PROTOCOL, "its module is shorter than it says");
    if (module->plugin_count == 0 || module->plugin_count > SCAN_FORMAT_PLUGINS_MAX ||
        module->plugins == NULL)
        return mr_fail(r->err, MR_ERR_PROTOCOL, "its module names %u plugins, 1 to %d are possible",
                       module->plugins == NULL ? 0 : module->plugin_count, SCAN_FORMAT_PLUGINS_MAX);
    return 0;
}

static int read_all(struct reader *r, const struct mr_module *from, const char *library)
{
    struct mr_module module = {0};
    char *path;
    int rc = read_module(r, from, &module);

    if (rc != 0)
        return rc;
    path = strdup(library);
    if (path == NULL)
        return no_memory(r);
    rc = keep(r, path);
    return rc == 0 ? read_descriptors(r, &module, path) : rc;
}

int descriptor_read(const struct mr_module *module, const char *library, struct descriptor_set *out,
                    struct mr_error *err)
{
    struct descriptor_set set = {0};
    struct mr_error own = {0};
    struct reader r = {.set = &set, .err = err == NULL ? &own : err};
    int rc = peek_init(&r.peek, r.err);

    if (rc != 0)
        return rc;
    rc = read_all(&r, module, library);
    peek_deinit(&r.peek);
    if (rc == 0)
        *out = set;
    else
        descriptor_set_deinit(&set);
    return rc;
}

void descriptor_set_deinit(struct descriptor_set *set)
{
    for (size_t i = 0; i < set->kept_count; i++)
        free(set->kept[i]);
    free(set->kept);
    free(set->plugins);
    memset(set, 0, sizeof(*set));
}
