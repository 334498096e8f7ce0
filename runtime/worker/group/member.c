/* SPDX-License-Identifier: Apache-2.0 */
/* The membership: its thread, its life, and the words of the herder. The rounds are in
 * member_join.c, heartbeats and goodbyes in member_beat.c, events to the worker's loop in
 * member_ear.c. The herder's words come by loop_post; the thread owns all else.
 *
 *   OUT ──member_start──► WAITING ◄──────────────────────────────────────────────────────────────┐
 *                           │ member_try_join: no back-off runs, the last round is settled        │
 *                           ▼                                                                     │
 *                        [EMPTYING] the last round was eager: stop all first                      │
 *                           ▼                                                                     │
 *                        JOINING ──on_join──► [EMPTYING] this round is eager, the last was not    │
 *                           │                     │                                               │
 *                           ├─leads─► LEADING ◄───┤ go_on_to_sync                                 │
 *                           │            │ member_led, or herder_is_late                          │
 *                           ▼            ▼                                                        │
 *                        SYNCING ──on_sync, finish──► STABLE ──member_want_round──────────────────┘
 *
 *   any ──member_leave──► LEAVING ──gone──► OUT        any ──member_fail──► FAILED
 *
 * member_retry makes the moves back to WAITING: after an error that may pass; 22, 25, 27 and 79 at
 * once, the first time. member_want_round is called for: the herder's wish, 27 or 22 or 25 of a
 * heartbeat, the end of a scheduled delay. */
#define LOGGER "worker.group"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "worker/group/ghost.h"
#include "worker/group/member_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* --- calls ------------------------------------------------------------------------------------ */

bool member_call(struct member *m, enum coordinator_lane lane, const struct request *request,
                 int64_t timeout_ms, answer_fn fn)
{
    struct member_call *call = malloc(sizeof(*call));
    struct mr_error err = {0};

    if (call == NULL)
        return false;
    *call = (struct member_call){m, m->epoch, m->identity, m->generation};
    if (coordinator_call(m->coordinator, lane, request, timeout_ms, fn, call, &err) == 0)
        return true;
    log_warn("%s to the group %s could not be sent: %s", request_name(request->api), m->group,
             err.text);
    free(call);
    return false;
}

struct member *member_called(void *arg)
{
    struct member_call call = *(struct member_call *)arg;

    free(arg);
    return call.member->ending || call.epoch != call.member->epoch ? NULL : call.member;
}

bool member_is_fatal(const struct mr_error *err)
{
    return err->code == MR_ERR_UNSUPPORTED || err->code == MR_ERR_FATAL;
}

int64_t member_jitter(struct member *m, int64_t ms)
{
    return ms - ms / 5 + (int64_t)((uint32_t)rand_r(&m->seed) % (uint64_t)(ms / 5 * 2 + 1));
}

/* --- ends ------------------------------------------------------------------------------------- */

static void quiet(struct member *m)
{
    struct loop_timer *const timers[] = {&m->retry,      &m->settle,      &m->delay,
                                         &m->lead_timer, &m->leave_timer, &m->ghost_timer,
                                         &m->beat};

    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        loop_timer_cancel(timers[i]);
    m->epoch++;
    m->wants_round = false;
    m->round_kind = -1;
    m->unsettled = -1;
    lead_deinit(&m->lead);
}

void member_fail(struct member *m, const struct mr_error *err)
{
    struct mr_error told = *err;

    quiet(m);
    m->state = MEMBER_FAILED;
    m->generation = -1;
    err_prefix(&told, "the group %s", m->group);
    ear_failed(m->ear, &told);
}

void member_fail_code(struct member *m, enum request_api api, int16_t code)
{
    struct mr_error err = {0};
    const char *hint = kafka_code_hint(code);

    mr_fail(&err, MR_ERR_FATAL, "%s was answered with %s (%d)%s%s", request_name(api),
            kafka_code_name(code), code, hint[0] == '\0' ? "" : ": ", hint);
    member_fail(m, &err);
}

void member_set_id(struct member *m, const char *id)
{
    struct mr_error err = {0};

    free(m->id);
    m->id = text_dup(id);
    m->identity++;
    if (id[0] == '\0')
        return;
    if (m->ghost_file != NULL && ghost_write(m->ghost_file, m->group, id, &err) != 0)
        log_warn("after a crash this worker's member will be in the way for a session: %s",
                 err.text);
    ear_identity(m->ear, id);
}

/* --- the herder's words ----------------------------------------------------------------------- */

struct command {
    struct member *member;
    void (*run)(struct member *m, struct command *command);
    int64_t number; /* ask or settled */
    int64_t offset;
    bool has_held;
    char *stopping;
    struct work_list held;
    char *rejoin;
    struct lead_snapshot *snapshot;
};

static void command_free(struct command *command)
{
    work_list_deinit(&command->held);
    lead_snapshot_free(&command->snapshot);
    free(command->rejoin);
    free(command->stopping);
    free(command);
}

static void run_command(void *arg)
{
    struct command *command = arg;

    if (!command->member->ending)
        command->run(command->member, command);
    command_free(command);
}

static int post(struct member *member, struct command *command)
{
    int rc;

    command->member = member;
    rc = loop_post(member->loop, run_command, command);
    if (rc != 0)
        command_free(command);
    return rc;
}

static void run_start(struct member *m, struct command *command)
{
    if (m->state != MEMBER_OUT)
        return;
    m->offset = command->offset;
    m->kind = -1;
    m->completed = -1;
    m->failures = m->mismatches = 0;
    m->answered_ms = clock_ms();
    m->state = MEMBER_WAITING;
    member_want_round(m, "it was started");
}

static void run_report(struct member *m, struct command *command)
{
    if (command->has_held) {
        struct work_list held = m->held;

        m->held = command->held;
        command->held = held;
    }
    if (command->offset > m->offset) {
        m->offset = command->offset;
        member_read_on(m);
    }
    m->offset = command->offset;
    if (command->number >= 0 && command->number == m->unsettled)
        m->unsettled = -1;
    if (command->stopping != NULL && m->stopping == NULL)
        m->held_long_enough = false;
    free(m->stopping);
    m->stopping = command->stopping;
    command->stopping = NULL;
    if (m->state == MEMBER_OUT || m->state == MEMBER_LEAVING || m->state == MEMBER_FAILED)
        return;
    if (command->rejoin != NULL)
        member_want_round(m, command->rejoin);
    else
        member_try_join(m);
}

static void run_stopped(struct member *m, struct command *command)
{
    member_emptied(m, command->number);
}

static void run_lead(struct member *m, struct command *command)
{
    member_led(m, command->number, command->snapshot);
}

static void run_leave(struct member *m, struct command *command)
{
    (void)command;
    if (m->state == MEMBER_OUT || m->state == MEMBER_FAILED) {
        ear_left(m->ear);
        return;
    }
    if (m->state == MEMBER_LEAVING)
        return;
    quiet(m);
    m->state = MEMBER_LEAVING;
    member_say_goodbye(m);
}

static struct command *command_new(void (*run)(struct member *, struct command *), int64_t number)
{
    struct command *command = calloc(1, sizeof(*command));

    if (command != NULL)
        *command = (struct command){.run = run, .number = number};
    return command;
}

int member_start(struct member *member, int64_t offset)
{
    struct command *command = command_new(run_start, 0);

    if (command == NULL)
        return MR_ERR_NOMEM;
    command->offset = offset;
    return post(member, command);
}

int member_report(struct member *member, const struct member_word *word)
{
    struct command *command = command_new(run_report, word->settled);
    int rc = command == NULL ? MR_ERR_NOMEM : 0;

    if (rc == 0 && word->allocation != NULL) {
        command->has_held = true;
        rc = work_list_copy(&command->held, word->allocation);
    }
    if (rc == 0 && word->rejoin != NULL && (command->rejoin = strdup(word->rejoin)) == NULL)
        rc = MR_ERR_NOMEM;
    if (rc == 0 && word->stopping != NULL && (command->stopping = strdup(word->stopping)) == NULL)
        rc = MR_ERR_NOMEM;
    if (rc != 0) {
        if (command != NULL)
            command_free(command);
        return rc;
    }
    command->offset = word->offset;
    return post(member, command);
}

int member_stopped(struct member *member, int64_t ask)
{
    struct command *command = command_new(run_stopped, ask);

    return command == NULL ? MR_ERR_NOMEM : post(member, command);
}

int member_lead_take(struct member *member, int64_t ask, struct lead_snapshot *snapshot)
{
    struct command *command = command_new(run_lead, ask);

    if (command == NULL) {
        lead_snapshot_free(&snapshot);
        return MR_ERR_NOMEM;
    }
    command->snapshot = snapshot;
    return post(member, command);
}

int member_leave(struct member *member)
{
    struct command *command = command_new(run_leave, 0);

    return command == NULL ? MR_ERR_NOMEM : post(member, command);
}

/* --- life ------------------------------------------------------------------------------------- */

/* The clients live and die on the thread that runs their loop. */
static void *thread_main(void *arg)
{
    struct member *m = arg;

    loop_run(m->loop);
    quiet(m);
    coordinator_free(&m->coordinator);
    wire_client_free(&m->client);
    return NULL;
}

static void stop(void *arg)
{
    struct member *m = arg;

    m->ending = true;
    loop_stop(m->loop);
}

static void free_parts(struct member *m)
{
    coordinator_free(&m->coordinator);
    wire_client_free(&m->client);
    loop_free(&m->loop);
    wire_conf_free(&m->conf);
    assignor_free(&m->assignor);
    lead_deinit(&m->lead);
    work_list_deinit(&m->held);
    work_list_deinit(&m->joined_with);
    free(m->group);
    free(m->url);
    free(m->id);
    free(m->ghost_file);
    free(m->ghost);
    free(m->leader);
    free(m->leader_url);
    free(m->stopping);
    if (m->ear != NULL)
        ear_close(&m->ear);
    free(m);
}

void member_free(struct member **member)
{
    struct member *m = *member;

    *member = NULL;
    if (m == NULL)
        return;
    mr_assert(loop_post(m->loop, stop, m) == 0);
    pthread_join(m->thread, NULL);
    free_parts(m);
}

static int check_ms(const char *key, int64_t ms, int64_t min, struct mr_error *err)
{
    if (ms >= min && ms <= INT32_MAX)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %lld for configuration %s: from %lld to %d ms", (long long)ms,
                   key, (long long)min, INT32_MAX);
}

static int check(const struct member_options *o, struct mr_error *err)
{
    int rc = check_ms("session.timeout.ms", o->session_ms, 1, err);

    if (rc == 0)
        rc = check_ms("heartbeat.interval.ms", o->heartbeat_ms, 1, err);
    if (rc == 0)
        rc = check_ms("rebalance.timeout.ms", o->rebalance_ms, 1, err);
    if (rc == 0)
        rc = check_ms("scheduled.rebalance.max.delay.ms", o->max_delay_ms, 0, err);
    if (rc == 0 && o->heartbeat_ms >= o->session_ms)
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "heartbeat.interval.ms (%lld) must be below session.timeout.ms (%lld)",
                     (long long)o->heartbeat_ms, (long long)o->session_ms);
    if (rc == 0 && o->group[0] == '\0')
        rc = mr_fail(err, MR_ERR_CONFIG, "Missing required configuration \"group.id\"");
    return rc;
}

/* A member hears of a round by its next heartbeat, and the whole round waits for the last to hear:
 * so more often than asked. */
static int64_t beat_ms(const struct member_options *o)
{
    int64_t often_ms =
        o->session_ms / 20 > MEMBER_BEAT_MIN_MS ? o->session_ms / 20 : MEMBER_BEAT_MIN_MS;

    return o->heartbeat_ms < often_ms ? o->heartbeat_ms : often_ms;
}

static struct member *member_made(const struct member_options *o)
{
    struct member *m = calloc(1, sizeof(*m));
    char ghost[GHOST_ID_MAX];

    mr_assert(m != NULL);
    *m = (struct member){
        .group = text_dup(o->group),
        .url = text_dup(o->url),
        .ghost_file = text_dup(o->ghost_file),
        .id = text_dup(""),
        .leader = text_dup(""),
        .leader_url = text_dup(""),
        .best = o->kind,
        .java_assignor = o->java_assignor,
        .session_ms = o->session_ms,
        .heartbeat_ms = beat_ms(o),
        .tell_ms =
            o->heartbeat_ms / 2 < o->session_ms / 5 ? o->heartbeat_ms / 2 : o->session_ms / 5,
        .rebalance_ms = o->rebalance_ms,
        .max_delay_ms = o->max_delay_ms,
        .sync_ms = o->sync_ms,
        .retry_backoff_ms = o->retry_backoff_ms > 0 ? o->retry_backoff_ms : 1,
        .lease = {.session_ms = o->session_ms,
                  .graceful_ms = o->graceful_ms,
                  .rebalance_ms = o->rebalance_ms},
        .generation = -1,
        .kind = -1,
        .round_kind = -1,
        .completed = -1,
        .unsettled = -1,
        .offset = -1,
        .lease_held = true,
        .assignor = assignor_new(),
    };
    mr_assert(m->assignor != NULL);
    if (o->ghost_file != NULL && ghost_read(o->ghost_file, o->group, ghost, sizeof(ghost)))
        m->ghost = text_dup(ghost);
    if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) < 0)
        m->seed = (unsigned)clock_ms();
    return m;
}

static int start_thread(struct member *m, struct mr_error *err)
{
    int rc = thread_start(&m->thread, thread_main, m);

    return rc == 0 ? 0 : mr_fail(err, MR_ERR_IO, "cannot start the group thread: %s", strerror(rc));
}

static int connect_parts(struct member *m, const struct props *kafka, struct mr_error *err)
{
    struct coordinator_to to = {.key = m->group, .type = REQUEST_KEY_GROUP};

    m->loop = loop_new(err);
    m->conf = m->loop == NULL ? NULL : wire_conf_new(kafka, err);
    if (m->conf != NULL)
        m->client = wire_client_new(m->loop, m->conf, err);
    if (m->client != NULL)
        m->coordinator = coordinator_new(m->client, &to, NULL, NULL, err);
    if (m->coordinator == NULL)
        return err->code;
    m->request_ms = m->rebalance_ms + 5000;
    if (wire_conf_request_timeout_ms(m->conf) > m->request_ms)
        m->request_ms = wire_conf_request_timeout_ms(m->conf);
    return start_thread(m, err);
}

struct member *member_new(struct loop *loop, const struct member_options *options,
                          const struct member_events *events, void *arg, struct mr_error *err)
{
    struct mr_error local = {0};
    struct member *m;

    if (check(options, &local) != 0) {
        mr_fail(err, local.code, "%s", local.text);
        return NULL;
    }
    m = member_made(options);
    m->ear = ear_new(loop, events, arg);
    if (connect_parts(m, options->kafka, &local) == 0)
        return m;
    mr_fail(err, local.code, "%s", local.text);
    free_parts(m);
    return NULL;
}
