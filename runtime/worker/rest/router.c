/* SPDX-License-Identifier: Apache-2.0 */
/* From a request's first line and headers to the row of the route table that answers it.
 *
 * Called by the HTTP threads before anything else looks at a request, and by a fuzzer: every byte
 * here is a client's. A path is split first and decoded per segment after, so that an encoded slash
 * never splits; what a decoded segment may not hold is what the Java worker's server refuses too,
 * but between workers: the connectors are there, and their tasks are to run.
 * Pure. */
#include "worker/rest/router.h"

#include "base/utf8.h"
#include "worker/rest/rest_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- target ----------------------------------------------------------------------------------- */

static int bad_path(struct mr_error *err, const char *what)
{
    return mr_fail(err, MR_ERR_PROTOCOL, "Bad request path: %s", what);
}

/* What may not stand in a segment, whether sent as it is or as %XX. */
static const char *refused(unsigned char c)
{
    if (c < 0x20 || c == 0x7F)
        return "it holds a control character";
    if (c == '/')
        return "it holds an encoded slash (%2F)";
    if (c == '\\')
        return "it holds a backslash";
    if (c == '%')
        return "it holds an encoded percent sign (%25)";
    return NULL;
}

const char *router_unreachable(const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "it is a dot segment";
    for (const char *c = name; *c != '\0'; c++)
        if (refused((unsigned char)*c) != NULL)
            return refused((unsigned char)*c);
    return NULL;
}

/* Decode one segment in place; `end` is the first byte after it and may be overwritten by the
 * NUL. */
static int decode_segment(struct router_target *out, char *segment, char *end, struct mr_error *err)
{
    char *params = memchr(segment, ';', (size_t)(end - segment));
    char *to = segment;
    bool dots_suspect = params != NULL;

    if (params != NULL)
        end = params;
    for (char *from = segment; from < end;) {
        unsigned char c = (unsigned char)*from;

        if (c == '%') {
            int high = end - from > 2 ? rest_text_hex(from[1]) : -1;
            int low = high >= 0 ? rest_text_hex(from[2]) : -1;

            if (low < 0)
                return bad_path(err, "% is not followed by two hexadecimal digits");
            c = (unsigned char)(high * 16 + low);
            from += 2;
            dots_suspect = true;
        }
        from++;
        if (c == '\0')
            return bad_path(err, refused(c));
        if (out->refused == NULL)
            out->refused = refused(c);
        *to++ = (char)c;
    }
    *to = '\0';
    if (!utf8_valid(segment, (size_t)(to - segment)))
        return bad_path(err, "it is not UTF-8");
    if (dots_suspect && (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0))
        return bad_path(err, "it holds an encoded dot segment");
    return 0;
}

static int parse_path(struct router_target *out, char *path, struct mr_error *err)
{
    bool last = false;

    for (char *segment = path + 1; !last;) {
        char *end = segment + strcspn(segment, "/");

        last = *end == '\0';
        if (decode_segment(out, segment, end, err) != 0)
            return MR_ERR_PROTOCOL;
        if (*segment == '\0' && !last)
            return bad_path(err, "it holds an empty segment (//)");
        if (*segment != '\0') {
            if (out->segment_count < ROUTER_SEGMENTS)
                out->segment[out->segment_count] = segment;
            out->segment_count++;
        }
        segment = end + 1;
    }
    return 0;
}

/* Decode a query's key or value in place. What is no escape stays as it is: queries are never an
 * error. */
static void decode_query(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        int high = *from == '%' ? rest_text_hex(from[1]) : -1;
        int low = high >= 0 ? rest_text_hex(from[2]) : -1;

        if (low >= 0 && high + low > 0) {
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = (char)(*from == '+' ? ' ' : *from);
        }
    }
    *to = '\0';
}

static void parse_query(struct router_target *out, char *query)
{
    while (query != NULL && *query != '\0' && out->query_count < ROUTER_QUERY) {
        char *next = strchr(query, '&');
        char *value;

        if (next != NULL)
            *next++ = '\0';
        value = strchr(query, '=');
        if (value != NULL)
            *value++ = '\0';
        else
            value = query + strlen(query);
        if (*query != '\0' || *value != '\0') {
            decode_query(query);
            if (value > query && *value != '\0')
                decode_query(value);
            out->query[out->query_count++] = (struct router_pair){.key = query, .value = value};
        }
        query = next;
    }
}

/* The path of an absolute target (`GET http://host/path`, as to a proxy). */
static const char *skip_authority(const char *raw)
{
    const char *host = strncasecmp(raw, "http://", 7) == 0    ? raw + 7
                       : strncasecmp(raw, "https://", 8) == 0 ? raw + 8
                                                              : NULL;

    if (host == NULL)
        return raw;
    host += strcspn(host, "/?#");
    return *host == '/' ? host : "/";
}

void router_deinit(struct router_target *target)
{
    free(target->sent);
    free(target->text);
    *target = (struct router_target){0};
}

int router_parse(struct router_target *out, const char *raw, struct mr_error *err)
{
    char *query;
    int rc;

    *out = (struct router_target){0};
    if (strchr(raw, ' ') != NULL)
        return bad_path(err, "it holds a blank that is not written as %20");
    raw = skip_authority(raw);
    if (*raw != '/')
        return bad_path(err, "it does not begin with a slash");
    out->sent = strndup(raw, strcspn(raw, "#")); /* a fragment is nobody's business here */
    out->text = out->sent != NULL ? strdup(out->sent) : NULL;
    if (out->text == NULL) {
        router_deinit(out);
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    }
    query = strchr(out->text, '?');
    if (query != NULL)
        *query++ = '\0';
    rc = parse_path(out, out->text, err);
    if (rc != 0)
        router_deinit(out);
    else
        parse_query(out, query);
    return rc;
}

bool router_flag(const struct router_target *target, const char *key, bool otherwise)
{
    for (size_t i = 0; i < target->query_count; i++)
        if (strcmp(target->query[i].key, key) == 0)
            return target->query[i].value[0] == '\0'
                       ? otherwise
                       : strcasecmp(target->query[i].value, "true") == 0;
    return otherwise;
}

/* --- routes ----------------------------------------------------------------------------------- */

static bool path_matches(const char *pattern, const struct router_target *target, const char **var)
{
    size_t vars = 0;

    if (target->segment_count > ROUTER_SEGMENTS)
        return false;
    for (size_t i = 0; i < target->segment_count; i++) {
        size_t len;

        if (*pattern++ != '/' || *pattern == '\0')
            return false;
        len = strcspn(pattern, "/");
        if (*pattern == '{')
            var[vars++] = target->segment[i];
        else if (strlen(target->segment[i]) != len || memcmp(pattern, target->segment[i], len) != 0)
            return false;
        pattern += len;
    }
    return *pattern == '\0' || (target->segment_count == 0 && strcmp(pattern, "/") == 0);
}

/* In the order in which Jersey names them: clients don't care, recordings of the Java worker do. */
static const char *const methods[] = {"HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH"};

static void list_allowed(char *out, size_t size, unsigned seen)
{
    size_t len = 0;

    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if ((seen & (1U << i)) != 0)
            len += (size_t)snprintf(out + len, size - len, "%s%s", len > 0 ? ", " : "", methods[i]);
}

static unsigned method_bit(const char *method)
{
    for (unsigned i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(methods[i], method) == 0)
            return 1U << i;
    return 0;
}

void router_match(const struct route *routes, size_t count, const char *method,
                  const struct router_target *target, struct router_match *out)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    unsigned seen = 0;

    *out = (struct router_match){0};
    for (size_t i = 0; i < count; i++) {
        const char *var[ROUTER_VARS] = {NULL, NULL};

        if (!path_matches(routes[i].pattern, target, var))
            continue;
        seen |= method_bit(routes[i].method) | method_bit("OPTIONS");
        if (strcmp(routes[i].method, "GET") == 0)
            seen |= method_bit("HEAD");
        if (strcmp(routes[i].method, wanted) == 0) {
            out->route = &routes[i];
            memcpy(out->var, var, sizeof(var));
        }
    }
    if (seen == 0)
        out->status = 404;
    else if (strcmp(method, "OPTIONS") == 0)
        out->status = 200;
    else if (out->route == NULL)
        out->status = 405;
    list_allowed(out->allow, sizeof(out->allow), seen);
}

int router_check_path(const struct router_target *target, const struct router_match *match,
                      struct mr_error *err)
{
    bool signed_one = match->route != NULL && (match->route->flags & ROUTE_SIGNED) != 0;

    return target->refused == NULL || signed_one ? 0 : bad_path(err, target->refused);
}

/* --- media types ------------------------------------------------------------------------------ */

static bool token_char(char c)
{
    return c > 0x20 && c < 0x7F && strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

/* Split `type/subtype` at the front of s; both lengths are at least 1. Gives what follows, or
 * NULL. */
static const char *media_range(const char *s, size_t *type_len, const char **subtype,
                               size_t *subtype_len)
{
    const char *p = s;

    while (token_char(*p))
        p++;
    *type_len = (size_t)(p - s);
    if (*type_len == 0 || *p++ != '/')
        return NULL;
    *subtype = p;
    while (token_char(*p))
        p++;
    *subtype_len = (size_t)(p - *subtype);
    return *subtype_len == 0 ? NULL : p;
}

static bool same(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

enum router_type router_type(const char *content_type)
{
    const char *subtype;
    const char *rest;
    size_t type_len;
    size_t subtype_len;

    if (content_type == NULL || content_type[strspn(content_type, " \t")] == '\0')
        return ROUTER_TYPE_NONE;
    content_type += strspn(content_type, " \t");
    rest = media_range(content_type, &type_len, &subtype, &subtype_len);
    if (rest == NULL)
        return ROUTER_TYPE_BAD;
    rest += strspn(rest, " \t");
    if (*rest != '\0' && *rest != ';')
        return ROUTER_TYPE_BAD;
    if (same(subtype, subtype_len, "*") &&
        (same(content_type, type_len, "application") || same(content_type, type_len, "*")))
        return ROUTER_TYPE_WILD;
    return same(content_type, type_len, "application") && same(subtype, subtype_len, "json")
               ? ROUTER_TYPE_JSON
               : ROUTER_TYPE_OTHER;
}

/* `;q=0` and `;q=0.000` refuse a range. */
static bool refused_by_weight(const char *params, const char *end)
{
    for (const char *p = params; p + 2 < end; p++)
        if ((*p == ';' || *p == ' ') && (p[1] == 'q' || p[1] == 'Q') && p[2] == '=')
            return strspn(p + 3, "0.") == strcspn(p + 3, ",; \t") && p[3] == '0';
    return false;
}

bool router_accepts(const char *accept, const char *type, const char *subtype)
{
    bool empty = true;

    for (const char *p = accept; *p != '\0';) {
        const char *end = p + strcspn(p, ",");
        const char *sub;
        size_t type_len;
        size_t sub_len;

        p += strspn(p, " \t");
        if (p < end) {
            const char *rest = media_range(p, &type_len, &sub, &sub_len);

            empty = false;
            if (rest != NULL && (same(p, type_len, "*") || same(p, type_len, type)) &&
                (same(sub, sub_len, "*") || same(sub, sub_len, subtype)) &&
                !refused_by_weight(rest, end))
                return true;
        }
        p = *end == ',' ? end + 1 : end;
    }
    return empty;
}

bool router_task(const char *text, int *out)
{
    int64_t value = 0;
    bool negative = *text == '-';

    if (*text == '-' || *text == '+')
        text++;
    if (*text == '\0')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (*text - '0');
        if (value > (int64_t)INT32_MAX + 1)
            return false;
    }
    if (negative)
        value = -value;
    if (*text != '\0' || value > INT32_MAX)
        return false;
    *out = (int)value;
    return true;
}

int router_check(const struct router_match *match, bool accepts_json, enum router_type type)
{
    int ignored;

    if (type == ROUTER_TYPE_BAD && (match->route->flags & ROUTE_ANY_TYPE) == 0)
        return 400;
    if (type == ROUTER_TYPE_OTHER && (match->route->flags & ROUTE_ANY_TYPE) == 0)
        return 415;
    if (!accepts_json)
        return 406;
    if (strstr(match->route->pattern, "{t}") != NULL && !router_task(match->var[1], &ignored))
        return 404;
    return 0;
}
