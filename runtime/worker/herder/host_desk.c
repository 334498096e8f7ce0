/* SPDX-License-Identifier: Apache-2.0 */
/* Open questions of hosts, from the supervisor's event to the source of configurations or its store
 * of offsets, and back to the supervisor, which drops the answer when that host has gone meanwhile.
 * How many may be open is bounded there (per host) and by the store's queue.
 *
 * Before a start: where the source has to read on before it knows (exactly-once: a slow task may
 * have taken its transactional id from a newer one, and must hear of that), reading is tried until
 * it succeeds. A sink's members that earlier lives have left behind are known by the words of other
 * workers: these are heard first, so a worker that has just started does not miss them.
 *
 * Called by herder.c; loop thread. */
#include "worker/herder/host_desk.h"

#include "base/text.h"

#include <stdlib.h>

#define AGAIN_MS 500

struct question {
    struct host_desk *desk;
    char *conn;
    int64_t id;
    int task; /* of a start, as is all below */
    int64_t generation;
    struct loop_timer retry;
};

static struct question *question_new(struct host_desk *desk, const char *conn, int64_t id)
{
    struct question *question = calloc(1, sizeof(*question));

    mr_assert(question != NULL);
    question->desk = desk;
    question->conn = text_dup(conn);
    question->id = id;
    return question;
}

static void question_free(struct question *question)
{
    free(question->conn);
    free(question);
}

/* --- offsets ---------------------------------------------------------------------------------- */

static void on_read(void *arg, json_t *entries, const char *error)
{
    struct question *question = arg;

    supervisor_offsets_take(question->desk->sup, question->conn, question->id, entries, error);
    question_free(question);
}

static void on_written(void *arg, const char *error)
{
    struct question *question = arg;

    supervisor_offsets_stored(question->desk->sup, question->conn, question->id, error);
    question_free(question);
}

void host_desk_get(struct host_desk *desk, const char *conn, int64_t id, const json_t *partitions)
{
    const struct offset_store *store = &desk->source->offsets;

    store->get(store->self, conn, partitions, on_read, question_new(desk, conn, id));
}

void host_desk_put(struct host_desk *desk, const char *conn, int64_t id, const json_t *entries)
{
    const struct offset_store *store = &desk->source->offsets;

    /* A worker that was frozen finds this in its socket when it wakes: a successor may have stored
     * more. */
    if (supervisor_leased(desk->sup))
        store->put(store->self, conn, json_deep_copy(entries), on_written,
                   question_new(desk, conn, id));
    else
        supervisor_offsets_stored(desk->sup, conn, id,
                                  "this worker's place in its group is in doubt");
}

/* --- starts ----------------------------------------------------------------------------------- */

static void check(const struct host_desk *desk, const char *conn, int64_t id, int task,
                  int64_t generation)
{
    supervisor_start_checked_take(desk->sup, conn, id,
                                  desk->source->may_start(desk->source, conn, task, generation),
                                  sink_members_left(desk->members, desk->source, conn, task));
}

/* Heard or not: without the words a member that was left behind is waited out. */
static void on_heard(void *arg, const struct mr_error *err)
{
    struct question *question = arg;

    if (err == NULL || err->code != MR_ERR_CLOSED)
        check(question->desk, question->conn, question->id, question->task, question->generation);
    question_free(question);
}

static bool is_sink(const struct conn_source *source, const char *conn)
{
    struct source_conn known;

    return source->find(source, conn, &known) && known.plugin != NULL &&
           known.plugin->kind == MR_PLUGIN_SINK;
}

static void hear(struct question *question)
{
    struct conn_source *source = question->desk->source;

    if (source->hear != NULL && is_sink(source, question->conn))
        source->hear(source, on_heard, question);
    else
        on_heard(question, NULL);
}

static void sync_again(void *arg);

static void on_synced(void *arg, const struct mr_error *err)
{
    struct question *question = arg;

    if (err != NULL && err->code != MR_ERR_CLOSED) {
        loop_timer_start(question->desk->loop, &question->retry, AGAIN_MS, sync_again, question);
        return;
    }
    if (err == NULL)
        hear(question);
    else
        question_free(question);
}

static void sync_again(void *arg)
{
    struct question *question = arg;

    question->desk->source->sync(question->desk->source, on_synced, question);
}

void host_desk_check(struct host_desk *desk, const char *conn, int64_t id, int task,
                     int64_t generation)
{
    struct question *question = question_new(desk, conn, id);

    question->task = task;
    question->generation = generation;
    if (desk->source->sync != NULL)
        sync_again(question);
    else
        hear(question);
}

static void on_fenced(void *arg, const struct mr_error *err)
{
    struct question *question = arg;

    supervisor_fenced(question->desk->sup, question->conn, question->id,
                      err != NULL ? err->text : NULL);
    question_free(question);
}

void host_desk_fence(struct host_desk *desk, const char *conn, int64_t id)
{
    if (desk->source->fence == NULL)
        supervisor_fenced(desk->sup, conn, id,
                          "exactly-once needs a distributed worker, and this one is standalone");
    else
        desk->source->fence(desk->source, conn, true, on_fenced, question_new(desk, conn, id));
}
