/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose descriptors are wrong in the way that the environment says (ODD): what the host
 * must refuse with a sentence or must take although it was compiled against shorter or longer
 * structs. Without ODD it is a good source. */
#include <millrace/plugin.h>

#include <stdlib.h>
#include <string.h>

static int poll_nothing(void *self, struct mr_batch *out, struct mr_error *err)
{
    return mr_again_in(out, 1000);
}

static const struct mr_config_key good_keys[] = {{"topic", MR_CFG_STRING, .doc = "Topic"}, {0}};
static const struct mr_config_key twice_keys[] = {
    {"topic", MR_CFG_STRING, .doc = "a"}, {"topic", MR_CFG_STRING, .doc = "b"}, {0}};
static const struct mr_config_key type_keys[] = {{"topic", 77, .doc = "a"}, {0}};
static const struct mr_config_key default_keys[] = {{"size", MR_CFG_INT, .fallback = "many"}, {0}};
static const char *const endless_aliases[64] = {[0 ... 63] = "A"};

/* As a library of a later minor would have it: more behind every struct. */
struct long_key {
    struct mr_config_key key;
    char more[24];
};
static const struct long_key long_keys[] = {
    {{"topic", MR_CFG_STRING, .doc = "Topic", .display_name = "The topic"}, "x"},
    {{"other", MR_CFG_LONG, .doc = "b"}, "y"},
    {{0}, ""},
};
struct long_source {
    struct mr_source source;
    char more[64];
};

/* As one of an earlier minor would have it: only name, type, flags and fallback. */
struct short_key {
    const char *name;
    uint32_t type;
    uint32_t flags;
    const char *fallback;
};
static const struct short_key short_keys[] = {{"topic", MR_CFG_STRING, 0, "t"}, {0}};

static struct long_source plugin = {.source = {.size = sizeof(struct mr_source),
                                               .kind = MR_PLUGIN_SOURCE,
                                               .name = "Odd",
                                               .version = "1.0",
                                               .key_size = sizeof(struct mr_config_key),
                                               .keys = good_keys,
                                               .poll = poll_nothing}};
static const struct mr_plugin *plugins[300] = {(const struct mr_plugin *)&plugin.source};
static struct mr_module module = {
    MR_MODULE_MAGIC, sizeof(struct mr_module), MR_ABI_MAJOR, MR_ABI_MINOR, 1, plugins};

static void *nowhere(void)
{
    return (void *)(uintptr_t)16;
}

static void set_size_zero(void)
{
    plugin.source.size = 0;
}
static void set_size_huge(void)
{
    plugin.source.size = 0x7fffffff;
}
static void set_module_size(void)
{
    module.size = 8;
}
static void set_no_plugins(void)
{
    module.plugin_count = 0;
}
static void set_many_plugins(void)
{
    module.plugin_count = 100000;
}
static void set_wild_list(void)
{
    module.plugins = nowhere();
}
static void set_wild_plugin(void)
{
    plugins[0] = nowhere();
}
static void set_null_plugin(void)
{
    plugins[0] = NULL;
}
static void set_no_name(void)
{
    plugin.source.name = NULL;
}
static void set_empty_name(void)
{
    plugin.source.name = "";
}
static void set_bad_name(void)
{
    plugin.source.name = "no name";
}
static void set_wild_name(void)
{
    plugin.source.name = nowhere();
}
static void set_no_poll(void)
{
    plugin.source.poll = NULL;
}
static void set_key_size(void)
{
    plugin.source.key_size = 3;
}
static void set_wild_keys(void)
{
    plugin.source.keys = nowhere();
}
static void set_twice(void)
{
    plugin.source.keys = twice_keys;
}
static void set_type(void)
{
    plugin.source.keys = type_keys;
}
static void set_default(void)
{
    plugin.source.keys = default_keys;
}
static void set_state(void)
{
    plugin.source.state_size = (size_t)1 << 40;
}
static void set_aliases(void)
{
    plugin.source.aliases = endless_aliases;
}
static void set_version(void)
{
    plugin.source.version = "\xff";
}

static void set_unknown_kind(void)
{
    static const struct mr_plugin other = {
        .size = sizeof(struct mr_plugin), .kind = 99, .name = "Later"};

    plugins[1] = &other;
    module.plugin_count = 2;
}

static void set_double(void)
{
    plugins[1] = plugins[0];
    module.plugin_count = 2;
}

static void set_long(void)
{
    plugin.source.size = sizeof(plugin);
    plugin.source.keys = (const struct mr_config_key *)(const void *)long_keys;
    plugin.source.key_size = sizeof(struct long_key);
    module.size = sizeof(module) + 32;
    memset(plugin.more, 0x55, sizeof(plugin.more));
}

/* Ends in the middle of `committed`: half a pointer is none. */
static void set_short(void)
{
    plugin.source.size = offsetof(struct mr_source, committed) + 4;
    plugin.source.keys = (const struct mr_config_key *)(const void *)short_keys;
    plugin.source.key_size = sizeof(struct short_key);
    memset((char *)&plugin.source + plugin.source.size - 4, 0x55,
           sizeof(plugin.source) - plugin.source.size + 4);
}

static void set_too_short(void)
{
    plugin.source.size = offsetof(struct mr_source, poll);
}

static int put_nothing(void *self, struct mr_batch *in, struct mr_error *err)
{
    return MR_OK;
}

/* Where its offsets stand nobody can ask. */
static void set_storing(void)
{
    static const struct mr_sink sink = {.size = sizeof(sink),
                                        .kind = MR_PLUGIN_SINK,
                                        .name = "Odd",
                                        .version = "1.0",
                                        .put = put_nothing,
                                        .stores_offsets = ""};

    plugins[0] = (const struct mr_plugin *)&sink;
}

static int open_all(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    return MR_OK;
}

static int alter_all(struct mr_task *connector, const struct mr_partition_list *offsets,
                     struct mr_error *err)
{
    return MR_OK;
}

static void set_storing_key(void)
{
    static const struct mr_sink sink = {.size = sizeof(sink),
                                        .kind = MR_PLUGIN_SINK,
                                        .name = "Odd",
                                        .version = "1.0",
                                        .key_size = sizeof(struct mr_config_key),
                                        .keys = good_keys,
                                        .put = put_nothing,
                                        .open = open_all,
                                        .alter_offsets = alter_all,
                                        .stores_offsets = "topic"};

    plugins[0] = (const struct mr_plugin *)&sink;
}

static const struct {
    const char *name;
    void (*set)(void);
} odds[] = {
    {"storing-key", set_storing_key},
    {"storing", set_storing},
    {"size-zero", set_size_zero},
    {"size-huge", set_size_huge},
    {"module-size", set_module_size},
    {"no-plugins", set_no_plugins},
    {"many-plugins", set_many_plugins},
    {"wild-list", set_wild_list},
    {"wild-plugin", set_wild_plugin},
    {"null-plugin", set_null_plugin},
    {"no-name", set_no_name},
    {"empty-name", set_empty_name},
    {"bad-name", set_bad_name},
    {"wild-name", set_wild_name},
    {"no-poll", set_no_poll},
    {"key-size", set_key_size},
    {"wild-keys", set_wild_keys},
    {"twice", set_twice},
    {"type", set_type},
    {"default", set_default},
    {"state", set_state},
    {"aliases", set_aliases},
    {"version", set_version},
    {"unknown-kind", set_unknown_kind},
    {"double", set_double},
    {"long", set_long},
    {"short", set_short},
    {"too-short", set_too_short},
};

MR_EXPORT const struct mr_module *millrace_module(void);
MR_EXPORT const struct mr_module *millrace_module(void)
{
    const char *odd = getenv("ODD");

    if (odd != NULL && strcmp(odd, "null") == 0)
        return NULL;
    if (odd != NULL && strcmp(odd, "wild") == 0)
        return nowhere();
    for (size_t i = 0; odd != NULL && i < sizeof(odds) / sizeof(odds[0]); i++)
        if (strcmp(odds[i].name, odd) == 0)
            odds[i].set();
    return &module;
}
