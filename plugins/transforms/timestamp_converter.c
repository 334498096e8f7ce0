/* SPDX-License-Identifier: Apache-2.0 */
/* TimestampConverter: a field, or the whole key or value, between text, numbers since 1970 and
 * Connect's kinds of time. All go through ms since 1970. On the task's thread. */
#include "date_calendar.h"
#include "date_format.h"
#include "field_name.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#include <time.h>

#define PURPOSE "converting timestamp formats"

/* Kinds of values that stand for an instant; the last three have a kind of their own. */
enum stamp { STAMP_NONE, STAMP_STRING, STAMP_UNIX, STAMP_DATE, STAMP_TIME, STAMP_TIMESTAMP };

struct timestamp_converter {
    enum half_side side;
    bool defaults;
    bool formatted; /* format is set */
    enum stamp target;
    int64_t multiply; /* unix.precision: ms in a unit, or 1 */
    int64_t divide;   /* units in a ms, or 1 */
    const struct mr_task *task;
    const char *pattern;
    struct field_name field; /* empty: the whole */
    struct date_format format;
    const struct mr_schema *schemas[2]; /* of the target: required, optional */
    struct schema_plans plans;
};

static const struct mr_config_key timestamp_converter_keys[] = {
    {.name = "field",
     .fallback = "",
     .doc = "The field with the time; empty where the whole key or value is the time.",
     .importance = MR_CFG_HIGH},
    {.name = "target.type",
     .flags = MR_CFG_REQUIRED,
     .doc = "What the time becomes: string, unix, Date, Time or Timestamp.",
     .choices = "string|unix|Date|Time|Timestamp",
     .importance = MR_CFG_HIGH},
    {.name = "format",
     .fallback = "",
     .doc = "A pattern of java.text.SimpleDateFormat: how text is written, and how text that "
            "comes in is read.",
     .importance = MR_CFG_MEDIUM},
    {.name = "unix.precision",
     .fallback = "milliseconds",
     .doc = "What a number counts since 1970. Anything below a millisecond is lost.",
     .choices = "nanoseconds|microseconds|milliseconds|seconds",
     .importance = MR_CFG_LOW},
    HALF_DEFAULTS_KEY,
    {0},
};

/* --- configuration ---------------------------------------------------------------------------- */

static bool is_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\r\n\f")] == '\0';
}

static int parse_format(struct date_format *format, const char *pattern, struct mr_error *err)
{
    struct mr_error own = {0};
    int rc = date_format_parse(format, pattern, (int64_t)time(NULL) * 1000, &own);

    if (rc == MR_OK)
        return MR_OK;
    return mr_fail(err, rc,
                   "Invalid value java.lang.IllegalArgumentException: %.200s for configuration "
                   "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                   "timestamps: %.400s",
                   own.text, pattern);
}

static int timestamp_converter_check(const struct mr_task *config, const char *key,
                                     const char *shown, struct mr_error *err)
{
    const char *pattern = mr_config_str(config, "format");
    struct date_format format;
    int rc;

    if (strcmp(key, "format") != 0 || is_blank(pattern))
        return MR_OK;
    rc = parse_format(&format, pattern, err);
    if (rc == MR_OK)
        date_format_free(&format);
    return rc;
}

static enum stamp target_of(const char *text)
{
    static const char *const names[] = {"", "string", "unix", "Date", "Time", "Timestamp"};
    size_t i = STAMP_TIMESTAMP;

    while (i > 0 && strcmp(names[i], text) != 0)
        i--;
    return (enum stamp)i;
}

static void set_precision(struct timestamp_converter *t, const char *text)
{
    t->multiply = strcmp(text, "seconds") == 0 ? 1000 : 1;
    t->divide = strcmp(text, "microseconds") == 0  ? 1000
                : strcmp(text, "nanoseconds") == 0 ? 1000000
                                                   : 1;
}

static int make_schemas(struct timestamp_converter *t, struct mr_error *err)
{
    static const struct {
        uint8_t kind;
        const char *name;
    } kinds[] = {
        [STAMP_STRING] = {MR_KIND_STRING, NULL},
        [STAMP_UNIX] = {MR_KIND_INT64, NULL},
        [STAMP_DATE] = {MR_KIND_INT32, MR_LOGICAL_DATE},
        [STAMP_TIME] = {MR_KIND_INT32, MR_LOGICAL_TIME},
        [STAMP_TIMESTAMP] = {MR_KIND_INT64, MR_LOGICAL_TIMESTAMP},
    };
    struct mr_schema_spec spec = {.kind = kinds[t->target].kind, .name = kinds[t->target].name};
    int rc = MR_OK;

    spec.has_version = spec.name != NULL;
    spec.version = spec.name != NULL;
    for (int optional = 0; optional < 2 && rc == MR_OK; optional++) {
        spec.optional = optional;
        rc = schema_plan_make(t->task, &spec, &t->schemas[optional], err);
    }
    return rc;
}

static int timestamp_converter_start(void *self, struct mr_task *task, enum half_side side,
                                     struct mr_error *err)
{
    struct timestamp_converter *t = (struct timestamp_converter *)self;
    const char *field = mr_config_str(task, "field");
    int rc;

    t->side = side;
    t->task = task;
    t->defaults = half_defaults(task);
    t->field = field_name_of(field == NULL ? "" : field);
    t->target = target_of(mr_config_str(task, "target.type"));
    t->pattern = mr_config_str(task, "format");
    set_precision(t, mr_config_str(task, "unix.precision"));
    if (t->target == STAMP_STRING && is_blank(t->pattern))
        return mr_fail(err, MR_ERR_CONFIG,
                       "TimestampConverter requires format option to be specified when using "
                       "string timestamps");
    rc = is_blank(t->pattern) ? MR_OK : parse_format(&t->format, t->pattern, err);
    t->formatted = rc == MR_OK && !is_blank(t->pattern);
    return rc == MR_OK ? make_schemas(t, err) : rc;
}

static void timestamp_converter_stop(void *self)
{
    struct timestamp_converter *t = (struct timestamp_converter *)self;

    schema_plans_free(&t->plans);
    date_format_free(&t->format);
}

/* --- values ----------------------------------------------------------------------------------- */

static int64_t times(int64_t n, int64_t by)
{
    int64_t out;

    if (!__builtin_mul_overflow(n, by, &out))
        return out;
    return n < 0 ? INT64_MIN : INT64_MAX;
}

static int unknown(struct mr_value v, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_DATA,
                   "TimestampConverter does not support class %s objects as timestamps",
                   mr_java_class(v));
}

static int read_text(const struct timestamp_converter *t, struct mr_value v, int64_t *ms,
                     struct mr_error *err)
{
    char shown[304];

    if (!t->formatted)
        return mr_fail(
            err, MR_ERR_DATA,
            "java.lang.NullPointerException: Could not parse timestamp: value (%s) without "
            "the option format",
            mr_quote(shown, sizeof(shown), v.u.p, v.len));
    if (date_format_read(&t->format, (const char *)v.u.p, v.len, ms))
        return MR_OK;
    mr_fail(err, MR_ERR_DATA,
            "Could not parse timestamp: value (%s) does not match pattern (%.300s)",
            mr_quote(shown, sizeof(shown), v.u.p, v.len), t->pattern);
    return mr_caused_by(err, MR_ERR_DATA, "java.text.ParseException: Unparseable date: \"%s\"",
                        shown);
}

/* What a value is by its own kind, as it is without a schema. */
static enum stamp stamp_of(struct mr_value v)
{
    return v.kind == MR_KIND_STRING  ? STAMP_STRING
           : v.kind == MR_KIND_INT64 ? STAMP_UNIX
           : v.kind >= MR_KIND_DATE  ? STAMP_TIMESTAMP
                                     : STAMP_NONE;
}

static int to_ms(const struct timestamp_converter *t, struct mr_value v, int64_t *ms,
                 struct mr_error *err)
{
    switch (stamp_of(v)) {
    case STAMP_STRING:
        return read_text(t, v, ms, err);
    case STAMP_UNIX:
        *ms = times(v.u.i, t->multiply) / t->divide;
        return MR_OK;
    case STAMP_TIMESTAMP:
        *ms = date_format_ms(v);
        return MR_OK;
    default:
        return unknown(v, err);
    }
}

/* The day's first moment, which is a Date too where the day's number has no place in one. */
static struct mr_value to_date(int64_t ms)
{
    int64_t day = ms / DATE_DAY_MS - (ms % DATE_DAY_MS < 0);

    if (day >= INT32_MIN && day <= INT32_MAX)
        return mr_date((int32_t)day);
    return mr_timestamp((int64_t)((uint64_t)day * (uint64_t)DATE_DAY_MS));
}

static void to_target(const struct timestamp_converter *t, struct mr_arena *arena, int64_t ms,
                      struct mr_value *v)
{
    const char *text;
    size_t len;

    switch (t->target) {
    case STAMP_STRING:
        text = date_format_text(&t->format, arena, ms, &len);
        *v = mr_text(text, len);
        break;
    case STAMP_UNIX:
        *v = mr_long(times(ms, t->divide) / t->multiply);
        break;
    case STAMP_DATE:
        *v = to_date(ms);
        break;
    case STAMP_TIME:
        *v = mr_time((int32_t)((ms % DATE_DAY_MS + DATE_DAY_MS) % DATE_DAY_MS));
        break;
    default:
        *v = mr_timestamp(ms);
        break;
    }
}

static int check_schema(const struct mr_schema *schema, struct mr_error *err)
{
    if (schema->logical >= MR_KIND_DATE || schema->kind == MR_KIND_STRING ||
        schema->kind == MR_KIND_INT64)
        return MR_OK;
    return mr_fail(
        err, MR_ERR_DATA,
        "org.apache.kafka.connect.errors.ConnectException: Schema Schema{%s%s%s} does not "
        "correspond to a known timestamp type format",
        schema->name != NULL ? schema->name : "", schema->name != NULL ? ":" : "",
        mr_java_type(schema->kind));
}

/* One value; schema and what as schema_step_fn has them. */
static int convert(void *self, struct mr_arena *arena, int32_t what, const struct mr_schema *schema,
                   struct mr_value *v, struct mr_error *err)
{
    const struct timestamp_converter *t = (const struct timestamp_converter *)self;
    int64_t ms = 0;
    int rc = schema == NULL ? MR_OK : check_schema(schema, err);

    if (rc != MR_OK || mr_is_null(*v))
        return rc;
    rc = to_ms(t, *v, &ms, err);
    if (rc == MR_OK)
        to_target(t, arena, ms, v);
    return rc;
}

/* --- schemas ---------------------------------------------------------------------------------- */

/* The struct's default, converted as values are: its schema is the new one without the default. */
static int plan_default(struct timestamp_converter *t, struct mr_arena *arena,
                        struct schema_plan *plan, struct mr_schema_spec *spec, struct mr_error *err)
{
    int rc;

    if (!plan->from->has_default || mr_is_null(plan->from->default_value))
        return MR_OK;
    spec->has_default = true;
    rc = schema_plan_run(plan, arena, plan->from->default_value, t->defaults, convert, t,
                         &spec->default_value, err);
    return rc == MR_OK ? schema_plan_make(t->task, spec, &plan->to, err) : rc;
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    struct timestamp_converter *t = self;
    struct mr_schema_spec spec = schema_plan_basics(plan->from, MR_KIND_STRUCT);
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->count);
    int rc = requirement_fields(plan->from, err);

    if (rc != MR_OK)
        return rc;
    for (size_t i = 0; i < plan->count; i++) {
        fields[i] = plan->from->fields[i];
        plan->steps[i].from = (int32_t)i;
        if (strcmp(fields[i].name, t->field.text) != 0)
            continue;
        plan->steps[i].what = 1;
        fields[i].schema = t->schemas[fields[i].schema->optional];
    }
    spec.optional = plan->from->optional;
    spec.fields = fields;
    spec.field_count = (uint32_t)plan->count;
    rc = schema_plan_make(t->task, &spec, &plan->to, err);
    return rc == MR_OK ? plan_default(t, arena, plan, &spec, err) : rc;
}

/* --- records ---------------------------------------------------------------------------------- */

static int convert_field(struct timestamp_converter *t, struct mr_arena *arena,
                         const struct mr_schema *schema, struct mr_record *rec,
                         struct mr_error *err)
{
    struct mr_value v = half_value(rec, t->side);
    struct schema_plan *plan;
    int rc = mr_is_null(v) ? MR_OK : requirement_struct(schema, v, PURPOSE, err);

    if (rc == MR_OK)
        rc = schema_plans_of(&t->plans, schema,
                             &(struct schema_planner){plan_fill, t, arena, schema->field_count},
                             &plan, err);
    if (rc == MR_OK && !mr_is_null(v))
        rc = schema_plan_run(plan, arena, v, t->defaults, convert, t, &v, err);
    return rc == MR_OK ? half_put(rec, t->side, plan->to, v) : rc;
}

static int convert_member(struct timestamp_converter *t, struct mr_arena *arena,
                          struct mr_record *rec, struct mr_error *err)
{
    struct mr_value v = half_value(rec, t->side), member;
    int rc = requirement_map(v, PURPOSE, err);
    int64_t at;

    if (rc != MR_OK)
        return rc;
    v = field_name_map(arena, v, 1);
    at = field_name_find(&t->field, mr_pairs(v), v.len);
    member = at < 0 ? mr_null() : mr_pairs(v)[at].value;
    rc = convert(t, arena, 1, NULL, &member, err);
    field_name_put(&t->field, &v, member);
    return rc == MR_OK ? half_put(rec, t->side, NULL, v) : rc;
}

static int timestamp_converter_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                                     struct mr_error *err)
{
    struct timestamp_converter *t = (struct timestamp_converter *)self;
    const struct mr_schema *schema = half_schema(rec, t->side), *to = NULL;
    struct mr_value v = half_value(rec, t->side);
    int rc;

    if (t->field.len > 0 && schema != NULL)
        return convert_field(t, arena, schema, rec, err);
    if (t->field.len > 0 && !mr_is_null(v))
        return convert_member(t, arena, rec, err);
    if (schema != NULL)
        to = t->schemas[schema->optional];
    rc = convert(t, arena, 1, schema, &v, err);
    return rc == MR_OK ? half_put(rec, t->side, to, v) : rc;
}

HALF_TRANSFORM(timestamp_converter, "TimestampConverter", .keys = timestamp_converter_keys,
               .doc = "Times between text, numbers and kinds of time",
               .state_size = sizeof(struct timestamp_converter), .apply = timestamp_converter_apply,
               .stop = timestamp_converter_stop, .check = timestamp_converter_check);
