/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of the config topic. Records come in the order of the topic, at the start from
 * its beginning; compaction may have taken out any record that a later one of the same key
 * replaces. The rules, which all members of a group share:
 *
 *   connector-    stores the configuration; STARTED when no target state is known. Tombstone:
 *                 configuration, task list, what waits for a commit and the applied configuration
 *                 go; target state, counts of fencing, flags stay
 *   task-         waits (`deferred`); nobody sees it
 *   commit- N     without a configuration: as the tombstone above. Else the set is full when ids 0
 *                 … N-1 wait:
 *
 *                 full      all that wait is applied, also ids from N on; applied :=
 *                           configuration; consistent
 *
 *                 not full  nothing is applied; inconsistent, and the task list is empty until a
 *                           full set comes
 *
 *                 always    nothing waits any more, count := N, fencing pending
 *
 *   tasks-fencing-  stores the count, fencing no longer pending
 *   target-state- stores the state. Tombstone: forgotten; STARTED while there is a configuration
 *
 * A connector of which nothing is left is forgotten, so names that come and go leave nothing
 * behind. So a set that a leader wrote half is never seen, whoever wrote the rest. Re-reading
 * records is harmless but for `generation`, which is nobody's but this process's. Memory is bounded
 * by the topic's distinct keys. */
#include "worker/store/config_state.h"

#include "base/text.h"

struct config_state {
    struct map *conns; /* name → struct config_conn */
    size_t count;      /* that have a configuration */
    int64_t offset;
    int64_t generation; /* that no connector that was forgotten went beyond */
    bool has_session_key;
    struct config_session_key session;
};

static void free_props(void *arg)
{
    props_deinit(arg);
    free(arg);
}

static void drop_props(struct props **props)
{
    if (*props != NULL)
        free_props(*props);
    *props = NULL;
}

static void free_conn(void *arg)
{
    struct config_conn *conn = arg;

    drop_props(&conn->config);
    drop_props(&conn->applied);
    map_free(&conn->tasks, free_props);
    map_free(&conn->deferred, free_props);
    free((char *)(uintptr_t)conn->name);
    free(conn);
}

struct config_state *config_state_new(void)
{
    struct config_state *state = calloc(1, sizeof(*state));

    mr_assert(state != NULL);
    state->conns = map_new();
    state->offset = state->generation = -1;
    return state;
}

void config_state_free(struct config_state **state)
{
    if (*state == NULL)
        return;
    map_free(&(*state)->conns, free_conn);
    free(*state);
    *state = NULL;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static struct config_conn *conn_of(struct config_state *state, const char *name)
{
    struct config_conn *conn = map_get(state->conns, name);

    if (conn != NULL)
        return conn;
    conn = calloc(1, sizeof(*conn));
    mr_assert(conn != NULL);
    conn->name = text_dup(name);
    conn->target = TARGET_STARTED;
    conn->task_count_record = -1;
    conn->generation = state->generation;
    map_set(state->conns, name, conn);
    return conn;
}

static struct props *take_props(struct config_record *rec)
{
    struct props *props = malloc(sizeof(*props));

    mr_assert(props != NULL);
    *props = rec->props;
    props_init(&rec->props);
    return props;
}

static struct props *copy_props(const struct props *from)
{
    struct props *props = malloc(sizeof(*props));

    mr_assert(props != NULL && props_copy(props, from) == 0);
    return props;
}

static void task_key(char out[16], int task)
{
    snprintf(out, 16, "%d", task);
}

static void put_task(struct map *tasks, const char *key, struct props *props)
{
    struct props *before = map_set(tasks, key, props);

    drop_props(&before);
}

/* What a deletion takes away; true when there was a connector. */
static bool remove_conn(struct config_state *state, struct config_conn *conn)
{
    bool had = conn->config != NULL;

    if (had)
        state->count--;
    drop_props(&conn->config);
    drop_props(&conn->applied);
    map_free(&conn->tasks, free_props);
    map_free(&conn->deferred, free_props);
    conn->task_count = 0;
    return had;
}

/* --- records ---------------------------------------------------------------------------------- */

static enum config_change_kind on_connector(struct config_state *state, struct config_conn *conn,
                                            struct config_record *rec)
{
    if (rec->tombstone)
        return remove_conn(state, conn) ? CONFIG_REMOVED : CONFIG_NOTHING;
    if (conn->config == NULL)
        state->count++;
    drop_props(&conn->config);
    conn->config = take_props(rec);
    return CONFIG_UPDATED;
}

static enum config_change_kind on_task(struct config_state *state, struct config_conn *conn,
                                       struct config_record *rec)
{
    char key[16];

    (void)state;
    if (conn->deferred == NULL)
        conn->deferred = map_new();
    task_key(key, rec->task);
    put_task(conn->deferred, key, take_props(rec));
    return CONFIG_NOTHING;
}

static bool full_set(const struct config_conn *conn, int count)
{
    char key[16];

    if ((size_t)count > (conn->deferred != NULL ? map_count(conn->deferred) : 0))
        return false;
    for (int task = 0; task < count; task++) {
        task_key(key, task);
        if (map_get(conn->deferred, key) == NULL)
            return false;
    }
    return true;
}

static void apply_deferred(struct config_conn *conn)
{
    const char *key;
    void *props;

    if (conn->tasks == NULL)
        conn->tasks = map_new();
    for (size_t i = 0; map_next(conn->deferred, &i, &key, &props);)
        put_task(conn->tasks, key, props);
    map_free(&conn->deferred, NULL);
    conn->deferred = map_new();
    conn->generation++;
}

static enum config_change_kind on_commit(struct config_state *state, struct config_conn *conn,
                                         struct config_record *rec)
{
    if (conn->config == NULL) {
        remove_conn(state, conn);
        return CONFIG_NOTHING;
    }
    conn->inconsistent = !full_set(conn, rec->count);
    if (!conn->inconsistent) {
        if (conn->deferred != NULL)
            apply_deferred(conn);
        drop_props(&conn->applied);
        conn->applied = copy_props(conn->config);
    } else if (conn->deferred != NULL) {
        map_free(&conn->deferred, free_props);
        conn->deferred = map_new();
    }
    conn->task_count = rec->count;
    conn->pending_fencing = true;
    return CONFIG_TASKS;
}

static enum config_change_kind on_target(struct config_state *state, struct config_conn *conn,
                                         struct config_record *rec)
{
    enum target_state before = conn->target;

    (void)state;
    conn->has_target = !rec->tombstone;
    conn->target = rec->tombstone ? TARGET_STARTED : rec->target;
    return conn->config != NULL && conn->target != before ? CONFIG_TARGETED : CONFIG_NOTHING;
}

/* One that was on its way when other tasks were written is not about these: taken for theirs, the
 * next round would fence so many of them, and not all. */
static enum config_change_kind on_task_count(struct config_state *state, struct config_conn *conn,
                                             struct config_record *rec)
{
    (void)state;
    conn->task_count_record = rec->count;
    if (rec->count == conn->task_count)
        conn->pending_fencing = false;
    return CONFIG_FENCED;
}

static enum config_change_kind on_session_key(struct config_state *state, struct config_conn *conn,
                                              struct config_record *rec)
{
    (void)conn;
    state->session = rec->session;
    state->has_session_key = true;
    return CONFIG_KEYED;
}

static enum config_change_kind on_restart(struct config_state *state, struct config_conn *conn,
                                          struct config_record *rec)
{
    (void)state;
    (void)conn;
    (void)rec;
    return CONFIG_RESTARTING;
}

static enum config_change_kind on_logger(struct config_state *state, struct config_conn *conn,
                                         struct config_record *rec)
{
    (void)state;
    (void)conn;
    (void)rec;
    return CONFIG_LOGGING;
}

static const struct {
    bool of_conn; /* is kept with the connector */
    enum config_change_kind (*apply)(struct config_state *state, struct config_conn *conn,
                                     struct config_record *rec);
} kinds[] = {
    [CONFIG_CONNECTOR] = {true, on_connector},   [CONFIG_TASK] = {true, on_task},
    [CONFIG_COMMIT] = {true, on_commit},         [CONFIG_TARGET] = {true, on_target},
    [CONFIG_TASK_COUNT] = {true, on_task_count}, [CONFIG_SESSION_KEY] = {false, on_session_key},
    [CONFIG_RESTART] = {false, on_restart},      [CONFIG_LOGGER] = {false, on_logger},
};

static bool has_any(const struct map *tasks)
{
    return tasks != NULL && map_count(tasks) > 0;
}

/* One that comes again under its name goes on counting: what still ends here was of another
 * generation. */
static void forget_empty(struct config_state *state, struct config_conn *conn)
{
    if (conn->config != NULL || conn->has_target || conn->task_count_record >= 0 ||
        has_any(conn->tasks) || has_any(conn->deferred))
        return;
    if (conn->generation > state->generation)
        state->generation = conn->generation;
    map_remove(state->conns, conn->name);
    free_conn(conn);
}

void config_state_apply(struct config_state *state, int64_t offset, struct config_record *rec,
                        struct config_change *out)
{
    struct config_conn *conn = kinds[rec->kind].of_conn ? conn_of(state, rec->name) : NULL;

    state->offset = offset + 1;
    *out = (struct config_change){
        .kind = kinds[rec->kind].apply(state, conn, rec),
        .name = rec->name,
        .include_tasks = rec->include_tasks,
        .only_failed = rec->only_failed,
        .level = rec->level,
    };
    if (conn != NULL)
        forget_empty(state, conn);
}

void config_state_skip(struct config_state *state, int64_t offset)
{
    state->offset = offset + 1;
}

/* --- reading ---------------------------------------------------------------------------------- */

int64_t config_state_offset(const struct config_state *state)
{
    return state->offset;
}

const struct config_conn *config_state_find(const struct config_state *state, const char *conn)
{
    return map_get(state->conns, conn);
}

const struct config_conn *config_state_conn(const struct config_state *state, const char *conn)
{
    const struct config_conn *found = map_get(state->conns, conn);

    return found != NULL && found->config != NULL ? found : NULL;
}

const struct config_conn *config_state_next(const struct config_state *state, size_t *cursor)
{
    const char *name;
    void *conn;

    while (map_next(state->conns, cursor, &name, &conn))
        if (((struct config_conn *)conn)->config != NULL)
            return conn;
    return NULL;
}

size_t config_state_count(const struct config_state *state)
{
    return state->count;
}

int config_state_tasks(const struct config_conn *conn)
{
    return conn->inconsistent ? 0 : conn->task_count;
}

const struct props *config_state_task(const struct config_conn *conn, int task)
{
    char key[16];

    if (conn->tasks == NULL || task < 0 || task >= config_state_tasks(conn))
        return NULL;
    task_key(key, task);
    return map_get(conn->tasks, key);
}

const struct config_session_key *config_state_session_key(const struct config_state *state)
{
    return state->has_session_key ? &state->session : NULL;
}
