/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text to a tree of values: JsonConverter's first step on the way in, on the task's thread.
 *
 * Recursive descent over the bytes. Members and items of a container gather on a stack that the
 * reader keeps between documents; when the container closes, the arena gets them in one piece. So a
 * document costs no malloc, text without escapes is not copied, and each byte is looked at once.
 *
 * What is accepted is what Jackson 2.21 accepts as Kafka's JsonConverter configures it, tried on
 * the Java class: leading zeros, overlong UTF-8, anything behind a complete document. Nothing here
 * recurses deeper than the nesting limit, and no loop over hostile input is quadratic (names go
 * through a hash table where there are many, and none can be made to collide in it). */
#include "record_json.h"

#include <millrace/hash.h>

#include <stdlib.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define FEW_NAMES 16u /* compared one by one up to here */
#define STACK_FIRST 256u
#define STACK_KEEP 65536u /* values; more is given back after the document */

bool record_json_fail(struct record_json *r, const char *at, const char *problem)
{
    snprintf(r->problem, sizeof(r->problem), "%s", problem);
    r->problem_at = at;
    return false;
}

/* --- white space and the stack ---------------------------------------------------------------- */

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

int record_json_peek(struct record_json *r)
{
    while (r->p < r->end && is_blank((unsigned char)*r->p))
        r->p++;
    return r->p < r->end ? (unsigned char)*r->p : -1;
}

/* The same; mostly there is no white space. */
static inline int peek(struct record_json *r)
{
    return r->p < r->end && (unsigned char)*r->p > ' ' ? (unsigned char)*r->p : record_json_peek(r);
}

static bool stack_grow(struct record_json *r)
{
    size_t cap = r->cap == 0 ? STACK_FIRST : r->cap * 2;
    struct mr_value *stack;

    if (cap > RECORD_JSON_MAX_VALUES)
        return record_json_fail(r, r->p, "too many values in one document");
    stack = realloc(r->stack, cap * sizeof(*stack));
    if (stack == NULL)
        return record_json_fail(r, r->p, "out of memory");
    r->stack = stack;
    r->cap = cap;
    return true;
}

/* Room for one more value on the stack, where it is then written in place: whoever copies a value
 * that was just put together waits for its parts to leave the processor's store buffer. */
static inline bool has_room(struct record_json *r)
{
    return r->used < r->cap || stack_grow(r);
}

static inline void set(struct mr_value *to, uint8_t kind, size_t len)
{
    to->kind = kind;
    to->flags = 0;
    to->reserved = 0;
    to->len = (uint32_t)len;
}

static inline void set_ptr(struct mr_value *to, uint8_t kind, const void *p, size_t len)
{
    set(to, kind, len);
    to->u.p = p;
}

static inline void set_int(struct mr_value *to, uint8_t kind, int64_t i)
{
    set(to, kind, 0);
    to->u.i = i;
}

static inline void set_double(struct mr_value *to, double d)
{
    set(to, MR_KIND_FLOAT64, 0);
    to->u.d = d;
}

/* --- names ------------------------------------------------------------------------------------ */

static inline bool same_text(const struct mr_value *a, const struct mr_value *b)
{
    return a->len == b->len && (a->len == 0 || (*(const char *)a->u.p == *(const char *)b->u.p &&
                                                memcmp(a->u.p, b->u.p, a->len) == 0));
}

/* Last wins, in the place of the first: as Jackson's ObjectNode keeps it. */
static size_t merge_few(struct mr_pair *pairs, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = 0;

        while (at < kept && !same_text(&pairs[at].key, &pairs[i].key))
            at++;
        if (at < i)
            pairs[at] = pairs[i];
        kept += at == kept;
    }
    return kept;
}

/* A zeroed table for twice as many entries as will be put in. */
static uint32_t *table_new(struct mr_arena *arena, size_t count, size_t *size)
{
    uint32_t *slots;

    *size = 64;
    while (*size < 2 * count)
        *size *= 2;
    slots = (uint32_t *)mr_alloc(arena, *size * sizeof(*slots));
    memset(slots, 0, *size * sizeof(*slots));
    return slots;
}

/* The slot of a name: its own, or the free one where it belongs. */
static uint32_t *table_slot(uint32_t *slots, size_t size, const struct mr_pair *pairs,
                            const struct mr_value *name)
{
    size_t at = (size_t)mr_hash(mr_hash_seed(slots), name->u.p, name->len) & (size - 1);

    while (slots[at] != 0 && !same_text(&pairs[slots[at] - 1].key, name))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

static size_t merge_many(struct record_json *r, struct mr_pair *pairs, size_t count)
{
    size_t size, kept = 0;
    uint32_t *slots = table_new(r->arena, count, &size);

    for (size_t i = 0; i < count; i++) {
        uint32_t *slot = table_slot(slots, size, pairs, &pairs[i].key);

        if (*slot == 0)
            *slot = (uint32_t)++kept;
        pairs[*slot - 1] = pairs[i];
    }
    return kept;
}

void record_json_members(struct record_json_members *members, struct mr_arena *arena,
                         struct mr_value tree)
{
    members->pairs = mr_pairs(tree);
    members->count = tree.len;
    members->slots = NULL;
    members->size = 0;
    if (tree.len <= FEW_NAMES)
        return;
    members->slots = table_new(arena, tree.len, &members->size);
    for (uint32_t i = 0; i < tree.len; i++)
        *table_slot(members->slots, members->size, members->pairs, &members->pairs[i].key) = i + 1;
}

const struct mr_pair *record_json_member(const struct record_json_members *members,
                                         const char *name, uint32_t hint)
{
    const struct mr_value wanted = mr_str(name);
    const struct mr_pair *pairs = members->pairs;

    if (hint < members->count && same_text(&pairs[hint].key, &wanted))
        return &pairs[hint];
    if (members->slots != NULL) {
        uint32_t found = *table_slot(members->slots, members->size, pairs, &wanted);

        return found == 0 ? NULL : &pairs[found - 1];
    }
    for (uint32_t i = 0; i < members->count; i++)
        if (same_text(&pairs[i].key, &wanted))
            return &pairs[i];
    return NULL;
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Behind the bytes that stand for themselves in a string: all but controls, quotes, backslashes and
 * what is not ASCII. Blocks: true with *at at a byte that does not, false where too little is left
 * for a block (or, without SSE2, a block has such a byte). */
#if defined(__SSE2__)
static inline bool skip_blocks(const char **at, const char *end)
{
    const char *p = *at;
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                  control = _mm_set1_epi8(0x1f);

    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i found =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash)),
                         _mm_cmpeq_epi8(_mm_min_epu8(block, control), block));
        /* Block: its high bits. */
        unsigned marks = (unsigned)_mm_movemask_epi8(_mm_or_si128(found, block));

        if (marks != 0) {
            *at = p + __builtin_ctz(marks);
            return true;
        }
    }
    *at = p;
    return false;
}
#else
static inline bool skip_blocks(const char **at, const char *end)
{
    const char *p = *at;
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t word, marks;

    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, sizeof(word));
        marks =
            (((word - ones * 0x20) | ((word ^ ones * '"') - ones) | ((word ^ ones * '\\') - ones)) &
             ~word & highs) |
            (word & highs); /* the lowest mark is never a false one */
        if (marks != 0)
            break;
    }
    *at = p;
    return false;
}
#endif

static inline const char *skip_plain(const char *p, const char *end)
{
    if (skip_blocks(&p, end))
        return p;
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\')
        p++;
    return p;
}

/* A UTF-8 sequence as Jackson decodes it: it looks at the lead and at the high bits of the rest
 * only. *len bytes; negative: not accepted. */
static int32_t decode(const unsigned char *p, const char *end, int *len)
{
    ptrdiff_t left = end - (const char *)p;
    int need = (p[0] & 0xe0) == 0xc0   ? 2
               : (p[0] & 0xf0) == 0xe0 ? 3
               : (p[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    int32_t code;

    if (need == 0 || left < need)
        return -1;
    code = p[0] & (0xff >> (need + 1));
    for (int i = 1; i < need; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (p[i] & 0x3f);
    }
    *len = need;
    return need == 3 && code >= 0xd800 && code < 0xe000 ? -1 : code;
}

/* Is it UTF-8 as the standard has it, so that the bytes may stay as they are? */
static bool is_proper(int32_t code, int len)
{
    return code >= (len == 2 ? 0x80 : len == 3 ? 0x800 : 0x10000) && code < 0x110000;
}

static char *put_code(char *to, int32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* What Jackson makes of a four-byte sequence outside Unicode: the two UTF-16 units that its
 * arithmetic gives. */
static char *put_wild(char *to, int32_t code)
{
    int32_t rest = code - 0x10000;
    int32_t high = (0xd800 | rest >> 10) & 0xffff, low = 0xdc00 | (rest & 0x3ff);

    if (high >= 0xd800 && high < 0xdc00)
        return put_code(to, 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)));
    return put_code(put_code(to, high), low);
}

/* Four hex digits; negative: not. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t code = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i] | 0x20;
        int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0'
                    : c >= 'a' && c <= 'f'     ? c - 'a' + 10
                                               : -1;

        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* "\uXXXX" at p (behind "\u"), with the low half of a pair when it follows. A half without the
 * other stays as three bytes, which the writer turns back into an escape; in a name Jackson refuses
 * it. */
static bool unicode_escape(struct record_json *r, char **to, bool name)
{
    int32_t code = hex4(r->p, r->end), low;

    if (code < 0)
        return record_json_fail(r, r->p, "expected four hexadecimal digits after \\u");
    r->p += 4;
    if (code >= 0xd800 && code < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' &&
        r->p[1] == 'u') {
        low = hex4(r->p + 2, r->end);
        if (low >= 0xdc00 && low < 0xe000) {
            r->p += 6;
            *to = put_code(*to, 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00)));
            return true;
        }
    }
    if (name && !r->wide && code >= 0xd800 && code < 0xe000)
        return record_json_fail(r, r->p - 6, "half of a surrogate pair in a member's name");
    *to = put_code(*to, code);
    return true;
}

static bool escape(struct record_json *r, char **to, bool name)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (++r->p == r->end)
        return record_json_fail(r, r->p, "the document ends in an escape sequence");
    if (*r->p == 'u') {
        r->p++;
        return unicode_escape(r, to, name);
    }
    found = *r->p == '\0' ? NULL : strchr(from, *r->p);
    if (found == NULL)
        return record_json_fail(r, r->p, "unknown escape sequence");
    *(*to)++ = into[found - from];
    r->p++;
    return true;
}

static bool string_end(const char *start, const char *from, const char *end, const char **quote)
{
    const char *p = from;

    while ((p = skip_plain(p, end)) < end && *p != '"') {
        if (*p == '\\')
            p++;
        if (p < end)
            p++;
    }
    *quote = p;
    return p < end && p >= start;
}

/* Rewrite a string that holds escapes or odd UTF-8. begin is behind the opening quote, r->p at the
 * first oddity. */
static bool string_copy(struct record_json *r, const char *begin, bool name, struct mr_value *out)
{
    const char *quote;
    char *copy, *to;

    if (!string_end(begin, r->p, r->end, &quote))
        return record_json_fail(r, r->end, "the document ends in a string");
    /* put_wild makes 6 bytes of 4. */
    copy = (char *)mr_alloc(r->arena, (size_t)(quote - begin) / 2 * 3 + 8);
    to = copy + (r->p - begin);
    memcpy(copy, begin, (size_t)(r->p - begin));
    for (;;) {
        const char *plain = skip_plain(r->p, r->end);
        int32_t code;
        int len = 0;

        memcpy(to, r->p, (size_t)(plain - r->p));
        to += plain - r->p;
        r->p = plain;
        if (plain == r->end)
            return record_json_fail(r, r->end, "the document ends in a string");
        if (*plain == '"')
            break;
        if (*plain == '\\') {
            if (!escape(r, &to, name))
                return false;
            continue;
        }
        if ((unsigned char)*plain < 0x20)
            return record_json_fail(r, plain, "a control character in a string must be escaped");
        code = decode((const unsigned char *)plain, r->end, &len);
        if (code < 0 || (name && len == 4 && !is_proper(code, len))) /* no half pairs in a name */
            return record_json_fail(r, plain, "invalid UTF-8");
        to = len == 4 && !is_proper(code, len) ? put_wild(to, code) : put_code(to, code);
        r->p += len;
    }
    r->p++;
    set_ptr(out, MR_KIND_STRING, copy, (size_t)(to - copy));
    return true;
}

static size_t utf16_units(const char *p, size_t len)
{
    size_t units = 0;

    for (size_t i = 0; i < len; i++)
        units += ((p[i] & 0xc0) != 0x80) + ((p[i] & 0xf8) == 0xf0);
    return units;
}

/* From the first byte on that does not stand for itself, or from the end of a long string. */
static bool string_rest(struct record_json *r, const char *begin, bool name, struct mr_value *out)
{
    for (;;) {
        int32_t code;
        int len = 0;

        r->p = skip_plain(r->p, r->end);
        if (r->p == r->end)
            return record_json_fail(r, r->end, "the document ends in a string");
        if (*r->p == '"') {
            set_ptr(out, MR_KIND_STRING, begin, (size_t)(r->p - begin));
            r->p++;
            break;
        }
        code =
            (unsigned char)*r->p >= 0x80 ? decode((const unsigned char *)r->p, r->end, &len) : -1;
        if (code < 0 || !is_proper(code, len)) {
            if (!string_copy(r, begin, name, out))
                return false;
            break;
        }
        r->p += len;
    }
    if (name && out->len > RECORD_JSON_MAX_NAME)
        return record_json_fail(r, begin, "a member's name is longer than 50000 bytes");
    if (out->len > RECORD_JSON_MAX_STRING &&
        utf16_units((const char *)out->u.p, out->len) > RECORD_JSON_MAX_STRING)
        return record_json_fail(r, begin, "a string is longer than 20000000 characters");
    return true;
}

/* A string; r->p at its opening quote. */
static inline bool read_string(struct record_json *r, bool name, struct mr_value *out)
{
    const char *begin = r->p + 1, *p = skip_plain(begin, r->end);

    r->p = p;
    if (p == r->end || *p != '"' || p - begin > RECORD_JSON_MAX_NAME)
        return string_rest(r, begin, name, out);
    set_ptr(out, MR_KIND_STRING, begin, (size_t)(p - begin));
    r->p = p + 1;
    return true;
}

/* --- numbers and literals --------------------------------------------------------------------- */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* The exponent behind 'e': BigDecimal takes ten digits, leading zeros apart, and a 32-bit scale. */
static bool exponent_fits(const char *p, size_t digits, bool negative, int64_t fraction)
{
    int64_t exp = 0;

    while (digits > 0 && *p == '0') {
        p++;
        digits--;
    }
    if (digits > 10)
        return false;
    for (; digits > 0; p++, digits--)
        exp = exp * 10 + (*p - '0');
    if (exp > INT32_MAX)
        return false;
    exp = fraction - (negative ? -exp : exp);
    return exp >= INT32_MIN && exp <= INT32_MAX;
}

/* A number such as 12.34 is an integer divided by a power of ten, rounded once. */
static inline bool short_fraction(struct record_json *r, bool negative, uint64_t value,
                                  size_t digits, struct mr_value *out)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = r->p + 1, *mark = p;
    double d;

    if (*r->p != '.' || digits > 15)
        return false;
    for (; is_digit(p, r->end); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    if (p == mark || digits + (size_t)(p - mark) > 15 || (p < r->end && (*p | 0x20) == 'e'))
        return false;
    d = (double)value / powers[p - mark];
    set_double(out, negative && value != 0 ? -d : d);
    r->p = p;
    return true;
}

/* The rest of a number behind its integer digits: point and exponent. */
static bool read_fraction(struct record_json *r, const char *begin, size_t digits,
                          struct mr_value *out)
{
    const char *mark = r->p;
    size_t fraction = 0, exponent = 0;
    bool negative = false;

    if (*r->p == '.') {
        for (mark = ++r->p; is_digit(r->p, r->end); r->p++)
            ;
        fraction = (size_t)(r->p - mark);
        if (fraction == 0)
            return record_json_fail(r, r->p, "expected a digit after the decimal point");
    }
    if (r->p < r->end && (*r->p | 0x20) == 'e') {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            negative = *r->p++ == '-';
        for (mark = r->p; is_digit(r->p, r->end); r->p++)
            ;
        exponent = (size_t)(r->p - mark);
        if (exponent == 0)
            return record_json_fail(r, r->p, "expected a digit in the exponent");
    }
    if (digits + fraction + exponent > RECORD_JSON_MAX_NUMBER)
        return record_json_fail(r, begin, "a number is longer than 1000 digits");
    if (exponent > 0 && !exponent_fits(mark, exponent, negative, (int64_t)fraction))
        return record_json_fail(r, begin, "the exponent of a number is out of range");
    if (r->plain)
        set_double(out, record_json_double(begin, (size_t)(r->p - begin)));
    else
        set_ptr(out, JSON_FRACTION, begin, (size_t)(r->p - begin));
    return true;
}

static inline bool read_number(struct record_json *r, struct mr_value *out)
{
    const char *begin = r->p, *first;
    uint64_t value = 0;
    size_t digits;

    if (*r->p == '-' && !is_digit(++r->p, r->end))
        return record_json_fail(r, r->p, "expected a digit after the minus sign");
    while (*r->p == '0' && is_digit(r->p + 1, r->end))
        r->p++;
    for (first = r->p; is_digit(r->p, r->end); r->p++)
        value = value * 10 + (uint64_t)(*r->p - '0');
    digits = (size_t)(r->p - first);
    if (r->p < r->end && (*r->p == '.' || (*r->p | 0x20) == 'e'))
        return (r->plain && short_fraction(r, *begin == '-', value, digits, out)) ||
               read_fraction(r, begin, digits, out);
    if (digits > RECORD_JSON_MAX_NUMBER)
        return record_json_fail(r, begin, "a number is longer than 1000 digits");
    if (digits > 18 && !r->plain)
        set_ptr(out, JSON_BIGINT, begin, (size_t)(r->p - begin));
    else
        set_int(out, MR_KIND_INT64, (int64_t)(*begin == '-' ? 0 - value : value));
    return true;
}

/* A letter or digit right behind a literal would make another word of it. */
static bool word_goes_on(const struct record_json *r)
{
    unsigned char c = r->p < r->end ? (unsigned char)*r->p : ' ';

    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c >= 0x7f;
}

static inline bool read_literal(struct record_json *r, const char *word, size_t len)
{
    if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len) != 0)
        return record_json_fail(r, r->p, "unknown word: expected true, false or null");
    r->p += len;
    return !word_goes_on(r) ||
           record_json_fail(r, r->p, "unknown word: expected true, false or null");
}

/* --- containers ------------------------------------------------------------------------------- */

/* One value, onto the stack. */
static bool read_item(struct record_json *r);

bool record_json_enter(struct record_json *r)
{
    if (r->depth >= RECORD_JSON_MAX_DEPTH)
        return record_json_fail(r, r->p, "nested deeper than 1000 levels");
    r->depth++;
    r->p++;
    return true;
}

static inline bool read_name(struct record_json *r, struct mr_value *out)
{
    if (peek(r) != '"')
        return record_json_fail(r, r->p, "expected a member's name in double quotes");
    if (!read_string(r, true, out))
        return false;
    if (peek(r) != ':')
        return record_json_fail(r, r->p, "expected a colon after a member's name");
    r->p++;
    return true;
}

bool record_json_name(struct record_json *r, struct mr_value *out)
{
    return read_name(r, out);
}

/* Behind an item: true with *more, or false at anything but a comma and the closing bracket. */
static inline bool next_item(struct record_json *r, char close, bool *more)
{
    int c = peek(r);

    if (c != ',' && c != close)
        return record_json_fail(r, r->p,
                                c < 0          ? "the document ends in an object or array"
                                : close == '}' ? "expected a comma or } after a member"
                                               : "expected a comma or ] after an item");
    r->p++;
    *more = c == ',';
    return true;
}

/* The pairs from base on become one value there. */
static void close_object(struct record_json *r, size_t base)
{
    size_t count = (r->used - base) / 2;
    struct mr_pair *pairs = (struct mr_pair *)(void *)(r->stack + base);
    void *copy;

    if (count > 1)
        count = count <= FEW_NAMES ? merge_few(pairs, count) : merge_many(r, pairs, count);
    copy = mr_alloc(r->arena, count * sizeof(*pairs));
    memcpy(copy, pairs, count * sizeof(*pairs));
    set_ptr(&r->stack[base], MR_KIND_MAP, copy, count);
    r->used = base + 1;
}

static bool read_object(struct record_json *r)
{
    size_t base = r->used;
    bool more = true;

    if (!record_json_enter(r))
        return false;
    if (peek(r) == '}') {
        r->p++;
        more = false;
    }
    while (more) {
        if (!has_room(r) || !read_name(r, &r->stack[r->used]))
            return false;
        r->used++;
        if (!read_item(r) || !next_item(r, '}', &more))
            return false;
    }
    r->depth--;
    close_object(r, base);
    return true;
}

static void close_array(struct record_json *r, size_t base)
{
    size_t count = r->used - base;
    void *copy = mr_alloc(r->arena, count * sizeof(struct mr_value));

    memcpy(copy, r->stack + base, count * sizeof(struct mr_value));
    set_ptr(&r->stack[base], MR_KIND_LIST, copy, count);
    r->used = base + 1;
}

static bool read_array(struct record_json *r)
{
    size_t base = r->used;
    bool more = true;

    if (!record_json_enter(r))
        return false;
    if (peek(r) == ']') {
        r->p++;
        more = false;
    }
    while (more)
        if (!read_item(r) || !next_item(r, ']', &more))
            return false;
    r->depth--;
    close_array(r, base);
    return true;
}

/* Anything but a container, into *out. */
static inline bool read_scalar(struct record_json *r, int first, struct mr_value *out)
{
    switch (first) {
    case '"':
        return read_string(r, false, out);
    case 't':
        set_int(out, MR_KIND_BOOL, 1);
        return read_literal(r, "true", 4);
    case 'f':
        set_int(out, MR_KIND_BOOL, 0);
        return read_literal(r, "false", 5);
    case 'n':
        set_int(out, MR_KIND_NULL, 0);
        return read_literal(r, "null", 4);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return read_number(r, out);
    case -1:
        return record_json_fail(r, r->end, "the document ends where a value is expected");
    default:
        return record_json_fail(r, r->p, "expected a value");
    }
}

static bool read_item(struct record_json *r)
{
    int first = peek(r);

    if (!has_room(r))
        return false;
    if (first == '{')
        return read_object(r);
    if (first == '[')
        return read_array(r);
    return read_scalar(r, first, &r->stack[r->used++]);
}

/* --- documents -------------------------------------------------------------------------------- */

void record_json_deinit(struct record_json *r)
{
    free(r->stack);
    memset(r, 0, sizeof(*r));
}

/* What a rare huge document needed isn't kept for ever. */
static void stack_trim(struct record_json *r)
{
    if (r->cap <= STACK_KEEP)
        return;
    free(r->stack);
    r->stack = NULL;
    r->cap = 0;
}

void record_json_open(struct record_json *r, struct mr_arena *arena, const char *data, size_t len,
                      bool plain)
{
    stack_trim(r);
    r->start = r->p = data;
    r->end = data + len;
    r->arena = arena;
    r->used = 0;
    r->depth = 0;
    r->plain = plain;
    r->problem[0] = '\0';
    r->problem_at = data;
}

bool record_json_value(struct record_json *r, struct mr_value *out)
{
    const struct mr_value *top;

    if (!read_item(r))
        return false;
    top = &r->stack[--r->used];
    out->u.p = top->u.p; /* each part as it was written: see has_room */
    set(out, top->kind, top->len);
    return true;
}

bool record_json_read(struct record_json *r, struct mr_arena *arena, const char *data, size_t len,
                      bool plain, struct mr_value *out)
{
    bool number;
    int c;

    record_json_open(r, arena, data, len, plain);
    c = record_json_peek(r);
    if (c < 0) {
        *out = mr_make(JSON_MISSING, 0);
        return true;
    }
    number = c == '-' || (c >= '0' && c <= '9');
    if (!record_json_value(r, out))
        return false;
    if (number && r->p < r->end && !is_blank((unsigned char)*r->p))
        return record_json_fail(r, r->p, "expected white space after a number");
    return true;
}
