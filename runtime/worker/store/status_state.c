/* SPDX-License-Identifier: Apache-2.0 */
/* The newest status of everything, kept by the worker's loop from what the store thread reads. A
 * worker's own writes show here once they come back, as in Java. Different keys stand in different
 * partitions, so nothing is assumed about the order of a connector's records and its tasks'.
 * Entries that hold nothing any more are dropped; the rest is bounded by the topic's keys. */
#include "worker/store/status_state.h"

#include "base/map.h"

#include <limits.h>

struct task {
    int task;
    struct status status;
};

struct conn {
    bool known; /* status holds */
    struct status status;
    struct task *tasks; /* by number */
    size_t count;
    size_t cap;
    struct map *topics; /* name → itself; NULL none */
};

struct status_state {
    struct map *conns;
};

static void drop_tasks(struct conn *conn)
{
    for (size_t i = 0; i < conn->count; i++)
        status_deinit(&conn->tasks[i].status);
    conn->count = 0;
}

static void free_conn(void *arg)
{
    struct conn *conn = arg;

    status_deinit(&conn->status);
    drop_tasks(conn);
    free(conn->tasks);
    map_free(&conn->topics, NULL);
    free(conn);
}

struct status_state *status_state_new(void)
{
    struct status_state *state = calloc(1, sizeof(*state));

    mr_assert(state != NULL);
    state->conns = map_new();
    return state;
}

void status_state_free(struct status_state **state)
{
    if (*state == NULL)
        return;
    map_free(&(*state)->conns, free_conn);
    free(*state);
    *state = NULL;
}

/* --- finding ---------------------------------------------------------------------------------- */

/* Where the task stands, or would. */
static size_t place_of(const struct conn *conn, int task)
{
    size_t low = 0, high = conn->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (conn->tasks[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct status *task_of(const struct conn *conn, int task)
{
    size_t place = conn != NULL ? place_of(conn, task) : 0;

    return conn != NULL && place < conn->count && conn->tasks[place].task == task
               ? &conn->tasks[place].status
               : NULL;
}

static struct status *conn_status(struct conn *conn)
{
    return conn != NULL && conn->known ? &conn->status : NULL;
}

/* --- applying --------------------------------------------------------------------------------- */

static struct conn *conn_of(struct status_state *state, const char *name)
{
    struct conn *conn = map_get(state->conns, name);

    if (conn == NULL) {
        conn = calloc(1, sizeof(*conn));
        mr_assert(conn != NULL);
        map_set(state->conns, name, conn);
    }
    return conn;
}

static void take_status(struct status *to, struct status *from)
{
    status_deinit(to);
    *to = *from;
    *from = (struct status){0};
}

static bool on_connector(struct conn *conn, struct status_record *rec)
{
    bool had = conn->known || conn->count > 0;

    conn->known = !rec->tombstone;
    if (conn->known) {
        take_status(&conn->status, &rec->status);
        return true;
    }
    status_deinit(&conn->status);
    drop_tasks(conn);
    return had;
}

static void insert_task(struct conn *conn, size_t place, int task)
{
    if (conn->count == conn->cap) {
        conn->cap = conn->cap > 0 ? conn->cap * 2 : 4;
        conn->tasks = realloc(conn->tasks, conn->cap * sizeof(*conn->tasks));
        mr_assert(conn->tasks != NULL);
    }
    memmove(conn->tasks + place + 1, conn->tasks + place,
            (conn->count - place) * sizeof(*conn->tasks));
    conn->tasks[place] = (struct task){.task = task};
    conn->count++;
}

static bool remove_task(struct conn *conn, int task)
{
    size_t place = place_of(conn, task);

    if (task_of(conn, task) == NULL)
        return false;
    status_deinit(&conn->tasks[place].status);
    conn->count--;
    memmove(conn->tasks + place, conn->tasks + place + 1,
            (conn->count - place) * sizeof(*conn->tasks));
    return true;
}

/* The old owner's last word may come after the new owner's first. Java also ignores what the owner
 * itself says last, at its orderly end, and shows its tasks as running until somebody else has
 * them. */
static bool comes_late(const struct status *before, const struct status *now)
{
    return now->state == STATE_UNASSIGNED && before->state == STATE_RUNNING &&
           before->generation >= now->generation && strcmp(before->worker_id, now->worker_id) != 0;
}

static bool on_task(struct conn *conn, struct status_record *rec)
{
    struct status *before = task_of(conn, rec->task);

    if (rec->tombstone)
        return remove_task(conn, rec->task);
    if (before != NULL && comes_late(before, &rec->status))
        return false;
    if (before == NULL)
        insert_task(conn, place_of(conn, rec->task), rec->task);
    take_status(task_of(conn, rec->task), &rec->status);
    return true;
}

static bool on_topic(struct conn *conn, struct status_record *rec)
{
    if (rec->tombstone)
        return conn->topics != NULL && map_remove(conn->topics, rec->topic) != NULL;
    if (conn->topics == NULL)
        conn->topics = map_new();
    return map_set(conn->topics, rec->topic, conn) == NULL;
}

bool status_state_apply(struct status_state *state, struct status_record *rec)
{
    static bool (*const kinds[])(struct conn * conn, struct status_record * rec) = {
        [STATUS_CONNECTOR] = on_connector,
        [STATUS_TASK] = on_task,
        [STATUS_TOPIC] = on_topic,
    };
    struct conn *conn = conn_of(state, rec->conn);
    bool changed = kinds[rec->kind](conn, rec);

    if (!conn->known && conn->count == 0 && (conn->topics == NULL || map_count(conn->topics) == 0))
        free_conn(map_remove(state->conns, rec->conn));
    return changed;
}

/* --- reading ---------------------------------------------------------------------------------- */

const struct status *status_state_connector(const struct status_state *state, const char *conn)
{
    return conn_status(map_get(state->conns, conn));
}

const struct status *status_state_task(const struct status_state *state, const char *conn, int task)
{
    return task_of(map_get(state->conns, conn), task);
}

int status_state_next_task(const struct status_state *state, const char *conn, int after)
{
    const struct conn *found = map_get(state->conns, conn);
    size_t place = found != NULL ? place_of(found, after + 1) : 0;

    return found != NULL && place < found->count ? found->tasks[place].task : -1;
}

const char *status_state_next_conn(const struct status_state *state, size_t *cursor)
{
    const char *name;
    void *value;

    return map_next(state->conns, cursor, &name, &value) ? name : NULL;
}

const char *status_state_next_topic(const struct status_state *state, const char *conn,
                                    size_t *cursor)
{
    const struct conn *found = map_get(state->conns, conn);
    const char *topic;
    void *value;

    return found != NULL && found->topics != NULL && map_next(found->topics, cursor, &topic, &value)
               ? topic
               : NULL;
}

bool status_state_uses(const struct status_state *state, const char *conn, const char *topic)
{
    const struct conn *found = map_get(state->conns, conn);

    return found != NULL && found->topics != NULL && map_get(found->topics, topic) != NULL;
}

static const struct status *of_key(const struct status_state *state,
                                   const struct status_record *rec)
{
    struct conn *conn = map_get(state->conns, rec->conn);

    return rec->kind == STATUS_TASK ? task_of(conn, rec->task) : conn_status(conn);
}

int status_state_generation(const struct status_state *state, const struct status_record *rec)
{
    const struct status *there = of_key(state, rec);

    return there != NULL ? there->generation : INT_MIN;
}

bool status_state_may_put(const struct status_state *state, const struct status_record *mine)
{
    const struct status *there = of_key(state, mine);
    const char *me = mine->status.worker_id;

    return there == NULL || there->generation <= mine->status.generation ||
           (me != NULL && strcmp(there->worker_id, me) == 0);
}
