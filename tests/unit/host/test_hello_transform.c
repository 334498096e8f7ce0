/* SPDX-License-Identifier: Apache-2.0 */
/* The example of a transform, compiled as it stands, on the host's table. */
#include "support/unit/plugin_host.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "../../../examples/hello_transform/hello_transform.c"

static void text_is_greeted_and_all_else_left_out(void **state)
{
    const char *keys[] = {"greeting", "good day", NULL};
    struct plugin_host h = {.stored = -1};
    struct record *rec;

    (void)state;
    assert_int_equal(plugin_host_open(&h, "HelloTransform", keys), 0);
    rec = batch_add(h.batch, "t");
    rec->pub.value = mr_str("Ada");
    assert_int_equal(plugin_host_apply(&h, rec), MR_OK);
    assert_int_equal(rec->pub.value.len, 13);
    assert_memory_equal(rec->pub.value.u.p, "good day, Ada", 13);
    rec->pub.value = mr_long(5);
    assert_int_equal(plugin_host_apply(&h, rec), MR_DROP);
    plugin_host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_is_greeted_and_all_else_left_out)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
