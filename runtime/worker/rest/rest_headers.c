/* SPDX-License-Identifier: Apache-2.0 */
/* CORS, and rules for headers of answers: `set X-Frame-Options: DENY, "add Vary: a, b", setDate
 * Expires: 60000`. Both are read at start; what is wrong ends it. Called by the HTTP threads, just
 * before an answer is sent.
 *
 * An origin in the list is a regular expression for the whole Origin, letter case without
 * meaning, as Jetty 12 takes it; patterns keep what they found, hence the lock. */
#include "worker/rest/rest_headers.h"

#include "base/buf.h"
#include "base/java_pattern.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define RULES_KEY "response.http.headers.config"
#define ORIGINS_KEY "access.control.allow.origin"
#define METHODS_DEFAULT "GET,POST,HEAD"
#define ITEMS_MAX 100
#define ITEM_MAX 8192 /* bytes of one rule */

struct rule {
    bool add;
    bool date; /* value_ms after now */
    char *name;
    char *value;
    int64_t value_ms;
};

struct rest_headers {
    struct rule rules[ITEMS_MAX];
    size_t rule_count;
    bool cors;
    bool any_origin;
    pthread_mutex_t lock; /* of the patterns */
    struct java_pattern *origins[ITEMS_MAX];
    size_t origin_count;
    char *methods;
};

static bool is_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\r\n\f")] == '\0';
}

/* Without the blanks around it, in place. */
static char *trimmed(char *text)
{
    size_t len;

    text += strspn(text, " \t\r\n\f");
    len = strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* --- rules ------------------------------------------------------------------------------------ */

/* The next item of a list: in quotes it may hold commas, and a backslash takes what follows as
 * it is. What stands between a closing quote and the comma is lost, and so is an empty item at
 * the end. NULL: no more. Spec: Jetty's StringUtil.csvSplit. */
static char *next_item(const char **list, struct mr_error *err)
{
    const char *p = *list + strspn(*list, " \t\r\n\f");
    bool quoted = *p == '"';
    struct buf out;

    if (*p == '\0')
        return NULL;
    buf_init(&out, ITEM_MAX);
    buf_puts(&out, "");
    if (quoted) {
        for (p++; *p != '\0' && *p != '"'; p++) {
            if (*p == '\\' && p[1] != '\0')
                p++;
            buf_putc(&out, *p);
        }
        p += strcspn(p, ",");
    } else {
        buf_append(&out, p, strcspn(p, ","));
        p += strcspn(p, ",");
    }
    *list = *p == ',' ? p + 1 : p;
    if (out.failed)
        mr_fail(err, MR_ERR_CONFIG, "%s: an item is longer than %d bytes", RULES_KEY, ITEM_MAX);
    if (out.failed || out.data == NULL) {
        buf_deinit(&out);
        return err->code != 0 ? NULL : text_dup_len("", 0);
    }
    if (!quoted)
        while (out.len > 0 && isspace((unsigned char)out.data[out.len - 1]))
            out.data[--out.len] = '\0';
    return buf_take(&out);
}

static int read_action(const char *action, struct rule *rule, struct mr_error *err)
{
    static const struct {
        const char *name;
        bool add, date;
    } actions[] = {{"set", false, false},
                   {"add", true, false},
                   {"setDate", false, true},
                   {"addDate", true, true}};

    for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
        if (strcasecmp(actions[i].name, action) == 0) {
            rule->add = actions[i].add;
            rule->date = actions[i].date;
            return 0;
        }
    return mr_fail(
        err, MR_ERR_CONFIG,
        "Invalid header config action: '%s'. Expected one of [set, add, setDate, addDate]", action);
}

/* Java's split at each colon, empty parts at the end left out, must give two. */
static char *split_pair(char *header)
{
    size_t len = strlen(header);
    char *colon;

    while (len > 0 && header[len - 1] == ':')
        header[--len] = '\0';
    colon = strchr(header, ':');
    if (colon == NULL || strchr(colon + 1, ':') != NULL)
        return NULL;
    *colon = '\0';
    return colon + 1;
}

static int check_name(const char *name, struct mr_error *err)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    if (*name == '\0' || strpbrk(name, " \t\r\n\f\v") != NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid header name '%s'. The '[header name]' cannot contain whitespace",
                       name);
    if (name[strspn(name, token)] != '\0')
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid header name '%s': it holds a character that HTTP does not allow "
                       "there",
                       name);
    return 0;
}

static int check_value(struct rule *rule, struct mr_error *err)
{
    char *end;

    for (const char *c = rule->value; *c != '\0'; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7F)
            return mr_fail(err, MR_ERR_CONFIG,
                           "Invalid value of header '%s': it holds a control character",
                           rule->name);
    if (!rule->date)
        return 0;
    errno = 0;
    rule->value_ms = strtoll(rule->value, &end, 10);
    if (errno == 0 && end != rule->value && *end == '\0')
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value '%s' of header '%s': a date is so many milliseconds from now",
                   rule->value, rule->name);
}

/* text is taken apart. */
static int read_rule(char *text, struct rule *rule, struct mr_error *err)
{
    char *whole = trimmed(text), *header, *value;
    size_t action = strcspn(whole, " \t\r\n\f");

    header = whole + action + strspn(whole + action, " \t\r\n\f");
    if (*header == '\0')
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid format of header config '%s'. Expected: '[action] [header "
                       "name]:[header value]'",
                       whole);
    whole[action] = '\0';
    if (read_action(whole, rule, err) != 0)
        return err->code;
    rule->name = text_dup_len(header, strlen(header)); /* for the message */
    value = split_pair(header);
    if (value == NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid format of header name and header value pair '%s'. Expected: "
                       "'[header name]:[header value]'",
                       rule->name);
    free(rule->name);
    header = trimmed(header);
    value = trimmed(value);
    rule->name = text_dup_len(header, strlen(header));
    rule->value = text_dup_len(value, strlen(value));
    return check_name(rule->name, err) != 0 ? err->code : check_value(rule, err);
}

static int read_rules(struct rest_headers *headers, const char *list, struct mr_error *err)
{
    char *item;
    int rc = 0;

    if (is_blank(list))
        return 0;
    while (rc == 0 && (item = next_item(&list, err)) != NULL) {
        if (headers->rule_count == ITEMS_MAX)
            rc = mr_fail(err, MR_ERR_CONFIG, "%s: more than %d headers", RULES_KEY, ITEMS_MAX);
        else
            rc = read_rule(item, &headers->rules[headers->rule_count++], err);
        free(item);
    }
    return err->code;
}

/* --- origins ---------------------------------------------------------------------------------- */

static int read_origin(struct rest_headers *headers, const char *origin, struct mr_error *err)
{
    struct mr_error why = {0};
    char *pattern = NULL;

    if (*origin == '\0')
        return 0;
    if (strcmp(origin, "*") == 0) {
        headers->any_origin = true;
        return 0;
    }
    if (headers->origin_count == ITEMS_MAX)
        return mr_fail(err, MR_ERR_CONFIG, "%s: more than %d origins", ORIGINS_KEY, ITEMS_MAX);
    mr_assert(asprintf(&pattern, "(?i)%s", origin) > 0);
    headers->origins[headers->origin_count] = java_pattern_make(pattern, &why);
    free(pattern);
    if (headers->origins[headers->origin_count] == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "Invalid value %s for configuration %s: %s", origin,
                       ORIGINS_KEY, why.text);
    headers->origin_count++;
    return 0;
}

static int read_origins(struct rest_headers *headers, const struct props *props,
                        struct mr_error *err)
{
    const char *list = props_get(props, ORIGINS_KEY);
    const char *methods = props_get(props, "access.control.allow.methods");
    int rc = 0;

    headers->cors = !is_blank(list);
    methods = is_blank(methods) ? METHODS_DEFAULT : methods;
    headers->methods = text_dup_len(methods, strlen(methods));
    while (headers->cors && rc == 0 && *list != '\0') {
        size_t len = strcspn(list, ",");
        char *origin = text_dup_len(list, len);

        rc = read_origin(headers, trimmed(origin), err);
        free(origin);
        list += len + (list[len] == ',');
    }
    return rc;
}

static bool is_allowed(struct rest_headers *headers, const char *origin)
{
    bool found = headers->any_origin;

    pthread_mutex_lock(&headers->lock);
    for (size_t i = 0; i < headers->origin_count && !found; i++)
        found = java_pattern_matches(headers->origins[i], origin, NULL) == 1;
    pthread_mutex_unlock(&headers->lock);
    return found;
}

static void tell_cors(struct rest_headers *headers, const struct rest_headers_asked *asked,
                      rest_headers_fn fn, void *arg)
{
    fn(arg, "Vary", "Origin", false);
    if (asked->origin == NULL || !is_allowed(headers, asked->origin))
        return;
    fn(arg, "Access-Control-Allow-Origin", asked->origin, true);
    if (strcmp(asked->method, "OPTIONS") != 0 || asked->wanted_method == NULL)
        return;
    fn(arg, "Access-Control-Allow-Methods", headers->methods, true);
    fn(arg, "Access-Control-Allow-Headers", "Content-Type", true);
    fn(arg, "Access-Control-Max-Age", "60", true);
}

/* --- the door --------------------------------------------------------------------------------- */

static void tell_rule(const struct rule *rule, int64_t wall_ms, rest_headers_fn fn, void *arg)
{
    time_t when = (time_t)((wall_ms + rule->value_ms) / 1000);
    char date[64];
    struct tm parts;

    if (!rule->date)
        fn(arg, rule->name, rule->value, !rule->add);
    else if (gmtime_r(&when, &parts) != NULL &&
             strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0)
        fn(arg, rule->name, date, !rule->add);
}

void rest_headers_tell(struct rest_headers *headers, const struct rest_headers_asked *asked,
                       int64_t wall_ms, rest_headers_fn fn, void *arg)
{
    if (headers->cors)
        tell_cors(headers, asked, fn, arg);
    for (size_t i = 0; i < headers->rule_count; i++)
        tell_rule(&headers->rules[i], wall_ms, fn, arg);
}

static void prefix_place(const struct worker_config *config, const char *key, struct mr_error *err)
{
    char where[512];

    worker_config_where(config, key, where, sizeof(where));
    where[strlen(where) - 2] = '\0'; /* err_prefix writes the colon */
    err_prefix(err, "%s", where);
}

struct rest_headers *rest_headers_new(const struct worker_config *config, struct mr_error *err)
{
    struct rest_headers *headers = calloc(1, sizeof(*headers));
    const char *key = RULES_KEY;

    mr_assert(headers != NULL);
    pthread_mutex_init(&headers->lock, NULL);
    if (read_rules(headers, props_get(&config->props, RULES_KEY), err) == 0) {
        key = ORIGINS_KEY;
        if (read_origins(headers, &config->props, err) == 0)
            return headers;
    }
    prefix_place(config, key, err);
    rest_headers_free(&headers);
    return NULL;
}

void rest_headers_free(struct rest_headers **hp)
{
    struct rest_headers *headers = *hp;

    *hp = NULL;
    if (headers == NULL)
        return;
    for (size_t i = 0; i < headers->rule_count; i++) {
        free(headers->rules[i].name);
        free(headers->rules[i].value);
    }
    for (size_t i = 0; i < headers->origin_count; i++)
        java_pattern_free(&headers->origins[i]);
    free(headers->methods);
    pthread_mutex_destroy(&headers->lock);
    free(headers);
}
