/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables don't have: records of all shapes through one instance, depth, width, and more
 * schemas than are kept. */
#include "host/data/schema_tree.h"
#include "support/unit/plugin_host.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CLASS(name) "org.apache.kafka.connect.transforms." name

static void open_transform(struct plugin_host *h, const char *name, const char *const *keys)
{
    *h = (struct plugin_host){.stored = -1};
    if (plugin_host_open(h, name, keys) != 0)
        fail_msg("%s: %s", name, h->err.text);
}

static const struct mr_schema *struct_schema(struct plugin_host *h, const char *name, uint8_t kind)
{
    const struct mr_schema_field field = {"a", mr_schema_of(&h->inst.pub, kind, true)};
    const struct mr_schema_spec spec = {
        .kind = MR_KIND_STRUCT, .name = name, .fields = &field, .field_count = 1};

    return mr_schema_make(&h->inst.pub, &spec, NULL);
}

static struct record *with_struct(struct plugin_host *h, const struct mr_schema *schema,
                                  struct mr_value a)
{
    struct record *rec = batch_add(h->batch, "t");

    rec->pub.value = mr_struct_new(plugin_host_arena(h), schema);
    mr_slots(rec->pub.value)[0] = a;
    rec->pub.value_schema = schema;
    return rec;
}

static struct record *with_value(struct plugin_host *h, struct mr_value v)
{
    struct record *rec = batch_add(h->batch, "t");

    rec->pub.value = v;
    return rec;
}

static struct mr_value map_of(struct plugin_host *h, const char *key, struct mr_value v)
{
    struct mr_value map = mr_map(plugin_host_arena(h), 1);

    mr_pairs(map)->key = mr_str(key);
    mr_pairs(map)->value = v;
    return map;
}

/* A NUL is two bytes until it is in a dead letter; a cut leaves no character half. */
static void a_value_is_quoted_with_all_that_it_holds(void **state)
{
    static const char *const cast[] = {"spec", "a:int32", NULL};
    struct plugin_host h;
    char shown[8];

    (void)state;
    open_transform(&h, CLASS("Cast$Value"), cast);
    assert_int_equal(plugin_host_apply(&h, with_value(&h, map_of(&h, "a", mr_text("x\0y", 3)))),
                     MR_ERR_DATA);
    assert_string_equal(h.err.text, "Value (x\xc0\x80y) was out of range for requested data type");
    plugin_host_close(&h);
    assert_string_equal(mr_quote(shown, sizeof(shown), "abcde\xc3\xa9z", 8), "abcde");
    assert_string_equal(mr_quote(shown, sizeof(shown), "abcd\xc3\xa9z", 7), "abcd\xc3\xa9");
    assert_string_equal(mr_quote(shown, sizeof(shown), NULL, 0), "");
}

/* As Java prints them, whose days are ms too; the last one's calendar runs over. */
static void a_date_is_as_far_from_1970_as_a_moment_may_be(void **state)
{
    static const char *const to_date[] = {"field", "a", "target.type", "Date", NULL};
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {INT64_C(185542587100800000) + 5, "{a=Fri Jul 11 00:00:00 UTC 5881580}"},
        {INT64_C(185542587187200000) + 5, "{a=Sat Jul 12 00:00:00 UTC 5881580}"},
        {INT64_C(-185542587187200001), "{a=Mon Mar 02 00:00:00 UTC 5877521}"},
        {INT64_MAX, "{a=Sun Aug 17 00:00:00 UTC 292278994}"},
        {INT64_MIN, "{a=Sat Aug 16 14:25:51 UTC 292278994}"},
    };
    struct plugin_host h;

    (void)state;
    open_transform(&h, CLASS("TimestampConverter$Value"), to_date);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct record *rec = with_value(&h, map_of(&h, "a", mr_long(rows[i].ms)));
        size_t len;

        assert_int_equal(plugin_host_apply(&h, rec), 0);
        assert_string_equal(mr_to_text(plugin_host_arena(&h), rec->pub.value, &len), rows[i].text);
    }
    plugin_host_close(&h);
}

static void one_instance_takes_records_of_all_shapes(void **state)
{
    static const char *const cast[] = {"spec", "a:int32", NULL};
    struct plugin_host h;
    struct record *rec;

    (void)state;
    open_transform(&h, CLASS("Cast$Value"), cast);
    for (int i = 0; i < 3; i++) {
        rec = with_struct(&h, struct_schema(&h, "S", MR_KIND_STRING), mr_str("12"));
        assert_int_equal(plugin_host_apply(&h, rec), 0);
        assert_int_equal(mr_field(rec->pub.value, "a").u.i, 12);
        rec = with_value(&h, map_of(&h, "a", mr_double(1e300)));
        assert_int_equal(plugin_host_apply(&h, rec), 0);
        assert_int_equal(mr_field(rec->pub.value, "a").u.i, INT32_MAX);
        assert_int_equal(plugin_host_apply(&h, with_value(&h, mr_null())), 0);
        assert_int_equal(plugin_host_apply(&h, with_value(&h, mr_str("text"))), MR_ERR_DATA);
        rec = with_struct(&h, struct_schema(&h, "S", MR_KIND_STRING), mr_str("x"));
        assert_int_equal(plugin_host_apply(&h, rec), MR_ERR_DATA);
        rec = with_struct(&h, struct_schema(&h, "S", MR_KIND_STRING), mr_str("1"));
        rec->pub.value_schema = struct_schema(&h, "other", MR_KIND_STRING);
        assert_int_equal(plugin_host_apply(&h, rec), MR_ERR_DATA); /* a struct of another schema */
    }
    plugin_host_close(&h);
}

static void more_schemas_than_are_kept_are_all_served(void **state)
{
    static const char *const keys[] = {"static.field", "s", "static.value", "v", NULL};
    struct plugin_host h;
    char name[20];

    (void)state;
    open_transform(&h, CLASS("InsertField$Value"), keys);
    for (int i = 0; i < 100; i++) {
        struct record *rec;

        snprintf(name, sizeof(name), "S%d", i % 40);
        rec = with_struct(&h, struct_schema(&h, name, MR_KIND_INT64), mr_long(i));
        assert_int_equal(plugin_host_apply(&h, rec), 0);
        assert_string_equal(rec->pub.value_schema->name, name);
        assert_int_equal(mr_field(rec->pub.value, "a").u.i, i);
        assert_memory_equal(mr_field(rec->pub.value, "s").u.p, "v", 1);
    }
    plugin_host_close(&h);
}

static void depth_and_width_have_bounds(void **state)
{
    struct plugin_host h;
    struct mr_value deep, wide;
    struct record *rec;

    (void)state;
    open_transform(&h, CLASS("Flatten$Value"), NULL);
    deep = mr_long(1);
    for (int i = 0; i < 900; i++)
        deep = map_of(&h, "k", deep);
    rec = with_value(&h, deep);
    assert_int_equal(plugin_host_apply(&h, rec), 0);
    assert_int_equal(mr_pairs(rec->pub.value)->key.len, 2 * 900 - 1);
    for (int i = 0; i < 5000; i++)
        deep = map_of(&h, "k", deep);
    assert_int_equal(plugin_host_apply(&h, with_value(&h, deep)), MR_ERR_DATA);
    wide = mr_map(plugin_host_arena(&h), 100001);
    for (uint32_t i = 0; i < wide.len; i++)
        mr_pairs(wide)[i].key = mr_str("k");
    assert_int_equal(plugin_host_apply(&h, with_value(&h, wide)), MR_ERR_DATA);
    plugin_host_close(&h);
}

static void fields_after_a_null_struct_keep_their_places(void **state)
{
    struct plugin_host h;
    const struct mr_schema *inner, *outer;
    struct record *rec;

    (void)state;
    open_transform(&h, CLASS("Flatten$Value"), NULL);
    inner = struct_schema(&h, "inner", MR_KIND_INT64);
    outer = mr_schema_make(
        &h.inst.pub,
        &(struct mr_schema_spec){
            .kind = MR_KIND_STRUCT,
            .fields = (struct mr_schema_field[]){{"o", inner}, {"z", inner->fields[0].schema}},
            .field_count = 2},
        NULL);
    rec = with_struct(&h, outer, mr_null());
    mr_slots(rec->pub.value)[1] = mr_long(7);
    assert_int_equal(plugin_host_apply(&h, rec), 0);
    assert_true(mr_is_null(mr_field(rec->pub.value, "o.a")));
    assert_int_equal(mr_field(rec->pub.value, "z").u.i, 7);
    plugin_host_close(&h);
}

/* The place of a member is remembered; where it isn't any more, it is found all the same. */
static void members_are_found_wherever_they_stand(void **state)
{
    static const char *const keys[] = {"fields", "id", NULL};
    struct plugin_host h;

    (void)state;
    open_transform(&h, CLASS("ValueToKey"), keys);
    for (uint32_t at = 0; at < 12; at++) {
        struct mr_value map = mr_map(plugin_host_arena(&h), 4 + at % 3);
        struct record *rec;

        for (uint32_t i = 0; i < map.len; i++)
            mr_pairs(map)[i].key = mr_str(i == at % 4 ? "id" : "no");
        mr_pairs(map)[at % 4].value = mr_long(at);
        rec = with_value(&h, map);
        assert_int_equal(plugin_host_apply(&h, rec), 0);
        assert_int_equal(mr_field(rec->pub.key, "id").u.i, at);
    }
    plugin_host_close(&h);
}

enum field { NUMBER, EXACT, INNER, OPTIONAL_INNER };

/* A record whose value is a struct of one field: a number with a default, a Decimal, or a struct of
 * that number. What a transform makes of these schemas is new. */
static struct record *with_field(struct plugin_host *h, enum field field)
{
    static const struct mr_decimal one = {.scale = 7, .len = 1, .bytes = {1}};
    static const struct mr_param scale = {"scale", "7"};
    const struct mr_schema_spec specs[] = {
        [NUMBER] = {.kind = MR_KIND_INT64, .has_default = true, .default_value = mr_long(77)},
        [EXACT] = {.kind = MR_KIND_BYTES,
                   .name = MR_LOGICAL_DECIMAL,
                   .has_version = true,
                   .version = 1,
                   .params = &scale,
                   .param_count = 1}};
    struct mr_schema_field inside = {
        "a", mr_schema_make(&h->inst.pub, &specs[field == EXACT ? EXACT : NUMBER], NULL)};
    struct mr_schema_spec spec = {.kind = MR_KIND_STRUCT, .fields = &inside, .field_count = 1};
    struct record *rec;

    spec.optional = field == OPTIONAL_INNER;
    spec.name = field >= INNER ? "inner" : "full";
    rec = with_struct(h, mr_schema_make(&h->inst.pub, &spec, NULL),
                      field == EXACT ? mr_ptr_of(MR_KIND_DECIMAL, &one, 0) : mr_long(1));
    if (field < INNER)
        return rec;
    inside.schema = rec->pub.value_schema;
    spec = (struct mr_schema_spec){.kind = MR_KIND_STRUCT, .fields = &inside, .field_count = 1};
    return with_struct(h, mr_schema_make(&h->inst.pub, &spec, NULL), rec->pub.value);
}

static void fill_the_table(struct plugin_host *h)
{
    char name[32];

    for (int i = 0; i <= SCHEMA_TREE_MAX; i++) {
        snprintf(name, sizeof(name), "flood.%d", i);
        mr_schema_make(&h->inst.pub, &(struct mr_schema_spec){.kind = MR_KIND_INT32, .name = name},
                       NULL);
    }
}

/* Last: it fills the table. What then fails is not the record's fault, which errors.tolerance=all
 * would skip, with all records behind it. */
static void a_full_table_of_schemas_is_no_bad_record(void **state)
{
    static const struct {
        const char *name;
        const char *keys[7];
        enum field field;
    } rows[] = {
        {CLASS("Cast$Value"), {"spec", "a:string"}, NUMBER},
        {CLASS("Cast$Value"), {"spec", "a:string"}, EXACT},
        {CLASS("Flatten$Value"), {NULL}, INNER},
        {CLASS("Flatten$Value"), {NULL}, OPTIONAL_INNER},
        {CLASS("HeaderFrom$Value"),
         {"fields", "a", "headers", "b", "operation", "move", NULL},
         NUMBER},
        {CLASS("HoistField$Value"), {"field", "b"}, NUMBER},
        {CLASS("InsertField$Value"), {"topic.field", "t"}, NUMBER},
        {CLASS("MaskField$Value"), {"fields", "a", "replacement", "1", NULL}, EXACT},
        {CLASS("ReplaceField$Value"), {"renames", "a:b"}, NUMBER},
        {CLASS("SetSchemaMetadata$Value"), {"schema.name", "Other"}, NUMBER},
        {CLASS("TimestampConverter$Value"),
         {"field", "a", "target.type", "Timestamp", NULL},
         NUMBER},
        {CLASS("ValueToKey"), {"fields", "a"}, NUMBER},
    };
    struct plugin_host h[sizeof(rows) / sizeof(rows[0])];
    struct record *recs[sizeof(rows) / sizeof(rows[0])];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_transform(&h[i], rows[i].name, rows[i].keys);
        recs[i] = with_field(&h[i], rows[i].field);
    }
    fill_the_table(&h[0]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (plugin_host_apply(&h[i], recs[i]) != MR_ERR_FULL)
            fail_msg("%s with %s: %d, %s", rows[i].name, rows[i].keys[1], h[i].err.code,
                     h[i].err.text);
        plugin_host_close(&h[i]);
    }
}

static void refused_when_checked(const char *name, const char *const *keys, const char *text)
{
    struct plugin_host h = {.stored = -1};

    assert_int_equal(plugin_host_open(&h, name, keys), MR_ERR_CONFIG);
    assert_non_null(strstr(h.err.text, text));
    plugin_host_close(&h);
}

static void bad_patterns_are_refused_with_the_configuration(void **state)
{
    (void)state;
    refused_when_checked(CLASS("RegexRouter"),
                         (const char *[]){"regex", "(", "replacement", "x", NULL},
                         "Invalid value ( for configuration regex: Invalid regex: ");
    refused_when_checked(CLASS("TimestampRouter"),
                         (const char *[]){"timestamp.format", "yyyyTHH", NULL},
                         "Illegal pattern character 'T'");
    refused_when_checked(CLASS("predicates.TopicNameMatches"),
                         (const char *[]){"pattern", "*", NULL},
                         "Invalid value * for configuration pattern: Invalid regex: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_quoted_with_all_that_it_holds),
        cmocka_unit_test(a_date_is_as_far_from_1970_as_a_moment_may_be),
        cmocka_unit_test(one_instance_takes_records_of_all_shapes),
        cmocka_unit_test(more_schemas_than_are_kept_are_all_served),
        cmocka_unit_test(depth_and_width_have_bounds),
        cmocka_unit_test(fields_after_a_null_struct_keep_their_places),
        cmocka_unit_test(members_are_found_wherever_they_stand),
        cmocka_unit_test(bad_patterns_are_refused_with_the_configuration),
        cmocka_unit_test(a_full_table_of_schemas_is_no_bad_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
