/* SPDX-License-Identifier: Apache-2.0 */
/* Java regular expressions for topic names, as the POSIX extended ones that librdkafka compiles.
 *
 * Java's must match the whole name, POSIX's anywhere: so "^(…)$". What means another thing there is
 * rewritten: \d \w \s, \Q…\E, non-capturing and named groups, lazy quantifiers (which change
 * nothing about what matches as a whole). Brackets are computed to the set of legal topic
 * characters that they hold, so that escapes and ranges come out the same. Look-around, back
 * references, flags, possessive quantifiers, Unicode properties and nested brackets are refused.
 * Called by consumer_subscribe. Pure. */
#include "kafka/kafka_private.h"
#include "kafka/topic_pattern.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 50
/* Pieces: the compiler writes counted repetitions out, those inside others too. */
#define COST_MAX 2000
#define LEGAL "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define DIGITS "0123456789"
#define WORDS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

struct scan {
    const char *p;
    struct buf *out;
    bool repeatable; /* what was written last may be followed by a quantifier */
    int depth;       /* of groups */
    struct {
        size_t sum;  /* pieces of this group so far, counted repetitions written out */
        size_t last; /* the newest of them: what a repetition repeats */
    } cost[DEPTH_MAX + 1];
    struct mr_error *err;
};

static int refuse(struct scan *s, const char *what)
{
    return mr_fail(s->err, MR_ERR_CONFIG, "The topic pattern can't be used: %s", what);
}

/* A character as itself. */
static void literal(struct scan *s, char c)
{
    if (strchr(".[]{}()*+?^$|\\", c) != NULL)
        buf_putc(s->out, '\\');
    buf_putc(s->out, c);
}

/* The set of a class escape, or NULL; inverted tells \D from \d. Blanks are in no topic name. */
static const char *class_of(char c, bool *inverted)
{
    *inverted = isupper((unsigned char)c);
    switch (tolower((unsigned char)c)) {
    case 'd':
        return DIGITS;
    case 'w':
        return WORDS;
    case 's':
        return "";
    default:
        return NULL;
    }
}

static void write_set(struct scan *s, const bool *set)
{
    bool any = false;

    buf_putc(s->out, '[');
    for (const char *c = LEGAL; *c != '\0'; c++) /* "-" comes last, where it is no range */
        if (set[(unsigned char)*c]) {
            buf_putc(s->out, *c);
            any = true;
        }
    buf_puts(s->out, any ? "]" : "/]"); /* "/" is in no topic name */
}

static void add_class(bool *set, const char *members, bool inverted)
{
    for (const char *c = LEGAL; *c != '\0'; c++)
        if ((strchr(members, *c) != NULL) != inverted)
            set[(unsigned char)*c] = true;
}

/* One member of a bracket: a character, or a class escape that is added at once (then *c stays
 * -1). */
static int member(struct scan *s, bool *set, int *c)
{
    const char *members;
    bool inverted;

    *c = -1;
    if (*s->p == '[' || (s->p[0] == '&' && s->p[1] == '&'))
        return refuse(s, "brackets in brackets and && are not supported");
    if (*s->p != '\\') {
        *c = (unsigned char)*s->p++;
        return 0;
    }
    s->p++;
    if (*s->p == '\0')
        return refuse(s, "it ends with a backslash");
    members = class_of(*s->p, &inverted);
    if (members != NULL)
        add_class(set, members, inverted);
    else if (isalnum((unsigned char)*s->p))
        return refuse(s,
                      "of escapes in brackets only \\d \\w \\s and their opposites are supported");
    else
        *c = (unsigned char)*s->p;
    s->p++;
    return 0;
}

static int bracket(struct scan *s)
{
    bool set[256] = {false};
    bool inverted = *s->p == '^';
    bool first = true;

    s->p += inverted;
    for (; *s->p != ']' || first; first = false) {
        int low;
        int high;
        int rc;

        if (*s->p == '\0')
            return refuse(s, "a bracket is not closed");
        if (*s->p == ']')
            return refuse(s, "a bracket is empty");
        rc = member(s, set, &low);
        if (rc != 0)
            return rc;
        high = low;
        if (low >= 0 && s->p[0] == '-' && s->p[1] != ']' && s->p[1] != '\0') {
            s->p++;
            rc = member(s, set, &high);
            if (rc != 0)
                return rc;
            if (high < low)
                return refuse(s, "a range in a bracket runs backwards");
        }
        for (int c = low; c >= 0 && c <= high; c++)
            set[c] = true;
    }
    s->p++;
    for (int c = 0; inverted && c < 256; c++)
        set[c] = !set[c];
    write_set(s, set);
    return 0;
}

static int escape(struct scan *s)
{
    bool set[256] = {false};
    bool inverted;
    const char *members = class_of(*s->p, &inverted);

    if (*s->p == '\0')
        return refuse(s, "it ends with a backslash");
    if (*s->p == 'Q') {
        for (s->p++; *s->p != '\0' && strncmp(s->p, "\\E", 2) != 0; s->p++)
            literal(s, *s->p);
        s->p += *s->p != '\0' ? 2 : 0;
        return 0;
    }
    if (members != NULL) {
        add_class(set, members, inverted);
        write_set(s, set);
    } else if (isalnum((unsigned char)*s->p)) {
        return refuse(s, "of escapes only \\d \\w \\s, their opposites, \\Q…\\E and escaped "
                         "punctuation are supported");
    } else {
        literal(s, *s->p);
    }
    s->p++;
    return 0;
}

static int add_cost(struct scan *s, size_t cost)
{
    s->cost[s->depth].last = cost;
    s->cost[s->depth].sum += cost;
    return s->cost[s->depth].sum > COST_MAX
               ? refuse(s, "it is too long, or repeats too much; use + or *")
               : 0;
}

static int repeat(struct scan *s, const char *numbers)
{
    const char *comma = numbers + strspn(numbers, "0123456789");
    unsigned long most = strtoul(numbers, NULL, 10);
    unsigned long other = *comma == ',' ? strtoul(comma + 1, NULL, 10) : 0;

    most = other > most ? other : most;
    if (most > COST_MAX)
        return refuse(s, "it repeats too much; use + or *");
    return most > 1 ? add_cost(s, s->cost[s->depth].last * most) : 0;
}

/* Behind "(": what makes a group special. */
static int group(struct scan *s)
{
    const char *end;

    buf_putc(s->out, '(');
    if (s->depth == DEPTH_MAX)
        return refuse(s, "its groups are nested too deeply");
    s->repeatable = false;
    s->depth++;
    s->cost[s->depth].sum = 0;
    s->cost[s->depth].last = 0;
    if (*s->p != '?')
        return 0;
    if (s->p[1] == ':') {
        s->p += 2;
        return 0;
    }
    end = strchr(s->p, '>');
    if (s->p[1] == '<' && isalpha((unsigned char)s->p[2]) && end != NULL) {
        s->p = end + 1;
        return 0;
    }
    return refuse(s, "look-around, flags and atomic groups are not supported");
}

/* "a**" is an error in Java, and takes POSIX compilers for ever. */
static int quantify(struct scan *s)
{
    if (!s->repeatable)
        return refuse(s, "a quantifier has nothing to repeat");
    s->repeatable = false;
    return 0;
}

/* Behind a quantifier: lazy is the same for a whole match, possessive is not. */
static int quantified(struct scan *s)
{
    if (*s->p == '+')
        return refuse(s, "possessive quantifiers are not supported");
    if (*s->p == '?')
        s->p++;
    return 0;
}

static int braces(struct scan *s)
{
    const char *end = s->p + strspn(s->p, "0123456789,");
    int rc = quantify(s);

    if (rc != 0)
        return rc;
    if (*end != '}' || !isdigit((unsigned char)*s->p))
        return refuse(s, "a { is no repetition; write \\{");
    rc = repeat(s, s->p);
    if (rc != 0)
        return rc;
    buf_putc(s->out, '{');
    buf_append(s->out, s->p, (size_t)(end - s->p) + 1);
    s->p = end + 1;
    return quantified(s);
}

static int close_group(struct scan *s)
{
    size_t inside = s->cost[s->depth].sum;

    buf_putc(s->out, ')');
    if (s->depth == 0)
        return refuse(s, "a group is closed that was not opened");
    s->depth--;
    s->repeatable = true;
    return add_cost(s, inside);
}

/* A piece that is no group. */
static int piece(struct scan *s, char c)
{
    int rc = add_cost(s, 1);

    if (rc != 0)
        return rc;
    s->repeatable = strchr("|^$", c) == NULL;
    if (c == '\\')
        return escape(s);
    if (c == '[')
        return bracket(s);
    buf_putc(s->out, c);
    return 0;
}

static int step(struct scan *s)
{
    char c = *s->p++;

    switch (c) {
    case '(':
        return group(s);
    case ')':
        return close_group(s);
    case '{':
        return braces(s);
    case '*':
    case '+':
    case '?':
        buf_putc(s->out, c);
        return quantify(s) != 0 ? MR_ERR_CONFIG : quantified(s);
    default:
        return piece(s, c);
    }
}

static int check(const struct buf *out, struct mr_error *err)
{
    regex_t regex;
    char why[200];
    int rc = regcomp(&regex, out->data, REG_EXTENDED | REG_NOSUB);

    if (rc == 0) {
        regfree(&regex);
        return 0;
    }
    regerror(rc, &regex, why, sizeof(why));
    return mr_fail(err, MR_ERR_CONFIG, "The topic pattern can't be used: %s", why);
}

int topic_pattern_translate(const char *java, struct buf *out, struct mr_error *err)
{
    struct scan s = {.p = java, .out = out, .err = err};
    int rc = 0;

    buf_puts(out, "^(");
    while (rc == 0 && *s.p != '\0')
        rc = step(&s);
    buf_puts(out, ")$");
    if (rc == 0 && out->failed)
        rc = refuse(&s, "it is too long");
    return rc != 0 ? rc : check(out, err);
}
