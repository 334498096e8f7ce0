/* SPDX-License-Identifier: Apache-2.0 */
/* Text to bytes and back in a Java charset, for StringConverter, on the task's thread.
 *
 * UTF-8 is nearly always meant and costs a look at the bytes, nothing more. Everything else goes
 * through iconv, which stops at what it can't convert; there the replacement is written and the
 * rest goes on: the byte 3F on the way out, one for each character, U+FFFD on the way in. UTF-16
 * and UTF-32 are ours to frame, since Java's byte order marks are not glibc's. */
#include "charset.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define NONE ((iconv_t)-1)

struct special {
    const char *java;
    enum charset_mark mark;
    const char *iconv;
    const char *little;
    size_t unit;
};

static const struct special specials[] = {
    {"UTF-8", CHARSET_UTF8, NULL, NULL, 1},
    {"UTF8", CHARSET_UTF8, NULL, NULL, 1},
    {"unicode-1-1-utf-8", CHARSET_UTF8, NULL, NULL, 1},
    {"UTF-16", CHARSET_BIG_MARK, "UTF-16BE", "UTF-16LE", 2},
    {"UTF_16", CHARSET_BIG_MARK, "UTF-16BE", "UTF-16LE", 2},
    {"unicode", CHARSET_BIG_MARK, "UTF-16BE", "UTF-16LE", 2},
    {"utf16", CHARSET_BIG_MARK, "UTF-16BE", "UTF-16LE", 2},
    {"UnicodeBig", CHARSET_BIG_MARK, "UTF-16BE", "UTF-16LE", 2},
    {"UTF-32", CHARSET_BIG, "UTF-32BE", "UTF-32LE", 4},
    {"UTF_32", CHARSET_BIG, "UTF-32BE", "UTF-32LE", 4},
    {"UTF32", CHARSET_BIG, "UTF-32BE", "UTF-32LE", 4},
    {"x-UTF-16LE-BOM", CHARSET_LITTLE_MARK, "UTF-16LE", NULL, 2},
    {"UnicodeLittle", CHARSET_LITTLE_MARK, "UTF-16LE", NULL, 2},
};

/* --- opening ---------------------------------------------------------------------------------- */

static size_t unit_of(const char *iconv_name)
{
    return strncmp(iconv_name, "UTF-16", 6) == 0   ? 2
           : strncmp(iconv_name, "UTF-32", 6) == 0 ? 4
                                                   : 1;
}

/* Charsets of one and two bytes in EBCDIC, where Java writes a true question mark. */
static bool is_mixed_ebcdic(const char *iconv_name)
{
    static const char *const numbers[] = {"930", "933", "935", "937", "939", "1364"};
    size_t len = strlen(iconv_name);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        size_t digits = strlen(numbers[i]);

        if (len > digits && strcmp(iconv_name + len - digits, numbers[i]) == 0)
            return true;
    }
    return false;
}

static struct special find(const char *name)
{
    struct special plain = {name, CHARSET_PLAIN, NULL, NULL, 1};

    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
        if (strcasecmp(specials[i].java, name) == 0)
            return specials[i];
    plain.iconv = charset_names_find(name);
    if (plain.iconv != NULL)
        plain.unit = unit_of(plain.iconv);
    return plain;
}

static iconv_t open_or_none(const char *to, const char *from)
{
    return to == NULL || from == NULL ? NONE : iconv_open(to, from);
}

int charset_open(struct charset *cs, const char *name, struct mr_error *err)
{
    struct special found = find(name);

    cs->mark = found.mark;
    cs->unit = found.unit;
    cs->little = found.iconv != NULL && strstr(found.iconv, "LE") != NULL;
    cs->yen = found.iconv != NULL && strcmp(found.iconv, "SHIFT_JIS") == 0;
    cs->question = found.iconv != NULL && found.unit == 1 && !is_mixed_ebcdic(found.iconv);
    cs->to = open_or_none(found.iconv, "UTF-8");
    cs->from = open_or_none("UTF-8", found.iconv);
    cs->from_little = open_or_none("UTF-8", found.little);
    if (found.mark == CHARSET_UTF8 || (cs->to != NONE && cs->from != NONE))
        return MR_OK;
    charset_close(cs);
    return mr_fail(err, MR_ERR_CONFIG, "Unsupported encoding %.100s", name);
}

void charset_close(struct charset *cs)
{
    iconv_t *all[] = {&cs->to, &cs->from, &cs->from_little};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (*all[i] != NULL && *all[i] != NONE)
            iconv_close(*all[i]);
        *all[i] = NONE;
    }
}

/* --- both ways -------------------------------------------------------------------------------- */

/* Bytes in the arena that grow; the arena has no way to give the old ones back, so they double. */
struct output {
    struct mr_arena *arena;
    char *p;
    size_t len;
    size_t cap;
};

static void output_grow(struct output *out, size_t len)
{
    size_t cap = 2 * out->cap + len;
    char *p = (char *)mr_alloc(out->arena, cap);

    if (out->len > 0)
        memcpy(p, out->p, out->len);
    out->p = p;
    out->cap = cap;
}

static void output_add(struct output *out, const char *p, size_t len)
{
    if (len > out->cap - out->len)
        output_grow(out, len);
    memcpy(out->p + out->len, p, len);
    out->len += len;
}

/* Convert until the end or an obstacle; *from and *left move on. true: the end. */
static bool convert(iconv_t cd, struct output *out, const char **from, size_t *left)
{
    for (;;) {
        char *in = (char *)(uintptr_t)*from, *to = out->p + out->len;
        size_t room = out->cap - out->len;
        size_t rc = iconv(cd, *left > 0 ? &in : NULL, *left > 0 ? left : NULL, &to, &room);

        out->len = out->cap - room;
        *from = in;
        if (rc != (size_t)-1 && *left == 0)
            return true;
        if (rc == (size_t)-1 && errno != E2BIG)
            return false;
        if (rc == (size_t)-1)
            output_grow(out, 64);
    }
}

/* A stateful charset's way back to its first state. */
static void finish(iconv_t cd, struct output *out)
{
    char *to = out->p + out->len;
    size_t room = out->cap - out->len;

    if (room < 16) {
        output_grow(out, 16);
        to = out->p + out->len;
        room = out->cap - out->len;
    }
    iconv(cd, NULL, NULL, &to, &room);
    out->len = out->cap - room;
}

/* --- out -------------------------------------------------------------------------------------- */

/* Halves of surrogate pairs, which text from JSON may hold in three bytes, become '?' as in Java,
 * or U+FFFD where that can be written; in the copy. */
static size_t replace_halves(char *to, const char *p, size_t len, const char *by)
{
    size_t made = 0, by_len = strlen(by);

    for (size_t i = 0; i < len;) {
        if (len - i >= 3 && (unsigned char)p[i] == 0xed && (unsigned char)p[i + 1] >= 0xa0) {
            memcpy(to + made, by, by_len);
            made += by_len;
            i += 3;
        } else {
            to[made++] = p[i++];
        }
    }
    return made;
}

/* What a plugin hands over as text may be none: make it UTF-8. */
static struct mr_value proper(const struct charset *cs, struct mr_arena *arena, const char *p,
                              size_t len)
{
    struct mr_value text = mr_text_from(arena, p, len);
    char *copy;

    if (text.u.p == p)
        return text;
    copy = (char *)mr_alloc(arena, len);
    len = replace_halves(copy, p, len, cs->unit > 1 ? "\xef\xbf\xbd" : "?");
    return mr_text_from(arena, copy, len);
}

static size_t sequence_len(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

void charset_encode(struct charset *cs, struct mr_arena *arena, const char *p, size_t len,
                    const void **out, size_t *out_len)
{
    struct mr_value text = proper(cs, arena, p, len);
    struct output made = {.arena = arena};
    const char *from = (const char *)text.u.p;
    size_t left = text.len;

    if (cs->mark == CHARSET_UTF8 || text.len == 0) { /* no mark before nothing */
        *out = text.len == 0 ? "" : text.u.p;
        *out_len = text.len;
        return;
    }
    output_grow(&made, len * cs->unit + 16);
    if (cs->mark == CHARSET_BIG_MARK)
        output_add(&made, "\xfe\xff", 2);
    if (cs->mark == CHARSET_LITTLE_MARK)
        output_add(&made, "\xff\xfe", 2);
    iconv(cs->to, NULL, NULL, NULL, NULL);
    while (left > 0 && !convert(cs->to, &made, &from, &left)) {
        const char *mark = "?";
        size_t one = 1, skip = sequence_len((unsigned char)*from);

        if (cs->question)
            output_add(&made, mark, one);
        else
            convert(cs->to, &made, &mark, &one);
        from += skip < left ? skip : left;
        left -= skip < left ? skip : left;
    }
    finish(cs->to, &made);
    *out = made.p;
    *out_len = made.len;
}

/* --- in --------------------------------------------------------------------------------------- */

/* Which descriptor reads these bytes, and how many are its mark. */
static iconv_t reader(const struct charset *cs, const unsigned char *p, size_t len, size_t *mark)
{
    size_t n = cs->unit;
    bool big, little;

    *mark = 0;
    if (cs->mark == CHARSET_PLAIN || len < n)
        return cs->from;
    big = n == 2 ? p[0] == 0xfe && p[1] == 0xff
                 : p[0] == 0 && p[1] == 0 && p[2] == 0xfe && p[3] == 0xff;
    little = p[0] == 0xff && p[1] == 0xfe && (n == 2 || (p[2] == 0 && p[3] == 0));
    if (cs->mark == CHARSET_LITTLE_MARK)
        big = little;
    if (!big && !little)
        return cs->from;
    *mark = n;
    return big ? cs->from : cs->from_little;
}

/* How much of what can't be decoded one U+FFFD stands for. In UTF-16 Java takes the unit behind a
 * lone high half too. */
static size_t malformed(const struct charset *cs, iconv_t cd, const unsigned char *p, size_t left,
                        bool cut)
{
    unsigned char lead = cd == cs->from && !cs->little ? p[0] : left > 1 ? p[1] : 0;

    if (cut || left < cs->unit)
        return left;
    return cs->unit == 2 && lead >= 0xd8 && lead < 0xdc && left >= 4 ? 4 : cs->unit;
}

static void without_yen(struct output *out)
{
    size_t made = 0;

    for (size_t i = 0; i < out->len;) {
        const char *p = out->p + i;
        bool yen = out->len - i >= 2 && memcmp(p, "\xc2\xa5", 2) == 0;
        bool overline = out->len - i >= 3 && memcmp(p, "\xe2\x80\xbe", 3) == 0;

        out->p[made++] = yen ? '\\' : overline ? '~' : *p;
        i += yen ? 2 : overline ? 3 : 1;
    }
    out->len = made;
}

struct mr_value charset_convert(struct charset *cs, struct mr_arena *arena, const void *p,
                                size_t len)
{
    struct output made = {.arena = arena};
    const char *from = (const char *)p;
    size_t left = len, mark;
    iconv_t cd;

    cd = reader(cs, (const unsigned char *)p, len, &mark);
    from += mark;
    left -= mark;
    output_grow(&made, len + len / 2 + 16);
    iconv(cd, NULL, NULL, NULL, NULL);
    while (left > 0 && !convert(cd, &made, &from, &left)) {
        size_t skip = malformed(cs, cd, (const unsigned char *)from, left, errno == EINVAL);

        output_add(&made, "\xef\xbf\xbd", 3);
        from += skip;
        left -= skip;
    }
    finish(cd, &made);
    if (cs->yen)
        without_yen(&made);
    return mr_text(made.p, made.len);
}
