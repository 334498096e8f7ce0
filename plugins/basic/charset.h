/* SPDX-License-Identifier: Apache-2.0 */
/* Java's charsets by name, over iconv. One converter, one thread. */
#ifndef BASIC_CHARSET_H
#define BASIC_CHARSET_H

#include <millrace/record.h>

#include <iconv.h>

/* How a charset's bytes begin. */
enum charset_mark {
    CHARSET_UTF8, /* no iconv at all */
    CHARSET_PLAIN,
    CHARSET_BIG_MARK,   /* UTF-16: written with a big-endian mark, read by its mark */
    CHARSET_BIG,        /* UTF-32: written big-endian without a mark, read by its mark */
    CHARSET_LITTLE_MARK /* x-UTF-16LE-BOM */
};

struct charset {
    enum charset_mark mark;
    size_t unit; /* bytes that a malformed part takes at least */
    /* The byte 3F replaces what can't be encoded, also where it is no '?' (EBCDIC). */
    bool question;
    bool little; /* `from` reads little-endian units */
    bool yen;    /* Shift_JIS: iconv reads the bytes 5C and 7E as yen and overline, Java as ASCII */
    iconv_t to;  /* from UTF-8; (iconv_t)-1 with CHARSET_UTF8 */
    iconv_t from;        /* to UTF-8 */
    iconv_t from_little; /* read with a little-endian mark */
};

/* By a name or alias that Java 17 knows, any case. MR_ERR_CONFIG: "Unsupported encoding X". */
int charset_open(struct charset *cs, const char *name, struct mr_error *err);
void charset_close(struct charset *cs); /* zeroed or opened */

/* len bytes of UTF-8 as bytes of the charset, in the arena (or p itself). What the charset lacks
 * becomes Java's replacement for it, mostly '?'. */
void charset_encode(struct charset *cs, struct mr_arena *arena, const char *p, size_t len,
                    const void **out, size_t *out_len);
/* Bytes as text in the arena (or p itself). What can't be decoded becomes U+FFFD. */
struct mr_value charset_convert(struct charset *cs, struct mr_arena *arena, const void *p,
                                size_t len); /* by iconv */
static inline struct mr_value charset_decode(struct charset *cs, struct mr_arena *arena,
                                             const void *p, size_t len)
{
    return cs->mark == CHARSET_UTF8 ? mr_text_from(arena, p, len)
                                    : charset_convert(cs, arena, p, len);
}

/* iconv's name for a Java name (charset_names.c); NULL: Java has no such charset, or iconv has none
 * like it. */
const char *charset_names_find(const char *name);

#endif
