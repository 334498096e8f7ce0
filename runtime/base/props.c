/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered map from text to text, indexed by a hash map once it is large, and the reader of Java
 * properties files.
 *
 * Reading follows java.util.Properties: lines may end in \n, \r or \r\n; a backslash at the end
 * continues the line, blanks at the front of the next are dropped; # and ! begin comments; key and
 * value are separated by =, : or blanks. Java reads the bytes as ISO-8859-1. People save these
 * files as UTF-8 today, and Java's reading of that is never what they meant, so: bytes that are
 * valid UTF-8 are taken as UTF-8, all others as ISO-8859-1. A \u escape gives its UTF-16 unit;
 * pairs are joined, a lone surrogate becomes U+FFFD. One thread at a time. */
#include "base/props.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1 << 20)
#define KEYS_MAX 100000
#define INDEX_FROM 64 /* entries; below that a walk is as quick */

void props_init(struct props *p)
{
    memset(p, 0, sizeof(*p));
}

void props_deinit(struct props *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->entries[i].key);
        free(p->entries[i].value);
    }
    free(p->entries);
    map_free(&p->index, NULL);
    props_init(p);
}

/* The index maps a key to its place + 1. */
static void index_entry(struct props *p, size_t i)
{
    map_set(p->index, p->entries[i].key, (void *)(uintptr_t)(i + 1));
}

const struct props_entry *props_find(const struct props *p, const char *key)
{
    if (p->index != NULL) {
        uintptr_t place = (uintptr_t)map_get(p->index, key);

        return place > 0 ? &p->entries[place - 1] : NULL;
    }
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->entries[i].key, key) == 0)
            return &p->entries[i];
    return NULL;
}

const char *props_get(const struct props *p, const char *key)
{
    const struct props_entry *e = props_find(p, key);

    return e != NULL ? e->value : NULL;
}

static int append(struct props *p, const char *key, char *value, int line)
{
    char *copy = strdup(key);

    if (p->count == p->cap) {
        size_t cap = p->cap == 0 ? 16 : p->cap * 2;
        struct props_entry *entries = realloc(p->entries, cap * sizeof(*entries));

        if (entries == NULL) {
            free(copy);
            return MR_ERR_NOMEM;
        }
        p->entries = entries;
        p->cap = cap;
    }
    if (copy == NULL)
        return MR_ERR_NOMEM;
    p->entries[p->count++] = (struct props_entry){.key = copy, .value = value, .line = line};
    if (p->index != NULL) {
        index_entry(p, p->count - 1);
    } else if (p->count == INDEX_FROM) {
        p->index = map_new();
        for (size_t i = 0; i < p->count; i++)
            index_entry(p, i);
    }
    return 0;
}

static int set_at(struct props *p, const char *key, const char *value, int line)
{
    struct props_entry *e = (struct props_entry *)(uintptr_t)props_find(p, key);
    char *copy = value != NULL ? strdup(value) : NULL;
    int rc;

    if (value != NULL && copy == NULL)
        return MR_ERR_NOMEM;
    if (e != NULL) {
        free(e->value);
        e->value = copy;
        e->line = line;
        return 0;
    }
    rc = append(p, key, copy, line);
    if (rc != 0)
        free(copy);
    return rc;
}

int props_set(struct props *p, const char *key, const char *value)
{
    return set_at(p, key, value, 0);
}

void props_remove(struct props *p, const char *key)
{
    const struct props_entry *e = props_find(p, key);
    size_t i;

    if (e == NULL)
        return;
    i = (size_t)(e - p->entries);
    if (p->index != NULL)
        map_remove(p->index, key);
    free(p->entries[i].key);
    free(p->entries[i].value);
    memmove(&p->entries[i], &p->entries[i + 1], (p->count - i - 1) * sizeof(*p->entries));
    p->count--;
    if (p->index != NULL)
        for (; i < p->count; i++)
            index_entry(p, i);
}

int props_copy(struct props *to, const struct props *from)
{
    props_init(to);
    return props_subset(from, "", to);
}

int props_subset(const struct props *p, const char *prefix, struct props *to)
{
    size_t len = strlen(prefix);

    for (size_t i = 0; i < p->count; i++) {
        const struct props_entry *e = &p->entries[i];
        int rc;

        if (strncmp(e->key, prefix, len) != 0 || (len > 0 && e->key[len] == '\0'))
            continue;
        rc = set_at(to, e->key + len, e->value, e->line);
        if (rc != 0)
            return rc;
    }
    return 0;
}

bool props_equal(const struct props *a, const struct props *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct props_entry *e = props_find(b, a->entries[i].key);
        const char *value = a->entries[i].value;

        if (e == NULL || (value == NULL) != (e->value == NULL) ||
            (value != NULL && strcmp(value, e->value) != 0))
            return false;
    }
    return true;
}

/* --- reading a file --------------------------------------------------------------------------- */

struct reader {
    const unsigned char *at;
    const unsigned char *end;
    int line;
    bool utf8;      /* else ISO-8859-1 */
    uint32_t high;  /* a high surrogate that waits for its low one, 0 none */
    struct buf out; /* the key or value being read */
};

/* Bytes of the UTF-8 sequence at p, or 0 when there is none. */
static size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : (p[0] & 0xf0) == 0xe0       ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;

    if (n == 0 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static bool all_utf8(const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        size_t n = utf8_len(p, end);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

static void put_code(struct buf *out, uint32_t c)
{
    char b[4];
    size_t n = 0;

    if (c < 0x80) {
        b[n++] = (char)c;
    } else {
        int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

        b[n++] = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | (c >> (6 * more)));
        while (more-- > 0)
            b[n++] = (char)(0x80 | ((c >> (6 * more)) & 0x3f));
    }
    buf_append(out, b, n);
}

/* A surrogate whose partner did not come. */
static void flush_high(struct reader *r)
{
    if (r->high != 0)
        put_code(&r->out, 0xfffd);
    r->high = 0;
}

static void put_unit(struct reader *r, uint32_t unit)
{
    if (unit >= 0xdc00 && unit < 0xe000 && r->high != 0) {
        put_code(&r->out, 0x10000 + ((r->high - 0xd800) << 10) + (unit - 0xdc00));
        r->high = 0;
        return;
    }
    flush_high(r);
    if (unit >= 0xd800 && unit < 0xdc00)
        r->high = unit;
    else
        put_code(&r->out, unit >= 0xdc00 && unit < 0xe000 ? 0xfffd : unit);
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_eol(unsigned char c)
{
    return c == '\n' || c == '\r';
}

static void skip_eol(struct reader *r)
{
    if (r->at + 1 < r->end && r->at[0] == '\r' && r->at[1] == '\n')
        r->at++;
    r->at++;
    r->line++;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int read_hex4(struct reader *r, uint32_t *out, const char *name, struct mr_error *err)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++, r->at++) {
        int digit = hex_digit(r->at < r->end ? *r->at : 0);

        if (digit < 0)
            return mr_fail(err, MR_ERR_CONFIG,
                           "%s:%d: malformed \\uxxxx: four hexadecimal digits were expected", name,
                           r->line);
        v = v * 16 + (uint32_t)digit;
    }
    *out = v;
    return 0;
}

/* Behind a backslash. */
static int read_escape(struct reader *r, const char *name, struct mr_error *err)
{
    static const char from[] = "tnrf";
    static const char to[] = "\t\n\r\f";
    const char *which;
    uint32_t unit = 0;
    int rc;

    if (r->at == r->end)
        return 0;
    if (is_eol(*r->at)) {
        skip_eol(r);
        skip_blanks(r);
        return 0;
    }
    if (*r->at == 'u') {
        r->at++;
        rc = read_hex4(r, &unit, name, err);
        if (rc == 0)
            put_unit(r, unit);
        return rc;
    }
    flush_high(r);
    which = strchr(from, (char)*r->at);
    if (which != NULL && *r->at != '\0') {
        buf_putc(&r->out, to[which - from]);
        r->at++;
    }
    /* Any other character stands for itself, and is read by the caller as the next one would be if
     * it had no meaning. */
    else if (*r->at < 0x80 || r->utf8) {
        size_t n = *r->at < 0x80 ? 1 : utf8_len(r->at, r->end);

        buf_append(&r->out, r->at, n);
        r->at += n;
    } else {
        put_code(&r->out, *r->at++);
    }
    return 0;
}

static void read_plain(struct reader *r)
{
    flush_high(r);
    if (r->utf8)
        buf_putc(&r->out, (char)*r->at++);
    else
        put_code(&r->out, *r->at++);
}

/* Read until the end of the logical line, or until a separator when stop_at_separator. */
static int read_part(struct reader *r, bool stop_at_separator, const char *name,
                     struct mr_error *err)
{
    buf_reset(&r->out);
    buf_puts(&r->out, "");
    while (r->at < r->end && !is_eol(*r->at)) {
        if (stop_at_separator && (is_blank(*r->at) || *r->at == '=' || *r->at == ':'))
            break;
        if (*r->at == '\\') {
            int rc;

            r->at++;
            rc = read_escape(r, name, err);
            if (rc != 0)
                return rc;
        } else {
            read_plain(r);
        }
    }
    flush_high(r);
    if (memchr(r->out.data, '\0', r->out.len) != NULL)
        return mr_fail(err, MR_ERR_CONFIG, "%s:%d: a NUL character has no place in a property",
                       name, r->line);
    return r->out.failed
               ? mr_fail(err, MR_ERR_TOO_LARGE, "%s:%d: the property is too long", name, r->line)
               : 0;
}

/* Blanks, one = or :, blanks; a continuation may stand among them. */
static void skip_separator(struct reader *r)
{
    bool seen = false;

    for (;;) {
        skip_blanks(r);
        if (r->at < r->end && !seen && (*r->at == '=' || *r->at == ':')) {
            seen = true;
            r->at++;
        } else if (r->at + 1 < r->end && *r->at == '\\' && is_eol(r->at[1])) {
            r->at++;
            skip_eol(r);
        } else {
            return;
        }
    }
}

static void skip_line(struct reader *r)
{
    while (r->at < r->end && !is_eol(*r->at))
        r->at++;
}

static int read_property(struct props *p, struct reader *r, const char *name, struct mr_error *err)
{
    int line = r->line;
    char *key;
    int rc = read_part(r, true, name, err);

    if (rc != 0)
        return rc;
    key = strdup(r->out.data);
    skip_separator(r);
    rc = read_part(r, false, name, err);
    if (rc == 0)
        rc = key == NULL ? MR_ERR_NOMEM : set_at(p, key, r->out.data, line);
    free(key);
    return rc == MR_ERR_NOMEM ? mr_fail(err, rc, "%s:%d: out of memory", name, line) : rc;
}

int props_parse(struct props *p, const char *data, size_t len, const char *name,
                struct mr_error *err)
{
    struct reader r = {
        .at = (const unsigned char *)data, .end = (const unsigned char *)data + len, .line = 1};
    int rc = 0;

    if (len > FILE_MAX)
        return mr_fail(err, MR_ERR_TOO_LARGE, "%s: larger than %d bytes", name, FILE_MAX);
    r.utf8 = all_utf8(r.at, r.end);
    if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    buf_init(&r.out, FILE_MAX * 2);
    while (rc == 0) {
        skip_blanks(&r);
        if (r.at == r.end)
            break;
        if (is_eol(*r.at)) {
            skip_eol(&r);
        } else if (*r.at == '#' || *r.at == '!') {
            skip_line(&r);
        } else {
            rc = read_property(p, &r, name, err);
            if (rc == 0 && p->count > KEYS_MAX)
                rc = mr_fail(err, MR_ERR_TOO_LARGE, "%s: more than %d keys", name, KEYS_MAX);
        }
    }
    buf_deinit(&r.out);
    return rc;
}

int props_load(struct props *p, const char *path, struct mr_error *err)
{
    struct buf data;
    int rc;

    buf_init(&data, FILE_MAX);
    rc = file_read(path, &data, err);
    if (rc == 0)
        rc = props_parse(p, data.data != NULL ? data.data : "", data.len, path, err);
    buf_deinit(&data);
    return rc;
}
