/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of one JSON value as Jackson reads it inside Kafka's JsonConverter, and a writer that
 * spells numbers as Java does.
 *
 *   bytes ─► value ─► object | array | string | number | word ─► json_t
 *
 * Called for every record of the config and offsets topics, on the store thread. Bytes are
 * anybody's: every read is bounded by `end`, depth and lengths by Jackson's own limits
 * (StreamReadConstraints), memory by the record's size. The parser recurses once a level, so at
 * most DEPTH_MAX frames. */
#include "model/stored_json.h"

#include <float.h>
#include <math.h>

#define DEPTH_MAX 1000
#define DIGITS_MAX 1000
#define NAME_MAX_UNITS 50000 /* UTF-16 */
#define TEXT_MAX_UNITS 20000000
#define REPLACEMENT 0xfffd

struct reader {
    const unsigned char *begin;
    const unsigned char *p;
    const unsigned char *end;
    int depth;
    struct buf text; /* of the string at hand */
    struct mr_error *err;
};

static MR_PRINTF(2, 3)
int wrong(struct reader *r, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return mr_fail(r->err, MR_ERR_PROTOCOL, "not JSON, byte %zu: %s", (size_t)(r->p - r->begin),
                   text);
}

static int no_memory(struct reader *r)
{
    return mr_fail(r->err, MR_ERR_NOMEM, "out of memory");
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static int next(const struct reader *r)
{
    return r->p < r->end ? *r->p : -1;
}

/* --- text ------------------------------------------------------------------------------------- */

static void put_char(struct buf *out, uint32_t c)
{
    char bytes[4];
    size_t n = 0;

    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = REPLACEMENT;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xe0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    buf_append(out, bytes, n);
}

/* A character of more than one byte. Overlong forms pass, as in Jackson. */
static int read_wide(struct reader *r, uint32_t *out)
{
    unsigned lead = *r->p;
    int more = (lead & 0xe0) == 0xc0   ? 1
               : (lead & 0xf0) == 0xe0 ? 2
               : (lead & 0xf8) == 0xf0 ? 3
                                       : 0;
    uint32_t c = more == 1 ? lead & 0x1f : more == 2 ? lead & 0x0f : lead & 0x07;

    if (more == 0)
        return wrong(r, "not UTF-8");
    for (int i = 1; i <= more; i++) {
        if (r->end - r->p <= i || (r->p[i] & 0xc0) != 0x80)
            return wrong(r, "not UTF-8");
        c = c << 6 | (r->p[i] & 0x3f);
    }
    if (more == 2 && c >= 0xd800 && c < 0xe000)
        return wrong(r, "a surrogate in UTF-8");
    r->p += more + 1;
    *out = c;
    return 0;
}

static bool read_hex(const struct reader *r, uint32_t *out)
{
    uint32_t c = 0;

    if (r->end - r->p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        unsigned d = r->p[i];
        unsigned value = d >= '0' && d <= '9'                 ? d - '0'
                         : (d | 32) >= 'a' && (d | 32) <= 'f' ? (d | 32) - 'a' + 10
                                                              : 16;

        if (value > 15)
            return false;
        c = c << 4 | value;
    }
    *out = c;
    return true;
}

/* Behind \u: one character, two escapes when they are a pair. */
static int read_unicode(struct reader *r, uint32_t *out)
{
    uint32_t high, low;

    if (!read_hex(r, &high))
        return wrong(r, "\\u needs four hexadecimal digits");
    r->p += 4;
    *out = high;
    if (high >= 0xd800 && high < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' &&
        r->p[1] == 'u') {
        r->p += 2;
        if (read_hex(r, &low) && low >= 0xdc00 && low < 0xe000) {
            r->p += 4;
            *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        } else {
            r->p -= 2;
        }
    }
    return 0;
}

static int read_escape(struct reader *r, uint32_t *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    r->p++;
    if (r->p == r->end)
        return wrong(r, "the text has no end");
    if (*r->p == 'u') {
        r->p++;
        return read_unicode(r, out);
    }
    at = *r->p != '\0' ? strchr(from, *r->p) : NULL;
    if (at == NULL)
        return wrong(r, "an unknown escape");
    *out = (unsigned char)to[at - from];
    r->p++;
    return 0;
}

/* At the opening quote. The text is in r->text then. */
static int read_text(struct reader *r, size_t max_units)
{
    size_t units = 0;

    buf_reset(&r->text);
    r->p++;
    for (;;) {
        uint32_t c;
        int rc = 0;

        if (r->p == r->end)
            return wrong(r, "the text has no end");
        c = *r->p;
        if (c == '"')
            break;
        if (c < 0x20)
            return wrong(r, "a control character in a text");
        if (c == '\\')
            rc = read_escape(r, &c);
        else if (c >= 0x80)
            rc = read_wide(r, &c);
        else
            r->p++;
        if (rc != 0)
            return rc;
        units += c > 0xffff ? 2 : 1;
        if (units > max_units)
            return wrong(r, "a text longer than %zu characters", max_units);
        put_char(&r->text, c);
    }
    r->p++;
    return r->text.failed ? no_memory(r) : 0;
}

/* --- other encodings -------------------------------------------------------------------------- */

/* As Jackson's ByteSourceJsonBootstrapper finds them out: by a mark, else by where the zeros of the
 * first characters stand. */
struct encoding {
    uint32_t mask; /* of the first four bytes, most significant first */
    uint32_t value;
    int unit; /* bytes of a character; 0: none that anybody reads */
    int skip; /* the mark */
    bool little;
};

static const struct encoding encodings[] = {
    {0xffffffff, 0x0000feff, 4, 4, false}, {0xffffffff, 0xfffe0000, 4, 4, true},
    {0xffffffff, 0x0000fffe, 0, 0, false}, {0xffffffff, 0xfeff0000, 0, 0, false},
    {0xffff0000, 0xfeff0000, 2, 2, false}, {0xffff0000, 0xfffe0000, 2, 2, true},
    {0xffffff00, 0xefbbbf00, 1, 3, false}, {0xffffff00, 0x00000000, 4, 0, false},
    {0x00ffffff, 0x00000000, 4, 0, true},  {0xff00ffff, 0x00000000, 0, 0, false},
    {0xffff00ff, 0x00000000, 0, 0, false}, {0xff000000, 0x00000000, 2, 0, false},
    {0x00ff0000, 0x00000000, 2, 0, true},
};

#define ENCODINGS (sizeof(encodings) / sizeof(encodings[0]))
/* The last ones are told by two bytes, and what has three or fewer by these alone. */
#define SHORT_ENCODINGS 2

static struct encoding encoding_of(const unsigned char *data, size_t len)
{
    static const struct encoding utf8 = {0, 0, 1, 0, false};
    size_t i = len < 4 ? ENCODINGS - SHORT_ENCODINGS : 0;
    uint32_t first = 0;

    if (len < 2)
        return utf8;
    for (size_t b = 0; b < 4; b++)
        first = first << 8 | (b < len ? data[b] : 0);
    while (i < ENCODINGS && (first & encodings[i].mask) != encodings[i].value)
        i++;
    return i < ENCODINGS ? encodings[i] : utf8;
}

static uint32_t unit_at(const struct encoding *encoding, const unsigned char *p)
{
    uint32_t c = 0;

    for (int i = 0; i < encoding->unit; i++)
        c = c << 8 | p[encoding->little ? encoding->unit - 1 - i : i];
    return c;
}

/* The next one of UTF-16. As Java's decoder has it, the first half of a pair takes what follows
 * with it, whatever that is. */
static uint32_t read_pair(struct reader *r, const struct encoding *encoding)
{
    uint32_t high = unit_at(encoding, r->p), low;

    r->p += encoding->unit;
    if (high < 0xd800 || high >= 0xdc00 || r->end - r->p < encoding->unit)
        return high;
    low = unit_at(encoding, r->p);
    r->p += encoding->unit;
    return low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                                         : REPLACEMENT;
}

/* As UTF-8. What is half a pair, or was cut off at the end, becomes U+FFFD. */
static int transcode(struct reader *r, const struct encoding *encoding, struct buf *out)
{
    while (r->end - r->p >= encoding->unit) {
        uint32_t c = encoding->unit == 2 ? read_pair(r, encoding) : unit_at(encoding, r->p);

        if (c > 0x10ffff)
            return wrong(r, "not UTF-32");
        if (encoding->unit == 4)
            r->p += encoding->unit;
        put_char(out, c);
    }
    if (r->p < r->end)
        put_char(out, REPLACEMENT);
    if (out->failed)
        return no_memory(r);
    r->begin = r->p = (const unsigned char *)(out->data != NULL ? out->data : "");
    r->end = r->p + out->len;
    return 0;
}

/* The reader stands behind a mark then, at UTF-8; out holds it where it was not before. */
static int begin(struct reader *r, struct buf *out)
{
    struct encoding encoding = encoding_of(r->p, (size_t)(r->end - r->p));

    if (encoding.unit == 0)
        return wrong(r, "in an encoding that nobody reads");
    r->p += encoding.skip;
    return encoding.unit == 1 ? 0 : transcode(r, &encoding, out);
}

/* --- numbers and words ------------------------------------------------------------------------ */

static size_t count_digits(struct reader *r)
{
    const unsigned char *from = r->p;

    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - from);
}

static json_t *real_of(const unsigned char *from, size_t len)
{
    char small[64];
    char *text = len < sizeof(small) ? small : malloc(len + 1);
    double d;

    if (text == NULL)
        return NULL;
    memcpy(text, from, len);
    text[len] = '\0';
    d = strtod(text, NULL);
    if (text != small)
        free(text);
    return json_real(d > DBL_MAX ? DBL_MAX : d < -DBL_MAX ? -DBL_MAX : d);
}

/* Low 64 bits, as BigInteger.longValue. */
static json_t *integer_of(const unsigned char *from, const unsigned char *end)
{
    bool negative = *from == '-';
    uint64_t value = 0;

    for (from += negative ? 1 : 0; from < end; from++)
        value = value * 10 + (uint64_t)(*from - '0');
    return json_integer((json_int_t)(negative ? 0 - value : value));
}

/* Behind digits and perhaps a fraction. Adds to digits. */
static int read_exponent(struct reader *r, size_t *digits)
{
    size_t n;

    r->p++;
    if (next(r) == '+' || next(r) == '-')
        r->p++;
    n = count_digits(r);
    *digits += n;
    return n > 0 ? 0 : wrong(r, "an exponent without digits");
}

static int read_number(struct reader *r, json_t **out)
{
    const unsigned char *from = r->p;
    size_t digits, n;
    bool real = false;
    int rc = 0;

    if (*r->p == '-')
        r->p++;
    digits = count_digits(r);
    if (digits == 0)
        return wrong(r, "a number without digits");
    if (next(r) == '.') {
        real = true;
        r->p++;
        n = count_digits(r);
        digits += n;
        if (n == 0)
            return wrong(r, "a fraction without digits");
    }
    if (next(r) == 'e' || next(r) == 'E') {
        real = true;
        rc = read_exponent(r, &digits);
    }
    if (rc == 0 && digits > DIGITS_MAX)
        return wrong(r, "a number of more than %d digits", DIGITS_MAX);
    if (rc != 0)
        return rc;
    *out = real ? real_of(from, (size_t)(r->p - from)) : integer_of(from, r->p);
    return *out != NULL ? 0 : no_memory(r);
}

/* May this byte go on a word? Then it is none of JSON's. */
static bool is_word_byte(int c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' ||
           c >= 0x80;
}

static int read_word(struct reader *r, json_t **out)
{
    static const char *const words[] = {"null", "true", "false"};

    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(words[i]);

        if ((size_t)(r->end - r->p) < len || memcmp(r->p, words[i], len) != 0)
            continue;
        r->p += len;
        if (is_word_byte(next(r)))
            break;
        *out = i == 0 ? json_null() : json_boolean(i == 1);
        return 0;
    }
    return wrong(r, next(r) < 0 ? "it ends in the middle" : "a value was expected");
}

/* --- values ----------------------------------------------------------------------------------- */

static int read_value(struct reader *r, json_t **out);

static int read_member(struct reader *r, json_t *object)
{
    json_t *value = NULL;
    char *name;
    int rc;

    if (next(r) != '"')
        return wrong(r, "a member's name was expected");
    rc = read_text(r, NAME_MAX_UNITS);
    if (rc != 0)
        return rc;
    for (char *nul; r->text.len > 0 && (nul = memchr(r->text.data, 0, r->text.len)) != NULL;)
        *nul = '?';
    name = strdup(r->text.data != NULL && r->text.len > 0 ? r->text.data : "");
    if (name == NULL)
        return no_memory(r);
    skip_space(r);
    if (next(r) != ':')
        rc = wrong(r, "a colon was expected");
    else {
        r->p++;
        rc = read_value(r, &value);
    }
    if (rc == 0 && json_object_set_new(object, name, value) != 0)
        rc = no_memory(r);
    free(name);
    return rc;
}

static int read_item(struct reader *r, json_t *array)
{
    json_t *value;
    int rc = read_value(r, &value);

    return rc != 0 ? rc : json_array_append_new(array, value) != 0 ? no_memory(r) : 0;
}

/* An object or an array, at its bracket. */
static int read_group(struct reader *r, json_t **out)
{
    bool object = *r->p == '{';
    int close = object ? '}' : ']', rc = 0;
    json_t *group = object ? json_object() : json_array();

    if (group == NULL)
        return no_memory(r);
    if (++r->depth > DEPTH_MAX)
        rc = wrong(r, "nested deeper than %d levels", DEPTH_MAX);
    r->p++;
    skip_space(r);
    if (rc == 0 && next(r) == close)
        r->p++;
    else
        while (rc == 0) {
            skip_space(r);
            rc = object ? read_member(r, group) : read_item(r, group);
            skip_space(r);
            if (rc == 0 && next(r) == close) {
                r->p++;
                break;
            }
            if (rc == 0 && next(r) != ',')
                rc = wrong(r, "a comma or the end of the %s was expected",
                           object ? "object" : "array");
            if (rc == 0)
                r->p++;
        }
    r->depth--;
    if (rc == 0)
        *out = group;
    else
        json_decref(group);
    return rc;
}

static int read_string(struct reader *r, json_t **out)
{
    int rc = read_text(r, TEXT_MAX_UNITS);

    if (rc != 0)
        return rc;
    *out = json_stringn_nocheck(r->text.data != NULL ? r->text.data : "", r->text.len);
    return *out != NULL ? 0 : no_memory(r);
}

static int read_value(struct reader *r, json_t **out)
{
    int c;

    skip_space(r);
    c = next(r);
    if (c == '{' || c == '[')
        return read_group(r, out);
    if (c == '"')
        return read_string(r, out);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, out);
    return read_word(r, out);
}

/* What may stand behind the document: anything, but right behind a number only white space. */
static int check_end(struct reader *r, const json_t *value)
{
    if (!json_is_number(value) || r->p == r->end)
        return 0;
    return *r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'
               ? 0
               : wrong(r, "a blank was expected behind the number");
}

int stored_json_parse(const void *data, size_t len, json_t **out, struct mr_error *err)
{
    struct mr_error own = {0};
    struct reader r = {.begin = data, .p = data, .err = err != NULL ? err : &own};
    json_t *value = NULL;
    struct buf utf8;
    int rc;

    if (len == 0) {
        *out = NULL;
        return 0;
    }
    r.end = r.begin + len;
    buf_init(&r.text, len * 3 + 4); /* a surrogate written as \uD800 is the longest way */
    buf_init(&utf8, len * 3 + 4);
    rc = begin(&r, &utf8);
    if (rc == 0)
        skip_space(&r);
    if (rc == 0 && r.p < r.end)
        rc = read_value(&r, &value);
    if (rc == 0)
        rc = check_end(&r, value);
    buf_deinit(&r.text);
    buf_deinit(&utf8);
    if (rc != 0 || json_is_null(value)) {
        json_decref(value);
        value = NULL;
    }
    if (rc == 0)
        *out = value;
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* The shortest digits that give the same number, and where the point stands: 0.DIGITS times ten to
 * *point. */
static void shortest(double d, char digits[20], int *point)
{
    char text[40];
    size_t n = 0;

    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    for (const char *p = text; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    *point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
}

/* As Double.toString: plain from 0.001 up to ten million, else 1.0E7. */
static void write_real(struct buf *out, double d)
{
    char digits[20];
    int point, len;

    if (signbit(d)) {
        buf_putc(out, '-');
        d = -d;
    }
    shortest(d, digits, &point);
    len = (int)strlen(digits);
    if (d == 0)
        buf_puts(out, "0.0");
    else if (d < 1e-3 || d >= 1e7)
        buf_printf(out, "%c.%sE%d", digits[0], len > 1 ? digits + 1 : "0", point - 1);
    else if (point <= 0)
        buf_printf(out, "0.%.*s%s", -point, "00", digits);
    else if (len <= point)
        buf_printf(out, "%s%.*s.0", digits, point - len, "0000000");
    else
        buf_printf(out, "%.*s.%s", point, digits, digits + point);
}

static void write_group(struct buf *out, const json_t *group)
{
    bool object = json_is_object(group), first = true;
    json_t *value;
    size_t i;

    buf_putc(out, object ? '{' : '[');
    json_array_foreach(group, i, value)
    {
        if (i > 0)
            buf_putc(out, ',');
        stored_json_write(out, value);
    }
    for (void *it = json_object_iter((json_t *)(uintptr_t)group); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)group, it)) {
        json_t *name = json_string_nocheck(json_object_iter_key(it));

        mr_assert(name != NULL);
        if (!first)
            buf_putc(out, ',');
        first = false;
        json_write(out, name);
        json_decref(name);
        buf_putc(out, ':');
        stored_json_write(out, json_object_iter_value(it));
    }
    buf_putc(out, object ? '}' : ']');
}

int stored_json_write(struct buf *out, const json_t *value)
{
    if (json_is_object(value) || json_is_array(value))
        write_group(out, value);
    else if (json_is_real(value))
        write_real(out, json_real_value(value));
    else
        json_write(out, value);
    return out->failed ? MR_ERR_FULL : 0;
}
