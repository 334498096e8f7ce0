/* SPDX-License-Identifier: Apache-2.0 */
/* member: what it says to the coordinator and to the herder, for every answer that a coordinator
 * can give. */
#include "worker/group/member.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/props.h"
#include "fake_coordinator.h"
#include "wire/kafka_code.h"
#include "worker/group/ghost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BOUND_MS 5000

/* --- the rig: a herder that notes what it hears ----------------------------------------------- */

struct rig {
    struct loop *loop;
    struct member *member;
    char heard[4096]; /* "rebalancing assigned:1 " */
    char id[64];
    char error[1100];
    int64_t ask;
    int64_t min_offset;
    int64_t generation;
    struct lease_times lease;
    struct lease_times round_lease;
    size_t leases;
    struct work_list held;
    struct work_list joined_with;
    int16_t mismatch;
    int32_t delay_ms;
    bool settles; /* answers `assigned` at once */
    struct props props;
};

static MR_PRINTF(2, 3)
void hear(struct rig *rig, const char *fmt, ...)
{
    size_t len = strlen(rig->heard);
    va_list args;

    va_start(args, fmt);
    vsnprintf(rig->heard + len, sizeof(rig->heard) - len, fmt, args);
    va_end(args);
}

static void on_identity(void *arg, const char *id)
{
    struct rig *rig = arg;

    snprintf(rig->id, sizeof(rig->id), "%s", id);
}

static void on_rebalancing(void *arg)
{
    hear(arg, "rebalancing ");
}

static void on_stop_all(void *arg, int64_t ask)
{
    ((struct rig *)arg)->ask = ask;
    hear(arg, "stop ");
}

static void on_lead(void *arg, int64_t ask, int64_t min_offset)
{
    ((struct rig *)arg)->ask = ask;
    ((struct rig *)arg)->min_offset = min_offset;
    hear(arg, "lead ");
}

static void on_led(void *arg, int64_t generation, const struct lead *lead)
{
    hear(arg, "led:%d/%zu ", (int)generation, lead->count);
}

static void report(struct rig *rig, int64_t settled, const char *rejoin)
{
    struct member_word word = {&rig->held, 7, settled, rejoin, NULL};

    assert_int_equal(member_report(rig->member, &word), 0);
}

static void on_assigned(void *arg, const struct member_round *round)
{
    struct rig *rig = arg;

    hear(rig, round->assignment->error == 0 ? "assigned:%d " : "mismatch:%d ",
         (int)round->generation);
    rig->mismatch = round->assignment->error;
    rig->delay_ms = round->assignment->delay_ms;
    rig->generation = round->generation;
    rig->round_lease = round->lease;
    assert_int_equal(work_list_copy(&rig->joined_with, round->held), 0);
    if (round->assignment->error == 0)
        assert_int_equal(work_list_merge(&rig->held, &round->assignment->assigned), 0);
    if (rig->settles)
        report(rig, round->generation, NULL);
}

static void on_lost(void *arg, const char *why)
{
    hear(arg, "lost ");
}

static void on_lease(void *arg, struct lease_times times)
{
    ((struct rig *)arg)->lease = times;
    ((struct rig *)arg)->leases++;
}

static void on_left(void *arg)
{
    hear(arg, "left ");
}

static void on_failed(void *arg, const struct mr_error *err)
{
    hear(arg, "failed ");
    snprintf(((struct rig *)arg)->error, sizeof(((struct rig *)arg)->error), "%s", err->text);
}

static const struct member_events events = {
    .identity = on_identity,
    .rebalancing = on_rebalancing,
    .stop_all = on_stop_all,
    .lead = on_lead,
    .led = on_led,
    .assigned = on_assigned,
    .lost = on_lost,
    .lease = on_lease,
    .left = on_left,
    .failed = on_failed,
};

static struct member_options options_of(struct rig *rig)
{
    return (struct member_options){.kafka = &rig->props,
                                   .group = "g",
                                   .url = "http://w:8083/",
                                   .kind = CONNECT_SESSIONED,
                                   .session_ms = 10000,
                                   .heartbeat_ms = 20,
                                   .rebalance_ms = 60000,
                                   .graceful_ms = 5000,
                                   .max_delay_ms = 300000,
                                   .sync_ms = 3000,
                                   .retry_backoff_ms = 2};
}

static void begin(struct rig *rig, const struct member_options *options)
{
    struct mr_error err = {0};

    rig->member = member_new(rig->loop, options, &events, rig, &err);
    assert_non_null(rig->member);
    assert_int_equal(member_start(rig->member, 7), 0);
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    log_set_level(LOG_OFF);
    rig->loop = loop_new(NULL);
    rig->settles = true;
    props_init(&rig->props);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    member_free(&rig->member);
    loop_free(&rig->loop);
    props_deinit(&rig->props);
    work_list_deinit(&rig->held);
    work_list_deinit(&rig->joined_with);
    free(rig);
    return 0;
}

/* --- running the worker's loop until something is so ------------------------------------------ */

struct until {
    struct rig *rig;
    bool (*done)(struct until *until);
    enum request_api api;
    const char *text;
    struct fake_call *call;
    int64_t end_ms;
    bool ok;
    struct loop_timer timer;
};

static void look(void *arg)
{
    struct until *until = arg;

    until->ok = until->done(until);
    if (until->ok || clock_ms() > until->end_ms)
        loop_stop(until->rig->loop);
    else
        loop_timer_start(until->rig->loop, &until->timer, 1, look, until);
}

static bool run_until(struct until *until, int64_t ms)
{
    until->end_ms = clock_ms() + ms;
    loop_timer_start(until->rig->loop, &until->timer, 0, look, until);
    loop_run(until->rig->loop);
    return until->ok;
}

static bool has_call(struct until *until)
{
    until->call = fake_take(until->api);
    return until->call != NULL;
}

static bool has_heard(struct until *until)
{
    return strstr(until->rig->heard, until->text) != NULL;
}

static bool never(struct until *until)
{
    return false;
}

static struct fake_call *next_call(struct rig *rig, enum request_api api)
{
    struct until until = {.rig = rig, .done = has_call, .api = api};

    if (!run_until(&until, BOUND_MS))
        fail_msg("no %s came; heard: %s", request_name(api), rig->heard);
    return until.call;
}

static bool no_call_for(struct rig *rig, enum request_api api, int64_t ms)
{
    struct until until = {.rig = rig, .done = has_call, .api = api};

    return !run_until(&until, ms);
}

static void wait_heard(struct rig *rig, const char *text)
{
    struct until until = {.rig = rig, .done = has_heard, .text = text};

    if (!run_until(&until, BOUND_MS))
        fail_msg("'%s' was not heard, but: %s", text, rig->heard);
}

static void answer_code(struct fake_call *call, int16_t code);

/* Answer heartbeats until one of them brings a lease. */
static void beat_until_leased(struct rig *rig, int16_t code)
{
    size_t before = rig->leases;
    int64_t end = clock_ms() + BOUND_MS;

    while (rig->leases == before && clock_ms() < end)
        answer_code(next_call(rig, REQUEST_HEARTBEAT), code);
    assert_true(rig->leases > before);
}

static void pass(struct rig *rig, int64_t ms)
{
    struct until until = {.rig = rig, .done = never};

    run_until(&until, ms);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void answer_code(struct fake_call *call, int16_t code)
{
    struct answer answer = {.api = call->api, .error = code, .sent_boot_ms = clock_boot_ms()};

    if (call->api == REQUEST_JOIN_GROUP)
        answer.join_group = (struct answer_join_group){-1, "", "", "", NULL, 0};
    fake_answer(call, &answer, NULL);
}

static void answer_error(struct fake_call *call, int code)
{
    struct mr_error err = {.code = code, .text = "it broke"};

    fake_answer(call, NULL, &err);
}

static void answer_id_required(struct fake_call *call, const char *id)
{
    struct answer answer = {.api = REQUEST_JOIN_GROUP,
                            .error = KAFKA_CODE_MEMBER_ID_REQUIRED,
                            .join_group = {-1, "", "", id, NULL, 0}};

    fake_answer(call, &answer, NULL);
}

static void answer_joined(struct fake_call *call, int32_t generation, const char *protocol)
{
    struct answer answer = {.api = REQUEST_JOIN_GROUP,
                            .sent_boot_ms = clock_boot_ms(),
                            .join_group = {generation, protocol, "other", "me", NULL, 0}};

    fake_answer(call, &answer, NULL);
}

/* Bytes live as long as the test. */
static struct codec_bytes assignment(int16_t error, const char *conn, int32_t task,
                                     int32_t delay_ms)
{
    static struct buf out[4];
    static int next;
    struct connect_assignment a = {.version = 2,
                                   .error = error,
                                   .leader = (char *)"other",
                                   .leader_url = (char *)"http://o:8083/",
                                   .offset = 7,
                                   .delay_ms = delay_ms};
    struct buf *b = &out[next++ % 4];

    if (conn != NULL)
        assert_int_equal(work_list_add(&a.assigned, conn, task), 0);
    buf_deinit(b);
    buf_init(b, 1 << 20);
    assert_int_equal(connect_protocol_write_assignment(b, &a), 0);
    work_list_deinit(&a.assigned);
    return (struct codec_bytes){(const uint8_t *)b->data, b->len};
}

static void answer_synced(struct fake_call *call, struct codec_bytes bytes)
{
    struct answer answer = {
        .api = REQUEST_SYNC_GROUP, .sent_boot_ms = clock_boot_ms(), .sync_group = {bytes}};

    fake_answer(call, &answer, NULL);
}

/* Into the group as a follower that is given c/0. */
static void become_stable(struct rig *rig, const struct member_options *options)
{
    begin(rig, options);
    answer_id_required(next_call(rig, REQUEST_JOIN_GROUP), "me");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, "c", 0, 0));
    wait_heard(rig, "assigned:1");
}

static void stable(struct rig *rig)
{
    struct member_options options = options_of(rig);

    become_stable(rig, &options);
}

/* --- joining ---------------------------------------------------------------------------------- */

static void assert_metadata(const struct fake_call *join, size_t part, const char *name,
                            const struct work_list *held)
{
    struct connect_metadata got = {0};

    assert_string_equal(join->part[part].name, name);
    assert_int_equal(connect_protocol_read_metadata(join->part[part].bytes, join->part[part].len,
                                                    false, &got, NULL),
                     0);
    assert_int_equal(got.version, 2 - (int)part);
    assert_string_equal(got.url, "http://w:8083/");
    assert_int_equal(got.offset, 7);
    assert_int_equal(got.allocation != NULL, held != NULL);
    if (held != NULL && got.allocation != NULL) {
        assert_true(work_list_same(held, &got.allocation->assigned));
        assert_string_equal(got.allocation->leader, "other");
        assert_int_equal(got.allocation->version, 2 - (int)part);
    }
    connect_protocol_metadata_deinit(&got);
}

static void joins_in_two_steps_then_syncs_and_beats(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct fake_call *call;

    begin(rig, &options);
    call = next_call(rig, REQUEST_JOIN_GROUP);
    assert_string_equal(call->member, "");
    assert_int_equal(call->part_count, 3);
    assert_metadata(call, 0, "sessioned", NULL);
    assert_metadata(call, 1, "compatible", NULL);
    assert_string_equal(call->part[2].name, "default");
    answer_id_required(call, "me");
    call = next_call(rig, REQUEST_JOIN_GROUP);
    assert_string_equal(call->member, "me");
    assert_int_equal(call->lane, COORDINATOR_MAIN);
    assert_string_equal(rig->id, "me");
    answer_joined(call, 1, "sessioned");
    call = next_call(rig, REQUEST_SYNC_GROUP);
    assert_int_equal(call->generation, 1);
    assert_int_equal(call->part_count, 0);
    answer_synced(call, assignment(0, "c", 0, 0));
    wait_heard(rig, "assigned:1");
    assert_string_equal(rig->heard, "rebalancing assigned:1 ");
    assert_true(work_list_has(&rig->held, "c", 0));
    assert_true(rig->round_lease.hard_ms > clock_boot_ms() + 5000);
    call = next_call(rig, REQUEST_HEARTBEAT);
    assert_int_equal(call->lane, COORDINATOR_SIDE);
    assert_int_equal(call->generation, 1);
    assert_string_equal(call->member, "me");
    answer_code(call, 0);
    beat_until_leased(rig, 0);
}

static void a_rejoin_reports_what_is_held(void **state)
{
    struct rig *rig = *state;
    struct fake_call *call;

    stable(rig);
    report(rig, -1, "test");
    call = next_call(rig, REQUEST_JOIN_GROUP);
    assert_metadata(call, 0, "sessioned", &rig->held);
    assert_metadata(call, 1, "compatible", &rig->held);
}

static void a_round_tells_what_its_join_reported(void **state)
{
    struct rig *rig = *state;
    struct fake_call *call;

    stable(rig);
    assert_int_equal(rig->joined_with.items, 0);
    report(rig, -1, "test");
    call = next_call(rig, REQUEST_JOIN_GROUP);
    assert_metadata(call, 0, "sessioned", &rig->held);
    work_list_deinit(&rig->held);
    report(rig, -1, NULL); /* too late for this round */
    pass(rig, 10);
    answer_joined(call, 2, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:2");
    assert_true(work_list_has(&rig->joined_with, "c", 0));
}

static void many_wishes_make_one_round(void **state)
{
    struct rig *rig = *state;
    struct fake_call *join;

    stable(rig);
    report(rig, -1, "first");
    join = next_call(rig, REQUEST_JOIN_GROUP);
    for (int i = 0; i < 50; i++)
        report(rig, -1, "more");
    pass(rig, 20);
    answer_joined(join, 2, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:2");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 3, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:3");
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 50));
}

/* --- codes ------------------------------------------------------------------------------------ */

/* Every code there is or may be. */
#define FOR_EACH_CODE(code) for (int16_t code = -1; code < 130; code++)

static void fresh_rig(struct rig *rig)
{
    member_free(&rig->member);
    work_list_deinit(&rig->held);
    rig->heard[0] = rig->error[0] = rig->id[0] = '\0';
}

static void assert_fatal(struct rig *rig, int16_t code, const char *request)
{
    wait_heard(rig, "failed");
    assert_non_null(strstr(rig->error, kafka_code_name(code)));
    assert_non_null(strstr(rig->error, request));
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 3));
}

static void every_code_to_a_join_is_fatal_or_tried_again(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    FOR_EACH_CODE(code)
    {
        enum kafka_code_act act = kafka_code_act(code);
        struct fake_call *call;

        if (code == 0 || code == KAFKA_CODE_MEMBER_ID_REQUIRED)
            continue;
        fresh_rig(rig);
        begin(rig, &options);
        answer_id_required(next_call(rig, REQUEST_JOIN_GROUP), "me");
        answer_code(next_call(rig, REQUEST_JOIN_GROUP), code);
        if (act == KAFKA_CODE_FATAL) {
            assert_fatal(rig, code, "JoinGroup");
            continue;
        }
        call = next_call(rig, REQUEST_JOIN_GROUP);
        assert_string_equal(call->member, act == KAFKA_CODE_REJOIN_NEW ? "" : "me");
    }
}

static void every_code_to_a_sync_is_fatal_or_joins_again(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    FOR_EACH_CODE(code)
    {
        enum kafka_code_act act = kafka_code_act(code);
        struct fake_call *call;

        if (code == 0)
            continue;
        fresh_rig(rig);
        begin(rig, &options);
        answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
        answer_code(next_call(rig, REQUEST_SYNC_GROUP), code);
        if (act == KAFKA_CODE_FATAL) {
            assert_fatal(rig, code, "SyncGroup");
            continue;
        }
        call = next_call(rig, REQUEST_JOIN_GROUP);
        assert_string_equal(call->member, act == KAFKA_CODE_REJOIN_NEW ? "" : "me");
    }
}

static void every_code_to_a_heartbeat_has_its_effect(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.heartbeat_ms = 2;
    FOR_EACH_CODE(code)
    {
        enum kafka_code_act act = kafka_code_act(code);
        size_t joins;
        struct fake_call *call;

        fresh_rig(rig);
        become_stable(rig, &options);
        joins = fake_calls(REQUEST_JOIN_GROUP);
        answer_code(next_call(rig, REQUEST_HEARTBEAT), code);
        switch (act) {
        case KAFKA_CODE_FATAL:
            if (code == 24 || code == 30 || code == 35 || code == 82)
                assert_fatal(rig, code, "Heartbeat");
            else
                (void)next_call(rig, REQUEST_HEARTBEAT);
            break;
        case KAFKA_CODE_REJOIN:
        case KAFKA_CODE_REJOIN_GENERATION:
        case KAFKA_CODE_REJOIN_NEW:
            call = next_call(rig, REQUEST_JOIN_GROUP);
            assert_string_equal(call->member, act == KAFKA_CODE_REJOIN_NEW ? "" : "me");
            assert_int_equal(strstr(rig->heard, "lost") != NULL, act == KAFKA_CODE_REJOIN_NEW);
            break;
        default:
            (void)next_call(rig, REQUEST_HEARTBEAT);
            assert_int_equal(fake_calls(REQUEST_JOIN_GROUP), joins);
            break;
        }
    }
}

static void lost_answers_are_tried_again(void **state)
{
    static const int codes[] = {MR_ERR_CLOSED, MR_ERR_TIMEOUT, MR_ERR_PROTOCOL, MR_ERR_IO};
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    begin(rig, &options);
    answer_id_required(next_call(rig, REQUEST_JOIN_GROUP), "me");
    for (int i = 0; i < 4; i++) {
        answer_error(next_call(rig, REQUEST_JOIN_GROUP), codes[i]);
        answer_joined(next_call(rig, REQUEST_JOIN_GROUP), i + 1, "sessioned");
        answer_error(next_call(rig, REQUEST_SYNC_GROUP), codes[i]);
    }
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 9, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, "c", 0, 0));
    wait_heard(rig, "assigned:9");
    for (int i = 0; i < 4; i++)
        answer_error(next_call(rig, REQUEST_HEARTBEAT), codes[i]);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 0);
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 20));
}

static void a_login_that_is_refused_is_fatal(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    begin(rig, &options);
    answer_error(next_call(rig, REQUEST_JOIN_GROUP), MR_ERR_FATAL);
    wait_heard(rig, "failed");
    assert_string_equal(rig->error, "the group g: it broke");
    assert_int_equal(member_leave(rig->member), 0);
    wait_heard(rig, "left");
}

/* A coordinator that gives the same bad answer for ever is asked ever more slowly. */
static void no_answer_makes_a_storm(void **state)
{
    static const int16_t codes[] = {25, 27, 14, 16};
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.retry_backoff_ms = 20;
    for (int i = 0; i < 4; i++) {
        int64_t end = clock_ms() + 200;
        int joins = 0;

        fresh_rig(rig);
        begin(rig, &options);
        for (; clock_ms() < end; joins++)
            answer_code(next_call(rig, REQUEST_JOIN_GROUP), codes[i]);
        assert_in_range(joins, 1, 7);
    }
}

/* --- parked joins and the lease --------------------------------------------------------------- */

static void beats_with_the_old_generation_while_a_join_is_parked(void **state)
{
    struct rig *rig = *state;
    struct fake_call *join;
    struct fake_call *beat;
    int64_t hard_ms;

    stable(rig);
    report(rig, -1, "test");
    join = next_call(rig, REQUEST_JOIN_GROUP);
    beat_until_leased(rig, 27);
    hard_ms = rig->lease.hard_ms;
    beat_until_leased(rig, 27);
    assert_true(rig->lease.hard_ms > hard_ms);
    beat = next_call(rig, REQUEST_HEARTBEAT);
    assert_int_equal(beat->generation, 1);
    pass(rig, 5);
    hard_ms = rig->lease.hard_ms;
    answer_code(beat, 22); /* the answer is under way */
    assert_int_equal(next_call(rig, REQUEST_HEARTBEAT)->generation, 1);
    pass(rig, 5);
    assert_int_equal(rig->lease.hard_ms, hard_ms);
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 10));
    answer_joined(join, 2, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:2");
    assert_null(strstr(rig->heard, "lost"));
}

static void a_dropped_member_is_quiet_until_it_knows_what_it_has(void **state)
{
    struct rig *rig = *state;
    struct fake_call *join;
    size_t leases;

    stable(rig);
    beat_until_leased(rig, 0);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 25);
    wait_heard(rig, "lost");
    assert_true(rig->lease.soft_ms <= clock_boot_ms());
    assert_true(rig->lease.hard_ms <= clock_boot_ms() + 3334);
    leases = rig->leases;
    join = next_call(rig, REQUEST_JOIN_GROUP);
    assert_metadata(join, 0, "sessioned", &rig->held); /* what stays here goes on */
    answer_id_required(join, "me2");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 5, "sessioned");
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 0);
    pass(rig, 20);
    assert_int_equal(rig->leases, leases);
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:5");
    assert_true(rig->round_lease.soft_ms > clock_boot_ms());
    beat_until_leased(rig, 0);
    assert_true(rig->lease.soft_ms > clock_boot_ms());
}

static void small_gains_are_not_told(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.heartbeat_ms = 1000; /* beats come every 100 ms, 400 are worth telling */
    options.session_ms = 2001;
    become_stable(rig, &options);
    for (int i = 0; i < 8; i++)
        answer_code(next_call(rig, REQUEST_HEARTBEAT), 0);
    pass(rig, 10);
    assert_in_range(rig->leases, 1, 5);
}

static void a_dropped_member_does_not_wait_for_what_was_acted_upon(void **state)
{
    struct rig *rig = *state;

    rig->settles = false;
    stable(rig);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 25);
    assert_string_equal(next_call(rig, REQUEST_JOIN_GROUP)->member, "");
    wait_heard(rig, "lost");
}

static void nor_does_one_that_waits_for_it_to_join_another_round(void **state)
{
    struct rig *rig = *state;

    rig->settles = false;
    stable(rig);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    wait_heard(rig, "rebalancing");
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 25);
    assert_string_equal(next_call(rig, REQUEST_JOIN_GROUP)->member, "");
    wait_heard(rig, "lost");
}

/* A coordinator that is still loading the group says yes to everybody. */
static void a_heartbeat_after_the_lease_proves_nothing(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct answer late = {.api = REQUEST_HEARTBEAT};
    struct fake_call *join;
    size_t leases;

    become_stable(rig, &options);
    leases = rig->leases;
    late.sent_boot_ms = clock_boot_ms() + 20000;
    fake_answer(next_call(rig, REQUEST_HEARTBEAT), &late, NULL);
    join = next_call(rig, REQUEST_JOIN_GROUP);
    assert_int_equal(rig->leases, leases);
    answer_joined(join, 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:1 rebalancing assigned:1");
    assert_true(rig->round_lease.hard_ms > clock_boot_ms());
}

static void answers_to_an_older_generation_are_ignored(void **state)
{
    struct rig *rig = *state;
    struct fake_call *old;

    stable(rig);
    old = next_call(rig, REQUEST_HEARTBEAT);
    report(rig, -1, "test");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 2, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 0));
    wait_heard(rig, "assigned:2");
    answer_code(old, 25);
    assert_int_equal(next_call(rig, REQUEST_HEARTBEAT)->generation, 2);
    assert_null(strstr(rig->heard, "lost"));
}

static void a_silent_coordinator_is_given_up_after_the_session(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    int64_t end = clock_ms() + BOUND_MS;

    options.session_ms = 60;
    become_stable(rig, &options);
    while (fake_lost() == 0 && clock_ms() < end)
        answer_error(next_call(rig, REQUEST_HEARTBEAT), MR_ERR_TIMEOUT);
    assert_true(fake_lost() > 0);
}

/* --- settling --------------------------------------------------------------------------------- */

static void no_round_is_joined_while_the_last_one_is_acted_upon(void **state)
{
    struct rig *rig = *state;
    struct member_word word = {NULL, 9, 1, NULL, NULL};

    rig->settles = false;
    stable(rig);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    wait_heard(rig, "assigned:1 rebalancing");
    word.settled = 0; /* of an older round */
    assert_int_equal(member_report(rig->member, &word), 0);
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 40));
    word.settled = 1;
    assert_int_equal(member_report(rig->member, &word), 0);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
}

static void no_round_is_joined_while_something_stops(void **state)
{
    struct rig *rig = *state;
    struct member_word word = {NULL, 9, -1, "tasks were configured", "c"};

    stable(rig);
    assert_int_equal(member_report(rig->member, &word), 0);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27); /* others join already */
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 40));
    word = (struct member_word){NULL, 9, -1, NULL, NULL};
    assert_int_equal(member_report(rig->member, &word), 0);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
}

static void a_herder_that_is_stuck_is_not_waited_for_for_ever(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.rebalance_ms = 400;
    rig->settles = false;
    become_stable(rig, &options);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 30));
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
}

static bool was_named;

static void on_line(const char *line, size_t len)
{
    static const char text[] = "a task of slow still stops here";

    if (memmem(line, len, text, sizeof(text) - 1) != NULL)
        was_named = true;
}

static void what_is_not_waited_for_any_longer_is_named(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.rebalance_ms = 100;
    log_set_level(LOG_WARN);
    log_witness(on_line);
    become_stable(rig, &options);
    assert_int_equal(member_report(rig->member, &(struct member_word){NULL, 9, -1, "test", "slow"}),
                     0);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
    member_free(&rig->member);
    log_witness(NULL);
    log_set_level(LOG_OFF);
    assert_true(was_named);
}

static void the_scheduled_delay_ends_in_a_round(void **state)
{
    struct rig *rig = *state;
    int64_t begun = clock_ms();
    struct member_options options = options_of(rig);

    begin(rig, &options);
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), assignment(0, NULL, 0, 80));
    wait_heard(rig, "assigned:1");
    assert_int_equal(rig->delay_ms, 80);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
    assert_true(clock_ms() - begun >= 80);
}

/* Java: 120 rounds a second. */
static void a_config_mismatch_is_no_storm(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    int64_t end = clock_ms() + 300;
    int rounds = 0;

    options.retry_backoff_ms = 20;
    begin(rig, &options);
    for (; clock_ms() < end; rounds++) {
        answer_joined(next_call(rig, REQUEST_JOIN_GROUP), rounds + 1, "sessioned");
        answer_synced(next_call(rig, REQUEST_SYNC_GROUP),
                      assignment(CONNECT_CONFIG_MISMATCH, NULL, 0, 0));
    }
    assert_in_range(rounds, 1, 7);
    assert_non_null(strstr(rig->heard, "mismatch:1"));
    assert_int_equal(rig->round_lease.hard_ms, 0);
}

/* --- assignments ------------------------------------------------------------------------------ */

static void mismatched(struct rig *rig, const struct member_options *options)
{
    begin(rig, options);
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP),
                  assignment(CONNECT_CONFIG_MISMATCH, NULL, 0, 0));
    wait_heard(rig, "mismatch:1");
}

/* Java's workers join again at once: the group waits out our pause with us. */
static void others_do_not_hurry_us_after_a_mismatch(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    options.retry_backoff_ms = 1000;
    mismatched(rig, &options);
    for (int i = 0; i < 3; i++)
        answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 50));
}

static void having_read_on_ends_the_pause(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct member_word word = {NULL, 6, -1, NULL, NULL};

    rig->settles = false;
    options.retry_backoff_ms = 100000;
    begin(rig, &options);
    assert_int_equal(member_report(rig->member, &word), 0);
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP),
                  assignment(CONNECT_CONFIG_MISMATCH, NULL, 0, 0));
    wait_heard(rig, "mismatch:1");
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 20));
    word.offset = 7; /* what the assignment named */
    assert_int_equal(member_report(rig->member, &word), 0);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
}

static void no_entry_is_an_empty_assignment(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    begin(rig, &options);
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), (struct codec_bytes){NULL, 0});
    wait_heard(rig, "assigned:1");
    assert_int_equal(rig->held.items, 0);
}

static void unreadable_assignments_and_unknown_protocols_are_tried_again(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);

    begin(rig, &options);
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "range");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 1, "sessioned");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP),
                  (struct codec_bytes){(const uint8_t *)"\xff\xff", 2});
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
    assert_string_equal(rig->heard, "rebalancing ");
}

static void a_downgrade_to_eager_stops_everything_before_the_sync(void **state)
{
    struct rig *rig = *state;

    stable(rig);
    report(rig, -1, "test");
    answer_joined(next_call(rig, REQUEST_JOIN_GROUP), 2, "default");
    wait_heard(rig, "stop");
    assert_true(no_call_for(rig, REQUEST_SYNC_GROUP, 20));
    work_list_deinit(&rig->held);
    report(rig, -1, NULL);
    assert_int_equal(member_stopped(rig->member, rig->ask), 0);
    assert_non_null(next_call(rig, REQUEST_SYNC_GROUP));
}

static struct codec_bytes eager_assignment(void)
{
    static struct buf out;
    struct connect_assignment a = {.version = 0, .leader = (char *)"other"};

    assert_int_equal(work_list_add(&a.assigned, "c", 0), 0);
    buf_deinit(&out);
    buf_init(&out, 1 << 20);
    assert_int_equal(connect_protocol_write_assignment(&out, &a), 0);
    work_list_deinit(&a.assigned);
    return (struct codec_bytes){(const uint8_t *)out.data, out.len};
}

static void eager_rounds_stop_everything_before_the_join(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct fake_call *join;

    options.kind = CONNECT_EAGER;
    begin(rig, &options);
    join = next_call(rig, REQUEST_JOIN_GROUP);
    assert_int_equal(join->part_count, 1);
    assert_string_equal(join->part[0].name, "default");
    answer_joined(join, 1, "default");
    answer_synced(next_call(rig, REQUEST_SYNC_GROUP), eager_assignment());
    wait_heard(rig, "assigned:1");
    assert_int_equal(rig->held.items, 1);
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    wait_heard(rig, "stop");
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 20));
    work_list_deinit(&rig->held);
    report(rig, -1, NULL);
    assert_int_equal(member_stopped(rig->member, rig->ask), 0);
    assert_non_null(next_call(rig, REQUEST_JOIN_GROUP));
}

/* --- leading ---------------------------------------------------------------------------------- */

static struct codec_bytes metadata_of(const char *url, int64_t offset)
{
    static struct buf out[2];
    static int next;
    struct connect_metadata metadata = {.version = 2, .url = (char *)url, .offset = offset};
    struct buf *b = &out[next++ % 2];

    buf_deinit(b);
    buf_init(b, 1 << 20);
    assert_int_equal(connect_protocol_write_metadata(b, &metadata), 0);
    return (struct codec_bytes){(const uint8_t *)b->data, b->len};
}

static void answer_leader(struct fake_call *call, int32_t generation)
{
    static struct answer_join_member members[2];
    struct answer answer = {.api = REQUEST_JOIN_GROUP,
                            .sent_boot_ms = clock_boot_ms(),
                            .join_group = {generation, "sessioned", "me", "me", members, 2}};

    members[0] = (struct answer_join_member){"me", metadata_of("http://w:8083/", 7)};
    members[1] = (struct answer_join_member){"other", metadata_of("http://o:8083/", 9)};
    fake_answer(call, &answer, NULL);
}

static int16_t error_of(const struct fake_call *sync, size_t part, size_t *items)
{
    struct connect_assignment got = {0};
    int16_t error;

    assert_int_equal(connect_protocol_read_assignment(sync->part[part].bytes, sync->part[part].len,
                                                      false, &got, NULL),
                     0);
    assert_string_equal(got.leader, "me");
    assert_string_equal(got.leader_url, "http://w:8083/");
    error = got.error;
    *items += got.assigned.items;
    connect_protocol_assignment_deinit(&got);
    return error;
}

static void a_leader_assigns_what_the_herder_hands_over(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct lead_snapshot *snapshot = lead_snapshot_new(9);
    struct fake_call *sync;
    size_t items = 0;

    assert_int_equal(lead_snapshot_add(snapshot, "c", 4), 0);
    begin(rig, &options);
    answer_leader(next_call(rig, REQUEST_JOIN_GROUP), 1);
    wait_heard(rig, "lead ");
    assert_int_equal(rig->min_offset, 9);
    assert_int_equal(member_lead_take(rig->member, rig->ask, snapshot), 0);
    sync = next_call(rig, REQUEST_SYNC_GROUP);
    assert_int_equal(sync->part_count, 2);
    assert_int_equal(error_of(sync, 0, &items), 0);
    assert_int_equal(error_of(sync, 1, &items), 0);
    assert_int_equal(items, 5);
    answer_synced(sync, assignment(0, "c", 0, 0));
    wait_heard(rig, "assigned:1");
    assert_string_equal(rig->heard, "rebalancing lead led:1/2 assigned:1 ");
}

/* A connector and its only task: one each, or, as in Java, both to the first. */
static void led_by(struct rig *rig, bool java, size_t first, size_t second)
{
    struct member_options options = options_of(rig);
    struct lead_snapshot *snapshot = lead_snapshot_new(9);
    struct fake_call *sync;
    size_t items[2] = {0, 0};

    options.java_assignor = java;
    assert_int_equal(lead_snapshot_add(snapshot, "c", 1), 0);
    begin(rig, &options);
    answer_leader(next_call(rig, REQUEST_JOIN_GROUP), 1);
    wait_heard(rig, "lead ");
    assert_int_equal(member_lead_take(rig->member, rig->ask, snapshot), 0);
    sync = next_call(rig, REQUEST_SYNC_GROUP);
    assert_int_equal(error_of(sync, 0, &items[0]), 0);
    assert_int_equal(error_of(sync, 1, &items[1]), 0);
    assert_int_equal(items[0], first);
    assert_int_equal(items[1], second);
}

static void a_leader_assigns_evenly(void **state)
{
    led_by(*state, false, 1, 1);
}

static void a_leader_assigns_as_java_does_where_that_is_asked_for(void **state)
{
    led_by(*state, true, 2, 0);
}

static void a_herder_that_is_late_sends_everybody_to_read_on(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct fake_call *sync;
    size_t items = 0;

    options.sync_ms = 20;
    begin(rig, &options);
    answer_leader(next_call(rig, REQUEST_JOIN_GROUP), 1);
    wait_heard(rig, "lead ");
    sync = next_call(rig, REQUEST_SYNC_GROUP);
    assert_int_equal(error_of(sync, 0, &items), CONNECT_CONFIG_MISMATCH);
    assert_int_equal(error_of(sync, 1, &items), CONNECT_CONFIG_MISMATCH);
    assert_int_equal(member_lead_take(rig->member, rig->ask, lead_snapshot_new(9)), 0);
    answer_synced(sync, assignment(CONNECT_CONFIG_MISMATCH, NULL, 0, 0));
    wait_heard(rig, "mismatch:1");
    assert_null(strstr(rig->heard, "led:"));
}

static void a_round_that_ends_under_a_leader_is_joined_anew(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    int64_t old;

    begin(rig, &options);
    answer_leader(next_call(rig, REQUEST_JOIN_GROUP), 1);
    wait_heard(rig, "lead ");
    old = rig->ask;
    answer_code(next_call(rig, REQUEST_HEARTBEAT), 27);
    answer_leader(next_call(rig, REQUEST_JOIN_GROUP), 2);
    wait_heard(rig, "lead lead ");
    assert_int_equal(member_lead_take(rig->member, old, lead_snapshot_new(9)), 0);
    assert_true(no_call_for(rig, REQUEST_SYNC_GROUP, 20)); /* that was for the old one */
    assert_int_equal(member_lead_take(rig->member, rig->ask, lead_snapshot_new(9)), 0);
    assert_int_equal(next_call(rig, REQUEST_SYNC_GROUP)->generation, 2);
}

/* --- goodbye ---------------------------------------------------------------------------------- */

static void leaving_says_so_and_may_come_back(void **state)
{
    struct rig *rig = *state;
    struct fake_call *leave;

    stable(rig);
    assert_int_equal(member_leave(rig->member), 0);
    leave = next_call(rig, REQUEST_LEAVE_GROUP);
    assert_string_equal(leave->member, "me");
    answer_code(leave, 0);
    wait_heard(rig, "left");
    assert_true(no_call_for(rig, REQUEST_JOIN_GROUP, 20));
    assert_int_equal(member_start(rig->member, 7), 0);
    assert_string_equal(next_call(rig, REQUEST_JOIN_GROUP)->member, "");
}

static void leaving_ends_whatever_the_broker_says(void **state)
{
    struct rig *rig = *state;
    struct fake_call *join;

    stable(rig);
    report(rig, -1, "test");
    join = next_call(rig, REQUEST_JOIN_GROUP); /* parked */
    assert_int_equal(member_leave(rig->member), 0);
    answer_code(next_call(rig, REQUEST_LEAVE_GROUP), 15);
    wait_heard(rig, "left");
    answer_joined(join, 2, "sessioned");
    assert_true(no_call_for(rig, REQUEST_SYNC_GROUP, 20));
}

static void the_ghost_is_made_to_leave_once_the_join_is_sent(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct fake_call *join;
    struct fake_call *leave;
    char file[64];
    char id[64];

    snprintf(file, sizeof(file), "/tmp/millrace-ghost-%d", (int)getpid());
    assert_int_equal(ghost_write(file, "g", "ghost-1", NULL), 0);
    options.ghost_file = file;
    begin(rig, &options);
    join = next_call(rig, REQUEST_JOIN_GROUP);
    assert_int_equal(fake_calls(REQUEST_LEAVE_GROUP), 0);
    answer_id_required(join, "me");
    (void)next_call(rig, REQUEST_JOIN_GROUP);
    leave = next_call(rig, REQUEST_LEAVE_GROUP);
    assert_string_equal(leave->member, "ghost-1");
    assert_int_equal(leave->lane, COORDINATOR_SIDE);
    answer_error(leave, MR_ERR_CLOSED);
    answer_code(next_call(rig, REQUEST_LEAVE_GROUP), 25); /* gone already */
    assert_true(no_call_for(rig, REQUEST_LEAVE_GROUP, 20));
    assert_true(ghost_read(file, "g", id, sizeof(id)));
    assert_string_equal(id, "me"); /* for whoever comes after us */
    assert_int_equal(member_leave(rig->member), 0);
    answer_code(next_call(rig, REQUEST_LEAVE_GROUP), 0);
    wait_heard(rig, "left");
    assert_false(ghost_read(file, "g", id, sizeof(id)));
}

static void freeing_does_not_wait_for_answers(void **state)
{
    struct rig *rig = *state;
    int64_t begun;

    stable(rig);
    report(rig, -1, "test");
    (void)next_call(rig, REQUEST_JOIN_GROUP);
    (void)next_call(rig, REQUEST_HEARTBEAT);
    begun = clock_ms();
    member_free(&rig->member);
    assert_true(clock_ms() - begun < 1000);
    rig->heard[0] = '\0';
    pass(rig, 5);
    assert_string_equal(rig->heard, ""); /* nothing is heard after member_free */
}

static void bad_options_are_refused_by_name(void **state)
{
    struct rig *rig = *state;
    struct member_options options = options_of(rig);
    struct mr_error err = {0};

    options.heartbeat_ms = 10000;
    assert_null(member_new(rig->loop, &options, &events, rig, &err));
    assert_int_equal(err.code, MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "heartbeat.interval.ms"));
    err.code = 0;
    options = options_of(rig);
    options.session_ms = 0;
    assert_null(member_new(rig->loop, &options, &events, rig, &err));
    assert_non_null(strstr(err.text, "session.timeout.ms"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(joins_in_two_steps_then_syncs_and_beats),
        T(a_rejoin_reports_what_is_held),
        T(a_round_tells_what_its_join_reported),
        T(many_wishes_make_one_round),
        T(every_code_to_a_join_is_fatal_or_tried_again),
        T(every_code_to_a_sync_is_fatal_or_joins_again),
        T(every_code_to_a_heartbeat_has_its_effect),
        T(lost_answers_are_tried_again),
        T(a_login_that_is_refused_is_fatal),
        T(no_answer_makes_a_storm),
        T(beats_with_the_old_generation_while_a_join_is_parked),
        T(a_dropped_member_is_quiet_until_it_knows_what_it_has),
        T(small_gains_are_not_told),
        T(a_dropped_member_does_not_wait_for_what_was_acted_upon),
        T(nor_does_one_that_waits_for_it_to_join_another_round),
        T(a_heartbeat_after_the_lease_proves_nothing),
        T(answers_to_an_older_generation_are_ignored),
        T(a_silent_coordinator_is_given_up_after_the_session),
        T(no_round_is_joined_while_the_last_one_is_acted_upon),
        T(no_round_is_joined_while_something_stops),
        T(a_herder_that_is_stuck_is_not_waited_for_for_ever),
        T(what_is_not_waited_for_any_longer_is_named),
        T(the_scheduled_delay_ends_in_a_round),
        T(a_config_mismatch_is_no_storm),
        T(others_do_not_hurry_us_after_a_mismatch),
        T(having_read_on_ends_the_pause),
        T(no_entry_is_an_empty_assignment),
        T(unreadable_assignments_and_unknown_protocols_are_tried_again),
        T(a_downgrade_to_eager_stops_everything_before_the_sync),
        T(eager_rounds_stop_everything_before_the_join),
        T(a_leader_assigns_what_the_herder_hands_over),
        T(a_leader_assigns_evenly),
        T(a_leader_assigns_as_java_does_where_that_is_asked_for),
        T(a_herder_that_is_late_sends_everybody_to_read_on),
        T(a_round_that_ends_under_a_leader_is_joined_anew),
        T(leaving_says_so_and_may_come_back),
        T(leaving_ends_whatever_the_broker_says),
        T(the_ghost_is_made_to_leave_once_the_join_is_sent),
        T(freeing_does_not_wait_for_answers),
        T(bad_options_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
