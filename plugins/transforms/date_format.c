/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of SimpleDateFormat, and instants as text by them. Patterns are parsed when a
 * configuration is checked and at start; formatting is on the task's thread and writes into the
 * record's arena. Reading is in date_read.c. */
#include "date_format.h"

#include "date_calendar.h"

#include <inttypes.h>
#include <stdlib.h>

const char *const date_format_months[12] = {"January",   "February", "March",    "April",
                                            "May",       "June",     "July",     "August",
                                            "September", "October",  "November", "December"};
const char *const date_format_weekdays[8] = {"",          "Sunday",   "Monday", "Tuesday",
                                             "Wednesday", "Thursday", "Friday", "Saturday"};

#define LETTERS "GyMdkHmsSEDFwWahKzZYuXL"
#define PART_MAX 32 /* bytes that a letter's run makes beyond its count */

/* --- patterns --------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* NULL: there is none yet. */
static struct date_part *last_part(const struct date_format *format)
{
    return format->count == 0 ? NULL : &format->parts[format->count - 1];
}

static void add_literal(struct date_format *format, char *at)
{
    struct date_part *last = last_part(format);

    if (last != NULL && last->letter == '\0') {
        last->count++;
        return;
    }
    format->parts[format->count].letter = '\0';
    format->parts[format->count].text = at;
    format->parts[format->count++].count = 1;
}

static void add_letter(struct date_format *format, char c)
{
    struct date_part *last = last_part(format);

    if (last != NULL && last->letter == c && last->text == NULL) {
        last->count++;
        return;
    }
    format->parts[format->count].letter = c;
    format->parts[format->count++].count = 1;
}

static int check_zone(const struct date_format *format, struct mr_error *err)
{
    const struct date_part *last = last_part(format);

    if (last == NULL || last->letter != 'X' || last->count <= 3)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG, "invalid ISO 8601 format: length=%u", last->count);
}

/* One character of the pattern; *quoted is whether it stands between quotes. A run of letters that
 * a quote interrupts (even '' between no literals) is two runs: `text` of the first is set then. */
static int take(struct date_format *format, const char **at, bool *quoted, char **to,
                struct mr_error *err)
{
    char c = *(*at)++;

    if (c == '\'' && **at == '\'') {
        (*at)++;
    } else if (c == '\'') {
        *quoted = !*quoted;
        if (last_part(format) != NULL && last_part(format)->letter != '\0')
            last_part(format)->text = "";
        return MR_OK;
    } else if (!*quoted && is_letter(c)) {
        if (strchr(LETTERS, c) == NULL)
            return mr_fail(err, MR_ERR_CONFIG, "Illegal pattern character '%c'", c);
        add_letter(format, c);
        return check_zone(format, NULL) == MR_OK || **at == 'X' ? MR_OK : check_zone(format, err);
    }
    **to = c;
    add_literal(format, (*to)++);
    return MR_OK;
}

int date_format_parse(struct date_format *format, const char *pattern, int64_t now_ms,
                      struct mr_error *err)
{
    size_t len = strlen(pattern);
    bool quoted = false;
    char *to;
    int rc = MR_OK;

    memset(format, 0, sizeof(*format));
    if (len > DATE_FORMAT_MAX)
        return mr_fail(err, MR_ERR_CONFIG, "a date pattern of %zu bytes is longer than %d", len,
                       DATE_FORMAT_MAX);
    format->parts = (struct date_part *)calloc(len + 1, sizeof(*format->parts));
    format->texts = to = (char *)malloc(len + 1);
    if (format->parts == NULL || to == NULL)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for a date pattern");
    while (rc == MR_OK && *pattern != '\0')
        rc = take(format, &pattern, &quoted, &to, err);
    if (rc == MR_OK && quoted)
        rc = mr_fail(err, MR_ERR_CONFIG, "Unterminated quote");
    if (rc == MR_OK) {
        int64_t now[DATE_FIELDS];
        struct date_set set = {.next = 0};

        date_calendar_fields(now_ms, now);
        date_calendar_set(&set, DATE_YEAR, (int32_t)now[DATE_YEAR] - 80);
        date_calendar_set(&set, DATE_MONTH, (int32_t)now[DATE_MONTH]);
        date_calendar_set(&set, DATE_DAY, (int32_t)now[DATE_DAY]);
        date_calendar_ms(&set, &format->century_ms);
        format->century_ms += now_ms % DATE_DAY_MS;
    } else {
        date_format_free(format);
    }
    return rc;
}

void date_format_free(struct date_format *format)
{
    free(format->parts);
    free(format->texts);
    memset(format, 0, sizeof(*format));
}

/* --- text ------------------------------------------------------------------------------------- */

static char *put_text(char *to, const char *text, size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

static char *put_name(char *to, const char *name, uint32_t count)
{
    return put_text(to, name, count >= 4 ? strlen(name) : 3);
}

/* At least `width` digits; two_digits: only the last two. */
static char *put_number(char *to, int64_t n, uint32_t width, bool two_digits)
{
    char digits[24];
    uint64_t left = n < 0 ? (uint64_t)0 - (uint64_t)n : (uint64_t)n;
    uint32_t len = 0;

    if (two_digits)
        left %= 100;
    do {
        digits[len++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (n < 0)
        *to++ = '-';
    for (; width > len; width--)
        *to++ = '0';
    while (len > 0)
        *to++ = digits[--len];
    return to;
}

/* Which field a letter prints as a number, and what stands for 0 there. */
static const struct number {
    char letter;
    enum date_field field;
    int zero;
    int add;
} numbers[] = {
    {'D', DATE_DAY_OF_YEAR, 0, 0},  {'F', DATE_WEEKDAY_IN_MONTH, 0, 0},
    {'H', DATE_HOUR_OF_DAY, 0, 0},  {'K', DATE_HOUR, 0, 0},
    {'L', DATE_MONTH, 0, 1},        {'M', DATE_MONTH, 0, 1},
    {'S', DATE_MS, 0, 0},           {'W', DATE_WEEK_OF_MONTH, 0, 0},
    {'Y', DATE_WEEK_YEAR, 0, 0},    {'d', DATE_DAY, 0, 0},
    {'h', DATE_HOUR, 12, 0},        {'k', DATE_HOUR_OF_DAY, 24, 0},
    {'m', DATE_MINUTE, 0, 0},       {'s', DATE_SECOND, 0, 0},
    {'w', DATE_WEEK_OF_YEAR, 0, 0}, {'y', DATE_YEAR, 0, 0},
};

static char *put_field(char *to, const struct date_part *part, const int64_t *fields)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const struct number *n = &numbers[i];
        int64_t value;

        if (n->letter != part->letter)
            continue;
        value = fields[n->field] + n->add;
        return put_number(to, value == 0 ? n->zero : value, part->count,
                          part->count == 2 && (n->letter == 'y' || n->letter == 'Y'));
    }
    return to;
}

static char *put_part(char *to, const struct date_part *part, const int64_t *fields)
{
    switch (part->letter) {
    case '\0':
        return put_text(to, part->text, part->count);
    case 'G':
        return put_text(to, fields[DATE_ERA] == 0 ? "BC" : "AD", 2);
    case 'a':
        return put_text(to, fields[DATE_AM_PM] == 0 ? "AM" : "PM", 2);
    case 'E':
        return put_name(to, date_format_weekdays[fields[DATE_WEEKDAY]], part->count);
    case 'u':
        return put_number(to, (fields[DATE_WEEKDAY] + 5) % 7 + 1, part->count, false);
    case 'z':
        return put_text(to, part->count >= 4 ? "Coordinated Universal Time" : "UTC",
                        part->count >= 4 ? 26 : 3);
    case 'Z':
        return put_text(to, "+0000", 5);
    case 'X':
        return put_text(to, "Z", 1);
    case 'M':
    case 'L':
        if (part->count >= 3)
            return put_name(to, date_format_months[fields[DATE_MONTH]], part->count);
        return put_field(to, part, fields);
    default:
        return put_field(to, part, fields);
    }
}

const char *date_format_text(const struct date_format *format, struct mr_arena *arena, int64_t ms,
                             size_t *len)
{
    int64_t fields[DATE_FIELDS];
    size_t room = 1;
    char *text, *to;

    date_calendar_fields(ms, fields);
    for (size_t i = 0; i < format->count; i++)
        room += format->parts[i].count + PART_MAX;
    text = to = (char *)mr_alloc(arena, room);
    for (size_t i = 0; i < format->count; i++)
        to = put_part(to, &format->parts[i], fields);
    *to = '\0';
    *len = (size_t)(to - text);
    return text;
}

/* --- kinds of time ---------------------------------------------------------------------------- */

int64_t date_format_ms(struct mr_value v)
{
    return v.kind == MR_KIND_DATE ? v.u.i * DATE_DAY_MS : v.u.i;
}

const char *date_format_iso(struct mr_arena *arena, struct mr_value v, size_t *len)
{
    int64_t ms = date_format_ms(v), fields[DATE_FIELDS];
    char *text = (char *)mr_alloc(arena, 64), *to = text;

    date_calendar_fields(ms, fields);
    if (ms >= DATE_DAY_MS) {
        to = put_number(to, fields[DATE_YEAR], 4, false);
        *to++ = '-';
        to = put_number(to, fields[DATE_MONTH] + 1, 2, false);
        *to++ = '-';
        to = put_number(to, fields[DATE_DAY], 2, false);
    }
    if (ms >= DATE_DAY_MS && ms % DATE_DAY_MS != 0)
        *to++ = 'T';
    if (ms < DATE_DAY_MS || ms % DATE_DAY_MS != 0)
        to += snprintf(to, 20, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64 "Z",
                       fields[DATE_HOUR_OF_DAY], fields[DATE_MINUTE], fields[DATE_SECOND],
                       fields[DATE_MS]);
    *to = '\0';
    *len = (size_t)(to - text);
    return text;
}
