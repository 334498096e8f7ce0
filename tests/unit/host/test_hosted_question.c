/* SPDX-License-Identifier: Apache-2.0 */
/* hosted_question: every question of a task is answered, also one that can't be sent. */
#include "host/hosted_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void __wrap_task_answer_take(struct task *task, struct task_answer *answer);

static char told[1024]; /* "id error; " of the answers */
static size_t sent;
static long allocations_left; /* of jansson's; -1: no end */

void __wrap_task_answer_take(struct task *task, struct task_answer *answer)
{
    size_t len = strlen(told);

    (void)task;
    snprintf(told + len, sizeof(told) - len, "%lld %s; ", (long long)answer->id, answer->error);
    free(answer);
}

static int send(void *arg, enum msg_kind kind, json_t *body)
{
    (void)arg;
    assert_int_equal(kind, MSG_START_CHECK);
    assert_string_equal(json_string_value(json_object_get(body, "conn")), "c");
    assert_int_equal(json_integer_value(json_object_get(body, "id")), 7);
    sent++;
    json_decref(body);
    return 0;
}

static void *allocate(size_t bytes)
{
    return allocations_left >= 0 && allocations_left-- == 0 ? NULL : malloc(bytes);
}

/* true: it was sent. */
static bool ask(json_t *body)
{
    struct hosted hosted = {.opt.send = send};
    struct conn conn = {.hosted = &hosted, .name = (char *)"c"};
    struct tenant tenant = {.conn = &conn};
    bool is_sent;

    told[0] = '\0';
    sent = 0;
    hosted_question_ask(&tenant, MSG_START_CHECK, 7, body);
    is_sent = sent == 1;
    assert_string_equal(told, is_sent ? "" : "7 out of memory; ");
    assert_int_equal(hosted.question_count, is_sent);
    free(hosted.questions);
    return is_sent;
}

static void a_question_that_there_is_no_memory_for_is_answered(void **state)
{
    int refused = 0;
    bool is_sent = false;

    (void)state;
    assert_false(ask(NULL));
    json_set_alloc_funcs(allocate, free);
    for (long n = 0; !is_sent; n++) {
        json_t *body;

        allocations_left = -1;
        body = json_object();
        allocations_left = n;
        is_sent = ask(body);
        refused += !is_sent;
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(refused > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_that_there_is_no_memory_for_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
