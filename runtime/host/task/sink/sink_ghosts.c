/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. sink_consumer.c finds them before it subscribes and calls evict between two
 * polls.
 *
 *   find ─none of ours─► nothing to do
 *     └─some─► pending ─our member is in the group─► one a call is made to leave ─► nothing to do
 *                 └─ not within GIVE_UP_MS ────────┴─► nothing to do: session.timeout.ms ends them
 *
 * Brokers without these requests, settings that only librdkafka understands: the same. Thread: the
 * task's. */
#include "host/task/sink/sink_ghosts.h"

#include "base/clock.h"
#include "wire/wire_call.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.sink"
#include "base/log.h"

#define FIND_MS 1500
#define LOOK_MS 500
#define LEAVE_MS 500
#define GIVE_UP_MS 10000

struct finding {
    struct sink_ghosts *ghosts;
    const json_t *left;
    size_t strangers;
};

static bool is_ours(const json_t *left, const char *member)
{
    const json_t *id;
    size_t i;

    json_array_foreach(left, i, id) if (json_is_string(id) &&
                                        strcmp(json_string_value(id), member) == 0) return true;
    return false;
}

/* Dead or alive: that the group does not tell. */
static void tell_stranger(const struct sink_ghosts *g, const struct answer_described_member *member)
{
    log_warn(
        "group %s has another member %s, at %s, that calls itself %s as this task does, and of "
        "which this cluster knows nothing: it stays, and gets a share of the partitions. If a "
        "crash left it behind, session.timeout.ms ends it; if another cluster runs a connector "
        "of this name, set consumer.override.group.id of one of them",
        g->group, member->member, member->client_host, g->client_id);
}

static void note_member(void *arg, const struct answer_described_member *member)
{
    struct finding *f = arg;
    struct sink_ghosts *g = f->ghosts;

    if (!is_ours(f->left, member->member)) {
        if (f->strangers++ == 0)
            tell_stranger(g, member);
    } else if (g->count < SINK_GHOSTS_MAX &&
               (g->members[g->count] = strdup(member->member)) != NULL) {
        g->count++;
    }
}

static bool open_call(struct sink_ghosts *g, const struct props *java)
{
    struct mr_error err = {0};

    g->group = strdup(props_get(java, "group.id"));
    g->client_id = strdup(props_get(java, "client.id"));
    if (g->group != NULL && g->client_id != NULL)
        g->call = wire_call_new(java, &err);
    if (g->call == NULL)
        log_debug("members left behind in the group are not looked for: %s", err.text);
    return g->call != NULL;
}

void sink_ghosts_find(struct sink_ghosts *g, const struct props *java, const char *own_id,
                      const json_t *left)
{
    const char *client_id = props_get(java, "client.id");
    struct finding finding = {.ghosts = g, .left = left};
    struct mr_error err = {0};
    struct wire_call_members what;

    sink_ghosts_deinit(g);
    if (client_id == NULL || strcmp(client_id, own_id) != 0 || props_get(java, "group.id") == NULL)
        return;
    if (!open_call(g, java)) {
        sink_ghosts_deinit(g);
        return;
    }
    what = (struct wire_call_members){
        .group = g->group, .client_id = g->client_id, .fn = note_member, .arg = &finding};
    if (wire_call_members(g->call, &what, FIND_MS, &err) != 0)
        log_debug("members left behind in group %s were not looked for: %s", g->group, err.text);
    g->give_up_ms = clock_ms() + GIVE_UP_MS;
    if (g->count == 0)
        sink_ghosts_deinit(g);
}

bool sink_ghosts_pending(const struct sink_ghosts *g)
{
    return g->call != NULL;
}

struct search {
    const char *member;
    bool found;
};

static void compare_member(void *arg, const struct answer_described_member *member)
{
    struct search *search = arg;

    search->found = search->found || strcmp(member->member, search->member) == 0;
}

static bool is_in_group(struct sink_ghosts *g, const char *member)
{
    struct search search = {.member = member};
    const struct wire_call_members what = {
        .group = g->group, .client_id = g->client_id, .fn = compare_member, .arg = &search};

    return member[0] != '\0' && wire_call_members(g->call, &what, LOOK_MS, NULL) == 0 &&
           search.found;
}

static void make_leave(struct sink_ghosts *g, const char *member)
{
    struct mr_error err = {0};

    if (wire_call_leave(g->call, g->group, member, LEAVE_MS, &err) == 0)
        log_info("made %s leave group %s: an earlier life of this task had left it behind", member,
                 g->group);
    else
        log_warn("could not make %s leave group %s, in which an earlier life of this task had "
                 "left it behind: %s; the group waits for it until session.timeout.ms",
                 member, g->group, err.text);
}

/* One at a time: between two of them the task polls, and looks whether it is to stop and has its
 * lease. */
void sink_ghosts_evict(struct sink_ghosts *g, const char *member)
{
    if (!g->joined && is_in_group(g, member)) {
        g->joined = true;
        g->give_up_ms = clock_ms() + GIVE_UP_MS;
    } else if (g->joined && g->next < g->count) {
        if (strcmp(g->members[g->next], member) != 0)
            make_leave(g, g->members[g->next]);
        g->next++;
    }
    if (clock_ms() >= g->give_up_ms || (g->joined && g->next == g->count))
        sink_ghosts_deinit(g);
}

void sink_ghosts_deinit(struct sink_ghosts *g)
{
    wire_call_free(&g->call);
    for (size_t i = 0; i < g->count; i++)
        free(g->members[i]);
    free(g->group);
    free(g->client_id);
    *g = (struct sink_ghosts){0};
}
