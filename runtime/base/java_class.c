/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets of a Java regular expression, and the properties of \p. Called by java_syntax.c; pure.
 *
 * Java's brackets nest and intersect; PCRE2's don't. So a class becomes an expression that matches exactly one character:
 * simple members in one pair of brackets, nested ones beside them as alternatives (in an atomic group: there is nothing to
 * try again), an intersection as a look-ahead before its right side, a negation as one too. Properties are written as what
 * stands between brackets. Where Java's own reading depends on its version (what follows an intersection), it is refused. */
#include "base/java_syntax_private.h"

#include <ctype.h>
#include <string.h>

#define CLASS_MAX (256 * 1024)

/* One level of brackets while it is read. */
struct class
{
    struct buf simple; /* what stands in one pair of brackets */
    struct buf nested; /* alternatives, each for one character */
    size_t members;
    bool singles; /* nothing but characters so far */
    bool met;     /* there was an intersection */
};

/* --- properties ---------------------------------------------------------------------------------------------------------- */

#define BLANKS \
    "\\x09-\\x0d\\x1c-\\x20\\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{" \
    "205f}\\x{3000}"
#define ANY "\\x{0}-\\x{10ffff}"

struct property {
    const char *name;
    const char *set;
    const char *any_case; /* with (?i), where that makes a difference */
};

/* General categories are in no table: \p{Lu} is \p{Lu}. */
static const struct property plain[] = {
    {"ASCII", "\\x{0}-\\x7f", NULL},
    {"Alnum", "a-zA-Z0-9", NULL},
    {"Alpha", "a-zA-Z", NULL},
    {"Blank", " \\t", NULL},
    {"Cntrl", "\\x{0}-\\x1f\\x7f", NULL},
    {"Digit", "0-9", NULL},
    {"Graph", "!-~", NULL},
    {"Lower", "a-z", "a-zA-Z"},
    {"Print", " -~", NULL},
    {"Punct", "!-/:-@\\[-`{-~", NULL},
    {"Space", "\\t-\\r ", NULL},
    {"Upper", "A-Z", "a-zA-Z"},
    {"XDigit", "0-9A-Fa-f", NULL},
    {"L1", "\\x{0}-\\x{ff}", NULL},
    {"LC", "\\p{Lu}\\p{Ll}\\p{Lt}", NULL},
    {"LD", "\\p{L}\\p{Nd}", NULL},
    {"Ll", "\\p{Ll}", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"Lt", "\\p{Lt}", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"Lu", "\\p{Lu}", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"all", ANY, NULL},
    {"javaAlphabetic", "\\p{Alphabetic}", NULL},
    {"javaDefined", "\\P{Cn}", NULL},
    {"javaDigit", "\\p{Nd}", NULL},
    {"javaISOControl", "\\p{Cc}", NULL},
    {"javaIdeographic", "\\p{Ideographic}", NULL},
    {"javaLetter", "\\p{L}", NULL},
    {"javaLetterOrDigit", "\\p{L}\\p{Nd}", NULL},
    {"javaLowerCase", "\\p{Lowercase}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"javaSpaceChar", "\\p{Z}", NULL},
    {"javaTitleCase", "\\p{Lt}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"javaUpperCase", "\\p{Uppercase}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"javaWhitespace", BLANKS, NULL},
};

/* Behind "Is", in capitals. */
static const struct property binary[] = {
    {"ALPHABETIC", "\\p{Alphabetic}", NULL},
    {"ASSIGNED", "\\P{Cn}", NULL},
    {"CONTROL", "\\p{Cc}", NULL},
    {"DIGIT", "\\p{Nd}", NULL},
    {"HEXDIGIT", "\\p{Nd}0-9A-Fa-f\\x{ff10}-\\x{ff19}\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}", NULL},
    {"HEX_DIGIT", "\\p{Nd}0-9A-Fa-f\\x{ff10}-\\x{ff19}\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}",
     NULL},
    {"IDEOGRAPHIC", "\\p{Ideographic}", NULL},
    {"JOINCONTROL", "\\x{200c}\\x{200d}", NULL},
    {"JOIN_CONTROL", "\\x{200c}\\x{200d}", NULL},
    {"LETTER", "\\p{L}", NULL},
    {"LOWERCASE", "\\p{Lowercase}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"PUNCTUATION", "\\p{P}", NULL},
    {"TITLECASE", "\\p{Lt}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"UPPERCASE", "\\p{Uppercase}", "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"},
    {"WHITESPACE", "\\p{Z}\\x09-\\x0d\\x{85}", NULL},
    {"WHITE_SPACE", "\\p{Z}\\x09-\\x0d\\x{85}", NULL},
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static bool in_table(const struct syntax *s, const struct property *table, size_t count,
                     const char *name, struct buf *set)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) {
            bool any_case = (s->flags & SYNTAX_IGNORE_CASE) && table[i].any_case != NULL;

            buf_puts(set, any_case ? table[i].any_case : table[i].set);
            return true;
        }
    return false;
}

static bool category(const char *name, struct buf *set)
{
    static const char known[] = " C Cc Cf Cn Co Cs L Lm Lo M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi "
                                "Po Ps S Sc Sk Sm So Z Zl Zp Zs ";
    char word[8];

    if (strlen(name) > 2 || strpbrk(name, " ") != NULL || name[0] == '\0')
        return false;
    snprintf(word, sizeof(word), " %s ", name);
    if (strstr(known, word) == NULL)
        return false;
    buf_printf(set, "\\p{%s}", name);
    return true;
}

/* What \p{name} and \p{gc=name} take. */
static bool ordinary(const struct syntax *s, const char *name, struct buf *set)
{
    return category(name, set) || in_table(s, plain, COUNT(plain), name, set);
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

static bool script(const char *name, struct buf *set)
{
    if (name[0] == '\0' || name[strspn(name, LETTERS)] != '\0')
        return false;
    buf_printf(set, "\\p{sc:%s}", name); /* unknown to the library: java_pattern_make says so */
    return true;
}

static bool with_is(const struct syntax *s, const char *name, struct buf *set)
{
    char upper[64];
    size_t i;

    for (i = 0; name[i] != '\0' && i < sizeof(upper) - 1; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[i] = '\0';
    return in_table(s, binary, COUNT(binary), upper, set) || ordinary(s, name, set) ||
           script(name, set);
}

/* "script=Latin" and the like; at stands behind the "=" */
static int with_value(struct syntax *s, const char *name, const char *value, struct buf *set)
{
    bool known = false;

    if (strcasecmp(name, "sc") == 0 || strcasecmp(name, "script") == 0)
        known = script(value, set);
    else if (strcasecmp(name, "gc") == 0 || strcasecmp(name, "general_category") == 0)
        known = ordinary(s, value, set);
    else if (strcasecmp(name, "blk") == 0 || strcasecmp(name, "block") == 0)
        return syntax_refuse(s, "a Unicode block");
    return known ? 0
                 : syntax_fail(s, "Unknown Unicode property {name=<%s>, value=<%s>}", name, value);
}

/* The name behind \p, without braces. */
static int property_name(struct syntax *s, char *name, size_t size)
{
    size_t len = 0;
    uint32_t ch = syntax_next(s);

    if (ch != '{') {
        snprintf(name, size, "%c", ch < 128 ? (char)ch : '?');
        syntax_read(s);
        return 0;
    }
    syntax_next(s);
    for (ch = syntax_read(s); ch != '}'; ch = syntax_read(s)) {
        if (s->at > s->len)
            return syntax_fail(s, "Unclosed character family");
        if (len == size - 1)
            return syntax_refuse(s, "a property name of more than 100 characters");
        name[len++] = ch < 128 ? (char)ch : '?';
    }
    name[len] = '\0';
    return len == 0 ? syntax_fail(s, "Empty character family") : 0;
}

int syntax_property(struct syntax *s, struct buf *set)
{
    char name[101];
    char *equals;
    bool known;
    int rc = property_name(s, name, sizeof(name));

    if (rc != 0)
        return rc;
    equals = strchr(name, '=');
    if (equals != NULL) {
        *equals = '\0';
        return with_value(s, name, equals + 1, set);
    }
    if (strncmp(name, "In", 2) == 0)
        return syntax_refuse(s, "a Unicode block");
    known = strncmp(name, "Is", 2) == 0 ? with_is(s, name + 2, set) : ordinary(s, name, set);
    return known ? 0 : syntax_fail(s, "Unknown character property name {%s}", name);
}

/* --- brackets ------------------------------------------------------------------------------------------------------------ */

static void nest(struct class *c, const char *open, const struct buf *inside, const char *close)
{
    if (c->nested.len > 0)
        buf_putc(&c->nested, '|');
    buf_puts(&c->nested, open);
    buf_append(&c->nested, inside->data, inside->len);
    buf_puts(&c->nested, close);
}

static bool folds_widely(const struct syntax *s)
{
    return (s->flags & SYNTAX_IGNORE_CASE) && (s->flags & SYNTAX_UNICODE_CASE);
}

/* Halves of surrogate pairs stand in no text, and the library takes them for an error. */
static void write_range(struct buf *out, uint32_t low, uint32_t high)
{
    if (low < 0xd800 && high > 0xdfff) {
        write_range(out, low, 0xd7ff);
        write_range(out, 0xe000, high);
        return;
    }
    if (low >= 0xd800 && low <= 0xdfff)
        low = high > 0xdfff ? 0xe000 : 0xfdd0;
    if (high >= 0xd800 && high <= 0xdfff)
        high = low < 0xd800 ? 0xd7ff : low;
    syntax_char(out, low);
    if (high > low) {
        buf_putc(out, '-');
        syntax_char(out, high);
    }
}

/* Letters whose other case is in the range. */
static void write_other_cases(struct buf *out, uint32_t low, uint32_t high)
{
    for (uint32_t ch = low; ch <= high && ch < 128; ch++)
        if (isalpha((int)ch))
            buf_putc(out, (char)(ch ^ 0x20));
}

static void add_range(const struct syntax *s, struct class *c, uint32_t low, uint32_t high)
{
    struct buf range;

    if (folds_widely(s)) {
        buf_init(&range, 100);
        write_range(&range, low, high);
        nest(c, "(?i:[", &range, "])");
        buf_deinit(&range);
        return;
    }
    write_range(&c->simple, low, high);
    if (s->flags & SYNTAX_IGNORE_CASE)
        write_other_cases(&c->simple, low, high);
}

static int property_member(struct syntax *s, struct class *c)
{
    bool negated = s->chars[s->at + 1] == 'P';
    struct buf set;
    int rc;

    buf_init(&set, 1000);
    s->at++;
    rc = syntax_property(s, &set);
    if (rc == 0 && negated)
        nest(c, "[^", &set, "]");
    else if (rc == 0)
        buf_append(&c->simple, set.data, set.len);
    buf_deinit(&set);
    return rc;
}

/* A character, or a set that is added at once: then *is_char is false. */
static int first_of_range(struct syntax *s, struct class *c, uint32_t *ch, bool *is_char)
{
    struct escaped e = {.kind = ESCAPED_CHAR};
    int rc = 0;

    *is_char = false;
    e.ch = syntax_peek(s);
    if (e.ch == '\\') {
        uint32_t behind = s->chars[s->at + 1];

        if (behind == 'p' || behind == 'P')
            return property_member(s, c);
        rc = syntax_escape(s, true, behind != 0 && s->chars[s->at + 2] == '-', &e);
    } else {
        syntax_next(s);
    }
    if (rc == 0 && e.kind == ESCAPED_SET)
        buf_puts(&c->simple, e.text);
    *ch = e.ch;
    *is_char = e.kind == ESCAPED_CHAR;
    return rc;
}

/* One member: a character, a range, a class escape or a property. */
static int member(struct syntax *s, struct class *c)
{
    struct escaped e = {.kind = ESCAPED_CHAR};
    uint32_t low, behind;
    bool is_char;
    int rc = first_of_range(s, c, &low, &is_char);

    c->members++;
    if (rc != 0 || !is_char) {
        c->singles = false;
        return rc;
    }
    behind = syntax_peek(s) == '-' ? s->chars[s->at + 1] : ']';
    if (behind == ']' || behind == '[') {
        add_range(s, c, low, low);
        return 0;
    }
    c->singles = false;
    e.ch = syntax_next(s);
    if (e.ch == '\\')
        rc = syntax_escape(s, true, true, &e);
    else
        syntax_next(s);
    if (rc != 0)
        return rc;
    if (e.kind != ESCAPED_CHAR || e.ch < low)
        return syntax_fail(s, "Illegal character range");
    add_range(s, c, low, e.ch);
    return 0;
}

static void write_union(const struct class *c, struct buf *out)
{
    bool both = c->nested.len > 0 && c->simple.len > 0;

    if (c->nested.len > 0)
        buf_puts(out, "(?>");
    if (c->simple.len > 0)
        buf_printf(out, "[%s]%s", c->simple.data, both ? "|" : "");
    if (c->nested.len > 0)
        buf_printf(out, "%s)", c->nested.data);
}

static void write_class(const struct class *c, bool negated, struct buf *out)
{
    if (negated && c->nested.len == 0) {
        buf_printf(out, "[^%s]", c->simple.data);
        return;
    }
    buf_puts(out, negated ? "(?:(?!" : "");
    write_union(c, out);
    buf_puts(out, negated ? ").)" : "");
}

static int bracket(struct syntax *s, struct buf *out);
static int members(struct syntax *s, bool negated, struct buf *out);

/* What stands right of &&, up to "]" or the next "&". */
static int right_side(struct syntax *s, struct buf *right)
{
    int rc = 0;

    buf_puts(right, "(?>");
    for (uint32_t ch = syntax_peek(s); rc == 0 && ch != ']' && ch != '&'; ch = syntax_peek(s)) {
        if (right->len > 3 && ch != '[')
            return syntax_refuse(s, "an intersection with more members behind brackets");
        if (right->len > 3)
            buf_putc(right, '|');
        rc = ch == '[' ? bracket(s, right) : members(s, false, right);
    }
    buf_putc(right, ')');
    return rc;
}

static bool is_empty(const struct buf *right)
{
    return right->len == strlen("(?>)");
}

/* Behind "&&": what there is so far becomes one member, met with what follows. */
static int intersect(struct syntax *s, struct class *c)
{
    struct buf right, left;
    int rc;

    buf_init(&right, CLASS_MAX);
    buf_init(&left, CLASS_MAX);
    rc = right_side(s, &right);
    write_union(c, &left);
    if (rc == 0 && is_empty(&right) && c->members == 0)
        rc = syntax_fail(s, "Bad class syntax");
    else if (rc == 0 && is_empty(&right) && c->members > 1 && !c->singles)
        rc = syntax_refuse(s, "an intersection without a right side");
    if (rc == 0 && !is_empty(&right)) {
        buf_reset(&c->nested);
        buf_reset(&c->simple);
        nest(c, c->members == 0 ? "" : "(?=", c->members == 0 ? &right : &left,
             c->members == 0 ? "" : ")");
        if (c->members > 0)
            buf_append(&c->nested, right.data, right.len);
    }
    c->met = true;
    c->members++;
    buf_deinit(&right);
    buf_deinit(&left);
    return rc;
}

static int nested_class(struct syntax *s, struct class *c)
{
    struct buf inside;
    int rc;

    buf_init(&inside, CLASS_MAX);
    rc = bracket(s, &inside);
    nest(c, "", &inside, "");
    c->members++;
    c->singles = false;
    buf_deinit(&inside);
    return rc;
}

/* One step; *done at the closing bracket. */
static int class_step(struct syntax *s, struct class *c, bool *done)
{
    uint32_t ch = syntax_peek(s);

    if (s->at >= s->len)
        return syntax_fail(s, "Unclosed character class");
    if (ch == ']' && c->members > 0) {
        *done = true;
        return 0;
    }
    if (ch == '&' && syntax_next(s) == '&') {
        syntax_next(s);
        return intersect(s, c);
    }
    if (ch == '&')
        s->at--;
    if (c->met)
        return syntax_refuse(s, "a class with more members behind an intersection");
    return ch == '[' ? nested_class(s, c) : member(s, c);
}

/* Up to the closing bracket. */
static int members(struct syntax *s, bool negated, struct buf *out)
{
    struct class c = {.singles = true};
    bool done = false;
    int rc = 0;

    buf_init(&c.simple, CLASS_MAX);
    buf_init(&c.nested, CLASS_MAX);
    while (rc == 0 && !done)
        rc = class_step(s, &c, &done);
    if (rc == 0)
        write_class(&c, negated, out);
    if (rc == 0 && (c.simple.failed || c.nested.failed || out->failed))
        rc = syntax_refuse(s, "so long a class");
    buf_deinit(&c.simple);
    buf_deinit(&c.nested);
    return rc;
}

/* At "[", to behind "]". */
static int bracket(struct syntax *s, struct buf *out)
{
    bool negated = syntax_next(s) == '^' && s->chars[s->at - 1] == '[';
    int rc;

    if (s->depth == SYNTAX_DEPTH_MAX)
        return syntax_refuse(s, "more than 100 brackets in brackets");
    s->depth++;
    if (negated)
        syntax_next(s);
    rc = members(s, negated, out);
    if (rc == 0)
        syntax_next(s);
    s->depth--;
    return rc;
}

int syntax_class(struct syntax *s, struct buf *out)
{
    return bracket(s, out);
}
