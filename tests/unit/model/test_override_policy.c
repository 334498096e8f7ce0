/* SPDX-License-Identifier: Apache-2.0 */
/* override_policy: what each of Connect's policies lets a connector override. */
#include "model/override_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define KEY "connector.client.config.override.policy"

static bool allows(const char *policy, const char *list, const char *key)
{
    struct props worker;
    bool allowed;

    props_init(&worker);
    if (policy != NULL)
        assert_int_equal(props_set(&worker, KEY, policy), 0);
    assert_int_equal(
        props_set(&worker, "connector.client.config.override.allowlist", list != NULL ? list : ""),
        0);
    allowed = override_policy_allows(&worker, key);
    props_deinit(&worker);
    return allowed;
}

static void policies_allow_what_connect_s_do(void **state)
{
    (void)state;
    assert_true(allows(NULL, NULL, "acks"));
    assert_true(allows("All", NULL, "acks"));
    assert_false(allows("None", NULL, "acks"));
    assert_false(allows("None", "acks", "acks"));
    assert_false(allows("Principal", NULL, "acks"));
    assert_true(allows("Principal", NULL, "sasl.jaas.config"));
    assert_true(allows("Principal", NULL, "sasl.mechanism"));
    assert_true(allows("Principal", NULL, "security.protocol"));
    assert_true(allows("Allowlist", "linger.ms , acks", "acks"));
    assert_false(allows("Allowlist", "linger.ms , acks", "ack"));
    assert_false(allows("Allowlist", NULL, "acks"));
}

static void policies_have_a_name_and_a_class(void **state)
{
    (void)state;
    assert_string_equal(override_policy_known("None"), "None");
    assert_string_equal(override_policy_known("None "), "None");
    assert_string_equal(override_policy_known("org.apache.kafka.connect.connector.policy."
                                              "PrincipalConnectorClientConfigOverridePolicy"),
                        "Principal");
    assert_null(override_policy_known("Nonesuch"));
    assert_null(override_policy_known(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_allow_what_connect_s_do),
        cmocka_unit_test(policies_have_a_name_and_a_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
