/* SPDX-License-Identifier: Apache-2.0 */
/* status_desk: the newest status of a key is written, one after another, again after a failure, and
 * never over a newer owner's. */
#include "worker/store/status_desk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SENT_MAX 2000

struct rig {
    struct loop *loop;
    struct status_state *state;
    struct status_desk *desk;
    struct status_slip *slips[SENT_MAX];
    enum state states[SENT_MAX];
    bool tombstones[SENT_MAX];
    int count; /* sent */
    int want;
};

static void send_it(void *arg, struct status_slip *slip, const struct status_record *rec)
{
    struct rig *rig = arg;

    assert_true(rig->count < SENT_MAX);
    rig->slips[rig->count] = slip;
    rig->states[rig->count] = rec->status.state;
    rig->tombstones[rig->count++] = rec->tombstone;
    if (rig->count == rig->want)
        loop_stop(rig->loop);
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    rig->loop = loop_new(NULL);
    rig->state = status_state_new();
    rig->desk = status_desk_new(rig->loop, rig->state, send_it, rig);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    status_desk_free(&rig->desk);
    status_state_free(&rig->state);
    loop_free(&rig->loop);
    free(rig);
    return 0;
}

static struct status_record record(int task, enum state state, int generation)
{
    return (struct status_record){
        .kind = STATUS_TASK,
        .conn = strdup("c"),
        .task = task,
        .status = {.state = state, .generation = generation, .worker_id = strdup("me")}};
}

static void put(struct rig *rig, int task, enum state state, int generation, bool safe)
{
    struct status_record rec = record(task, state, generation);

    status_desk_put(rig->desk, &rec, safe);
    assert_null(rec.conn);
}

static void seen(struct rig *rig, const char *worker, enum state state, int generation)
{
    struct status_record rec = record(0, state, generation);

    free(rec.status.worker_id);
    rec.status.worker_id = strdup(worker);
    status_state_apply(rig->state, &rec);
    status_record_deinit(&rec);
}

static void fail_with(struct rig *rig, int i, int code)
{
    struct mr_error err = {.code = code, .text = "no"};

    status_desk_sent(rig->desk, rig->slips[i], code != 0 ? &err : NULL);
}

static void a_burst_becomes_first_and_last(void **state)
{
    struct rig *rig = *state;

    put(rig, 0, STATE_RUNNING, 1, false);
    put(rig, 0, STATE_PAUSED, 1, false);
    put(rig, 0, STATE_FAILED, 1, false);
    put(rig, 1, STATE_RUNNING, 1, false); /* another key waits for nobody */
    assert_int_equal(rig->count, 2);
    fail_with(rig, 0, 0);
    assert_int_equal(rig->count, 3);
    assert_int_equal(rig->states[2], STATE_FAILED);
    fail_with(rig, 2, 0);
    fail_with(rig, 1, 0);
    assert_int_equal(rig->count, 3);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
}

static void what_failed_is_written_again_unless_something_newer_waits(void **state)
{
    struct rig *rig = *state;

    put(rig, 0, STATE_RUNNING, 1, false);
    fail_with(rig, 0, MR_ERR_RETRY);
    assert_int_equal(rig->count, 1); /* not at once */
    rig->want = 2;
    loop_run(rig->loop);
    assert_int_equal(rig->states[1], STATE_RUNNING);
    put(rig, 0, STATE_PAUSED, 1, false);
    fail_with(rig, 1, MR_ERR_TIMEOUT);
    rig->want = 3;
    loop_run(rig->loop);
    assert_int_equal(rig->states[2], STATE_PAUSED);
    fail_with(rig, 2, MR_ERR_FATAL);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
}

static void a_newer_owner_is_spared_by_safe_writes_and_by_retries(void **state)
{
    struct rig *rig = *state;

    seen(rig, "other", STATE_RUNNING, 5);
    put(rig, 0, STATE_FAILED, 4, true);
    assert_int_equal(rig->count, 0);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
    put(rig, 0, STATE_RUNNING, 4, false); /* an owner's own word is not judged */
    assert_int_equal(rig->count, 1);
    fail_with(rig, 0, MR_ERR_RETRY);
    put(rig, 1, STATE_RUNNING, 4, false); /* keeps the loop's reason to stop */
    fail_with(rig, 1, MR_ERR_RETRY);
    rig->want = 3;
    loop_run(rig->loop);
    assert_int_equal(rig->count, 3);
    assert_ptr_equal(rig->slips[2], rig->slips[1]); /* task 0 is not sent again */
    fail_with(rig, 2, 0);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
}

static void a_tombstone_that_is_tried_again_spares_who_came_meanwhile(void **state)
{
    struct rig *rig = *state;
    struct status_record rec;

    seen(rig, "other", STATE_RUNNING, 5);
    for (int came = 0; came <= 1; came++) {
        int first = rig->count;

        rec = (struct status_record){.kind = STATUS_TASK, .conn = strdup("c"), .tombstone = true};
        status_desk_put(rig->desk, &rec, false);
        assert_true(rig->tombstones[first]);
        fail_with(rig, first, MR_ERR_RETRY);
        if (came)
            seen(rig, "another", STATE_RUNNING, 6);
        put(rig, 1, STATE_RUNNING, 4, false); /* keeps the loop's reason to stop */
        fail_with(rig, first + 1, MR_ERR_RETRY);
        rig->want = first + (came ? 3 : 4);
        loop_run(rig->loop);
        assert_int_equal(rig->count, rig->want);
        for (int i = first + 2; i < rig->count; i++)
            fail_with(rig, i, 0);
        assert_int_equal(status_desk_waiting(rig->desk), 0);
    }
}

static void few_are_under_way_at_a_time(void **state)
{
    struct rig *rig = *state;

    for (int task = 0; task < 1000; task++)
        put(rig, task, STATE_RUNNING, 1, false);
    assert_int_equal(rig->count, 256);
    for (int i = 0; i < 1000; i++)
        fail_with(rig, i, 0);
    assert_int_equal(rig->count, 1000);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
}

/* What it says of what was lost, behind time, level and logger. */
static void assert_says(const char *text, const struct status_desk *desk)
{
    int saved = dup(STDERR_FILENO);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char log[512] = "";

    assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    status_desk_tell_lost(desk);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true(pread(file, log, sizeof(log) - 1, 0) >= 0);
    close(file);
    if (text[0] == '\0' ? log[0] != '\0' : strstr(log, text) == NULL)
        fail_msg("'%s' is said where '%s' belongs", log, text);
}

static void at_the_end_everything_is_sent_once(void **state)
{
    struct rig *rig = *state;

    for (int task = 0; task < 300; task++)
        put(rig, task, STATE_RUNNING, 1, false);
    put(rig, 0, STATE_UNASSIGNED, 1, false);
    status_desk_flush(rig->desk);
    assert_int_equal(rig->count, 301);
    for (int i = 0; i < 301; i++)
        fail_with(rig, i, i < 4 ? MR_ERR_CLOSED : 0);
    assert_int_equal(rig->count, 301);
    assert_int_equal(status_desk_waiting(rig->desk), 0);
    assert_says("the last status of 4 connectors and tasks was not written: no\n", rig->desk);
}

static void of_what_was_written_at_the_end_nothing_is_said(void **state)
{
    struct rig *rig = *state;

    put(rig, 0, STATE_RUNNING, 1, false);
    status_desk_flush(rig->desk);
    fail_with(rig, 0, 0);
    assert_says("", rig->desk);
}

/* As long as a foreign record may be. */
static void names_of_any_length_have_a_slip(void **state)
{
    struct rig *rig = *state;
    struct status_record rec = {.kind = STATUS_CONNECTOR, .tombstone = true};

    rec.conn = calloc(1, 3000001);
    memset(rec.conn, 'n', 3000000);
    status_desk_put(rig->desk, &rec, false);
    assert_int_equal(rig->count, 1);
    fail_with(rig, 0, 0);
}

static void tombstones_and_long_traces_pass(void **state)
{
    struct rig *rig = *state;
    struct status_record rec = record(0, STATE_FAILED, 1);
    size_t len = (size_t)2 << 20;

    rec.status.trace = malloc(len + 1);
    memset(rec.status.trace, 'x', len);
    rec.status.trace[len] = '\0';
    status_desk_put(rig->desk, &rec, false);
    fail_with(rig, 0, 0);
    seen(rig, "other", STATE_RUNNING, 5);
    rec = (struct status_record){.kind = STATUS_TASK, .conn = strdup("c"), .tombstone = true};
    status_desk_put(rig->desk, &rec, false);
    assert_int_equal(rig->count, 2);
    assert_true(rig->tombstones[1]);
    fail_with(rig, 1, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_burst_becomes_first_and_last),
        TEST(what_failed_is_written_again_unless_something_newer_waits),
        TEST(a_newer_owner_is_spared_by_safe_writes_and_by_retries),
        TEST(a_tombstone_that_is_tried_again_spares_who_came_meanwhile),
        TEST(few_are_under_way_at_a_time),
        TEST(at_the_end_everything_is_sent_once),
        TEST(of_what_was_written_at_the_end_nothing_is_said),
        TEST(names_of_any_length_have_a_slip),
        TEST(tombstones_and_long_traces_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
