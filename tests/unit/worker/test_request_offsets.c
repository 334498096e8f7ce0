/* SPDX-License-Identifier: Apache-2.0 */
/* request_offsets: bodies of PATCH offsets, from clients that mean well and others. */
#include "worker/rest/request_offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The entries as JSON, "absent", or the error's text. */
static const char *parsed(const char *body)
{
    static char out[2048];
    struct mr_error err = {0};
    json_t *list = NULL;
    bool absent = false;
    int rc = request_offsets_parse(body, strlen(body), &list, &absent, &err);
    char *text = rc == 0 ? json_text(list) : strdup(err.text);

    if (rc != 0)
        assert_int_equal(rc, MR_ERR_PROTOCOL);
    snprintf(out, sizeof(out), "%s%s", absent ? "absent" : "", text);
    free(text);
    json_decref(list);
    return out;
}

static void entries_are_read_and_of_a_partition_the_last_counts(void **state)
{
    (void)state;
    assert_string_equal(parsed(" {\"offsets\":[{\"partition\":{\"a\":1,\"b\":\"x\"},\"offset\":{"
                               "\"p\":1}},{\"offset\":null},{\"partition\":{\"b\":\"x\",\"a\":1},"
                               "\"offset\":{\"p\":2.50}}]}\n"),
                        "[[{\"a\":1,\"b\":\"x\"},{\"p\":2.5}],[null,null]]");
    assert_string_equal(parsed("{\"offsets\":[{}]}"), "[[null,null]]");
}

static void none_is_an_empty_list_and_nothing_is_absent(void **state)
{
    (void)state;
    assert_string_equal(parsed("{}"), "[]");
    assert_string_equal(parsed("{\"offsets\":null}"), "[]");
    assert_string_equal(parsed("{\"offsets\":[]}"), "[]");
    assert_string_equal(parsed(""), "absent[]");
    assert_string_equal(parsed("\xEF\xBB\xBF \n"), "absent[]");
    assert_string_equal(parsed("null"), "absent[]");
}

static void integers_beyond_64_bits_are_marked_wherever_they_stand(void **state)
{
    (void)state;
    assert_string_equal(
        parsed("{\"offsets\":[{\"partition\":{\"a\":9223372036854775807,\"b\":"
               "-9223372036854775809,\"c\":\"9223372036854775808 \\\" 99999999999999999999\"},"
               "\"offset\":{\"d\":[123456789012345678901234567890],\"e\":9999999999999999999.5}}]"
               "}"),
        "[[{\"a\":9223372036854775807,\"b\":{\"java.math.BigInteger\":\"-9223372036854775809\"},"
        "\"c\":\"9223372036854775808 \\\" 99999999999999999999\"},{\"d\":[{\"java.math.BigInteger\""
        ":\"123456789012345678901234567890\"}],\"e\":1e+19}]]");
}

static void what_is_of_another_form_is_refused_by_name(void **state)
{
    static const char *const rows[][2] = {
        {"[]", "The request body must be a JSON object"},
        {"7", "The request body must be a JSON object"},
        {"{\"offset\":[]}", "Unrecognized member 'offset' (known are offsets)"},
        {"{\"offsets\":{}}", "The member 'offsets' must be a JSON array"},
        {"{\"offsets\":[null]}", "Entry 0 of 'offsets' must be a JSON object"},
        {"{\"offsets\":[{},{\"partition\":[]}]}",
         "The member 'partition' of entry 1 of 'offsets' must be a JSON object or null"},
        {"{\"offsets\":[{\"offset\":5}]}",
         "The member 'offset' of entry 0 of 'offsets' must be a JSON object or null"},
        {"{\"offsets\":[{\"x\":{}}]}", "Unrecognized member 'x' (known are partition and offset)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(parsed(rows[i][0]), rows[i][1]);
    assert_non_null(strstr(parsed("{\"offsets\":[}"), "Malformed JSON: line 1, column 13"));
    assert_non_null(strstr(parsed("{\"offsets\":[\""), "Malformed JSON"));
    assert_non_null(strstr(parsed("{\"offsets\":[\"\\"), "Malformed JSON"));
    assert_non_null(strstr(parsed("99999999999999999999"), "Unrecognized member"));
    assert_non_null(strstr(parsed("-"), "Malformed JSON"));
}

static void the_number_of_entries_is_bounded(void **state)
{
    size_t count = REQUEST_OFFSETS_MAX + 1;
    struct buf body;

    (void)state;
    buf_init(&body, 1 << 20);
    buf_puts(&body, "{\"offsets\":[{}");
    for (size_t i = 1; i < count; i++)
        buf_puts(&body, ",{}");
    buf_puts(&body, "]}");
    assert_string_equal(parsed(body.data), "One request may change at most 10000 offsets");
    buf_deinit(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_read_and_of_a_partition_the_last_counts),
        cmocka_unit_test(none_is_an_empty_list_and_nothing_is_absent),
        cmocka_unit_test(integers_beyond_64_bits_are_marked_wherever_they_stand),
        cmocka_unit_test(what_is_of_another_form_is_refused_by_name),
        cmocka_unit_test(the_number_of_entries_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
