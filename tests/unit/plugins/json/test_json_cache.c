/* SPDX-License-Identifier: Apache-2.0 */
/* JsonConverter's two caches keep to schemas.cache.size, and to their bytes, whatever comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/schema_tree.h"
#include "json/json_private.h"

#include <stdio.h>
#include <stdlib.h>

#define ENVELOPE "{\"schema\":{\"type\":\"int32\",\"version\":%d},\"payload\":"

static const struct mr_schema *numbered(int version)
{
    const struct mr_schema_spec spec = {
        .kind = MR_KIND_INT32, .has_version = true, .version = version};
    const struct mr_schema *schema = schema_tree_make(&spec, sizeof(spec), NULL);

    assert_non_null(schema);
    return schema;
}

static void envelopes_keep_to_their_number(void **state)
{
    struct json_envelopes set = {.max = 10};
    char text[100];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        size_t len = (size_t)snprintf(text, sizeof(text), ENVELOPE, i);

        json_envelopes_add(&set, text, len, numbered(i));
        assert_true(set.count >= 1 && set.count <= 10);
        assert_true(set.size <= 32);
        snprintf(text + len, sizeof(text) - len, "1}");
        assert_ptr_equal(json_envelopes_match(&set, text, strlen(text))->schema, numbered(i));
    }
    json_envelopes_free(&set);
}

/* Of 4 MiB each: not many of them are kept, however many there may be; above that none is. */
static void envelopes_keep_to_their_bytes(void **state)
{
    static const size_t LARGE = (size_t)4 << 20;
    struct json_envelopes set = {.max = 1000};
    char *text = malloc(LARGE + 1);

    (void)state;
    assert_non_null(text);
    memset(text, ' ', LARGE + 1);
    for (int i = 0; i < 20; i++) {
        snprintf(text, 100, ENVELOPE, i);
        json_envelopes_add(&set, text, LARGE, numbered(i));
        assert_in_range(set.count, 1, 5);
        assert_true(set.bytes <= 5 * LARGE);
    }
    set.last = NULL;
    json_envelopes_add(&set, text, LARGE + 1, numbered(0));
    assert_null(set.last);
    json_envelopes_free(&set);
    free(text);
}

static void plans_keep_to_their_number(void **state)
{
    struct json_plans plans = {.max = 10};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        json_plans_trim(&plans);
        assert_ptr_equal(json_plan_get(&plans, numbered(i))->schema, numbered(i));
        assert_true(plans.count <= 11); /* one more until the next record begins */
        assert_int_equal(plans.max, 10);
    }
    json_plans_free(&plans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(envelopes_keep_to_their_number),
        cmocka_unit_test(envelopes_keep_to_their_bytes),
        cmocka_unit_test(plans_keep_to_their_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
