/* SPDX-License-Identifier: Apache-2.0 */
/* One open question of a host, from the supervisor's event to the store thread and back to the
 * supervisor, which drops the answer when that host has gone meanwhile. How many may be open is
 * bounded there (per host) and by the store's queue. */
#include "worker/herder/offset_desk.h"

struct question {
    struct offset_desk *desk;
    char *conn;
    int64_t id;
};

static struct question *question_new(struct offset_desk *desk, const char *conn, int64_t id)
{
    struct question *question = calloc(1, sizeof(*question));

    mr_assert(question != NULL);
    question->desk = desk;
    question->conn = strdup(conn);
    mr_assert(question->conn != NULL);
    question->id = id;
    return question;
}

static void question_free(struct question *question)
{
    free(question->conn);
    free(question);
}

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

void offset_desk_get(struct offset_desk *desk, const char *conn, int64_t id,
                     const json_t *partitions)
{
    desk->store.get(desk->store.self, conn, partitions, on_read, question_new(desk, conn, id));
}

void offset_desk_put(struct offset_desk *desk, const char *conn, int64_t id, const json_t *entries)
{
    /* A worker that was frozen finds this in its socket when it wakes: a successor may have stored
     * more. */
    if (!supervisor_leased(desk->sup)) {
        supervisor_offsets_stored(desk->sup, conn, id,
                                  "this worker's place in its group is in doubt");
        return;
    }
    desk->store.put(desk->store.self, conn, entries, on_written, question_new(desk, conn, id));
}
