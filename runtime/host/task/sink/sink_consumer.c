/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of a sink task: opened by its settings, in the group or out of it, delivering or
 * not, lent to control during a put or flush that takes long. Thread: the task's; serve is
 * control's.
 *
 *   NONE ─before a call─► OFFERED ─max.poll.interval.ms / 3 after the last poll, control─► LENT
 *     ▲                      │ call ended                             call ended: take back │
 *     └──────────────────────┴──────────────────────────────────────────────────────────────┘
 *
 * Invariant (promise 1): positions are sought from the ledger after each pause. */
#include "base/clock.h"
#include "host/task/sink/sink_state.h"
#include "host/task/sink/sink_task_private.h"
#include "host/task/task_client.h"

#include <stdlib.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

#define POLL_RECORDS 500 /* Java's default max.poll.records */
#define TOPICS_MAX 10000
/* Of the graceful time, when the leaving of the group must be over, and what it gets at least; the
 * rest is for the plugin's stop. With brokers away it lasts as long as it may. */
#define LEAVE_TENTHS 9
#define LATE_LEAVE_MS 100
#define LEAVE_MS 3000 /* of a task that fails */

/* --- lending the consumer during a long call -------------------------------------------------- */

/* Control's thread, each 200 ms, with task->serve_lock held. */
static void serve(void *arg)
{
    struct sink_task *s = arg;
    struct mr_error err = {0};

    if (s->lend == LEND_OFFERED && clock_ms() - s->offered_ms >= s->max_poll_interval_ms / 3) {
        if (consumer_lend(s->consumer, &err) == MR_OK)
            s->lend = LEND_LENT;
        else
            s->offered_ms = clock_ms(); /* not now: again later */
    }
    if (s->lend == LEND_LENT)
        consumer_keep_alive(s->consumer);
}

void sink_consumer_offer(struct sink_task *s)
{
    pthread_mutex_lock(&s->task->serve_lock);
    s->lend = LEND_OFFERED;
    s->offered_ms = s->polled_ms;
    pthread_mutex_unlock(&s->task->serve_lock);
}

bool sink_consumer_end_offer(struct sink_task *s)
{
    bool lent;

    pthread_mutex_lock(&s->task->serve_lock);
    lent = s->lend == LEND_LENT;
    s->lend = LEND_NONE;
    pthread_mutex_unlock(&s->task->serve_lock);
    return lent;
}

void sink_consumer_take_back(struct sink_task *s)
{
    struct mr_error err = {0};
    size_t count;

    if (!sink_commit_room(s))
        return;
    count = ledger_positions(s->ledger, s->parts);
    if (consumer_take_back(s->consumer, s->parts, count, &err) != MR_OK)
        sink_task_fail(s, &err, NULL);
    s->polled_ms = clock_ms();
}

/* --- delivery on and off ---------------------------------------------------------------------- */

void sink_consumer_settle(struct sink_task *s)
{
    bool stop = s->held != NULL || task_paused(s->task) || !task_lease_held(s->task) ||
                sink_places_unsaid(s) || (s->emit != NULL && clock_ms() < s->emit->again_ms);
    struct mr_error err = {0};
    size_t count;

    if (stop && !s->stopped_delivery) {
        if (consumer_pause(s->consumer, &err) != MR_OK)
            sink_task_fail(s, &err, NULL);
        s->stopped_delivery = true;
    } else if (!stop && s->stopped_delivery && sink_commit_room(s)) {
        count = ledger_positions(s->ledger, s->parts);
        if (consumer_resume(s->consumer, s->parts, count, &err) != MR_OK)
            sink_task_fail(s, &err, NULL);
        s->stopped_delivery = s->read_again = false;
    } else if (!stop && s->read_again && sink_commit_room(s)) {
        count = ledger_positions(s->ledger, s->parts);
        if (consumer_seek(s->consumer, s->parts, count, &err) != MR_OK)
            sink_task_fail(s, &err, NULL);
        s->read_again = false;
    }
}

/* --- the group -------------------------------------------------------------------------------- */

/* So that whoever goes on after a crash, here or on another machine, can make this member leave its
 * group. */
static void note_member(struct sink_task *s, const char *id)
{
    struct black_box *box = s->task->box;

    if (strcmp(s->member, id) == 0 || strlen(id) >= sizeof(s->member))
        return;
    snprintf(s->member, sizeof(s->member), "%s", id);
    if (box != NULL && s->task->box_slot < BLACK_BOX_SLOTS)
        snprintf(box->slots[s->task->box_slot].member_id, sizeof(s->member), "%s", id);
    if (id[0] != '\0')
        s->task->events->member(s->task->arg, s->task, id);
}

/* Known before partitions are: the broker keeps a new group waiting for other members, by default
 * for 3 s. */
void sink_consumer_note_member(struct sink_task *s)
{
    note_member(s, consumer_member_id(s->consumer));
}

static void on_assigned(void *arg, const struct consumer_partition *parts, size_t count)
{
    struct sink_task *s = arg;
    struct mr_error err = {0};

    if (ledger_assign(s->ledger, parts, count, &err) != MR_OK)
        sink_task_fail(s, &err, NULL);
    sink_consumer_note_member(s);
    if (s->emit != NULL)
        sink_state_come(s->emit->state, parts, count);
    log_info("partitions assigned: %zu, in all %zu", count, ledger_count(s->ledger));
    sink_control_open(s, parts, count);
}

static void on_revoked(void *arg, const struct consumer_partition *parts, size_t count, bool lost)
{
    struct sink_task *s = arg;

    if (!lost && task_lease_act(s->task)) {
        sink_commit_before_leaving(s, parts, count);
    } else {
        if (s->emit != NULL)
            sink_txn_lose(s->emit);
        sink_control_close(s, parts, count, true);
    }
    if (lost)
        log_warn("%zu partitions are lost to the group; their records since the last commit are "
                 "read again elsewhere",
                 count);
    else if (!task_lease_held(s->task))
        log_warn("%zu partitions are revoked while the lease is lost; their records since the last "
                 "commit are read again",
                 count);
    if (s->emit != NULL)
        sink_state_go(s->emit->state, parts, count);
    ledger_revoke(s->ledger, parts, count);
    sink_task_drop_held(s, parts, count);
    if (!lost)
        log_info("partitions revoked: %zu, left %zu", count, ledger_count(s->ledger));
}

/* An answer to a commit of the old offsets would hide that the new ones are not committed, and
 * these should not wait: until they are, a restart begins in the void again. */
static void on_moved(void *arg, const struct consumer_partition *part)
{
    struct sink_task *s = arg;

    log_warn("partition %s-%d ends before the offset at which reading went on: it was truncated, "
             "or its topic created anew; "
             "going on at %lld by auto.offset.reset",
             part->topic, part->partition, (long long)part->offset);
    ledger_move(s->ledger, part->topic, part->partition, part->offset);
    s->sent_count = 0;
    s->commit_due_ms = clock_ms();
}

/* --- settings and topics ---------------------------------------------------------------------- */

/* The topics property taken apart in place: names between commas, without blanks. */
static size_t split_topics(char *text, const char **out, size_t max)
{
    size_t count = 0;
    char *save = NULL;

    for (char *item = strtok_r(text, ",", &save); item != NULL && count < max;
         item = strtok_r(NULL, ",", &save)) {
        char *end;

        while (*item == ' ' || *item == '\t' || *item == '\n' || *item == '\r')
            item++;
        end = item + strlen(item);
        while (end > item &&
               (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r'))
            *--end = '\0';
        if (*item != '\0')
            out[count++] = item;
    }
    out[count] = NULL;
    return count;
}

static int subscribe_list(struct sink_task *s, const char *topics, struct mr_error *err)
{
    const char **names = calloc(TOPICS_MAX + 1, sizeof(*names));
    char *text = strdup(topics);
    int rc;

    if (names == NULL || text == NULL)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for the list of topics");
    else if (split_topics(text, names, TOPICS_MAX) == 0)
        rc = mr_fail(err, MR_ERR_CONFIG, "topics names no topic");
    else
        rc = consumer_subscribe(s->consumer, names, err);
    free(names);
    free(text);
    return rc;
}

static int subscribe_as_set(struct sink_task *s, struct mr_error *err)
{
    const char *topics = props_get(&s->task->config, "topics");
    const char *regex = props_get(&s->task->config, "topics.regex");
    const char *pattern[2] = {NULL, NULL};
    char *anchored;
    int rc;

    if (topics == NULL && regex == NULL) {
        topics = props_get(&s->task->connector_config, "topics");
        regex = props_get(&s->task->connector_config, "topics.regex");
    }
    if ((topics == NULL || topics[0] == '\0') == (regex == NULL || regex[0] == '\0'))
        return mr_fail(err, MR_ERR_CONFIG, "a sink needs either topics or topics.regex");
    if (topics != NULL && topics[0] != '\0')
        return subscribe_list(s, topics, err);
    if (asprintf(&anchored, "^%s", regex) < 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for topics.regex");
    pattern[0] = anchored;
    rc = consumer_subscribe(s->consumer, pattern, err);
    free(anchored);
    return rc;
}

static void on_wake(void *consumer)
{
    consumer_wake(consumer);
}

int sink_consumer_subscribe(struct sink_task *s, struct mr_error *err)
{
    int rc = subscribe_as_set(s, err);

    if (rc != MR_OK)
        return rc;
    s->polled_ms = clock_ms();
    task_set_waker(s->task, on_wake, s->consumer);
    task_set_server(s->task, serve, s);
    return MR_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

static int read_settings(struct sink_task *s, const struct props *java, struct mr_error *err)
{
    s->max_poll = (size_t)task_client_number(java, "max.poll.records", POLL_RECORDS, 1, 100000);
    s->max_poll_interval_ms =
        task_client_number(java, "max.poll.interval.ms", 300000, 1, INT32_MAX);
    return task_times_read(s->task->worker, &s->times, err);
}

int sink_consumer_open(struct sink_task *s, struct mr_error *err)
{
    const struct consumer_events events = {.assigned = on_assigned,
                                           .revoked = on_revoked,
                                           .moved = on_moved,
                                           .out_of_range = sink_places_out_of_range(s)};
    const struct task_client_spec spec = {s->task->connector, s->task->number, s->task->worker,
                                          &s->task->connector_config};
    char own_id[512];
    struct props java;
    int rc = task_client_consumer(&spec, &java, err);

    if (rc == MR_OK && s->emit != NULL)
        rc = sink_txn_isolate(&java, err);
    if (rc == MR_OK)
        rc = read_settings(s, &java, err);
    if (rc == MR_OK) {
        s->consumer = consumer_new(&java, &events, task_client_warning, s, err);
        rc = s->consumer == NULL ? err->code : MR_OK;
    }
    if (rc == MR_OK) {
        task_client_consumer_id(&spec, own_id, sizeof(own_id));
        sink_ghosts_find(&s->ghosts, &java, own_id, s->task->left);
    }
    props_deinit(&java);
    return rc;
}

void sink_consumer_close(struct sink_task *s)
{
    struct consumer *closing = s->consumer; /* s->consumer stays: on_revoked commits through it */

    sink_ghosts_deinit(&s->ghosts);
    if (closing == NULL)
        return;
    task_set_waker(s->task, NULL, NULL);
    task_set_server(s->task, NULL, NULL);
    if (s->held != NULL) {
        ledger_reject(s->ledger);
        sink_task_batch_done(s, s->held);
    }
    sink_commit_take_result(s);
    consumer_close(&closing, sink_commit_due_by(s, LEAVE_TENTHS, LATE_LEAVE_MS, LEAVE_MS));
    s->consumer = NULL;
    s->stopped_delivery = false;
    s->sent_count = 0;
    note_member(s, "");
}
