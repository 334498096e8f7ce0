/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/utf8_text.h"
#include "host/data/values.h"
#include "support/unit/oracle.h"
#include "support/unit/plugin_host.h"

#include <millrace/hash.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *text(struct mr_arena *arena, struct mr_value v)
{
    size_t len;
    const char *p = values_text(arena, v, &len);
    char *copy = mr_alloc(arena, len + 1);

    memcpy(copy, p, len);
    copy[len] = '\0';
    return copy;
}

/* --- the tables ------------------------------------------------------------------------------- */

static bool text_row(const json_t *row, void *arg)
{
    struct mr_arena *arena = arg;
    const json_t *input = json_object_get(row, "input");
    const struct mr_schema *schema;
    struct mr_value v;
    const char *made, *expected = json_string_value(json_object_get(row, "output"));

    if (!oracle_schema(arena, json_object_get(input, "schema"), &schema, NULL) ||
        !oracle_value(arena, json_object_get(input, "value"), schema, &v))
        return false;
    made = text(arena, v);
    return strcmp(made, expected) == 0 ||
           oracle_wrong("\"%s\" where Java has \"%s\"", made, expected);
}

static void texts_are_those_of_java(void **state)
{
    static const char shorter[] =
        "JDK 17 prints a digit more than is needed, JDK 19 and later and this don't";
    static const char identity[] = "Java prints an identity, this prints base64";
    static const struct oracle_except except[] = {
        {"to-string-012", shorter},  {"to-string-028", shorter},  {"to-string-029", shorter},
        {"to-string-032", shorter},  {"to-string-048", identity}, {"to-string-051", identity},
        {"to-string-055", identity}, {"to-string-057", identity}, {0},
    };
    struct plugin_host *h = *state;

    assert_int_equal(oracle_run("to-string.jsonl", except, text_row, plugin_host_arena(h)), 0);
}

static bool validate_row(const json_t *row, void *arg)
{
    struct mr_arena *arena = arg;
    const json_t *input = json_object_get(row, "input");
    bool field = strcmp(json_string_value(json_object_get(row, "op")), "validateField") == 0;
    const struct mr_schema *schema;
    struct mr_error err = {0};
    struct mr_value v;
    int rc;

    if (!oracle_schema(arena, json_object_get(input, "schema"), &schema, NULL) ||
        !oracle_value(arena, json_object_get(input, "value"), schema, &v))
        return false;
    rc = values_validate_field(field ? "amount" : NULL, schema, v, &err);
    if (json_object_get(row, "error") != NULL)
        return oracle_error(row, &err);
    return rc == 0 || oracle_wrong("refused: %s", err.text);
}

static void values_are_validated_as_in_java(void **state)
{
    struct plugin_host *h = *state;

    assert_int_equal(oracle_run("validate.jsonl", NULL, validate_row, plugin_host_arena(h)), 0);
}

/* --- floating point --------------------------------------------------------------------------- */

static void check_double(double d)
{
    char made[32], other[40];
    size_t len = values_double_text(d, made);
    int digits = 0, fewest = 17;

    made[len] = '\0';
    assert_true(strtod(made, NULL) == d);
    for (const char *p = made; *p != '\0' && *p != 'E'; p++)
        digits += *p >= '0' && *p <= '9';
    for (int n = 17; n > 0; n--) {
        snprintf(other, sizeof(other), "%.*e", n - 1, d);
        if (strtod(other, NULL) == d)
            fewest = n;
    }
    if (digits > fewest && fewest > 1 && fabs(d) >= 1e7)
        fail_msg("%s has %d digits, %d are enough", made, digits, fewest);
}

static void doubles_read_back_and_are_short(void **state)
{
    uint64_t seed = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        double d;

        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        memcpy(&d, &seed, sizeof(d));
        if (isfinite(d))
            check_double(d);
        check_double((double)(seed % 100000000000) / 100);
        check_double(ldexp(1, (int)(seed % 2000) - 1000));
    }
}

static void floats_read_back(void **state)
{
    uint32_t seed = 2463534242u;
    char made[32];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        float f;

        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        memcpy(&f, &seed, sizeof(f));
        if (!isfinite(f))
            continue;
        made[values_float_text(f, made)] = '\0';
        assert_true(strtof(made, NULL) == f);
    }
}

static void doubles_have_the_layout_of_java(void **state)
{
    static const struct {
        double d;
        const char *text;
    } rows[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {100, "100.0"},
        {9999999, "9999999.0"},
        {1e7, "1.0E7"},
        {0.001, "0.001"},
        {9.99e-4, "9.99E-4"},
        {123.456, "123.456"},
        {-12.5, "-12.5"},
        {1e23, "1.0E23"},
        {1e22, "1.0E22"},
        {5e-324, "4.9E-324"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {NAN, "NaN"},
        {1e-3, "0.001"},
        {1234567.0, "1234567.0"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5.684341886080802e-14, "5.684341886080802E-14"},
        {9007199254740993.0, "9.007199254740992E15"},
    };
    char made[32];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        made[values_double_text(rows[i].d, made)] = '\0';
        assert_string_equal(made, rows[i].text);
    }
}

/* --- decimals and dates ----------------------------------------------------------------------- */

static struct mr_value decimal(struct mr_arena *arena, const void *bytes, size_t len, int32_t scale)
{
    struct mr_decimal *d = mr_alloc(arena, sizeof(*d) + len);

    d->scale = scale;
    d->len = (uint32_t)len;
    memcpy(d->bytes, bytes, len);
    return mr_ptr_of(MR_KIND_DECIMAL, d, 0);
}

static void decimals_of_any_length_have_a_text(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    char bytes[1000];
    const char *made;

    assert_string_equal(text(arena, decimal(arena, "\x80", 1, 0)), "-128");
    assert_string_equal(text(arena, decimal(arena, "\x00\x80", 2, 3)), "0.128");
    assert_string_equal(text(arena, decimal(arena, "\xff", 1, -2)), "-1E+2");
    assert_string_equal(text(arena, decimal(arena, "\x00", 1, 7)), "0E-7");
    assert_string_equal(text(arena, decimal(arena, "\x00", 1, 6)), "0.000000");
    assert_string_equal(text(arena, decimal(arena, "\x7b", 1, 2147483647)), "1.23E-2147483645");
    assert_string_equal(text(arena, decimal(arena, "\x7b", 1, -2147483647 - 1)),
                        "1.23E+2147483650");
    assert_string_equal(text(arena, decimal(arena, "\x80\0\0\0\0\0\0\0\0", 9, 0)),
                        "-2361183241434822606848");
    memset(bytes, 0xff, sizeof(bytes));
    bytes[0] = 0x7f;
    made = text(arena, decimal(arena, bytes, sizeof(bytes), 0));
    assert_int_equal(strlen(made), 2408); /* 2^7999 - 1 */
    memset(bytes, 0, sizeof(bytes));
    bytes[0] = (char)0x80;
    assert_int_equal(text(arena, decimal(arena, bytes, sizeof(bytes), 0))[0], '-');
}

static void dates_before_1582_are_julian(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);

    assert_string_equal(text(arena, mr_timestamp(-12219292800000)), "Fri Oct 15 00:00:00 UTC 1582");
    assert_string_equal(text(arena, mr_timestamp(-12219292800001)), "Thu Oct 04 23:59:59 UTC 1582");
    assert_string_equal(text(arena, mr_timestamp(-62135596800001)), "Sun Jan 02 23:59:59 UTC 1");
    assert_string_equal(text(arena, mr_timestamp(-62198755200000)), "Fri Jan 03 00:00:00 UTC 2");
    assert_string_equal(text(arena, mr_timestamp(INT64_MAX)), "Sun Aug 17 07:12:55 UTC 292278994");
    assert_string_equal(text(arena, mr_timestamp(INT64_MIN)), "Sun Dec 02 16:47:04 UTC 292269055");
    assert_string_equal(text(arena, mr_date(INT32_MIN)), "Tue Mar 03 00:00:00 UTC 5877521");
    assert_string_equal(text(arena, mr_date(INT32_MAX)), "Fri Jul 11 00:00:00 UTC 5881580");
    assert_string_equal(text(arena, mr_timestamp(951782400000)), "Tue Feb 29 00:00:00 UTC 2000");
    assert_string_equal(text(arena, mr_time(86399999)), "Thu Jan 01 23:59:59 UTC 1970");
}

/* --- equality, copies, checks ----------------------------------------------------------------- */

static void equality_is_by_kind_and_content(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    struct mr_value a = mr_map(arena, 2), b = mr_map(arena, 2);

    assert_false(values_equal(mr_int(1), mr_long(1)));
    assert_true(values_equal(mr_double(NAN), mr_double(-NAN)));
    assert_false(values_equal(mr_double(0.0), mr_double(-0.0)));
    assert_false(values_equal(decimal(arena, "\x0a", 1, 1), decimal(arena, "\x64", 1, 2)));
    mr_pairs(a)[0] = (struct mr_pair){mr_str("x"), mr_int(1)};
    mr_pairs(a)[1] = (struct mr_pair){mr_str("y"), mr_int(2)};
    mr_pairs(b)[1] = (struct mr_pair){mr_str("x"), mr_int(1)};
    mr_pairs(b)[0] = (struct mr_pair){mr_str("y"), mr_int(2)};
    assert_true(values_equal(a, b));
    assert_true(mr_hash_value(7, a) == mr_hash_value(7, b));
    mr_pairs(b)[0].value = mr_int(3);
    assert_false(values_equal(a, b));
}

/* A map of two maps as keys, so many deep, whose leaves are numbers from 1 on; backwards: each in
 * the other order. */
static struct mr_value nested_keys(struct mr_arena *arena, int depth, int leaf, bool backwards)
{
    struct mr_value map;

    if (depth == 0)
        return mr_int(leaf);
    map = mr_map(arena, 2);
    for (int i = 0; i < 2; i++)
        mr_pairs(map)[backwards ? 1 - i : i] =
            (struct mr_pair){nested_keys(arena, depth - 1, 2 * leaf + i, backwards), mr_bool(true)};
    return map;
}

/* Whatever order their pairs are in. */
static void large_maps_are_compared_soon(void **state)
{
    enum { PAIRS = 100000, DEPTH = 15 };
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    struct mr_value a = mr_map(arena, PAIRS), b = mr_map(arena, PAIRS);
    clock_t began = clock();

    for (int i = 0; i < PAIRS; i++) {
        mr_pairs(a)[i] = (struct mr_pair){mr_int(i), mr_null()};
        mr_pairs(b)[PAIRS - 1 - i] = mr_pairs(a)[i];
    }
    assert_true(values_equal(a, b));
    mr_pairs(b)[0].value = mr_int(1);
    assert_false(values_equal(a, b));
    a = nested_keys(arena, DEPTH, 1, false);
    b = nested_keys(arena, DEPTH, 1, true);
    assert_true(values_equal(a, b));
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC); /* of the processor */
}

static void a_copy_shares_nothing(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    char word[] = "word", *memory, *to;
    struct mr_value list = mr_list(arena, 2), copy;
    size_t size;

    mr_items(list)[0] = mr_text(word, 4);
    mr_items(list)[1] = mr_bytes("\1\2", 2);
    size = values_size(list);
    memory = to = malloc(size);
    copy = values_copy(list, &to);
    assert_int_equal(to - memory, size);
    assert_true(values_equal(list, copy));
    word[0] = 'W';
    assert_string_equal(text(arena, copy), "[word, AQI=]");
    free(memory);
}

static int check(struct mr_value v)
{
    struct mr_error err = {0};

    return values_check(v, &err);
}

static void nonsense_from_plugins_is_refused(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    struct mr_value v = mr_int(5);

    assert_int_equal(check(v), 0);
    v.kind = 17;
    assert_int_equal(check(v), MR_ERR_DATA);
    v = mr_int(5);
    v.reserved = 1;
    assert_int_equal(check(v), MR_ERR_DATA);
    assert_int_equal(check(mr_int_of(MR_KIND_INT8, 128)), MR_ERR_DATA);
    assert_int_equal(check(mr_int_of(MR_KIND_BOOL, 2)), MR_ERR_DATA);
    assert_int_equal(check(mr_ptr_of(MR_KIND_STRING, NULL, 3)), MR_ERR_DATA);
    assert_int_equal(check(mr_ptr_of(MR_KIND_STRUCT, NULL, 0)), MR_ERR_DATA);
    assert_int_equal(check(mr_ptr_of(MR_KIND_DECIMAL, NULL, 0)), MR_ERR_DATA);
    v = mr_int(1);
    for (int i = 0; i <= 1000; i++) {
        struct mr_value outer = mr_list(arena, 1);

        if (i == 1000)
            assert_int_equal(check(v), 0);
        mr_items(outer)[0] = v;
        v = outer;
    }
    assert_int_equal(check(v), MR_ERR_DATA);
}

/* --- text from bytes -------------------------------------------------------------------------- */

static size_t replaced(struct mr_arena *arena, const char *bytes, size_t len)
{
    struct mr_value v = utf8_text(arena, bytes, len);
    size_t count = 0;

    for (uint32_t i = 0; i + 3 <= v.len; i++)
        count += memcmp((const char *)v.u.p + i, "\xef\xbf\xbd", 3) == 0;
    return count;
}

static void malformed_text_is_replaced_as_java_counts(void **state)
{
    struct plugin_host *h = *state;
    struct mr_arena *arena = plugin_host_arena(h);
    const char *good = "caf\xc3\xa9 \xf0\x9f\x98\x80";

    assert_ptr_equal(utf8_text(arena, good, strlen(good)).u.p, good);
    assert_int_equal(replaced(arena, "\xed\xa0\x80", 3), 1);
    assert_int_equal(replaced(arena,
                              "\xe2\x82"
                              "x",
                              3),
                     1);
    assert_int_equal(replaced(arena, "\xf0\x9f\x98", 3), 1);
    assert_int_equal(replaced(arena, "\xc0\x80", 2), 2);
    assert_int_equal(replaced(arena, "\xe0\x80\x80", 3), 3);
    assert_int_equal(replaced(arena, "\xf0\x80\x80\x80", 4), 4);
    assert_int_equal(replaced(arena, "\xf4\x90\x80\x80", 4), 4);
    assert_int_equal(replaced(arena, "\xf8\x88\x80\x80\x80", 5), 5);
    assert_string_equal(text(arena, utf8_text(arena,
                                              "a\xff"
                                              "b\xc3",
                                              4)),
                        "a\xef\xbf\xbd"
                        "b\xef\xbf\xbd");
    assert_int_equal(utf8_text(arena, "a\0b", 3).len, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_those_of_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(values_are_validated_as_in_java, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test(doubles_read_back_and_are_short),
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(doubles_have_the_layout_of_java),
        cmocka_unit_test_setup_teardown(decimals_of_any_length_have_a_text, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(dates_before_1582_are_julian, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(equality_is_by_kind_and_content, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(large_maps_are_compared_soon, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(a_copy_shares_nothing, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(nonsense_from_plugins_is_refused, plugin_host_set_up,
                                        plugin_host_tear_down),
        cmocka_unit_test_setup_teardown(malformed_text_is_replaced_as_java_counts,
                                        plugin_host_set_up, plugin_host_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
