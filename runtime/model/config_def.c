/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigDef in C: a value's text becomes a typed value, or one of Kafka's sentences. Validation of
 * connectors (worker), the worker's own settings and a plugin's keys (host) all go through here, so
 * that one mistake reads the same everywhere.
 *
 * Two steps, as in Java: parse (by type), then the validator (choices, range, emptiness), which
 * also sees the null that a failed parse leaves behind: hence two sentences for a word where a
 * ranged number belongs.
 * Pure: no clock, no lock, no log; any thread. A PASSWORD is never part of a sentence. */
#include "model/config_def.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <strings.h>

#define HIDDEN "[hidden]"

static const char *const type_names[] = {
    [MR_CFG_STRING] = "STRING", [MR_CFG_BOOLEAN] = "BOOLEAN", [MR_CFG_INT] = "INT",
    [MR_CFG_SHORT] = "SHORT",   [MR_CFG_LONG] = "LONG",       [MR_CFG_DOUBLE] = "DOUBLE",
    [MR_CFG_LIST] = "LIST",     [MR_CFG_CLASS] = "CLASS",     [MR_CFG_PASSWORD] = "PASSWORD",
};

const char *config_def_type_name(uint32_t type)
{
    return type < sizeof(type_names) / sizeof(type_names[0]) ? type_names[type] : "STRING";
}

void config_value_deinit(struct config_value *v)
{
    free(v->text);
    for (size_t i = 0; i < v->item_count; i++)
        free(v->items[i]);
    free(v->items);
    memset(v, 0, sizeof(*v));
}

/* String.trim of Java: everything up to and including the blank goes, at both ends. */
static const char *trim(const char *raw, size_t *len)
{
    const char *end = raw + strlen(raw);

    while (*raw != '\0' && (unsigned char)*raw <= ' ')
        raw++;
    while (end > raw && (unsigned char)end[-1] <= ' ')
        end--;
    *len = (size_t)(end - raw);
    return raw;
}

static int bad_type(const struct mr_config_key *key, const char *raw, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %s for configuration %s: Not a number of type %s", raw, key->name,
                   config_def_type_name(key->type));
}

static int parse_integer(const struct mr_config_key *key, const char *raw, struct config_value *out,
                         struct mr_error *err)
{
    int64_t min = key->type == MR_CFG_SHORT ? INT16_MIN
                  : key->type == MR_CFG_INT ? INT32_MIN
                                            : INT64_MIN;
    int64_t max = key->type == MR_CFG_SHORT ? INT16_MAX
                  : key->type == MR_CFG_INT ? INT32_MAX
                                            : INT64_MAX;
    size_t len, i;
    const char *text = trim(raw, &len);
    long long value;

    i = len > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    if (i == len)
        return bad_type(key, raw, err);
    for (; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return bad_type(key, raw, err);
    errno = 0;
    value = strtoll(text, NULL, 10);
    if (errno != 0 || value < min || value > max)
        return bad_type(key, raw, err);
    out->i = value;
    out->present = true;
    return 0;
}

/* What Double.parseDouble takes and strtod does not, or the other way round: a suffix d or f; only
 * NaN and Infinity as words; a hexadecimal form needs its exponent. */
static bool is_java_double(const char *text, size_t len)
{
    size_t sign = len > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    bool hex =
        len > sign + 1 && text[sign] == '0' && (text[sign + 1] == 'x' || text[sign + 1] == 'X');

    if (len - sign == 3 && memcmp(text + sign, "NaN", 3) == 0)
        return true;
    if (len - sign == 8 && memcmp(text + sign, "Infinity", 8) == 0)
        return true;
    for (size_t i = sign; i < len; i++)
        if (strchr(hex ? "0123456789abcdefABCDEFxXpP.+-" : "0123456789eE.+-", text[i]) == NULL)
            return false;
    return len > sign && (!hex || memchr(text, 'p', len) != NULL || memchr(text, 'P', len) != NULL);
}

static int parse_double(const struct mr_config_key *key, const char *raw, struct config_value *out,
                        struct mr_error *err)
{
    size_t len;
    const char *text = trim(raw, &len);
    char *copy = strndup(text, len), *end;

    if (copy == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    if (len > 1 && strchr("dDfF", copy[len - 1]) != NULL)
        copy[--len] = '\0';
    if (!is_java_double(copy, len)) {
        free(copy);
        return bad_type(key, raw, err);
    }
    out->d = strtod(copy, &end);
    out->present = *end == '\0' && end != copy;
    free(copy);
    return out->present ? 0 : bad_type(key, raw, err);
}

static int parse_boolean(const struct mr_config_key *key, const char *raw, struct config_value *out,
                         struct mr_error *err)
{
    size_t len;
    const char *text = trim(raw, &len);

    if (len == 4 && strncasecmp(text, "true", 4) == 0)
        out->i = 1;
    else if (len != 5 || strncasecmp(text, "false", 5) != 0)
        return mr_fail(
            err, MR_ERR_CONFIG,
            "Invalid value %s for configuration %s: Expected value to be either true or false", raw,
            key->name);
    out->present = true;
    return 0;
}

static int parse_text(const char *raw, struct config_value *out, struct mr_error *err)
{
    size_t len;
    const char *text = trim(raw, &len);

    out->text = strndup(text, len);
    if (out->text == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    out->present = true;
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int list_add(struct config_value *out, const char *item, size_t len)
{
    char **items = realloc(out->items, (out->item_count + 1) * sizeof(*items));

    if (items == NULL)
        return MR_ERR_NOMEM;
    out->items = items;
    items[out->item_count] = strndup(item, len);
    return items[out->item_count++] == NULL ? MR_ERR_NOMEM : 0;
}

/* Split at commas with the blanks around them; an empty text is an empty list, an empty item
 * stays. */
static int parse_list(const char *raw, struct config_value *out, struct mr_error *err)
{
    size_t len;
    const char *text = trim(raw, &len), *end = text + len;
    int rc = 0;

    out->present = true;
    while (rc == 0 && len > 0) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma != NULL ? comma : end;

        while (stop > text && is_blank(stop[-1]))
            stop--;
        rc = list_add(out, text, (size_t)(stop - text));
        if (comma == NULL)
            break;
        for (text = comma + 1; text < end && is_blank(*text); text++)
            ;
    }
    if (rc == 0)
        return 0;
    config_value_deinit(out);
    return mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

int config_def_parse(const struct mr_config_key *key, const char *raw, struct config_value *out,
                     struct mr_error *err)
{
    struct config_value value = {0};
    int rc = 0;

    if (raw != NULL) {
        switch (key->type) {
        case MR_CFG_BOOLEAN:
            rc = parse_boolean(key, raw, &value, err);
            break;
        case MR_CFG_INT:
        case MR_CFG_SHORT:
        case MR_CFG_LONG:
            rc = parse_integer(key, raw, &value, err);
            break;
        case MR_CFG_DOUBLE:
            rc = parse_double(key, raw, &value, err);
            break;
        case MR_CFG_LIST:
            rc = parse_list(raw, &value, err);
            break;
        default:
            rc = parse_text(raw, &value, err);
            break;
        }
    }
    if (rc == 0)
        *out = value;
    return rc;
}

/* --- the validators --------------------------------------------------------------------------- */

struct check {
    const struct mr_config_key *key;
    const char *full; /* the key's name where it stands */
    config_def_bad bad;
    void *arg;
    int count;
};

static MR_PRINTF(2, 3)
void complain(struct check *check, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    check->count++;
    if (check->bad != NULL)
        check->bad(check->arg, check->key->name, text != NULL ? text : "out of memory");
    free(text);
}

/* Hand over what a function put into an error, from the whole value (the error's own text may be
 * cut). */
static void complain_parse(struct check *check, const char *raw, const struct mr_error *err)
{
    if (err->code != MR_ERR_CONFIG)
        complain(check, "%s", err->text);
    else if (check->key->type == MR_CFG_BOOLEAN)
        complain(check,
                 "Invalid value %s for configuration %s: Expected value to be either true or false",
                 raw, check->full);
    else
        complain(check, "Invalid value %s for configuration %s: Not a number of type %s", raw,
                 check->full, config_def_type_name(check->key->type));
}

/* Is text one of "a|b|c" (any case when the list starts with '~')? */
static bool is_choice(const char *choices, const char *text)
{
    bool any_case = *choices == '~';
    size_t len = strlen(text);

    if (any_case)
        choices++;
    for (;;) {
        size_t n = strcspn(choices, "|");

        if (n == len && (any_case ? strncasecmp(choices, text, n) : strncmp(choices, text, n)) == 0)
            return true;
        if (choices[n] == '\0')
            return false;
        choices += n + 1;
    }
}

/* "a|b" as Java prints it: "a, b", in upper case where case does not count. */
static char *choices_text(const char *choices)
{
    bool any_case = *choices == '~';
    size_t len = strlen(choices);
    char *out = malloc(2 * len + 1), *at = out;

    if (out == NULL)
        return NULL;
    for (choices += any_case ? 1 : 0; *choices != '\0'; choices++) {
        if (*choices == '|') {
            *at++ = ',';
            *at++ = ' ';
        } else {
            *at++ = any_case && *choices >= 'a' && *choices <= 'z' ? (char)(*choices - 'a' + 'A')
                                                                   : *choices;
        }
    }
    *at = '\0';
    return out;
}

static void check_choice(struct check *check, const char *text)
{
    const char *choices = check->key->choices;
    char *known;

    if (text != NULL && is_choice(choices, text))
        return;
    known = choices_text(choices);
    complain(check, "Invalid value %s for configuration %s: String must be one of%s: %s",
             text == NULL                          ? "null"
             : check->key->type == MR_CFG_PASSWORD ? HIDDEN
                                                   : text,
             check->key->name, *choices == '~' ? " (case insensitive)" : "",
             known != NULL ? known : "");
    free(known);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool config_def_has_duplicate(const struct config_value *v)
{
    char **sorted = v->item_count > 1 ? malloc(v->item_count * sizeof(*sorted)) : NULL;
    bool found = false;

    if (sorted == NULL)
        return false;
    memcpy(sorted, v->items, v->item_count * sizeof(*sorted));
    qsort(sorted, v->item_count, sizeof(*sorted), by_text);
    for (size_t i = 1; i < v->item_count && !found; i++)
        found = strcmp(sorted[i - 1], sorted[i]) == 0;
    free(sorted);
    return found;
}

static bool has_empty(const struct config_value *v)
{
    for (size_t i = 0; i < v->item_count; i++)
        if (v->items[i][0] == '\0')
            return true;
    return false;
}

/* Equal ones together, in their order. */
static int by_text_and_place(const void *a, const void *b)
{
    char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
    int order = strcmp(*x, *y);

    return order != 0 ? order : (x > y) - (x < y);
}

static void drop_duplicates(struct config_value *v)
{
    char ***places = v->item_count > 1 ? malloc(v->item_count * sizeof(*places)) : NULL;
    char **last;
    size_t kept = 0;

    if (places == NULL)
        return;
    for (size_t i = 0; i < v->item_count; i++)
        places[i] = &v->items[i];
    qsort(places, v->item_count, sizeof(*places), by_text_and_place);
    last = places[0];
    for (size_t i = 1; i < v->item_count; i++) {
        if (strcmp(*last, *places[i]) != 0) {
            last = places[i];
            continue;
        }
        free(*places[i]);
        *places[i] = NULL;
    }
    for (size_t i = 0; i < v->item_count; i++)
        if (v->items[i] != NULL)
            v->items[kept++] = v->items[i];
    v->item_count = kept;
    free(places);
}

static bool has_valid_list(const struct mr_config_key *key)
{
    return key->type == MR_CFG_LIST &&
           (key->choices != NULL || key->flags & (MR_CFG_NON_EMPTY | MR_CFG_DISTINCT));
}

/* ValidList of Kafka 4.3: one sentence, the first that fits. */
static void check_list(struct check *check, const struct config_value *v)
{
    const struct mr_config_key *key = check->key;

    if (!has_valid_list(key))
        return;
    if (!v->present) {
        complain(check, "Configuration '%s' values must not be null.", key->name);
    } else if (v->item_count == 0 && (key->flags & MR_CFG_NON_EMPTY)) {
        char *known = key->choices != NULL ? choices_text(key->choices) : NULL;

        complain(check, "Configuration '%s' must not be empty. Valid values include: %s%s%s",
                 key->name, known != NULL ? "[" : "", known != NULL ? known : "any non-empty value",
                 known != NULL ? "]" : "");
        free(known);
    } else if (config_def_has_duplicate(v)) {
        complain(check, "Configuration '%s' values must not be duplicated.", key->name);
    } else if (key->choices != NULL) {
        for (size_t i = 0; i < v->item_count; i++)
            if (!is_choice(key->choices, v->items[i])) {
                check_choice(check, v->items[i]);
                break;
            }
    } else if (has_empty(v)) {
        complain(check, "Configuration '%s' values must not be empty.", key->name);
    }
}

static void check_range(struct check *check, const struct config_value *v)
{
    const struct mr_config_key *key = check->key;

    if (!v->present)
        complain(check, "Invalid value null for configuration %s: Value must be non-null",
                 key->name);
    else if (v->i < key->min)
        complain(check, "Invalid value %lld for configuration %s: Value must be at least %lld",
                 (long long)v->i, key->name, (long long)key->min);
    else if (v->i > key->max)
        complain(check, "Invalid value %lld for configuration %s: Value must be no more than %lld",
                 (long long)v->i, key->name, (long long)key->max);
}

/* is_default: the value is the table's own; a null default then stands for "not set", which no
 * validator minds. */
static void check_value(struct check *check, const struct config_value *v, bool is_default)
{
    const struct mr_config_key *key = check->key;

    if (is_default && !v->present)
        return;
    if (key->type == MR_CFG_LIST)
        check_list(check, v);
    else if (key->choices != NULL)
        check_choice(check, v->present ? v->text : NULL);
    else if (key->has_range)
        check_range(check, v);
    else if ((key->flags & MR_CFG_NON_EMPTY) && v->present && v->text != NULL && v->text[0] == '\0')
        complain(check, "Invalid value  for configuration %s: String must be non-empty", key->name);
}

static int check_key(struct check *check, const struct props *props, struct config_value *out,
                     bool starts)
{
    const struct mr_config_key *key = check->key;
    const struct props_entry *entry = props_find(props, check->full);
    struct config_value value = {0};
    struct mr_error err = {0};
    bool is_default = entry == NULL && !(key->flags & MR_CFG_REQUIRED);
    const char *raw = entry != NULL ? entry->value : is_default ? key->fallback : NULL;

    if (entry == NULL && !is_default)
        complain(check, "Missing required configuration \"%s\" which has no default value.",
                 check->full);
    else if (config_def_parse(key, raw, &value, &err) != 0)
        complain_parse(check, raw, &err);
    if (starts && has_valid_list(key))
        drop_duplicates(&value);
    check_value(check, &value, is_default);
    if (check->count == 0 && out != NULL)
        *out = value;
    else
        config_value_deinit(&value);
    return check->count;
}

int config_def_check_as(const struct mr_config_key *key, const char *full,
                        const struct props *props, struct config_value *out, config_def_bad bad,
                        void *arg)
{
    return check_key(&(struct check){key, full, bad, arg, 0}, props, out, false);
}

int config_def_check(const struct mr_config_key *key, const struct props *props,
                     struct config_value *out, config_def_bad bad, void *arg)
{
    return config_def_check_as(key, key->name, props, out, bad, arg);
}

int config_def_start(const struct mr_config_key *key, const struct props *props,
                     struct config_value *out, config_def_bad bad, void *arg)
{
    return check_key(&(struct check){key, key->name, bad, arg, 0}, props, out, true);
}
