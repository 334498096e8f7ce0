/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/plugin_host.h"

#include <string.h>

static void open_converter(struct plugin_host *h)
{
    const char *keys[] = {"converter.type", "value", NULL};

    h->stored = -1;
    assert_int_equal(
        plugin_host_open(h, "org.apache.kafka.connect.converters.ByteArrayConverter", keys), 0);
}

static void bytes_pass_uncopied(void **state)
{
    static const char bytes[] = "\0\xff\1";
    struct plugin_host h;
    const struct mr_schema *schema = NULL;
    struct mr_value v;
    const void *data;
    size_t len;

    (void)state;
    open_converter(&h);
    assert_int_equal(plugin_host_to_connect(&h, bytes, 3, &schema, &v), 0);
    assert_int_equal(v.kind, MR_KIND_BYTES);
    assert_ptr_equal(v.u.p, bytes);
    assert_int_equal(schema->kind, MR_KIND_BYTES);
    assert_true(schema->optional);
    assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    assert_ptr_equal(data, bytes);
    assert_int_equal(len, 3);
    plugin_host_close(&h);
}

static void nothing_and_no_bytes_are_two_things(void **state)
{
    struct plugin_host h;
    const struct mr_schema *schema = NULL;
    struct mr_value v;
    const void *data;
    size_t len;

    (void)state;
    open_converter(&h);
    assert_int_equal(plugin_host_to_connect(&h, NULL, 0, &schema, &v), 0);
    assert_true(mr_is_null(v));
    assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), 0);
    assert_null(data);
    assert_int_equal(plugin_host_to_connect(&h, "", 0, &schema, &v), 0);
    assert_false(mr_is_null(v));
    assert_int_equal(plugin_host_from_connect(&h, NULL, v, &data, &len), 0);
    assert_non_null(data);
    assert_int_equal(len, 0);
    plugin_host_close(&h);
}

static void what_is_no_bytes_is_refused(void **state)
{
    struct plugin_host h;
    const void *data;
    size_t len;

    (void)state;
    open_converter(&h);
    assert_int_equal(plugin_host_from_connect(&h, mr_schema_of(&h.inst.pub, MR_KIND_INT32, false),
                                              mr_int(5), &data, &len),
                     MR_ERR_DATA);
    assert_string_equal(h.err.text, "Invalid schema type for ByteArrayConverter: INT32");
    assert_int_equal(plugin_host_from_connect(&h, NULL, mr_str("x"), &data, &len), MR_ERR_DATA);
    assert_string_equal(
        h.err.text,
        "ByteArrayConverter is not compatible with objects of type class java.lang.String");
    plugin_host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_pass_uncopied),
        cmocka_unit_test(nothing_and_no_bytes_are_two_things),
        cmocka_unit_test(what_is_no_bytes_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
