/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_code: the table is whole and in order, and says what the reference says. */
#include "wire/kafka_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_code_has_its_name(void **state)
{
    static const struct {
        int16_t code;
        const char *name;
    } some[] = {{-1, "UNKNOWN_SERVER_ERROR"},        {0, "NONE"},
                {1, "OFFSET_OUT_OF_RANGE"},          {15, "COORDINATOR_NOT_AVAILABLE"},
                {27, "REBALANCE_IN_PROGRESS"},       {58, "SASL_AUTHENTICATION_FAILED"},
                {79, "MEMBER_ID_REQUIRED"},          {90, "PRODUCER_FENCED"},
                {133, "SHARE_SESSION_LIMIT_REACHED"}};

    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        assert_string_equal(kafka_code_name(some[i].code), some[i].name);
    for (int16_t code = -1; code <= 133; code++)
        assert_string_not_equal(kafka_code_name(code), "UNKNOWN");
    assert_string_equal(kafka_code_name(134), "UNKNOWN");
    assert_string_equal(kafka_code_name(-2), "UNKNOWN");
    assert_string_equal(kafka_code_name(INT16_MIN), "UNKNOWN");
    assert_string_equal(kafka_code_name(INT16_MAX), "UNKNOWN");
}

static void what_to_do_is_what_the_reference_says(void **state)
{
    static const struct {
        int16_t code;
        enum kafka_code_act act;
    } rows[] = {
        {0, KAFKA_CODE_OK},
        {3, KAFKA_CODE_REFRESH},
        {5, KAFKA_CODE_REFRESH},
        {6, KAFKA_CODE_REFRESH},
        {7, KAFKA_CODE_RETRY},
        {14, KAFKA_CODE_RETRY},
        {15, KAFKA_CODE_REDISCOVER},
        {16, KAFKA_CODE_REDISCOVER},
        {22, KAFKA_CODE_REJOIN_GENERATION},
        {23, KAFKA_CODE_FATAL},
        {24, KAFKA_CODE_FATAL},
        {25, KAFKA_CODE_REJOIN_NEW},
        {26, KAFKA_CODE_FATAL},
        {27, KAFKA_CODE_REJOIN},
        {30, KAFKA_CODE_FATAL},
        {33, KAFKA_CODE_FATAL},
        {34, KAFKA_CODE_FATAL},
        {35, KAFKA_CODE_FATAL},
        {51, KAFKA_CODE_RETRY},
        {53, KAFKA_CODE_FATAL},
        {58, KAFKA_CODE_FATAL},
        {79, KAFKA_CODE_REJOIN_AS},
        {81, KAFKA_CODE_FATAL},
        {82, KAFKA_CODE_FATAL},
        {90, KAFKA_CODE_FATAL},
        {-1, KAFKA_CODE_RETRY},
        {134, KAFKA_CODE_RETRY},
        {-2, KAFKA_CODE_RETRY},
        {INT16_MAX, KAFKA_CODE_RETRY},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (kafka_code_act(rows[i].code) != rows[i].act)
            fail_msg("%d is %d", rows[i].code, kafka_code_act(rows[i].code));
}

static void what_a_user_can_mend_has_a_hint(void **state)
{
    assert_non_null(strstr(kafka_code_hint(26), "group.min.session.timeout.ms"));
    assert_non_null(strstr(kafka_code_hint(30), "ACLs"));
    assert_non_null(strstr(kafka_code_hint(33), "sasl.mechanism"));
    assert_string_equal(kafka_code_hint(0), "");
    assert_string_equal(kafka_code_hint(999), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_name),
        cmocka_unit_test(what_to_do_is_what_the_reference_says),
        cmocka_unit_test(what_a_user_can_mend_has_a_hint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
