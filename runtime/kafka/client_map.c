/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the mapping from Java settings to librdkafka's: values in, checked settings out.
 *
 * client_conf.c starts a run; client_table.c and client_security.c walk their settings and put what
 * they come to. Every setting is first tried on a scratch conf object, so the library itself judges
 * names and ranges, and a name that a newer librdkafka has and this one lacks is noticed here. No
 * value of a secret leaves through a warning or an error. */
#include "kafka/kafka_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VALUE_MAX (1 << 20)
#define KAFKA_PACKAGE "org.apache.kafka."

static int set_trimmed(struct props *to, const char *key, const char *value)
{
    size_t len;
    char *copy;
    int rc;

    while (isspace((unsigned char)*value))
        value++;
    for (len = strlen(value); len > 0 && isspace((unsigned char)value[len - 1]);)
        len--;
    copy = strndup(value, len);
    if (copy == NULL)
        return MR_ERR_NOMEM;
    rc = props_set(to, key, copy);
    free(copy);
    return rc;
}

int client_map_init(struct client_map *m, const struct props *java)
{
    props_init(&m->java);
    m->probe = rd_kafka_conf_new();
    for (size_t i = 0; i < java->count; i++) {
        const struct props_entry *e = &java->entries[i];

        if (e->value == NULL)
            continue;
        if (strlen(e->value) > VALUE_MAX)
            return mr_fail(m->err, MR_ERR_CONFIG,
                           "The value of configuration %s is longer than %d bytes", e->key,
                           VALUE_MAX);
        if (set_trimmed(&m->java, e->key, e->value) != 0)
            return mr_fail(m->err, MR_ERR_NOMEM, "Out of memory while reading client settings");
    }
    return 0;
}

void client_map_deinit(struct client_map *m)
{
    props_deinit(&m->java);
    if (m->probe != NULL)
        rd_kafka_conf_destroy(m->probe);
    m->probe = NULL;
}

const char *client_map_get(const struct client_map *m, const char *java)
{
    return props_get(&m->java, java);
}

void client_map_remark(struct client_map *m, const char *java, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (m->warn == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    m->warn(m->arg, java, text);
}

int client_map_invalid(struct client_map *m, const char *java, const char *value, const char *why)
{
    m->invalid = true;
    return mr_fail(m->err, MR_ERR_CONFIG, "Invalid value %.200s for configuration %s: %s",
                   client_conf_secret(java) ? "[hidden]" : value, java, why);
}

int client_map_put(struct client_map *m, const char *java, const char *rdkafka, const char *value)
{
    char why[512];

    switch (rd_kafka_conf_set(m->probe, rdkafka, value, why, sizeof(why))) {
    case RD_KAFKA_CONF_OK:
        break;
    case RD_KAFKA_CONF_UNKNOWN:
        if (m->given)
            client_map_remark(m, java, "librdkafka %s has no such setting; ignored",
                              rd_kafka_version_str());
        return 0;
    default:
        return client_map_invalid(m, java, value,
                                  client_conf_secret(java) ? "librdkafka does not accept it" : why);
    }
    if (props_set(m->out, rdkafka, value) != 0)
        return mr_fail(m->err, MR_ERR_NOMEM, "Out of memory while mapping client settings");
    return 0;
}

bool client_map_long(const char *text, int64_t *out)
{
    char *end;
    long long n;

    if (!isdigit((unsigned char)text[0]) &&
        !((text[0] == '-' || text[0] == '+') && isdigit((unsigned char)text[1])))
        return false;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *out = n;
    return true;
}

bool client_map_item(const char **list, const char **item, size_t *len)
{
    const char *p = *list;
    size_t n;

    while (*p == ',' || isspace((unsigned char)*p))
        p++;
    if (*p == '\0')
        return false;
    n = strcspn(p, ",");
    *list = p + n;
    while (n > 0 && isspace((unsigned char)p[n - 1]))
        n--;
    *item = p;
    *len = n;
    return true;
}

bool client_map_is(const char *item, size_t len, const char *name)
{
    return strlen(name) == len && strncasecmp(item, name, len) == 0;
}

bool client_map_given(const struct client_map *m, const char *java)
{
    const char *value = client_map_get(m, java);

    return value != NULL && value[0] != '\0';
}

/* --- settings without a counterpart ----------------------------------------------------------- */

int client_map_refuse(struct client_map *m, const char *java, const char *text)
{
    return mr_fail(m->err, MR_ERR_CONFIG, "Configuration %s can't be honoured: %s", java, text);
}

static bool is_fine(const char *list, const char *value)
{
    const char *simple = strrchr(value, '.');
    const char *item;
    size_t len;

    while (client_map_item(&list, &item, &len)) {
        if (client_map_is(item, len, value))
            return true;
        if (simple != NULL && strncmp(value, KAFKA_PACKAGE, strlen(KAFKA_PACKAGE)) == 0 &&
            client_map_is(item, len, simple + 1))
            return true;
    }
    return false;
}

int client_map_rules(struct client_map *m, const struct client_map_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = client_map_get(m, rules[i].java);

        if (value == NULL || value[0] == '\0' || is_fine(rules[i].fine, value))
            continue;
        if (rules[i].verdict == CLIENT_MAP_REFUSED)
            return client_map_refuse(m, rules[i].java, rules[i].text);
        client_map_remark(m, rules[i].java, "%s", rules[i].text);
    }
    return 0;
}

static bool library_has(const char *feature)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char list[512] = "";
    size_t size = sizeof(list);
    const char *at = list;
    const char *item;
    size_t len;
    bool found = false;

    rd_kafka_conf_get(conf, "builtin.features", list, &size);
    rd_kafka_conf_destroy(conf);
    while (!found && client_map_item(&at, &item, &len))
        found = client_map_is(item, len, feature);
    return found;
}

int client_map_feature(struct client_map *m, const char *java, const char *feature,
                       const char *what)
{
    if (library_has(feature))
        return 0;
    return mr_fail(m->err, MR_ERR_CONFIG,
                   "Configuration %s can't be honoured: librdkafka %s is built without %s; install "
                   "one that has it, or use "
                   "another sasl.mechanism",
                   java, rd_kafka_version_str(), what);
}
