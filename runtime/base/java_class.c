/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets of a Java regular expression. Called by java_syntax.c; pure.
 *
 * Java's brackets nest and intersect; PCRE2's don't. So a class becomes an expression that matches
 * exactly one character: simple members in one pair of brackets, nested ones beside them as
 * alternatives (in an atomic group: there is nothing to try again), an intersection as a look-ahead
 * before its right side, a negation as one too. What Java itself reads oddly (more members behind
 * an intersection) is refused. */
#include "base/java_syntax_private.h"

#include <ctype.h>
#include <string.h>

#define CLASS_MAX (256 * 1024)

/* One level of brackets while it is read. */
struct level {
    struct buf simple; /* what stands in one pair of brackets */
    struct buf nested; /* alternatives, each for one character */
    size_t members;
    bool singles; /* nothing but characters so far */
    bool met;     /* there was an intersection */
};

static void nest(struct level *c, const char *open, const struct buf *inside, const char *close)
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

static void add_range(const struct syntax *s, struct level *c, uint32_t low, uint32_t high)
{
    struct buf range;

    if (folds_widely(s)) {
        buf_init(&range, 200);
        write_range(&range, low, high);
        nest(c, "(?i:[", &range, "])");
        if ((low <= 'I' && high >= 'I') || (low <= 'i' && high >= 'i') ||
            (low <= 0x131 && high >= 0x130))
            buf_puts(&c->simple, SYNTAX_EVERY_I);
        buf_deinit(&range);
        return;
    }
    write_range(&c->simple, low, high);
    if (s->flags & SYNTAX_IGNORE_CASE)
        write_other_cases(&c->simple, low, high);
}

static int property_member(struct syntax *s, struct level *c)
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
static int first_of_range(struct syntax *s, struct level *c, uint32_t *ch, bool *is_char)
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
static int member(struct syntax *s, struct level *c)
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

static void write_union(const struct level *c, struct buf *out)
{
    bool both = c->nested.len > 0 && c->simple.len > 0;

    if (c->nested.len > 0)
        buf_puts(out, "(?>");
    if (c->simple.len > 0)
        buf_printf(out, "[%s]%s", c->simple.data, both ? "|" : "");
    if (c->nested.len > 0)
        buf_printf(out, "%s)", c->nested.data);
}

static void write_class(const struct level *c, bool negated, struct buf *out)
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
static int intersect(struct syntax *s, struct level *c)
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

static int nested_class(struct syntax *s, struct level *c)
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
static int class_step(struct syntax *s, struct level *c, bool *done)
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

/* Up to the closing bracket. Each && goes as deep as a bracket. */
static int members(struct syntax *s, bool negated, struct buf *out)
{
    struct level c = {.singles = true};
    bool done = false;
    int rc = 0;

    if (s->depth == SYNTAX_DEPTH_MAX)
        return syntax_refuse(s, "more than 100 brackets in brackets, or intersections");
    s->depth++;
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
    s->depth--;
    return rc;
}

/* At "[", to behind "]". */
static int bracket(struct syntax *s, struct buf *out)
{
    bool negated = syntax_next(s) == '^' && s->chars[s->at - 1] == '[';
    int rc;

    if (negated)
        syntax_next(s);
    rc = members(s, negated, out);
    if (rc == 0)
        syntax_next(s);
    return rc;
}

int syntax_class(struct syntax *s, struct buf *out)
{
    return bracket(s, out);
}
