/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of \p{…} in a Java regular expression, each written as what stands between
 * brackets for PCRE2. Called by java_syntax.c and java_class.c; pure.
 *
 * \p{Alpha} and its like are ASCII, \p{IsAlphabetic} and its like Unicode's. Which characters are
 * letters, and of which script, is the library's Unicode (14 in PCRE2 10.42), a little newer than
 * JDK 17's (13). */
#include "base/java_syntax_private.h"

#include <ctype.h>
#include <string.h>

#define BLANKS \
    "\\x09-\\x0d\\x1c-\\x20\\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{" \
    "205f}\\x{3000}"
#define CASED "\\p{Lowercase}\\p{Uppercase}\\p{Lt}"
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
    {"javaLowerCase", "\\p{Lowercase}", CASED},
    {"javaSpaceChar", "\\p{Z}", NULL},
    {"javaTitleCase", "\\p{Lt}", CASED},
    {"javaUpperCase", "\\p{Uppercase}", CASED},
    {"javaWhitespace", BLANKS, NULL},
};

#define HEX "\\p{Nd}0-9A-Fa-f\\x{ff10}-\\x{ff19}\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}"
#define SEEN "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

/* Behind "Is", in capitals and without "_". */
static const struct property binary[] = {
    {"ALNUM", "\\p{Alphabetic}\\p{Nd}", NULL},
    {"ALPHA", "\\p{Alphabetic}", NULL},
    {"ALPHABETIC", "\\p{Alphabetic}", NULL},
    {"ASSIGNED", "\\P{Cn}", NULL},
    {"BLANK", "\\p{Zs}\\t", NULL},
    {"CNTRL", "\\p{Cc}", NULL},
    {"CONTROL", "\\p{Cc}", NULL},
    {"DIGIT", "\\p{Nd}", NULL},
    {"GRAPH", SEEN, NULL},
    {"HEXDIGIT", HEX, NULL},
    {"IDEOGRAPHIC", "\\p{Ideographic}", NULL},
    {"JOINCONTROL", "\\x{200c}\\x{200d}", NULL},
    {"LETTER", "\\p{L}", NULL},
    {"LOWER", "\\p{Lowercase}", CASED},
    {"LOWERCASE", "\\p{Lowercase}", CASED},
    {"NONCHARACTERCODEPOINT", "\\p{Noncharacter_Code_Point}", NULL},
    {"PRINT", SEEN "\\p{Zs}", NULL},
    {"PUNCT", "\\p{P}", NULL},
    {"PUNCTUATION", "\\p{P}", NULL},
    {"SPACE", "\\p{Z}\\x09-\\x0d\\x{85}", NULL},
    {"TITLECASE", "\\p{Lt}", CASED},
    {"UPPER", "\\p{Uppercase}", CASED},
    {"UPPERCASE", "\\p{Uppercase}", CASED},
    {"WHITESPACE", "\\p{Z}\\x09-\\x0d\\x{85}", NULL},
    {"WORD", "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}", NULL},
    {"XDIGIT", HEX, NULL},
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
    const char *whole = name;
    char upper[64] = "";
    size_t n = 0;

    for (; *name != '\0' && n < sizeof(upper) - 1; name++)
        if (*name != '_')
            upper[n++] = (char)toupper((unsigned char)*name);
    return in_table(s, binary, COUNT(binary), upper, set) || ordinary(s, whole, set) ||
           script(whole, set);
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
    char name[101] = "";
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
    if (!known && strncmp(name, "java", 4) == 0)
        return syntax_refuse(s, "this property");
    return known ? 0 : syntax_fail(s, "Unknown character property name {%s}", name);
}
