/* SPDX-License-Identifier: Apache-2.0 */
/* Text to an instant, part by part of a pattern. Lenient as Java is: blanks before a field are
 * skipped, numbers may be out of range, what follows the pattern's end is ignored. A number takes
 * all its digits unless a number follows in the pattern: then as many as its letters. On the task's
 * thread; takes no memory. */
#include "date_calendar.h"
#include "date_format.h"
#include "number_text.h"

/* Where the reading stands. */
struct reading {
    const char *text;
    const char *at;
    const char *end;
    struct date_set set;
    bool ambiguous; /* a two-digit year that may be of this century or of the next */
    const struct date_format *format;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool same_front(const char *p, const char *end, const char *name, size_t len)
{
    return (size_t)(end - p) >= len && strncasecmp(p, name, len) == 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

struct digits {
    uint64_t n;
    bool over; /* beyond 64 bits */
    bool negative;
};

static const char *read_digits(const char *p, const char *end, struct digits *out)
{
    const char *from;
    int digit;

    memset(out, 0, sizeof(*out));
    out->negative = p < end && *p == '-';
    p += out->negative;
    for (from = p; (digit = number_text_digit(&p, end)) >= 0;) {
        out->over |= out->n > ((uint64_t)INT64_MAX - (unsigned)digit) / 10;
        out->n = out->n * 10 + (unsigned)digit;
    }
    return p > from ? p : NULL;
}

/* An exponent, which Java's number format knows: 5E2. */
static const char *read_exponent(const char *p, const char *end, struct digits *d)
{
    struct digits exponent;
    const char *after = p < end && *p == 'E' ? read_digits(p + 1, end, &exponent) : NULL;
    uint64_t left;

    if (after == NULL || exponent.over)
        return p;
    for (left = exponent.n; left > 0 && d->n > 0 && !d->over; left--) {
        d->over = !exponent.negative && d->n > (uint64_t)INT64_MAX / 10;
        d->n = exponent.negative ? d->n / 10 : d->n * 10;
    }
    d->over = d->over && !exponent.negative;
    return after;
}

/* Number.intValue of what was read: the low bits of a long, the nearest bound of what is larger. */
static int32_t int_value(const struct digits *d)
{
    if (d->over)
        return d->negative ? INT32_MIN : INT32_MAX;
    return (int32_t)(uint32_t)(d->negative ? (uint64_t)0 - d->n : d->n);
}

/* The end of `count` characters (UTF-16 units) from p; NULL: there are fewer. */
static const char *after_chars(const char *p, const char *end, uint32_t count)
{
    while (count > 0 && p < end) {
        unsigned char c = (unsigned char)*p++;

        count -= c >= 0xf0 && count > 1 ? 2 : 1;
        while (p < end && ((unsigned char)*p & 0xc0) == 0x80)
            p++;
    }
    return count > 0 ? NULL : p;
}

/* from: where the field began, before blanks; the count of letters is from there. */
static bool read_number(struct reading *r, const char *from, const struct date_part *part,
                        bool exact, int32_t *out)
{
    const char *end = exact ? after_chars(from, r->end, part->count) : r->end, *after;
    struct digits d;

    if (end == NULL || end < r->at)
        return false;
    after = read_digits(r->at, end, &d);
    if (after == NULL)
        return false;
    r->at = read_exponent(after, end, &d);
    *out = int_value(&d);
    return true;
}

/* --- names ------------------------------------------------------------------------------------ */

/* The longest of the names (or their first `cut` letters) at from. */
static bool read_name(struct reading *r, const char *from, const char *const *names, int count,
                      size_t cut, enum date_field field)
{
    size_t best = 0;
    int found = 0;

    for (int i = 0; i < count; i++) {
        size_t len = strlen(names[i]);

        if (cut > 0 && len > cut)
            len = cut;
        if (len > best && same_front(from, r->end, names[i], len)) {
            best = len;
            found = i;
        }
    }
    if (best == 0)
        return false;
    date_calendar_set(&r->set, field, found);
    r->at = from + best;
    return true;
}

static bool read_long_or_short(struct reading *r, const char *from, const char *const *names,
                               int count, enum date_field field)
{
    return read_name(r, from, names, count, 0, field) || read_name(r, from, names, count, 3, field);
}

/* --- zones ------------------------------------------------------------------------------------ */

static int read_digit(struct reading *r)
{
    return r->at < r->end && is_digit(*r->at) ? *r->at++ - '0' : -1;
}

/* hh[[:]mm] after the sign. letters: how many X there are, 0 for z and Z; a single digit of hours
 * is for colons only. */
static bool read_offset(struct reading *r, int sign, uint32_t letters, bool colon)
{
    int hours = read_digit(r), more, minutes = 0;

    if (hours < 0 || r->at >= r->end)
        return false;
    more = read_digit(r);
    if (more < 0 && (letters > 0 || !colon))
        return false;
    hours = more < 0 ? hours : hours * 10 + more;
    if (hours > 23)
        return false;
    if (letters != 1) {
        int tens, ones;

        if (colon && (r->at >= r->end || *r->at++ != ':'))
            return false;
        tens = read_digit(r);
        ones = read_digit(r);
        if (tens < 0 || ones < 0 || tens * 10 + ones > 59)
            return false;
        minutes = tens * 10 + ones;
    }
    date_calendar_set(&r->set, DATE_ZONE, (hours * 60 + minutes) * 60000 * sign);
    return true;
}

static int read_sign(struct reading *r)
{
    int sign = r->at >= r->end ? 0 : *r->at == '+' ? 1 : *r->at == '-' ? -1 : 0;

    r->at += sign != 0;
    return sign;
}

/* z and Z: +hhmm, GMT, GMT+hh:mm, a name. */
static bool read_general_zone(struct reading *r, const char *from)
{
    int sign = read_sign(r);
    int32_t offset;
    size_t len;

    if (sign != 0)
        return read_offset(r, sign, 0, false);
    if (same_front(from, r->end, "GMT", 3) && r->at == from) {
        r->at = from + 3;
        sign = read_sign(r);
        if (sign != 0)
            return read_offset(r, sign, 0, true);
        date_calendar_set(&r->set, DATE_ZONE, 0);
        return true;
    }
    if (!date_zone_find(r->at, (size_t)(r->end - r->at), &len, &offset))
        return false;
    r->at += len;
    date_calendar_set(&r->set, DATE_ZONE, offset);
    return true;
}

static bool read_iso_zone(struct reading *r, uint32_t letters)
{
    int sign;

    if (*r->at == 'Z') {
        r->at++;
        date_calendar_set(&r->set, DATE_ZONE, 0);
        return true;
    }
    sign = read_sign(r);
    return sign != 0 && read_offset(r, sign, letters, letters == 3);
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Letters whose number is a field's as it is. */
static int plain_field(char letter)
{
    static const struct {
        char letter;
        enum date_field field;
    } plain[] = {
        {'D', DATE_DAY_OF_YEAR}, {'F', DATE_WEEKDAY_IN_MONTH},
        {'H', DATE_HOUR_OF_DAY}, {'K', DATE_HOUR},
        {'S', DATE_MS},          {'W', DATE_WEEK_OF_MONTH},
        {'d', DATE_DAY},         {'m', DATE_MINUTE},
        {'s', DATE_SECOND},      {'w', DATE_WEEK_OF_YEAR},
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (plain[i].letter == letter)
            return (int)plain[i].field;
    return -1;
}

static int32_t full_year(struct reading *r, int32_t year)
{
    int64_t start[DATE_FIELDS];
    int32_t first;

    date_calendar_fields(r->format->century_ms, start);
    first = (int32_t)(start[DATE_YEAR] % 100);
    r->ambiguous = year == first;
    return year + (int32_t)(start[DATE_YEAR] / 100) * 100 + (year < first ? 100 : 0);
}

static void set_number(struct reading *r, const struct date_part *part, const char *digits,
                       int32_t n)
{
    int field = plain_field(part->letter);

    switch (part->letter) {
    case 'y':
    case 'Y':
        if (part->count <= 2 && r->at - digits == 2 && is_digit(digits[0]) && is_digit(digits[1]))
            n = full_year(r, n);
        date_calendar_set(&r->set, part->letter == 'y' ? DATE_YEAR : DATE_WEEK_YEAR, n);
        break;
    case 'M':
    case 'L':
        date_calendar_set(&r->set, DATE_MONTH, (int32_t)((uint32_t)n - 1));
        break;
    case 'k':
        date_calendar_set(&r->set, DATE_HOUR_OF_DAY, n == 24 ? 0 : n);
        break;
    case 'h':
        date_calendar_set(&r->set, DATE_HOUR, n == 12 ? 0 : n);
        break;
    case 'u': /* Monday is 1 here */
        date_calendar_set(&r->set, DATE_WEEKDAY, n < 1 || n > 7 ? n : n % 7 + 1);
        break;
    default:
        date_calendar_set(&r->set, (enum date_field)field, n);
    }
}

static bool is_number(const struct date_part *part)
{
    return part->letter != '\0' && (strchr("dDFHKSWhkmsuwyY", part->letter) != NULL ||
                                    (strchr("ML", part->letter) != NULL && part->count <= 2));
}

static bool read_text(struct reading *r, const char *from, const struct date_part *part)
{
    static const char *const eras[] = {"BC", "AD"}, *const halves[] = {"AM", "PM"};

    switch (part->letter) {
    case 'G':
        return read_name(r, from, eras, 2, 0, DATE_ERA);
    case 'a':
        return read_name(r, from, halves, 2, 0, DATE_AM_PM);
    case 'E':
        return read_long_or_short(r, from, date_format_weekdays, 8, DATE_WEEKDAY);
    case 'X':
        return read_iso_zone(r, part->count);
    case 'z':
    case 'Z':
        return read_general_zone(r, from);
    default:
        return read_long_or_short(r, from, date_format_months, 12, DATE_MONTH);
    }
}

/* exact: a number follows at once. */
static bool read_part(struct reading *r, const struct date_part *part, bool exact)
{
    const char *from = r->at, *digits;
    int32_t n;

    if (part->letter == '\0') {
        r->at += part->count;
        return (size_t)(r->end - from) >= part->count && memcmp(from, part->text, part->count) == 0;
    }
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    if (r->at == r->end)
        return false;
    digits = r->at;
    if (!is_number(part))
        return read_text(r, from, part);
    if (!read_number(r, from, part, exact, &n))
        return false;
    set_number(r, part, digits, n);
    return true;
}

bool date_format_read(const struct date_format *format, const char *p, size_t len, int64_t *ms)
{
    struct reading r = {.text = p, .at = p, .end = p + len, .format = format};

    for (size_t i = 0; i < format->count; i++) {
        bool exact = i + 1 < format->count && is_number(&format->parts[i + 1]);

        if (!read_part(&r, &format->parts[i], exact))
            return false;
    }
    if (r.at == r.text || !date_calendar_ms(&r.set, ms))
        return false;
    if (r.ambiguous && *ms < format->century_ms) {
        r.set.value[DATE_YEAR] += 100;
        return date_calendar_ms(&r.set, ms);
    }
    return true;
}
