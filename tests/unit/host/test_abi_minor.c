/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI's minor goes up when what plugins are compiled with has grown: an older Millrace then
 * refuses a plugin that needs more than it has, where it would run it without what it can't see (a
 * sink with stores_offsets, at least once in silence).
 *
 * One of these tests fails: raise MR_ABI_MINOR, unless no release has had it yet, and write down
 * the new size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <millrace/plugin.h>

#include "host/descriptor.h"

#include <string.h>

static void what_minor_3_has_is_of_this_size(void **state)
{
    static const struct {
        size_t is, was;
    } sizes[] = {
        {sizeof(struct mr_host), 464},           {sizeof(struct mr_module), 24},
        {sizeof(struct mr_config_key), 96},      {sizeof(struct mr_source), 144},
        {sizeof(struct mr_sink), 176},           {sizeof(struct mr_converter), 96},
        {sizeof(struct mr_transform), 96},       {sizeof(struct mr_predicate), 96},
        {sizeof(struct mr_partition), 32},       {sizeof(struct mr_partition_list), 40},
        {sizeof(struct mr_offset_change), 32},   {sizeof(struct mr_offset_list), 32},
        {sizeof(struct mr_config_provider), 88}, {sizeof(struct mr_rest_filter), 88},
        {sizeof(struct mr_error), 1024},
    };

    (void)state;
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(MR_ABI_MAJOR, 0);
    assert_int_equal(MR_ABI_MINOR, 3);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(sizes[i].is, sizes[i].was);
}

MR_DEFINE_SINK(later, "Later", "1.0", .emits = NULL);
MR_MODULE(MR_PLUGIN(later))

/* By the number in front of the module alone: nothing behind it is looked at. */
static void a_library_carries_the_minor_that_it_was_compiled_with(void **state)
{
    const struct mr_module *module = millrace_module();
    struct mr_module newer = *module;
    struct descriptor_set set;
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(module->abi_minor, MR_ABI_MINOR);
    newer.abi_minor++;
    newer.plugins = NULL;
    assert_int_equal(descriptor_read(&newer, "later.so", &set, &err), MR_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "use a newer Millrace, or build the plugin with its headers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_minor_3_has_is_of_this_size),
        cmocka_unit_test(a_library_carries_the_minor_that_it_was_compiled_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
