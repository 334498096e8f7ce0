/* SPDX-License-Identifier: Apache-2.0 */
/* Maven's order of versions, and its ranges, for whoever chooses among several versions of one
 * class: the catalog, and the validation, which tells a range back as Maven prints it. Pure; any
 * thread.
 *
 * A version is read into items: numbers, words, and marks where a list begins that goes on to the
 * end. In Maven lists nest, each the last member of the one around it; so one row of items with
 * marks says the same. A list loses what is nothing at its end ("1.0" is "1"), the innermost
 * first. */
#include "model/plugin_version.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- versions, as items ----------------------------------------------------------------------- */

enum item_kind { ITEM_NUMBER, ITEM_WORD, ITEM_LIST };

struct item {
    enum item_kind kind;
    const char *text; /* digits without leading zeroes; a word in lower case; "" a list's */
    size_t len;
};

struct version {
    char *lower; /* what the items point into */
    struct item *items;
    size_t count;
};

#define RELEASE 5 /* the rank of a version without a word */

/* Words that say how finished a version is; a version without one stands at RELEASE, others after
 * them by their letters. */
static int rank_word(const struct item *item)
{
    static const struct {
        const char *word;
        int rank;
    } known[] = {{"alpha", 0},       {"beta", 1},          {"milestone", 2}, {"rc", 3},
                 {"cr", 3},          {"snapshot", 4},      {"", RELEASE},    {"ga", RELEASE},
                 {"final", RELEASE}, {"release", RELEASE}, {"sp", 6}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].word) == item->len &&
            strncmp(known[i].word, item->text, item->len) == 0)
            return known[i].rank;
    return 7;
}

static bool is_nothing(const struct item *item)
{
    return item->kind == ITEM_NUMBER ? item->len == 0
                                     : item->kind == ITEM_WORD && rank_word(item) == RELEASE;
}

static void add(struct version *v, enum item_kind kind, const char *text, size_t len)
{
    for (; kind == ITEM_NUMBER && len > 0 && *text == '0'; text++)
        len--;
    v->items[v->count++] = (struct item){kind, text, len};
}

static void begin_list(struct version *v)
{
    add(v, ITEM_LIST, "", 0);
}

static bool at_list_start(const struct version *v)
{
    return v->count == 0 || v->items[v->count - 1].kind == ITEM_LIST;
}

/* A word right before a digit: one letter may be short for a longer word. */
static void add_word_before_digit(struct version *v, const char *text, size_t len)
{
    const char *word = text;

    if (len == 1 && (*text == 'a' || *text == 'b' || *text == 'm')) {
        word = *text == 'a' ? "alpha" : *text == 'b' ? "beta" : "milestone";
        len = strlen(word);
    }
    if (!at_list_start(v))
        begin_list(v);
    add(v, ITEM_WORD, word, len);
    begin_list(v);
}

/* From the last list to the first: what is nothing goes, up to the first item that is something; an
 * empty list is nothing. */
static void normalize(struct version *v)
{
    size_t end = v->count; /* the items of this list end here, perhaps with a list after them */

    for (size_t i = v->count; i-- > 0;) {
        if (v->items[i].kind == ITEM_LIST) {
            if (i + 1 == v->count)
                v->count--;
            end = i;
        } else if (i + 1 == end && is_nothing(&v->items[i])) {
            memmove(&v->items[i], &v->items[i + 1], (v->count - i - 1) * sizeof(*v->items));
            v->count--;
            end = i;
        }
    }
}

static void read_items(struct version *v)
{
    const char *start = v->lower, *p = start;
    bool digits = false;

    for (; *p != '\0'; p++) {
        if (*p == '.' || *p == '-') {
            add(v, p == start || digits ? ITEM_NUMBER : ITEM_WORD, start, (size_t)(p - start));
            start = p + 1;
            if (*p == '-')
                begin_list(v);
        } else if (isdigit((unsigned char)*p)) {
            if (!digits && p > start) {
                add_word_before_digit(v, start, (size_t)(p - start));
                start = p;
            }
            digits = true;
        } else {
            if (digits && p > start) {
                add(v, ITEM_NUMBER, start, (size_t)(p - start));
                start = p;
                begin_list(v);
            }
            digits = false;
        }
    }
    if (p > start && !digits && !at_list_start(v))
        begin_list(v);
    if (p > start)
        add(v, digits ? ITEM_NUMBER : ITEM_WORD, start, (size_t)(p - start));
}

static struct version version_read(const char *text)
{
    struct version v = {.lower = text_dup(text),
                        .items = calloc(2 * strlen(text) + 2, sizeof(*v.items))};

    mr_assert(v.items != NULL);
    for (char *p = v.lower; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    read_items(&v);
    normalize(&v);
    return v;
}

static void version_free(struct version *v)
{
    free(v->lower);
    free(v->items);
}

/* --- the order -------------------------------------------------------------------------------- */

static int compare_text(const struct item *a, const struct item *b)
{
    int c = strncmp(a->text, b->text, a->len < b->len ? a->len : b->len);

    return c != 0 || a->len == b->len ? c : a->len < b->len ? -1 : 1;
}

static int compare_items(const struct item *a, const struct item *b)
{
    static const int weight[] = {[ITEM_WORD] = 0, [ITEM_LIST] = 1, [ITEM_NUMBER] = 2};

    if (a->kind != b->kind)
        return weight[a->kind] - weight[b->kind];
    if (a->kind == ITEM_NUMBER && a->len != b->len)
        return a->len < b->len ? -1 : 1;
    if (a->kind == ITEM_WORD && (rank_word(a) != 7 || rank_word(b) != 7))
        return rank_word(a) - rank_word(b);
    return compare_text(a, b);
}

/* What is left of one version against the end of the other. */
static int compare_rest(const struct version *v, size_t i)
{
    for (; i < v->count; i++)
        if (v->items[i].kind != ITEM_LIST && !is_nothing(&v->items[i]))
            return v->items[i].kind == ITEM_NUMBER ? 1 : rank_word(&v->items[i]) - RELEASE;
    return 0;
}

static int compare(const struct version *a, const struct version *b)
{
    size_t i = 0;
    int c = 0;

    for (; c == 0 && i < a->count && i < b->count; i++)
        c = compare_items(&a->items[i], &b->items[i]);
    return c != 0 ? c : i < a->count ? compare_rest(a, i) : -compare_rest(b, i);
}

int plugin_version_compare(const char *a, const char *b)
{
    struct version va = version_read(a), vb = version_read(b);
    int c = compare(&va, &vb);

    version_free(&va);
    version_free(&vb);
    return c;
}

/* --- ranges ----------------------------------------------------------------------------------- */

#define PARTS_MAX 64

struct part {
    char *lower, *upper; /* NULL: none */
    bool with_lower, with_upper;
};

struct plugin_version_range {
    struct part parts[PARTS_MAX];
    size_t count;
};

static char *trimmed(const char *text, size_t len)
{
    for (; len > 0 && (unsigned char)*text <= ' '; len--)
        text++;
    while (len > 0 && (unsigned char)text[len - 1] <= ' ')
        len--;
    return text_dup_len(text, len);
}

/* The same, but NULL where nothing is left. */
static char *bound(const char *text, size_t len)
{
    char *copy = trimmed(text, len);

    if (copy[0] != '\0')
        return copy;
    free(copy);
    return NULL;
}

static bool defies_order(const struct part *part)
{
    int c = part->lower != NULL && part->upper != NULL
                ? plugin_version_compare(part->upper, part->lower)
                : 1;

    return c < 0 || (c == 0 && !(part->with_lower && part->with_upper));
}

/* One part with its brackets, len bytes. */
static int read_part(struct part *part, const char *text, size_t len, struct mr_error *err)
{
    char *inner = trimmed(text + 1, len - 2), *comma = strchr(inner, ',');
    int rc = 0;

    part->with_lower = text[0] == '[';
    part->with_upper = text[len - 1] == ']';
    if (comma != NULL) {
        part->lower = bound(inner, (size_t)(comma - inner));
        part->upper = bound(comma + 1, strlen(comma + 1));
        if (defies_order(part))
            rc = mr_fail(err, MR_ERR_CONFIG, "Range defies version ordering: %.*s", (int)len, text);
    } else if (part->with_lower && part->with_upper) {
        part->lower = text_dup(inner);
        part->upper = text_dup(inner);
    } else {
        rc = mr_fail(err, MR_ERR_CONFIG, "Single version must be surrounded by []: %.*s", (int)len,
                     text);
    }
    free(inner);
    return rc;
}

static bool overlaps(const struct part *before, const struct part *part)
{
    return before->upper != NULL &&
           (part->lower == NULL || plugin_version_compare(part->lower, before->upper) < 0);
}

static const char *skip_blanks(const char *p)
{
    while (*p != '\0' && (unsigned char)*p <= ' ')
        p++;
    return p;
}

static int read_parts(struct plugin_version_range *range, const char *spec, struct mr_error *err)
{
    const char *p = spec;

    while (*p == '[' || *p == '(') {
        size_t len = strcspn(p, ")]");
        struct part *part = &range->parts[range->count];
        int rc;

        if (p[len] == '\0')
            return mr_fail(err, MR_ERR_CONFIG, "Unbounded range: %s", spec);
        if (range->count == PARTS_MAX)
            return mr_fail(err, MR_ERR_CONFIG, "More than %d ranges: %s", PARTS_MAX, spec);
        range->count++;
        rc = read_part(part, p, len + 1, err);
        if (rc != 0)
            return rc;
        if (range->count > 1 && overlaps(part - 1, part))
            return mr_fail(err, MR_ERR_CONFIG, "Ranges overlap: %s", spec);
        p = skip_blanks(p + len + 1);
        if (*p == ',')
            p = skip_blanks(p + 1);
    }
    if (*p == '\0' || range->count == 0)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Only fully-qualified sets allowed in multiple set scenario: %s", spec);
}

static int read_range(struct plugin_version_range *range, const char *spec, struct mr_error *err)
{
    int rc = read_parts(range, spec, err);
    char *hard = NULL;

    if (rc != 0 || range->count > 0)
        return rc;
    mr_assert(asprintf(&hard, "[%s]", spec) > 0);
    rc = read_parts(range, hard, err);
    free(hard);
    return rc;
}

int plugin_version_range_parse(const char *text, struct plugin_version_range **out,
                               struct mr_error *err)
{
    struct plugin_version_range *range;
    char *spec;
    int rc;

    if (text == NULL || strcmp(text, "latest") == 0) {
        *out = NULL;
        return 0;
    }
    range = calloc(1, sizeof(*range));
    mr_assert(range != NULL);
    spec = trimmed(text, strlen(text));
    rc = read_range(range, spec, err);
    free(spec);
    if (rc == 0)
        *out = range;
    else
        plugin_version_range_free(&range);
    return rc;
}

void plugin_version_range_free(struct plugin_version_range **rangep)
{
    struct plugin_version_range *range = *rangep;

    *rangep = NULL;
    for (size_t i = 0; range != NULL && i < range->count; i++) {
        free(range->parts[i].lower);
        free(range->parts[i].upper);
    }
    free(range);
}

static bool part_holds(const struct part *part, const char *version)
{
    int below = part->lower != NULL ? plugin_version_compare(part->lower, version) : -1;
    int above = part->upper != NULL ? plugin_version_compare(part->upper, version) : 1;

    return (below < 0 || (below == 0 && part->with_lower)) &&
           (above > 0 || (above == 0 && part->with_upper));
}

bool plugin_version_range_holds(const struct plugin_version_range *range, const char *version)
{
    for (size_t i = 0; range != NULL && i < range->count; i++)
        if (part_holds(&range->parts[i], version))
            return true;
    return range == NULL;
}

void plugin_version_range_write(const struct plugin_version_range *range, struct buf *out)
{
    for (size_t i = 0; i < range->count; i++) {
        const struct part *part = &range->parts[i];

        buf_printf(out, "%s%c%s,%s%c", i > 0 ? "," : "", part->with_lower ? '[' : '(',
                   part->lower != NULL ? part->lower : "", part->upper != NULL ? part->upper : "",
                   part->with_upper ? ']' : ')');
    }
}
