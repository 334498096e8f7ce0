/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a regular expression as java.util.regex.Pattern does and writes it for PCRE2.
 *
 * Java's grammar is read whole, since the two agree on less than they seem to: what is a syntax
 * error, what a flag covers, which characters end a line, what brackets hold. Nothing is left to
 * the library's own reading: every piece is written as one that means the same alone and before a
 * quantifier, flags are resolved here, names of groups become numbers. The reader goes over the
 * expression twice, because whether \12 is a reference depends on how many groups there are.
 * java_escape.c knows what follows a backslash, java_property.c \p, java_class.c brackets. Called
 * by java_pattern.c. Pure. */
#include "base/java_syntax_private.h"
#include "base/text.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 350    /* of an expression, in a message */
#define REPEAT_MAX 65535 /* the library's */
#define LINE_END_SET "\\n\\r\\x{85}\\x{2028}\\x{2029}"

/* --- reading ---------------------------------------------------------------------------------- */

/* What Java calls the length of the text. */
static size_t utf16_length(const char *z)
{
    size_t n = 0;

    for (; *z != '\0'; z++)
        n += (*z & 0xc0) != 0x80 ? ((unsigned char)*z >= 0xf0 ? 2 : 1) : 0;
    return n;
}

/* Bytes of the expression that a message has room for. */
static int shown(const struct syntax *s)
{
    return (int)utf8_cut(s->regex, strlen(s->regex), SHOWN_MAX);
}

int syntax_fail(struct syntax *s, const char *fmt, ...)
{
    char why[200];
    char place[40] = "";
    char mark[SHOWN_MAX + 3] = "";
    va_list args;
    size_t index = s->at - 1;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (s->at > 0) /* Java has no place to show for the very beginning */
        snprintf(place, sizeof(place), " near index %zu", index);
    if (s->at > 0 && index < utf16_length(s->regex) && index <= SHOWN_MAX)
        snprintf(mark, sizeof(mark), "\n%*s^", (int)index, "");
    return mr_fail(s->err, MR_ERR_CONFIG, "%s%s\n%.*s%s", why, place, shown(s), s->regex, mark);
}

int syntax_refuse(struct syntax *s, const char *what)
{
    return mr_fail(s->err, MR_ERR_CONFIG,
                   "%s in a regular expression is not supported here, near index %zu of %.*s", what,
                   s->at, shown(s), s->regex);
}

static bool is_blank(uint32_t ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static bool ends_line(const struct syntax *s, uint32_t ch)
{
    if (s->flags & SYNTAX_UNIX_LINES)
        return ch == '\n';
    return ch == '\n' || ch == '\r' || ch == 0x85 || ch == 0x2028 || ch == 0x2029;
}

static void skip_blanks(struct syntax *s)
{
    while ((s->flags & SYNTAX_COMMENTS) && (is_blank(s->chars[s->at]) || s->chars[s->at] == '#')) {
        if (s->chars[s->at] == '#')
            while (s->at < s->len && !ends_line(s, s->chars[s->at]))
                s->at++;
        else
            s->at++;
    }
}

uint32_t syntax_peek(struct syntax *s)
{
    skip_blanks(s);
    return s->chars[s->at];
}

uint32_t syntax_next(struct syntax *s)
{
    s->at += s->at < s->len;
    return syntax_peek(s);
}

uint32_t syntax_read(struct syntax *s)
{
    uint32_t ch = syntax_peek(s);

    s->at += s->at <= s->len; /* one behind the end, where Java reports from */
    return ch;
}

uint32_t syntax_skip(struct syntax *s)
{
    uint32_t ch = s->chars[s->at + 1];

    s->at += s->at + 2 <= s->len + 1 ? 2 : 1;
    return ch;
}

/* --- writing ---------------------------------------------------------------------------------- */

void syntax_char(struct buf *out, uint32_t ch)
{
    if (ch >= 0xd800 && ch <= 0xdfff) /* half of a pair stands in no UTF-8 */
        ch = 0xfdd0;                  /* and this is no character either */
    if (ch < 128 && isalnum((int)ch))
        buf_putc(out, (char)ch);
    else
        buf_printf(out, "\\x{%x}", ch);
}

void syntax_literal(struct syntax *s, uint32_t ch)
{
    bool fold = s->flags & SYNTAX_IGNORE_CASE;
    bool wide = s->flags & SYNTAX_UNICODE_CASE;

    if (fold && wide && (ch == 'i' || ch == 'I' || ch == 0x130 || ch == 0x131))
        buf_puts(s->out, "[" SYNTAX_EVERY_I "]");
    else if (fold && wide)
        buf_printf(s->out, "(?i:\\x{%x})", ch);
    else if (fold && ch < 128 && isalpha((int)ch))
        buf_printf(s->out, "[%c%c]", tolower((int)ch), toupper((int)ch));
    else
        syntax_char(s->out, ch);
}

const char *syntax_end(const struct syntax *s)
{
    return s->flags & SYNTAX_UNIX_LINES
               ? "(?:(?=\\z|\\n\\z))"
               : "(?:(?=\\z|\\r\\n\\z|[\\r\\x{85}\\x{2028}\\x{2029}]\\z|(?<!\\r)\\n\\z))";
}

static const char *caret(const struct syntax *s)
{
    if (!(s->flags & SYNTAX_MULTILINE))
        return "(?:\\A)";
    return s->flags & SYNTAX_UNIX_LINES
               ? "(?:(?!\\z)(?:\\A|(?<=\\n)))"
               : "(?:(?!\\z)(?:\\A|(?<=[\\n\\x{85}\\x{2028}\\x{2029}])|(?<=\\r)(?!\\n)))";
}

static const char *dollar(const struct syntax *s)
{
    if (!(s->flags & SYNTAX_MULTILINE))
        return syntax_end(s);
    return s->flags & SYNTAX_UNIX_LINES ? "(?:(?=\\z|\\n))"
                                        : "(?:(?=\\z|[\\r\\x{85}\\x{2028}\\x{2029}]|(?<!\\r)\\n))";
}

static const char *dot(const struct syntax *s)
{
    if (s->flags & SYNTAX_DOTALL)
        return ".";
    return s->flags & SYNTAX_UNIX_LINES ? "[^\\n]" : "[^" LINE_END_SET "]";
}

/* --- quantifiers ------------------------------------------------------------------------------ */

static int number(struct syntax *s, uint32_t *ch, uint64_t *value)
{
    for (*value = 0; *ch >= '0' && *ch <= '9'; *ch = syntax_read(s)) {
        *value = *value * 10 + (*ch - '0');
        if (*value > INT32_MAX)
            return syntax_fail(s, "Illegal repetition range");
    }
    return 0;
}

/* At "{": {n}, {n,} or {n,m}. */
static int counted(struct syntax *s)
{
    uint32_t ch = syntax_skip(s);
    uint64_t least, most;
    bool open = false;
    int rc;

    if (ch < '0' || ch > '9')
        return syntax_fail(s, "Illegal repetition");
    rc = number(s, &ch, &least);
    most = least;
    if (rc == 0 && ch == ',') {
        ch = syntax_read(s);
        open = ch == '}';
        rc = number(s, &ch, &most);
    }
    if (rc != 0)
        return rc;
    if (ch != '}')
        return syntax_fail(s, "Unclosed counted closure");
    if (!open && most < least)
        return syntax_fail(s, "Illegal repetition range");
    if (least > REPEAT_MAX || (!open && most > REPEAT_MAX))
        return syntax_refuse(s, "a repetition of more than 65535");
    if (open)
        buf_printf(s->out, "{%u,}", (unsigned)least);
    else
        buf_printf(s->out, "{%u,%u}", (unsigned)least, (unsigned)most);
    return 0;
}

/* Behind any piece: the quantifier that may follow. */
static int quantifier(struct syntax *s)
{
    uint32_t ch = syntax_peek(s);
    int rc = 0;

    if (ch == '{') {
        rc = counted(s);
    } else if (ch == '?' || ch == '*' || ch == '+') {
        buf_putc(s->out, (char)ch);
        syntax_next(s);
    } else {
        return 0;
    }
    ch = rc == 0 ? syntax_peek(s) : 0;
    if (ch == '?' || ch == '+') {
        buf_putc(s->out, (char)ch);
        syntax_next(s);
    }
    return rc;
}

/* --- groups ----------------------------------------------------------------------------------- */

static int alternatives(struct syntax *s);

/* "(?ims-x": the flags that follow; false at one that is none. */
static int flags(struct syntax *s)
{
    static const struct {
        char letter;
        unsigned flag;
    } known[] = {{'i', SYNTAX_IGNORE_CASE}, {'d', SYNTAX_UNIX_LINES},   {'m', SYNTAX_MULTILINE},
                 {'s', SYNTAX_DOTALL},      {'u', SYNTAX_UNICODE_CASE}, {'x', SYNTAX_COMMENTS}};
    bool on = true;

    for (uint32_t ch = syntax_peek(s);; ch = syntax_next(s)) {
        size_t i = 0;

        if (ch == 'U' || ch == 'c')
            return syntax_refuse(s, ch == 'U' ? "the flag U" : "the flag c");
        if (ch == '-' && on) {
            on = false;
            continue;
        }
        while (i < sizeof(known) / sizeof(*known) && (uint32_t)known[i].letter != ch)
            i++;
        if (i == sizeof(known) / sizeof(*known))
            return 0;
        s->flags = on ? s->flags | known[i].flag : s->flags & ~known[i].flag;
    }
}

static int group_body(struct syntax *s, const char *open)
{
    int rc;

    if (s->depth == SYNTAX_DEPTH_MAX)
        return syntax_refuse(s, "more than 100 groups in groups");
    s->depth++;
    buf_puts(s->out, open);
    rc = alternatives(s);
    s->depth--;
    if (rc == 0 && syntax_read(s) != ')')
        rc = syntax_fail(s, "Unclosed group");
    buf_putc(s->out, ')');
    return rc;
}

static int named_group(struct syntax *s, uint32_t ch)
{
    char name[65];
    int rc = syntax_name(s, ch, name, sizeof(name));

    if (rc != 0)
        return rc;
    if (java_syntax_group(s->result, name) >= 0)
        return syntax_fail(s, "Named capturing group <%s> is already defined", name);
    if (s->result->name_count == JAVA_SYNTAX_NAMES_MAX)
        return syntax_refuse(s, "more than 200 named groups");
    s->result->numbers[s->result->name_count] = ++s->result->groups;
    s->result->names[s->result->name_count] = text_dup(name);
    s->result->name_count++;
    return group_body(s, "(");
}

/* Look-around is wrapped, so that a quantifier may follow. */
static int look(struct syntax *s, const char *open)
{
    int rc = group_body(s, open);

    buf_putc(s->out, ')');
    return rc;
}

/* Behind "(?": alone is set for flags that cover the rest of the group around. */
static int special_group(struct syntax *s, bool *alone)
{
    uint32_t ch = syntax_skip(s);
    int rc;

    switch (ch) {
    case ':':
        return group_body(s, "(?:");
    case '=':
        return look(s, "(?:(?=");
    case '!':
        return look(s, "(?:(?!");
    case '>':
        return group_body(s, "(?>");
    case '<':
        ch = syntax_read(s);
        return ch == '=' ? look(s, "(?:(?<=") : ch == '!' ? look(s, "(?:(?<!") : named_group(s, ch);
    case '$':
    case '@':
        return syntax_fail(s, "Unknown group type");
    default:
        s->at--;
        rc = flags(s);
        ch = rc == 0 ? syntax_read(s) : 0;
        *alone = ch == ')';
        if (rc != 0 || *alone)
            return rc;
        return ch == ':' ? group_body(s, "(?:") : syntax_fail(s, "Unknown inline modifier");
    }
}

/* At "(". */
static int group(struct syntax *s)
{
    unsigned before = s->flags;
    bool alone = false;
    int rc;

    if (syntax_next(s) == '?') {
        rc = special_group(s, &alone);
    } else {
        s->result->groups++;
        rc = group_body(s, "(");
    }
    if (rc != 0 || alone)
        return rc;
    s->flags = before;
    return quantifier(s);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static int backslash(struct syntax *s)
{
    struct escaped e;
    uint32_t ch = s->chars[s->at + 1];
    int rc;

    if (ch == 'p' || ch == 'P') {
        buf_puts(s->out, ch == 'P' ? "[^" : "[");
        s->at++;
        rc = syntax_property(s, s->out);
        buf_putc(s->out, ']');
        return rc;
    }
    rc = syntax_escape(s, false, false, &e);
    if (rc != 0)
        return rc;
    if (e.kind == ESCAPED_CHAR)
        syntax_literal(s, e.ch);
    else if (e.kind == ESCAPED_SET)
        buf_printf(s->out, "[%s]", e.text);
    else
        buf_puts(s->out, e.text);
    return 0;
}

/* What stands before a quantifier, and is no group. */
static int piece(struct syntax *s, uint32_t ch)
{
    switch (ch) {
    case '[':
        return syntax_class(s, s->out);
    case '\\':
        return backslash(s);
    case '^':
        buf_puts(s->out, caret(s));
        break;
    case '$':
        buf_puts(s->out, dollar(s));
        break;
    case '.':
        buf_puts(s->out, dot(s));
        break;
    case '?':
    case '*':
    case '+':
        syntax_next(s);
        return syntax_fail(s, "Dangling meta character '%c'", (char)ch);
    case '{': /* repeats nothing, and may */
        buf_puts(s->out, "(?:)");
        return 0;
    default:
        syntax_literal(s, ch);
    }
    syntax_next(s);
    return 0;
}

static int alternatives(struct syntax *s)
{
    int rc = 0;

    while (rc == 0) {
        uint32_t ch = syntax_peek(s);

        if (s->at >= s->len || ch == ')')
            return 0;
        if (ch == '(') {
            rc = group(s);
        } else if (ch == '|') {
            buf_putc(s->out, '|');
            syntax_next(s);
        } else {
            rc = piece(s, ch);
            rc = rc != 0 ? rc : quantifier(s);
        }
        if (rc == 0 && s->out->failed)
            rc = syntax_refuse(s, "so much");
    }
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_quote(const uint32_t *p, size_t left, char letter)
{
    return left >= 2 && p[0] == '\\' && p[1] == (uint32_t)letter;
}

/* Write \Q…\E as escaped characters, in place of chars; as Java does before all else. */
static size_t unquote(const uint32_t *from, size_t len, uint32_t *to)
{
    size_t n = 0;
    bool quoted = false;
    bool begins = false;

    for (size_t i = 0; i < len;) {
        if (!quoted && is_quote(from + i, len - i, 'Q')) {
            quoted = begins = true;
            i += 2;
            continue;
        }
        if (quoted && is_quote(from + i, len - i, 'E')) {
            quoted = false;
            i += 2;
            continue;
        }
        if (quoted && begins && from[i] >= '0' && from[i] <= '9') { /* no part of \1 before it */
            to[n++] = '\\';
            to[n++] = 'x';
            to[n++] = '3';
        } else if (quoted && from[i] < 128 && !isalnum((int)from[i])) {
            to[n++] = '\\';
        } else if (!quoted && from[i] == '\\' && i + 1 < len) {
            to[n++] = from[i++];
        }
        to[n++] = from[i++];
        begins = false;
    }
    return n;
}

static int decode(struct syntax *s)
{
    size_t bytes = strlen(s->regex);
    uint32_t *raw = calloc(bytes + 1, sizeof(*raw));
    size_t len = 0;

    s->chars = calloc(bytes * 4 + 4, sizeof(*s->chars));
    mr_assert(raw != NULL && s->chars != NULL);
    for (const char *p = s->regex; *p != '\0';) {
        int n = utf8_char(p, strlen(p) > 4 ? 4 : strlen(p));
        uint32_t ch = (unsigned char)*p;

        if (n <= 0) {
            free(raw);
            return mr_fail(s->err, MR_ERR_CONFIG, "A regular expression is not UTF-8");
        }
        ch &= n == 1 ? 0x7fu : 0xffu >> (n + 1);
        for (int i = 1; i < n; i++)
            ch = ch << 6 | ((unsigned char)p[i] & 0x3f);
        raw[len++] = ch;
        p += n;
    }
    s->len = unquote(raw, len, s->chars);
    free(raw);
    return 0;
}

static int pass(struct syntax *s)
{
    int rc;

    java_syntax_deinit(s->result);
    buf_reset(s->out);
    buf_puts(s->out, "");
    s->at = 0;
    s->flags = 0;
    rc = alternatives(s);
    if (rc == 0 && s->at < s->len)
        rc = syntax_fail(s, "Unmatched closing ')'");
    return rc;
}

int java_syntax_translate(const char *regex, struct buf *out, struct java_syntax *result,
                          struct mr_error *err)
{
    struct mr_error own = {0};
    struct syntax s = {.regex = regex, .out = out, .result = result, .err = err ? err : &own};
    int rc;

    memset(result, 0, sizeof(*result));
    if (strlen(regex) > JAVA_SYNTAX_LENGTH_MAX)
        return mr_fail(err, MR_ERR_CONFIG, "A regular expression is longer than %d bytes",
                       JAVA_SYNTAX_LENGTH_MAX);
    rc = decode(&s);
    rc = rc != 0 ? rc : pass(&s);
    s.total = result->groups;
    rc = rc != 0 ? rc : pass(&s);
    free(s.chars);
    return rc;
}

void java_syntax_deinit(struct java_syntax *result)
{
    for (uint32_t i = 0; i < result->name_count; i++)
        free(result->names[i]);
    memset(result, 0, sizeof(*result));
}

int java_syntax_group(const struct java_syntax *syntax, const char *name)
{
    for (uint32_t i = 0; i < syntax->name_count; i++)
        if (strcmp(syntax->names[i], name) == 0)
            return (int)syntax->numbers[i];
    return -1;
}
