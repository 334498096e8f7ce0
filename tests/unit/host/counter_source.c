/* SPDX-License-Identifier: Apache-2.0 */
/* See counter_source.h. */
#include "counter_source.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct counter {
    struct mr_task *task;
    int64_t next;
};

struct counter_script counter_script;

static int counter_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct counter *c = self;

    c->task = task;
    counter_script.started++;
    counter_script.handle = task;
    if (counter_script.start_code != 0)
        return mr_fail(err, counter_script.start_code, "the origin is not there");
    return mr_offset_long(task, "numbers", "next", 0, &c->next, err);
}

static int block_for_ever(struct mr_error *err)
{
    int fds[2];
    char byte;
    ssize_t n;

    if (pipe(fds) != 0)
        return MR_OK;
    n = read(fds[0], &byte, 1);
    close(fds[0]);
    close(fds[1]);
    return n < 0 ? mr_fail(err, MR_ERR_RETRY, "interrupted: %s", strerror(errno)) : MR_OK;
}

static int misbehave(struct counter *c, struct mr_batch *out, struct mr_error *err)
{
    struct mr_record *rec;

    switch (counter_script.fault) {
    case FAULT_NO_TOPIC:
        mr_batch_add(out, NULL);
        return MR_OK;
    case FAULT_TIMESTAMP:
        rec = mr_batch_add(out, "numbers");
        rec->timestamp = -5;
        return MR_OK;
    case FAULT_BLOCK:
        return block_for_ever(err);
    case FAULT_BAD_FD:
        return mr_again_on_fd(out, 999, -1);
    case FAULT_NAME:
        mr_record_offset(mr_batch_add(out, "numbers"), "caf\xe9", "next", 1);
        return MR_OK;
    case FAULT_KEY:
        mr_record_offset(mr_batch_add(out, "numbers"), "numbers", "n\xff", 1);
        return MR_OK;
    case FAULT_UNDECLARED:
        mr_config_str(c->task, "nonsense");
        return MR_OK;
    default:
        mr_record_value(mr_batch_add(out, "numbers"),
                        mr_bytes(mr_alloc(out->arena, (size_t)1 << 34), 5));
        return MR_OK;
    }
}

static void give_large(struct mr_record *rec, struct mr_arena *arena, uint32_t size)
{
    mr_record_value(rec, mr_bytes(memset(mr_alloc(arena, size), 'x', size), size));
}

static void give_offset(struct mr_record *rec, struct mr_arena *arena, int64_t n)
{
    size_t bytes = (size_t)counter_script.name_bytes;
    char *name = mr_alloc(arena, bytes + 1);

    snprintf(name, bytes + 1, "%0*lld", (int)bytes, (long long)n);
    mr_record_offset(rec, bytes > 0 ? name : "numbers", bytes > 0 ? name : "next", n + 1);
}

static void give(struct counter *c, struct mr_batch *out, int64_t n)
{
    char topic[32] = "numbers";
    struct mr_record *rec;
    char text[32];

    if (counter_script.many_topics)
        snprintf(topic, sizeof(topic), "numbers-%lld", (long long)n);
    rec = mr_batch_add(out, topic);
    rec->partition = counter_script.partition;
    if (n == counter_script.bad_at)
        mr_record_value(rec, mr_str("bad"));
    else if (n == counter_script.large_at)
        give_large(rec, out->arena, (uint32_t)counter_script.large_bytes);
    else
        mr_record_value(rec,
                        mr_text(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)n)));
    give_offset(rec, out->arena, n);
}

static int counter_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct counter *c = self;
    int64_t next = c->next;

    counter_script.polls++;
    for (int64_t until = clock_ms() + counter_script.slow_poll_ms; clock_ms() < until;)
        usleep(1000);
    if (counter_script.fault != FAULT_NONE)
        return misbehave(c, out, err);
    for (int i = 0; i < counter_script.per_poll && next < counter_script.limit; i++) {
        if (next == counter_script.fail_at)
            return mr_fail(err, MR_ERR_IO, "the origin broke");
        give(c, out, next++);
    }
    if (counter_script.retries > 0) {
        counter_script.retries--;
        mr_fail(err, MR_ERR_RETRY, "not just now");
        return mr_retry_after(err, 20);
    }
    c->next = next;
    if (next < counter_script.limit)
        return MR_OK;
    if (counter_script.fd >= 0)
        return mr_again_on_fd(out, counter_script.fd, -1);
    return counter_script.again_ms > 0 ? mr_again_in(out, counter_script.again_ms) : MR_OK;
}

static int counter_committed(void *self, struct mr_error *err)
{
    counter_script.committed++;
    return MR_OK;
}

static void counter_interrupt(void *self)
{
    counter_script.interrupted++;
}

static void counter_stop(void *self)
{
    usleep((useconds_t)counter_script.slow_stop_ms * 1000);
    counter_script.stopped++;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
const struct plugin counter_plugin = {
    .kind = MR_PLUGIN_SOURCE,
    .name = "Counter",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .state_size = sizeof(struct counter),
    .source = {.start = counter_start,
               .poll = counter_poll,
               .committed = counter_committed,
               .interrupt = counter_interrupt,
               .stop = counter_stop},
};

int counter_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    memset(&counter_script, 0, sizeof(counter_script));
    counter_script.limit = 1000;
    counter_script.per_poll = 100;
    counter_script.bad_at = counter_script.large_at = counter_script.fail_at = counter_script.fd =
        -1;
    counter_script.partition = -1;
    counter_script.large_bytes = 2000000; /* above max.request.size */
    counter_script.again_ms = 10000;
    *state = rig;
    return 0;
}

int counter_teardown(void **state)
{
    struct rig *rig = *state;

    rig_deinit(rig);
    free(rig);
    return 0;
}

bool stored_is(struct rig *rig, int64_t n)
{
    return rig_stored(rig, PART, "next") == n;
}

bool polls_are(struct rig *rig, int64_t n)
{
    return counter_script.polls >= n;
}

void check_topic(struct rig *rig, int from, int to)
{
    json_t *values = rig_read_topic(rig, "numbers", (size_t)(to - from));

    assert_int_equal(json_array_size(values), to - from);
    for (int i = from; i < to; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", i);
        assert_string_equal(json_string_value(json_array_get(values, (size_t)(i - from))), text);
    }
    json_decref(values);
}

bool delivered_some(struct rig *rig, int64_t n)
{
    return rig_stored(rig, PART, "next") > n;
}

size_t check_no_gap(struct rig *rig, int n)
{
    json_t *values = rig_read_topic(rig, "numbers", (size_t)n);
    size_t count = json_array_size(values);
    int highest = -1;

    for (size_t i = 0; i < count; i++) {
        int value = (int)strtol(json_string_value(json_array_get(values, i)), NULL, 10);

        if (highest + 1 == counter_script.bad_at) /* that one is a dead letter */
            highest++;
        assert_true(value <= highest + 1);
        highest = value > highest ? value : highest;
    }
    assert_true(highest >= n - 1);
    json_decref(values);
    return count;
}
