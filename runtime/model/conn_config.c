/* SPDX-License-Identifier: Apache-2.0 */
/* The framework's own keys of a connector's configuration, as tables in Connect's order: what
 * validation walks over and what REST shows as definitions. A plugin's keys follow them; a plugin's
 * key of the same name takes the place. Checks that look at more than one key (topics against
 * topics.regex, aliases, classes) stand in worker/herder/validate. Pure; any thread.
 * Spec: ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig of Connect 4.3. */
#include "model/conn_config.h"

#include "base/utf8.h"

#define COMMON(n, w, display) .group = "Common", .order = n, .width = w, .display_name = display
#define ERRORS(n, w, display) \
    .importance = MR_CFG_MEDIUM, .group = "Error Handling", .order = n, .width = w, \
    .display_name = display
#define ONCE(n, display) \
    .group = "Exactly Once Support", .order = n, .width = MR_CFG_WIDTH_SHORT, \
    .display_name = display

#define SHORT MR_CFG_WIDTH_SHORT
#define MEDIUM MR_CFG_WIDTH_MEDIUM
#define LONG MR_CFG_WIDTH_LONG

const struct mr_config_key conn_config_common[] = {
    {"name", MR_CFG_STRING, MR_CFG_REQUIRED, .importance = MR_CFG_HIGH,
     COMMON(1, MEDIUM, "Connector name"), .doc = "Name of the connector, unique in the cluster."},
    {"connector.class", MR_CFG_STRING, MR_CFG_REQUIRED, .importance = MR_CFG_HIGH,
     COMMON(2, LONG, "Connector class"),
     .doc = "Plugin to run: its name, its Java class name, or the short form of either."},
    {"connector.plugin.version", MR_CFG_STRING, .importance = MR_CFG_MEDIUM,
     COMMON(3, MEDIUM, "Connector version"), .doc = "Version of the plugin to run."},
    {"tasks.max", MR_CFG_INT, .fallback = "1", .has_range = true, .min = 1, .max = INT32_MAX,
     .importance = MR_CFG_HIGH, COMMON(4, SHORT, "Tasks max"), .doc = "Largest number of tasks."},
    {"tasks.max.enforce", MR_CFG_BOOLEAN, .fallback = "true", COMMON(5, SHORT, "Enforce tasks max"),
     .doc = "Fail a connector that makes more tasks than tasks.max; with false it is only warned "
            "about."},
    {"key.converter", MR_CFG_CLASS, COMMON(6, SHORT, "Key converter class"),
     .doc = "Converter of record keys; unset: the worker's, with the worker's settings."},
    {"key.converter.plugin.version", MR_CFG_STRING, COMMON(7, SHORT, "Key converter version"),
     .doc = "Version of the key converter."},
    {"value.converter", MR_CFG_CLASS, COMMON(8, SHORT, "Value converter class"),
     .doc = "Converter of record values; unset: the worker's, with the worker's settings."},
    {"value.converter.plugin.version", MR_CFG_STRING, COMMON(9, SHORT, "Value converter version"),
     .doc = "Version of the value converter."},
    {"header.converter", MR_CFG_CLASS, COMMON(10, SHORT, "Header converter class"),
     .doc = "Converter of header values; unset: the worker's, with the worker's settings."},
    {"header.converter.plugin.version", MR_CFG_STRING,
     COMMON(11, SHORT, "Header converter version"), .doc = "Version of the header converter."},
    {"transforms", MR_CFG_LIST, .fallback = "", .group = "Transforms", .order = 12, .width = LONG,
     .display_name = "Transforms",
     .doc = "Aliases of the transforms, in the order in which records pass them."},
    {"predicates", MR_CFG_LIST, .fallback = "", .group = "Predicates", .order = 13, .width = LONG,
     .display_name = "Predicates", .doc = "Aliases of the predicates that transforms refer to."},
    {"config.action.reload", MR_CFG_STRING, .fallback = "restart", .choices = "none|restart",
     COMMON(14, MEDIUM, "Reload Action"),
     .doc = "What to do when a value from a config provider has run out."},
    {"errors.retry.timeout", MR_CFG_LONG, .fallback = "0",
     ERRORS(1, MEDIUM, "Retry Timeout for Errors"),
     .doc = "Milliseconds over which a failed operation is repeated; 0: never, -1: for ever."},
    {"errors.retry.delay.max.ms", MR_CFG_LONG, .fallback = "60000",
     ERRORS(2, MEDIUM, "Maximum Delay Between Retries for Errors"),
     .doc = "Longest wait between two tries."},
    {"errors.tolerance", MR_CFG_STRING, .fallback = "none", .choices = "none|all",
     ERRORS(3, SHORT, "Error Tolerance"),
     .doc = "none: a bad record fails the task; all: bad records are skipped and counted."},
    {"errors.log.enable", MR_CFG_BOOLEAN, .fallback = "false", ERRORS(4, SHORT, "Log Errors"),
     .doc = "Log every failed operation."},
    {"errors.log.include.messages", MR_CFG_BOOLEAN, .fallback = "false",
     ERRORS(5, SHORT, "Log Error Details"), .doc = "Log also which record failed."},
    {0},
};

const struct mr_config_key conn_config_sink[] = {
    {"topics", MR_CFG_LIST, .fallback = "", .importance = MR_CFG_HIGH, COMMON(4, LONG, "Topics"),
     .doc = "Topics to read; either this or topics.regex."},
    {"topics.regex", MR_CFG_STRING, .fallback = "", .importance = MR_CFG_HIGH,
     COMMON(4, LONG, "Topics regex"),
     .doc = "Regular expression over whole topic names; either this or topics."},
    {"errors.deadletterqueue.topic.name", MR_CFG_STRING, .fallback = "",
     ERRORS(6, MEDIUM, "Dead Letter Queue Topic Name"),
     .doc = "Topic that bad records are sent to; empty: none."},
    {"errors.deadletterqueue.topic.replication.factor", MR_CFG_SHORT, .fallback = "3",
     ERRORS(7, MEDIUM, "Dead Letter Queue Topic Replication Factor"),
     .doc = "Used when that topic is created."},
    {"errors.deadletterqueue.context.headers.enable", MR_CFG_BOOLEAN, .fallback = "false",
     ERRORS(8, MEDIUM, "Enable Error Context Headers"),
     .doc = "Add headers that say what failed, where and why."},
    {0},
};

const struct mr_config_key conn_config_source[] = {
    {"topic.creation.groups", MR_CFG_LIST, .fallback = "", .group = "Topic Creation", .order = 1,
     .width = LONG, .display_name = "Topic Creation Groups",
     .doc = "Groups of settings for topics that the connector creates."},
    {"exactly.once.support", MR_CFG_STRING, .fallback = "requested",
     .choices = "~REQUIRED|REQUESTED", .importance = MR_CFG_MEDIUM, ONCE(2, "Exactly once support"),
     .doc = "required: refuse to run where records could be delivered twice."},
    {"transaction.boundary", MR_CFG_STRING, .fallback = "poll",
     .choices = "~INTERVAL|POLL|CONNECTOR", .importance = MR_CFG_MEDIUM,
     ONCE(3, "Transaction Boundary"),
     .doc = "What ends a transaction: each poll, a time, or the connector."},
    {"transaction.boundary.interval.ms", MR_CFG_LONG, .has_range = true, .min = 0, .max = INT64_MAX,
     ONCE(4, "Transaction boundary interval"),
     .doc = "The time; unset: the worker's offset.flush.interval.ms."},
    {"offsets.storage.topic", MR_CFG_STRING, MR_CFG_NON_EMPTY, .group = "offsets.topic", .order = 1,
     .width = LONG, .display_name = "Offsets topic",
     .doc = "Topic for this connector's offsets; unset: the worker's."},
    {0},
};

static void note_bad(void *arg, const char *key, const char *text)
{
    (void)key;
    mr_fail(arg, MR_ERR_CONFIG, "%s", text);
}

int conn_config_get(const char *name, const struct props *config, struct config_value *out,
                    struct mr_error *err)
{
    static const struct mr_config_key *const tables[] = {conn_config_common, conn_config_sink,
                                                         conn_config_source};
    struct mr_error own = {0};

    *out = (struct config_value){0};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct mr_config_key *key = tables[i]; key->name != NULL; key++)
            if (strcmp(key->name, name) == 0)
                return config_def_check(key, config, out, note_bad, err != NULL ? err : &own) == 0
                           ? 0
                           : MR_ERR_CONFIG;
    return mr_fail(err, MR_ERR_CONFIG, "%s is no key of the framework's", name);
}

/* The next character: its code point up to U+07FF, and for all others (no control characters among
 * them) UINT32_MAX. */
static uint32_t next_char(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    uint32_t c = *p++;

    if (c >= 0x80) {
        c = c >= 0xC2 && c <= 0xDF && (*p & 0xC0) == 0x80 ? (c & 0x1F) << 6 | (*p & 0x3Fu)
                                                          : UINT32_MAX;
        while ((*p & 0xC0) == 0x80)
            p++;
    }
    *text = (const char *)p;
    return c;
}

static size_t bytes_in_path(const char *name, const char *end)
{
    size_t bytes = 0;

    for (; name < end; name++) {
        char c = *name;
        bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';

        bytes += stays ? 1 : 3;
    }
    return bytes;
}

int conn_config_check_path(const char *name, struct mr_error *err)
{
    size_t bytes = bytes_in_path(name, name + strlen(name));

    if (bytes <= CONN_CONFIG_NAME_MAX)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "the connector's name takes %zu bytes in the path of a request, and workers "
                   "read %d at most",
                   bytes, CONN_CONFIG_NAME_MAX);
}

static int check_length(const char *begin, const char *end, struct mr_error *err)
{
    size_t bytes = bytes_in_path(begin, end);

    if (bytes <= CONN_CONFIG_NAME_MAX)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %.*s... for configuration name: String may take at most %d bytes "
                   "in the path of a request, percent-encoded, but takes %zu",
                   (int)utf8_cut(begin, (size_t)(end - begin), 40), begin, CONN_CONFIG_NAME_MAX,
                   bytes);
}

int conn_config_check_name(const char *name, struct mr_error *err)
{
    const char *begin = name != NULL ? name : "", *at, *end = begin + strlen(begin);
    char list[256];
    size_t used = 0;

    while (*begin != '\0' && (unsigned char)*begin <= ' ')
        begin++;
    while (end > begin && (unsigned char)end[-1] <= ' ')
        end--;
    if (begin == end)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value  for configuration name: String may not be empty");
    for (at = begin; at < end;) {
        uint32_t c = next_char(&at);

        if ((c <= 0x1F || (c >= 0x7F && c <= 0x9F)) && used < sizeof(list) - 12)
            used +=
                (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", used > 0 ? ", " : "", c);
    }
    if (used == 0)
        return check_length(begin, end, err);
    return mr_fail(
        err, MR_ERR_CONFIG,
        "Invalid value %.*s for configuration name: String may not contain control sequences "
        "but had the following ASCII chars: %s",
        (int)utf8_cut(begin, (size_t)(end - begin), 512), begin, list);
}

int conn_config_group_id(const char *name, const struct props *config, char *out, size_t size)
{
    const char *given = config != NULL ? props_get(config, "consumer.override.group.id") : NULL;
    int n =
        given != NULL ? snprintf(out, size, "%s", given) : snprintf(out, size, "connect-%s", name);

    return n >= 0 && (size_t)n < size ? 0 : MR_ERR_TOO_LARGE;
}
