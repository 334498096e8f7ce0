/* SPDX-License-Identifier: Apache-2.0 */
/* stored_json decodes exactly what Kafka's JsonConverter decodes, since the config offset hangs on
 * it; and spells numbers as Java does. */
#include "base/file.h"
#include "model/stored_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool takes(const void *data, size_t len)
{
    struct mr_error err = {0};
    json_t *value = NULL;
    int rc = stored_json_parse(data, len, &value, &err);

    assert_true(rc == 0 || rc == MR_ERR_PROTOCOL);
    assert_int_equal(rc, err.code);
    json_decref(value);
    return rc == 0;
}

static void whatever_java_decodes_is_decoded_and_nothing_else(void **state)
{
    struct buf text;
    int lines = 0;
    char *save = NULL;

    (void)state;
    buf_init(&text, 1 << 20);
    assert_int_equal(file_read(TEST_SOURCE "/tests/data/store/json.tsv", &text, NULL), 0);
    for (char *line = strtok_r(text.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned char data[128];
        size_t len = strcspn(line, "\t") / 2;
        bool java = strcmp(line + 2 * len + 1, "ok") == 0;

        for (size_t i = 0; i < len; i++) {
            unsigned byte;

            assert_int_equal(sscanf(line + 2 * i, "%2x", &byte), 1);
            data[i] = (unsigned char)byte;
        }
        lines++;
        if (takes(data, len) != java)
            fail_msg("%s", line);
    }
    buf_deinit(&text);
    assert_true(lines > 230);
    assert_true(takes("", 0));
}

static void expect_read(const void *data, size_t len, const char *text)
{
    json_t *value = NULL;
    struct buf out;

    assert_int_equal(stored_json_parse(data, len, &value, NULL), 0);
    buf_init(&out, 1024);
    assert_int_equal(stored_json_write(&out, value), 0);
    assert_string_equal(out.data, text);
    buf_deinit(&out);
    json_decref(value);
}

/* {"ä😀":1}, and a half of a pair. */
static void other_encodings_are_read_as_what_they_say(void **state)
{
    static const char want[] = "{\"\xc3\xa4\xf0\x9f\x98\x80\":1}", half[] = "\"\xef\xbf\xbd\"";
    static const unsigned char be16[] = {0, '{', 0,   '"', 0,   0xe4, 0xd8, 0x3d, 0xde,
                                         0, 0,   '"', 0,   ':', 0,    '1',  0,    '}'};
    static const unsigned char half16[] = {'"', 0, 0x3d, 0xd8, 'x', 0, '"', 0};
    static const unsigned points[] = {'{', '"', 0xe4, 0x1f600, '"', ':', '1', '}'};
    unsigned char le16[sizeof(be16) + 2] = {0xff, 0xfe}, be32[32], le32[36] = {0xff, 0xfe, 0, 0};

    (void)state;
    for (size_t i = 0; i < sizeof(be16); i++)
        le16[2 + (i ^ 1)] = be16[i];
    for (size_t i = 0; i < 32; i++) {
        be32[i] = (unsigned char)(points[i / 4] >> (24 - 8 * (i % 4)));
        le32[4 + i] = (unsigned char)(points[i / 4] >> (8 * (i % 4)));
    }
    expect_read(be16, sizeof(be16), want);
    expect_read(le16, sizeof(le16), want);
    expect_read(be32, sizeof(be32), want);
    expect_read(le32, sizeof(le32), want);
    expect_read(half16, sizeof(half16), half);
}

static char *repeat(const char *part, int count, const char *middle, const char *end)
{
    struct buf out;

    buf_init(&out, (size_t)64 << 20);
    for (int i = 0; i < count; i++)
        buf_puts(&out, part);
    buf_puts(&out, middle);
    for (int i = 0; i < count && end != NULL; i++)
        buf_puts(&out, end);
    return buf_take(&out);
}

static bool takes_text(char *text)
{
    bool ok = takes(text, strlen(text));

    free(text);
    return ok;
}

static void its_limits_are_javas(void **state)
{
    char *digits;

    (void)state;
    assert_true(takes_text(repeat("[", 1000, "", "]")));
    assert_false(takes_text(repeat("[", 1001, "", "]")));
    assert_true(takes_text(repeat("{\"a\":", 1000, "1", "}")));
    assert_false(takes_text(repeat("{\"a\":", 1001, "1", "}")));
    assert_false(takes_text(repeat("[", 100000, "", NULL)));
    assert_true(takes_text(repeat("1", 1000, "", NULL)));
    assert_false(takes_text(repeat("1", 1001, "", NULL)));
    assert_true(takes_text(repeat("1", 999, ".5", NULL)));
    assert_false(takes_text(repeat("1", 1000, ".5", NULL)));
    digits = repeat("k", 50000, "\":1}", NULL);
    memcpy(digits, "{\"", 2); /* 49998 characters are left */
    assert_true(takes_text(digits));
    digits = repeat("k", 50003, "\":1}", NULL);
    memcpy(digits, "{\"", 2); /* 50001 */
    assert_false(takes_text(digits));
    digits = repeat("k", 20000001, "\"", NULL);
    *digits = '"';
    assert_true(takes_text(digits));
    digits = repeat("k", 20000002, "\"", NULL);
    *digits = '"';
    assert_false(takes_text(digits));
}

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(stored_json_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

static void numbers_come_as_java_has_them(void **state)
{
    static const struct {
        const char *text;
        json_int_t value;
    } integers[] = {
        {"12345678901234567890", -6101065172474983726},
        {"-9223372036854775809", INT64_MAX},
        {"-0", 0},
        {"01", 1},
        {"-01", -1},
        {"9223372036854775807", INT64_MAX},
    };
    json_t *value;

    (void)state;
    for (size_t i = 0; i < sizeof(integers) / sizeof(*integers); i++) {
        value = parse(integers[i].text);
        assert_true(json_is_integer(value));
        assert_true(json_integer_value(value) == integers[i].value);
        json_decref(value);
    }
    value = parse("1e5");
    assert_true(json_is_real(value) && json_real_value(value) == 100000.0);
    json_decref(value);
    value = parse("1e999");
    assert_true(json_is_real(value));
    json_decref(value);
    assert_null(parse("null"));
    assert_null(parse(" \t\r\n"));
}

static void texts_come_whole_or_with_a_mark(void **state)
{
    json_t *value = parse("{\"a\":\"\\ud83d\\ude00\\u00e9\\n\\/\",\"b\":\"\\ud800x\",\"a\":2,"
                          "\"c\\u0000\":\"\\u0000\"}");
    const json_t *text = json_object_get(value, "b");

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(value, "a")), 2);
    assert_string_equal(json_string_value(text), "\xef\xbf\xbdx");
    assert_int_equal(json_string_length(json_object_get(value, "c?")), 1);
    json_decref(value);
    value = parse("\"\\ud83d\\ude00\\u00e9\\n\\/\"");
    assert_string_equal(json_string_value(value), "\xf0\x9f\x98\x80\xc3\xa9\n/");
    json_decref(value);
}

static void doubles_are_spelt_as_java_spells_them(void **state)
{
    static const struct {
        double value;
        const char *text;
    } doubles[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {100, "100.0"},
        {1.5, "1.5"},
        {-2.25, "-2.25"},
        {9999999, "9999999.0"},
        {1e7, "1.0E7"},
        {12345678, "1.2345678E7"},
        {1e22, "1.0E22"},
        {0.001, "0.001"},
        {0.0123, "0.0123"},
        {0.0001, "1.0E-4"},
        {1.2345e-7, "1.2345E-7"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {1.7976931348623157e308, "1.7976931348623157E308"},
        {4.9e-324, "4.9E-324"},
        {9007199254740993.0, "9.007199254740992E15"},
        {123456.789, "123456.789"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(doubles) / sizeof(*doubles); i++) {
        json_t *value = json_pack("{s:[f,i]}", "a", doubles[i].value, 7);
        char want[64];
        struct buf out;

        buf_init(&out, 1000);
        snprintf(want, sizeof(want), "{\"a\":[%s,7]}", doubles[i].text);
        assert_int_equal(stored_json_write(&out, value), 0);
        /* Java before 19 writes 4.9E-324, the shortest is 5E-324 */
        if (doubles[i].value > 1e-300 || doubles[i].value <= 0)
            assert_string_equal(out.data, want);
        buf_deinit(&out);
        json_decref(value);
    }
}

static void every_cut_of_a_document_is_refused_or_read(void **state)
{
    static const char text[] =
        "{\"properties\":{\"a\":\"\\u00e9\\ud83d\\ude00\xc3\xa9\",\"b\":[1,-2.5e3,"
        "true,null,{\"c\":{}}]}}";

    (void)state;
    for (size_t len = 1; len < sizeof(text) - 1; len++) {
        char *copy = malloc(len); /* its end is seen by a sanitizer */

        memcpy(copy, text, len);
        assert_false(takes(copy, len));
        free(copy);
    }
    assert_true(takes(text, sizeof(text) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_java_decodes_is_decoded_and_nothing_else),
        cmocka_unit_test(other_encodings_are_read_as_what_they_say),
        cmocka_unit_test(its_limits_are_javas),
        cmocka_unit_test(numbers_come_as_java_has_them),
        cmocka_unit_test(texts_come_whole_or_with_a_mark),
        cmocka_unit_test(doubles_are_spelt_as_java_spells_them),
        cmocka_unit_test(every_cut_of_a_document_is_refused_or_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
