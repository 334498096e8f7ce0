/* SPDX-License-Identifier: Apache-2.0 */
/* InsertField: topic, partition, offset, timestamp and a fixed text as fields of the key or value.
 * On the task's thread. */
#include "field_name.h"
#include "half.h"
#include "requirement.h"
#include "schema_plan.h"
#include "transforms.h"

#include <stdlib.h>

#define PURPOSE "field insertion"

struct insert_field {
    enum half_side side;
    bool defaults;
    const struct mr_task *task;
    struct mr_value fixed; /* static.value */
    struct insertion {
        struct field_name name; /* text NULL: not wanted */
        char *text;
        bool optional;
    } insertions[5];
    struct schema_plans plans;
};

/* In the order in which fields are added. with_schema: NULL where the plain value is right. */
struct source {
    const char *option;
    uint8_t kind;
    const char *logical;
    bool (*value)(const struct insert_field *f, const struct mr_record *rec, bool schema,
                  struct mr_value *out);
};

static const struct mr_config_key insert_field_keys[] = {
    {.name = "topic.field",
     .doc = "Name of a field for the topic. With '!' at its end the field is required, with '?' "
            "or neither it is optional.",
     .importance = MR_CFG_MEDIUM},
    {.name = "partition.field",
     .doc = "Name of a field for the partition; '!' and '?' as for the topic.",
     .importance = MR_CFG_MEDIUM},
    {.name = "offset.field",
     .doc = "Name of a field for the offset, in sink connectors only; '!' and '?' as for the "
            "topic.",
     .importance = MR_CFG_MEDIUM},
    {.name = "timestamp.field",
     .doc = "Name of a field for the record's timestamp; '!' and '?' as for the topic.",
     .importance = MR_CFG_MEDIUM},
    {.name = "static.field",
     .doc = "Name of a field for a fixed text; '!' and '?' as for the topic.",
     .importance = MR_CFG_MEDIUM},
    {.name = "static.value", .doc = "The fixed text.", .importance = MR_CFG_MEDIUM},
    HALF_DEFAULTS_KEY,
    {0},
};

/* --- what is inserted: false leaves the field out, or null where there is a schema ------------ */

static bool topic_of(const struct insert_field *f, const struct mr_record *rec, bool schema,
                     struct mr_value *out)
{
    *out = mr_str(rec->topic);
    return true;
}

static bool partition_of(const struct insert_field *f, const struct mr_record *rec, bool schema,
                         struct mr_value *out)
{
    *out = mr_int(rec->partition);
    return rec->partition != MR_NO_PARTITION;
}

static bool offset_of(const struct insert_field *f, const struct mr_record *rec, bool schema,
                      struct mr_value *out)
{
    *out = mr_long(rec->offset);
    return true;
}

static bool timestamp_of(const struct insert_field *f, const struct mr_record *rec, bool schema,
                         struct mr_value *out)
{
    *out = schema ? mr_timestamp(rec->timestamp) : mr_long(rec->timestamp);
    return rec->timestamp != MR_NO_TIMESTAMP;
}

static bool fixed_of(const struct insert_field *f, const struct mr_record *rec, bool schema,
                     struct mr_value *out)
{
    *out = f->fixed;
    return true;
}

#define OFFSET 2
#define FIXED 4
static const struct source sources[] = {
    {"topic.field", MR_KIND_STRING, NULL, topic_of},
    {"partition.field", MR_KIND_INT32, NULL, partition_of},
    {"offset.field", MR_KIND_INT64, NULL, offset_of},
    {"timestamp.field", MR_KIND_INT64, MR_LOGICAL_TIMESTAMP, timestamp_of},
    {"static.field", MR_KIND_STRING, NULL, fixed_of},
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

/* --- configuration ---------------------------------------------------------------------------- */

/* "name!" or "name?". */
static int read_insertion(struct insertion *to, const char *text, struct mr_error *err)
{
    size_t len = strlen(text);
    char last = len > 0 ? text[len - 1] : '\0';

    to->optional = last != '!';
    to->text = strndup(text, last == '!' || last == '?' ? len - 1 : len);
    if (to->text == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for a field's name");
    to->name = field_name_of(to->text);
    return MR_OK;
}

static int insert_field_start(void *self, struct mr_task *task, enum half_side side,
                              struct mr_error *err)
{
    struct insert_field *f = (struct insert_field *)self;
    const char *fixed = mr_config_str(task, "static.value");
    bool any = false;
    int rc = MR_OK;

    f->side = side;
    f->task = task;
    f->defaults = half_defaults(task);
    f->fixed = fixed == NULL ? mr_null() : mr_str(fixed);
    for (size_t i = 0; i < SOURCES && rc == MR_OK; i++) {
        const char *name = mr_config_str(task, sources[i].option);

        if (name != NULL)
            rc = read_insertion(&f->insertions[i], name, err);
        any |= name != NULL;
    }
    if (rc == MR_OK && !any)
        rc = mr_fail(err, MR_ERR_CONFIG, "No field insertion configured");
    if (rc == MR_OK && f->insertions[FIXED].text != NULL && fixed == NULL)
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "Invalid value null for configuration static.value: No value specified for "
                     "static field: %s",
                     f->insertions[FIXED].text);
    return rc;
}

static void insert_field_stop(void *self)
{
    struct insert_field *f = (struct insert_field *)self;

    schema_plans_free(&f->plans);
    for (size_t i = 0; i < SOURCES; i++)
        free(f->insertions[i].text);
}

/* --- records ---------------------------------------------------------------------------------- */

static int check_offset(const struct insert_field *f, const struct mr_record *rec,
                        struct mr_error *err)
{
    if (f->insertions[OFFSET].text == NULL || rec->offset >= 0)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA,
                   "Only SinkRecord supported for [" PURPOSE
                   "], found: org.apache.kafka.connect.source.SourceRecord");
}

static int source_schema(const struct insert_field *f, size_t i, const struct mr_schema **schema,
                         struct mr_error *err)
{
    const struct mr_schema_spec spec = {
        .kind = sources[i].kind,
        .optional = f->insertions[i].optional,
        .name = sources[i].logical,
        .has_version = sources[i].logical != NULL,
        .version = sources[i].logical != NULL,
    };

    return schema_plan_make(f->task, &spec, schema, err);
}

static int plan_fill(void *self, struct mr_arena *arena, struct schema_plan *plan,
                     struct mr_error *err)
{
    const struct insert_field *f = self;
    struct mr_schema_spec spec = schema_plan_basics(plan->from, MR_KIND_STRUCT);
    struct mr_schema_field *fields = schema_plan_fields(arena, plan->count);
    int rc = MR_OK;

    for (; spec.field_count < plan->from->field_count; spec.field_count++) {
        fields[spec.field_count] = plan->from->fields[spec.field_count];
        plan->steps[spec.field_count].from = (int32_t)spec.field_count;
    }
    for (size_t i = 0; i < SOURCES && rc == MR_OK; i++) {
        if (f->insertions[i].text == NULL)
            continue;
        plan->steps[spec.field_count].from = -1;
        fields[spec.field_count].name = f->insertions[i].text;
        rc = source_schema(f, i, &fields[spec.field_count++].schema, err);
    }
    plan->count = spec.field_count;
    spec.fields = fields;
    return rc == MR_OK ? schema_plan_make(f->task, &spec, &plan->to, err) : rc;
}

static int into_struct(struct insert_field *f, struct mr_arena *arena,
                       const struct mr_schema *schema, struct mr_record *rec, struct mr_error *err)
{
    struct mr_value v = half_value(rec, f->side);
    struct schema_plan *plan;
    size_t slot = schema->field_count;
    int rc = requirement_struct(schema, v, PURPOSE, err);

    if (rc == MR_OK)
        rc = schema_plans_of(
            &f->plans, schema,
            &(struct schema_planner){plan_fill, f, arena, schema->field_count + SOURCES}, &plan,
            err);
    if (rc == MR_OK)
        rc = schema_plan_run(plan, arena, v, f->defaults, NULL, NULL, &v, err);
    if (rc == MR_OK)
        rc = check_offset(f, rec, err);
    if (rc != MR_OK)
        return rc;
    for (size_t i = 0; i < SOURCES; i++) {
        struct mr_value made;

        if (f->insertions[i].text == NULL)
            continue;
        if (sources[i].value(f, rec, true, &made))
            mr_slots(v)[slot] = made;
        slot++;
    }
    return half_put(rec, f->side, plan->to, v);
}

static int into_map(struct insert_field *f, struct mr_arena *arena, struct mr_record *rec,
                    struct mr_error *err)
{
    struct mr_value v = half_value(rec, f->side);
    int rc = requirement_map(v, PURPOSE, err);

    if (rc == MR_OK)
        rc = check_offset(f, rec, err);
    if (rc != MR_OK)
        return rc;
    v = field_name_map(arena, v, SOURCES);
    for (size_t i = 0; i < SOURCES; i++) {
        struct mr_value made;

        if (f->insertions[i].text != NULL && sources[i].value(f, rec, false, &made))
            field_name_put(&f->insertions[i].name, &v, made);
    }
    return half_put(rec, f->side, NULL, v);
}

static int insert_field_apply(void *self, struct mr_arena *arena, struct mr_record *rec,
                              struct mr_error *err)
{
    struct insert_field *f = (struct insert_field *)self;
    const struct mr_schema *schema = half_schema(rec, f->side);

    if (mr_is_null(half_value(rec, f->side)))
        return MR_OK;
    return schema == NULL ? into_map(f, arena, rec, err) : into_struct(f, arena, schema, rec, err);
}

HALF_TRANSFORM(insert_field, "InsertField", .keys = insert_field_keys,
               .doc = "Adds fields with the record's topic, partition, offset, timestamp or a "
                      "fixed text",
               .state_size = sizeof(struct insert_field), .apply = insert_field_apply,
               .stop = insert_field_stop);
