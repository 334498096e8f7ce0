/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a backslash in a Java regular expression. Called by java_syntax.c and java_class.c;
 * pure.
 *
 * A table says what each letter is; letters that are not in it are errors, as in Java. \b asks for
 * letters and digits of any script, as JDK 17 does, but takes a combining mark for no part of the
 * word before it. */
#include "base/java_syntax_private.h"

#include <ctype.h>
#include <string.h>

#define WORD "[\\p{L}\\p{Nd}_]"
/* As ranges: PCRE2 10.42 takes [^\D\p{L}] for one that holds all characters beyond U+00FF. */
#define NOT_DIGIT "\\x{0}-/:-\\x{10ffff}"
#define NOT_BLANK "\\x{0}-\\x08\\x0e-\\x1f!-\\x{10ffff}"
#define NOT_WORD "\\x{0}-/:-@\\[-\\^`{-\\x{10ffff}"
#define CODE_POINT_MAX 0x10ffff

static int unknown(struct syntax *s)
{
    return syntax_fail(s, "Illegal/unsupported escape sequence");
}

static int character(struct escaped *e, uint32_t ch)
{
    e->kind = ESCAPED_CHAR;
    e->ch = ch;
    return 0;
}

static int hex(uint32_t ch)
{
    if (ch >= 128 || !isxdigit((int)ch))
        return -1;
    return ch <= '9' ? (int)ch - '0' : tolower((int)ch) - 'a' + 10;
}

static bool octal(uint32_t ch)
{
    return ch >= '0' && ch <= '7';
}

/* \0n, \0nn, \0mnn with m up to 3 */
static int zero(struct syntax *s, struct escaped *e)
{
    uint32_t first = syntax_read(s);
    uint32_t value = first - '0';

    if (!octal(first))
        return syntax_fail(s, "Illegal octal escape sequence");
    for (int i = 0; i < (first <= '3' ? 2 : 1); i++) {
        uint32_t ch = syntax_read(s);

        if (!octal(ch)) {
            s->at--;
            break;
        }
        value = value * 8 + (ch - '0');
    }
    return character(e, value);
}

/* \xhh, \x{h…h} */
static int two_digits(struct syntax *s, struct escaped *e)
{
    uint32_t ch = syntax_read(s);
    uint32_t value = 0;

    if (hex(ch) >= 0) {
        int low = hex(syntax_read(s));

        if (low >= 0)
            return character(e, (uint32_t)hex(ch) * 16 + (uint32_t)low);
    } else if (ch == '{' && hex(syntax_peek(s)) >= 0) {
        for (ch = syntax_read(s); hex(ch) >= 0; ch = syntax_read(s)) {
            value = value * 16 + (uint32_t)hex(ch);
            if (value > CODE_POINT_MAX)
                return syntax_fail(s, "Hexadecimal codepoint is too big");
        }
        return ch == '}' ? character(e, value)
                         : syntax_fail(s, "Unclosed hexadecimal escape sequence");
    }
    return syntax_fail(s, "Illegal hexadecimal escape sequence");
}

static int four_digits(struct syntax *s, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex(syntax_read(s));

        if (digit < 0)
            return syntax_fail(s, "Illegal Unicode escape sequence");
        *value = *value * 16 + (uint32_t)digit;
    }
    return 0;
}

/* \uhhhh, and two of them that are a pair */
static int utf16(struct syntax *s, struct escaped *e)
{
    uint32_t high, low;
    size_t behind;
    int rc = four_digits(s, &high);

    behind = s->at;
    if (rc == 0 && high >= 0xd800 && high <= 0xdbff && syntax_read(s) == '\\' &&
        syntax_read(s) == 'u') {
        rc = four_digits(s, &low);
        if (rc == 0 && low >= 0xdc00 && low <= 0xdfff)
            return character(e, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
    }
    s->at = behind;
    return rc != 0 ? rc : character(e, high);
}

static int control(struct syntax *s, struct escaped *e)
{
    if (s->at >= s->len)
        return syntax_fail(s, "Illegal control escape sequence");
    return character(e, syntax_read(s) ^ 64);
}

static int reference(const struct syntax *s, uint32_t group, struct escaped *e)
{
    e->kind = ESCAPED_TEXT;
    if (group > s->total) /* matches nothing, and is no error */
        snprintf(e->text, sizeof(e->text), "(?!)");
    else
        snprintf(e->text, sizeof(e->text),
                 s->flags & SYNTAX_IGNORE_CASE ? "(?i:\\%s%u%s)" : "(?:\\%s%u%s)", "g{", group,
                 "}");
    return 0;
}

/* \1 to \9, and more digits while there are that many groups so far */
static int numbered(struct syntax *s, uint32_t digit, struct escaped *e)
{
    uint32_t group = digit - '0';

    for (uint32_t ch = syntax_peek(s); ch >= '0' && ch <= '9'; ch = syntax_peek(s)) {
        if (group * 10 + (ch - '0') > s->result->groups)
            break;
        group = group * 10 + (ch - '0');
        syntax_read(s);
    }
    return reference(s, group, e);
}

int syntax_name(struct syntax *s, uint32_t ch, char *name, size_t size)
{
    size_t len = 0;

    if (ch >= 128 || !isalpha((int)ch))
        return syntax_fail(s, "capturing group name does not start with a Latin letter");
    for (; ch < 128 && isalnum((int)ch); ch = syntax_read(s)) {
        if (len == size - 1)
            return syntax_refuse(s, "a group name of more than 64 characters");
        name[len++] = (char)ch;
    }
    name[len] = '\0';
    return ch == '>' ? 0 : syntax_fail(s, "named capturing group is missing trailing '>'");
}

static int named(struct syntax *s, struct escaped *e)
{
    char name[65];
    int group;
    int rc;

    if (syntax_read(s) != '<')
        return syntax_fail(s, "\\k is not followed by '<' for named capturing group");
    rc = syntax_name(s, syntax_read(s), name, sizeof(name));
    if (rc != 0)
        return rc;
    group = java_syntax_group(s->result, name);
    if (group < 0)
        return syntax_fail(s, "named capturing group <%s> does not exist", name);
    return reference(s, (uint32_t)group, e);
}

static int text(struct escaped *e, enum escaped_kind kind, const char *z)
{
    e->kind = kind;
    snprintf(e->text, sizeof(e->text), "%s", z);
    return 0;
}

/* Letters that always stand for the same. */
static const struct {
    char letter;
    enum escaped_kind kind;
    uint32_t ch;
    const char *text;
} table[] = {
    {'a', ESCAPED_CHAR, 7, NULL},
    {'e', ESCAPED_CHAR, 27, NULL},
    {'f', ESCAPED_CHAR, '\f', NULL},
    {'n', ESCAPED_CHAR, '\n', NULL},
    {'r', ESCAPED_CHAR, '\r', NULL},
    {'t', ESCAPED_CHAR, '\t', NULL},
    {'d', ESCAPED_SET, 0, "\\d"},
    {'D', ESCAPED_SET, 0, NOT_DIGIT},
    {'h', ESCAPED_SET, 0, "\\h"},
    {'H', ESCAPED_SET, 0, "\\H"},
    {'s', ESCAPED_SET, 0, "\\s"},
    {'S', ESCAPED_SET, 0, NOT_BLANK},
    {'v', ESCAPED_SET, 0, "\\v"},
    {'V', ESCAPED_SET, 0, "\\V"},
    {'w', ESCAPED_SET, 0, "\\w"},
    {'W', ESCAPED_SET, 0, NOT_WORD},
    {'A', ESCAPED_TEXT, 0, "(?:\\A)"},
    {'G', ESCAPED_TEXT, 0, "(?:\\G)"},
    {'z', ESCAPED_TEXT, 0, "(?:\\z)"},
    {'X', ESCAPED_TEXT, 0, "\\X"},
    {'R', ESCAPED_TEXT, 0, "(?:\\r\\n|[\\n\\x0b\\f\\r\\x{85}\\x{2028}\\x{2029}])"},
    {'b', ESCAPED_TEXT, 0, "(?:(?<=" WORD ")(?!" WORD ")|(?<!" WORD ")(?=" WORD "))"},
    {'B', ESCAPED_TEXT, 0, "(?:(?<=" WORD ")(?=" WORD ")|(?<!" WORD ")(?!" WORD "))"},
};

static int letter(struct syntax *s, uint32_t ch, bool in_class, struct escaped *e)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if ((uint32_t)table[i].letter != ch)
            continue;
        if (table[i].kind == ESCAPED_TEXT && in_class)
            return unknown(s);
        return table[i].kind == ESCAPED_CHAR ? character(e, table[i].ch)
                                             : text(e, table[i].kind, table[i].text);
    }
    return unknown(s);
}

int syntax_escape(struct syntax *s, bool in_class, bool range, struct escaped *e)
{
    uint32_t ch = syntax_skip(s);

    if (ch == 0 && s->at > s->len)
        return syntax_fail(s, "Unexpected internal error");
    if (ch >= 128 || !isalnum((int)ch))
        return character(e, ch);
    if (ch >= '1' && ch <= '9')
        return in_class ? unknown(s) : numbered(s, ch, e);
    switch (ch) {
    case '0':
        return zero(s, e);
    case 'x':
        return two_digits(s, e);
    case 'u':
        return utf16(s, e);
    case 'c':
        return control(s, e);
    case 'k':
        return in_class ? unknown(s) : named(s, e);
    case 'N':
        return syntax_refuse(s, "\\N");
    case 'Z':
        return in_class ? unknown(s) : text(e, ESCAPED_TEXT, syntax_end(s));
    case 'v':
        return range ? character(e, '\v') : text(e, ESCAPED_SET, "\\v");
    case 'b':
        if (!in_class && s->chars[s->at] == '{')
            return syntax_refuse(s, "\\b{");
        break;
    default:
        break;
    }
    return letter(s, ch, in_class, e);
}
