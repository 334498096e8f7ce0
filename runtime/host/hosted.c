/* SPDX-License-Identifier: Apache-2.0 */
/* The register of a host: which connectors it has, their places in the black box, and the clock by
 * which their tasks are looked after. See hosted_connector.c, hosted_task.c and hosted_question.c
 * for what becomes of each.
 *
 * Commands come in from host.c; what happens on connector and task threads comes in as notes,
 * posted to the loop in order, and leaves as frames. No plugin code runs here and nothing waits: a
 * hung plugin costs the control thread nothing.
 *
 * Invariant: a note's task or connector is still there when the note is read: `ended` is the last
 * note of each. */
#include "host/hosted.h"

#include "base/log_hide.h"

#include "host/hosted_private.h"
#include "host/thread_guard.h"
#include "link/printable.h"

#include <string.h>

#define NUDGE_MS 100
#define SERVE_MS 200
#define TRACE_MAX (48u * 1024)

/* --- slots of the black box ------------------------------------------------------------------- */

size_t hosted_slot_take(struct hosted *h)
{
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++)
        if (!h->slot_taken[i]) {
            h->slot_taken[i] = true;
            return i;
        }
    return THREAD_GUARD_NO_SLOT;
}

void hosted_slot_give(struct hosted *h, size_t slot)
{
    if (slot == THREAD_GUARD_NO_SLOT)
        return;
    black_box_leave(h->opt.box, slot);
    memset(h->opt.box->slots[slot].member_id, 0, sizeof(h->opt.box->slots[slot].member_id));
    memset(h->opt.box->slots[slot].transactional_id, 0,
           sizeof(h->opt.box->slots[slot].transactional_id));
    h->slot_taken[slot] = false;
}

/* --- frames out ------------------------------------------------------------------------------- */

/* Plugin text may be anything; the link takes UTF-8 only, and nobody what a config provider
 * gave. */
static json_t *json_from_text(const char *text)
{
    char *hidden = log_hidden(text);
    size_t len;
    char *copy;
    json_t *value;

    text = hidden != NULL ? hidden : text;
    len = printable_cut(text, strlen(text), TRACE_MAX);
    copy = malloc(len + 1);
    mr_assert(copy != NULL);
    memcpy(copy, text, len);
    copy[len] = '\0';
    printable_clean(copy, len);
    value = json_string(copy);
    free(copy);
    free(hidden);
    return value;
}

void hosted_set_text(json_t *body, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(body, key, json_from_text(text));
}

int hosted_send(struct hosted *h, enum msg_kind kind, json_t *body)
{
    return h->opt.send(h->opt.arg, kind, body);
}

/* --- finding ---------------------------------------------------------------------------------- */

struct conn *hosted_find(struct hosted *h, const char *name, struct mr_error *err)
{
    struct conn *conn = map_get(h->conns, name);

    if (conn == NULL)
        mr_fail(err, MR_ERR_PROTOCOL, "there is no connector %.200s here", name);
    return conn;
}

size_t hosted_task_count(const struct hosted *h)
{
    const char *name;
    void *value;
    size_t count = 0;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next)
            count++;
    return count;
}

size_t hosted_connector_count(const struct hosted *h)
{
    const char *name;
    void *value;
    size_t count = 0;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        count += ((struct conn *)value)->run != NULL;
    return count;
}

/* --- attention -------------------------------------------------------------------------------- */

static void on_tick(void *arg);

/* How soon a task wants attention: a stopping one its nudge, a sink in a long put somebody who
 * serves its consumer. */
static int64_t tick_delay(const struct hosted *h)
{
    const char *name;
    void *value;
    int64_t delay = -1;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next) {
            if (t->task != NULL && t->stopping)
                return NUDGE_MS;
            if (t->task != NULL && t->conn->plugin->kind == MR_PLUGIN_SINK)
                delay = SERVE_MS;
        }
    return delay;
}

void hosted_tick_start(struct hosted *h)
{
    int64_t delay = tick_delay(h);

    if (delay >= 0)
        loop_timer_start(h->opt.loop, &h->tick, delay, on_tick, h);
}

static void on_tick(void *arg)
{
    struct hosted *h = arg;
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        for (struct tenant *t = ((struct conn *)value)->tenants; t != NULL; t = t->next) {
            if (t->task != NULL && t->stopping)
                task_nudge(t->task);
            if (t->task != NULL)
                task_serve(t->task);
        }
    hosted_tick_start(h);
}

/* --- all of them ------------------------------------------------------------------------------ */

void hosted_stop_tasks(struct hosted *h)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        hosted_task_stop_all(value);
}

static void tell_lease(struct hosted *h)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        hosted_task_lease_all(value);
}

void hosted_lease_lost(struct hosted *h, int64_t hard_boot_ms)
{
    h->lease_lost = true;
    h->lease_hard_boot_ms = hard_boot_ms;
    tell_lease(h);
}

void hosted_lease_renewed(struct hosted *h)
{
    if (!h->lease_lost)
        return;
    h->lease_lost = false;
    tell_lease(h);
}

bool hosted_quiet(const struct hosted *h)
{
    const char *name;
    void *value;

    if (!h->lease_lost)
        return false;
    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        if (!hosted_task_quiet_all(value))
            return false;
    return true;
}

void hosted_end_connectors(struct hosted *h)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(h->conns, &i, &name, &value);)
        if (((struct conn *)value)->run != NULL)
            connector_run_end(((struct conn *)value)->run);
}

void hosted_worker_gone(struct hosted *h)
{
    h->worker_gone = true;
    hosted_question_refuse_all(h);
}

/* --- life ------------------------------------------------------------------------------------- */

struct hosted *hosted_new(const struct hosted_options *options)
{
    struct hosted *h = calloc(1, sizeof(*h));

    mr_assert(h != NULL);
    h->opt = *options;
    h->conns = map_new();
    atomic_init(&h->next_id, 1);
    return h;
}

void hosted_free(struct hosted **hp)
{
    struct hosted *h = *hp;

    *hp = NULL;
    if (h == NULL)
        return;
    mr_assert(hosted_task_count(h) == 0 && hosted_connector_count(h) == 0);
    loop_timer_cancel(&h->tick);
    map_free(&h->conns, hosted_connector_free);
    free(h->questions);
    free(h);
}
