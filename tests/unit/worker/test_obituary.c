/* SPDX-License-Identifier: Apache-2.0 */
/* obituary: the words for each kind of death, short whatever the black box holds. */
#include "worker/supervisor/obituary.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static struct obituary death(void)
{
    return (struct obituary){.pid = 17, .culprit = -1, .now_ms = 1000000};
}

static void expect_sentence(const struct obituary *obit, const char *text)
{
    struct buf out;

    buf_init(&out, 4096);
    obituary_sentence(obit, &out);
    assert_string_equal(out.data, text);
    buf_deinit(&out);
}

static struct black_box *make_box(void)
{
    struct black_box *box = calloc(1, sizeof(*box));

    strcpy(box->slots[0].call, "tasks");
    box->slots[0].task = -1;
    box->slots[0].since_boot_ms = 999000;
    strcpy(box->slots[4].call, "put");
    box->slots[4].task = 3;
    box->slots[4].since_boot_ms = 1000000 - 125000;
    return box;
}

static void each_end_has_its_words(void **state)
{
    struct obituary obit = death();

    (void)state;
    obit.exited = true;
    obit.status = 7;
    expect_sentence(&obit, "the host process 17 exited with code 7");
    obit.exited = false;
    obit.status = SIGBUS;
    expect_sentence(&obit, "the host process 17 was killed by signal 7 (SIGBUS)");
    obit.core = true;
    expect_sentence(&obit, "the host process 17 was killed by signal 7 (SIGBUS, core dumped)");
    obit.reason = "it was late";
    expect_sentence(&obit, "the host process 17 was ended by the worker because it was late");
    obit.reason = "";
    obit.core = false;
    obit.status = SIGKILL;
    expect_sentence(&obit,
                    "the host process 17 was killed by signal 9 (SIGKILL), not by the worker "
                    "(out of memory?)");
    obit.lease_over = true;
    expect_sentence(&obit,
                    "the host process 17 was ended by its own timer because its lease was over");
    obit.status = 99;
    obit.core = false;
    expect_sentence(&obit, "the host process 17 was killed by signal 99 (SIG?)");
}

static void the_call_of_the_culprit_is_told_else_the_longest(void **state)
{
    struct black_box *box = make_box();
    struct obituary obit = death();

    (void)state;
    obit.exited = true;
    obit.box = box;
    expect_sentence(&obit, "the host process 17 exited with code 0, task 3 was in put for 2 min");
    obit.culprit = 3;
    box->slots[4].since_boot_ms = 1000000 - 65400;
    expect_sentence(&obit, "the host process 17 exited with code 0, task 3 was in put for 65.4 s");
    obit.culprit = 2;
    expect_sentence(&obit, "the host process 17 exited with code 0");
    obit.culprit = -1;
    box->slots[4].call[0] = '\0';
    expect_sentence(&obit,
                    "the host process 17 exited with code 0, the connector was in tasks for 1.0 s");
    free(box);
}

static void a_trace_holds_the_last_words(void **state)
{
    struct black_box *box = make_box();
    struct obituary obit = death();
    struct buf out;

    (void)state;
    black_box_say(box, "first", 5);
    black_box_say(box, "second", 6);
    obit.exited = true;
    obit.box = box;
    obit.output = "oops\n";
    buf_init(&out, 8192);
    obituary_trace(&obit, &out);
    assert_string_equal(out.data,
                        "the host process 17 exited with code 0, task 3 was in put for 2 min"
                        "\nLast words:\n\tfirst\n\tsecond\nLast lines on stderr:\n\toops");
    buf_deinit(&out);
    free(box);
}

static void a_trace_is_short_and_fit_for_json(void **state)
{
    struct black_box *box = calloc(1, sizeof(*box));
    struct obituary obit = death();
    struct buf out;
    json_t *text;

    (void)state;
    memset(box->words, 0xf0, sizeof(box->words));
    obit.box = box;
    obit.status = SIGSEGV;
    buf_init(&out, 16384);
    obituary_trace(&obit, &out);
    assert_in_range(out.len, 10, 3000);
    text = json_stringn(out.data, out.len);
    assert_non_null(text);
    json_decref(text);
    buf_deinit(&out);
    free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_has_its_words),
        cmocka_unit_test(the_call_of_the_culprit_is_told_else_the_longest),
        cmocka_unit_test(a_trace_holds_the_last_words),
        cmocka_unit_test(a_trace_is_short_and_fit_for_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
