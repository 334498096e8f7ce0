/* SPDX-License-Identifier: Apache-2.0 */
/* A herder for tests of the REST room: three connectors, no plugins, no processes. Included by one
 * .c of a test binary, which then links no real herder. `a` runs, `b` has no status yet, changes of
 * a name that begins with "slow", and validation of such a class, wait until herder_fake_release.
 * Every call is noted in `log`. */
#ifndef TESTS_HERDER_FAKE_H
#define TESTS_HERDER_FAKE_H

#include "base/json.h"
#include "worker/herder/herder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HERDER_FAKE_WAITING 4096

struct herder {
    bool ready;
    bool unreadable;
    const char *stage;
    int64_t since_wall_ms;
    const char *unwell;
    const char *trouble;
    const char *elsewhere; /* the worker that new configurations are for; NULL: this one */
    bool behind;           /* what other workers wrote is not to be read until it is released */
    char log[4096];        /* "put a created_only {…}; …" of the last calls */
    struct {
        herder_done done;
        void *arg;
    } waiting[HERDER_FAKE_WAITING];
    size_t waiting_count;
    void (*changed)(struct herder *herder); /* after each change that waits; may be NULL */
};

static bool herder_fake_has(const char *conn)
{
    return strcmp(conn, "a") == 0 || strcmp(conn, "b") == 0 || strcmp(conn, "a b/\xC5\xBC") == 0 ||
           strncmp(conn, "slow", 4) == 0;
}

static void herder_fake_fail(herder_done done, void *arg, int code, const char *text)
{
    struct mr_error err = {0};
    struct herder_answer answer = {.err = &err, .message = text};

    mr_fail(&err, code, "cut: %.20s", text);
    done(arg, &answer);
}

static void herder_fake_done(herder_done done, void *arg, const json_t *body, bool created)
{
    struct herder_answer answer = {.body = body, .created = created};

    done(arg, &answer);
}

MR_PRINTF(2, 3)
static void herder_fake_note(struct herder *herder, const char *fmt, ...)
{
    size_t len = strlen(herder->log);
    va_list args;

    if (len > sizeof(herder->log) / 2)
        len = 0;
    va_start(args, fmt);
    vsnprintf(herder->log + len, sizeof(herder->log) - len, fmt, args);
    va_end(args);
}

/* True when it waits. */
static bool herder_fake_keeps(struct herder *herder, const char *name, herder_done done, void *arg)
{
    if (strncmp(name, "slow", 4) != 0)
        return false;
    if (herder->waiting_count < HERDER_FAKE_WAITING) {
        herder->waiting[herder->waiting_count].done = done;
        herder->waiting[herder->waiting_count++].arg = arg;
    }
    if (herder->changed != NULL)
        herder->changed(herder);
    return true;
}

/* True when the change is unknown (answered) or waits. */
static bool herder_fake_settled(struct herder *herder, const char *conn, const char *unknown,
                                herder_done done, void *arg)
{
    char text[256];

    if (!herder_fake_has(conn)) {
        snprintf(text, sizeof(text), unknown, conn);
        herder_fake_fail(done, arg, MR_ERR_NOT_FOUND, text);
        return true;
    }
    return herder_fake_keeps(herder, conn, done, arg);
}

/* Come back for everything that waits, as done without a body. */
static inline void herder_fake_release(struct herder *herder)
{
    while (herder->waiting_count > 0) {
        herder->waiting_count--;
        herder_fake_done(herder->waiting[herder->waiting_count].done,
                         herder->waiting[herder->waiting_count].arg, NULL, false);
    }
}

json_t *herder_root(struct herder *herder)
{
    return json_pack("{s:s, s:s, s:n}", "version", "4.3.1", "commit", "0", "kafka_cluster_id");
}

bool herder_ready(const struct herder *herder)
{
    return herder->ready;
}

bool herder_readable(const struct herder *herder)
{
    return !herder->unreadable;
}

const char *herder_unwell(const struct herder *herder)
{
    return herder->unwell;
}

const char *herder_stage(const struct herder *herder)
{
    return herder->stage;
}

int64_t herder_stage_since(const struct herder *herder)
{
    return herder->since_wall_ms;
}

void herder_trouble(const struct herder *herder, char *out, size_t size)
{
    snprintf(out, size, "%s", herder->trouble != NULL ? herder->trouble : "");
}

json_t *herder_names(struct herder *herder)
{
    return json_pack("[s, s, s]", "a", "b", "a b/\xC5\xBC");
}

json_t *herder_info(struct herder *herder, const char *conn)
{
    return herder_fake_has(conn) ? json_pack("{s:s, s:{s:s}, s:[], s:s}", "name", conn, "config",
                                             "name", conn, "tasks", "type", "source")
                                 : NULL;
}

json_t *herder_config(struct herder *herder, const char *conn)
{
    return herder_fake_has(conn) ? json_pack("{s:s}", "name", conn) : NULL;
}

json_t *herder_status(struct herder *herder, const char *conn)
{
    return herder_fake_has(conn) && strcmp(conn, "b") != 0
               ? json_pack("{s:s, s:{s:s}, s:[], s:s}", "name", conn, "connector", "state",
                           "RUNNING", "tasks", "type", "source")
               : NULL;
}

json_t *herder_tasks(struct herder *herder, const char *conn)
{
    return herder_fake_has(conn) ? json_array() : NULL;
}

json_t *herder_task_status(struct herder *herder, const char *conn, int task)
{
    return herder_fake_has(conn) && task == 0
               ? json_pack("{s:i, s:s}", "id", task, "state", "RUNNING")
               : NULL;
}

json_t *herder_plugins(struct herder *herder, bool connectors_only)
{
    return connectors_only ? json_array() : json_pack("[{s:s}]", "class", "converter");
}

void herder_validate(struct herder *herder, const struct props *config, herder_done done, void *arg)
{
    struct mr_error err = {0};
    struct herder_answer answer = {0};

    if (props_get(config, "connector.class") == NULL) {
        mr_fail(&err, MR_ERR_CONFIG, "Connector config {} contains no connector type");
        answer.err = &err;
        answer.message = err.text;
        done(arg, &answer);
        return;
    }
    if (herder_fake_keeps(herder, props_get(config, "connector.class"), done, arg))
        return;
    answer.body =
        json_pack("{s:s, s:i}", "name", props_get(config, "connector.class"), "error_count", 0);
    done(arg, &answer);
    json_decref((json_t *)(uintptr_t)answer.body);
}

json_t *herder_plugin_keys(struct herder *herder, const char *plugin, const char *version,
                           struct mr_error *err)
{
    if (strcmp(plugin, "x.Source") == 0)
        return json_pack("[{s:s}]", "name", version);
    mr_fail(err, MR_ERR_NOT_FOUND, "Unknown plugin %s.", plugin);
    return NULL;
}

json_t *herder_loggers(struct herder *herder)
{
    return json_pack("{s:{s:s}}", "root", "level", "INFO");
}

json_t *herder_logger(struct herder *herder, const char *name)
{
    return strcmp(name, "root") == 0 ? json_pack("{s:s}", "level", "INFO") : NULL;
}

bool herder_set_logger(struct herder *herder, const char *name, const char *level,
                       bool whole_cluster, herder_done done, void *arg)
{
    json_t *body;

    if (strcmp(level, "LOUD") == 0)
        return false;
    body = whole_cluster ? NULL : json_pack("[s]", name);
    herder_fake_done(done, arg, body, false);
    json_decref(body);
    return true;
}

void herder_offsets(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    struct buf text;
    struct herder_answer answer = {.text = &text};

    buf_init(&text, 1000);
    buf_puts(&text, "{\"offsets\":[]}");
    if (herder_fake_has(conn))
        done(arg, &answer);
    else
        herder_fake_fail(done, arg, MR_ERR_NOT_FOUND, "Connector x not found");
    buf_deinit(&text);
}

void herder_change_offsets(struct herder *herder, const char *conn, json_t *entries,
                           herder_done done, void *arg)
{
    struct herder_answer answer = {.body = json_pack("{s:s}", "message", "done")};
    char *text = entries != NULL ? json_text(entries) : strdup("all");

    herder_fake_note(herder, "offsets of %s: %s; ", conn, text);
    done(arg, &answer);
    free(text);
    json_decref(entries);
    json_decref((json_t *)(uintptr_t)answer.body);
}

json_t *herder_topics(struct herder *herder, const char *conn, struct mr_error *err)
{
    if (strcmp(conn, "b") != 0)
        return json_pack("{s:{s:[s]}}", conn, "topics", "t");
    mr_fail(err, MR_ERR_UNSUPPORTED, "Topic tracking is disabled.");
    return NULL;
}

int herder_reset_topics(struct herder *herder, const char *conn, struct mr_error *err)
{
    herder_fake_note(herder, "forget topics of %s; ", conn);
    return strcmp(conn, "b") != 0
               ? 0
               : mr_fail(err, MR_ERR_UNSUPPORTED, "Topic tracking reset is disabled.");
}

bool herder_knows(struct herder *herder, const char *conn)
{
    return herder_fake_has(conn);
}

static void herder_fake_put(struct herder *herder, const char *conn, const struct props *config,
                            bool created, herder_done done, void *arg)
{
    json_t *shown = json_from_props(config);
    json_t *body = json_pack("{s:s, s:o, s:[], s:s}", "name", conn, "config", shown, "tasks",
                             "type", "source");
    char *text = json_text(shown);

    herder_fake_note(herder, "%s %s; ", conn, text);
    free(text);
    if (strcmp(conn, "fail") == 0)
        herder_fake_fail(done, arg, MR_ERR_FATAL, "Failed to start connector: fail");
    else if (conn[0] == '\0')
        herder_fake_fail(done, arg, MR_ERR_CONFIG, "String may not be empty");
    else if (strncmp(conn, "slow", 4) == 0)
        (void)herder_fake_settled(herder, conn, "%s", done, arg);
    else
        herder_fake_done(done, arg, body, created);
    json_decref(body);
}

void herder_put(struct herder *herder, const struct herder_put *put, herder_done done, void *arg)
{
    char text[128];

    if (herder->elsewhere != NULL) {
        done(arg, &(struct herder_answer){.elsewhere = herder->elsewhere});
        return;
    }
    herder_fake_note(herder, "put%s %s ", put->create_only ? " new" : "",
                     target_state_name(put->initial));
    if (put->create_only && herder_fake_has(put->conn) && strncmp(put->conn, "slow", 4) != 0) {
        snprintf(text, sizeof(text), "Connector %s already exists", put->conn);
        herder_fake_fail(done, arg, MR_ERR_EXISTS, text);
        return;
    }
    herder_fake_put(herder, put->conn, put->config, !herder_fake_has(put->conn), done, arg);
}

void herder_patch(struct herder *herder, const char *conn, const struct props *changes,
                  herder_done done, void *arg)
{
    herder_fake_note(herder, "patch ");
    if (!herder_fake_settled(herder, conn, "Connector %s not found", done, arg))
        herder_fake_put(herder, conn, changes, false, done, arg);
}

void herder_delete(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    herder_fake_note(herder, "delete %s; ", conn);
    if (!herder_fake_settled(herder, conn, "Connector %s not found", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

void herder_set_target(struct herder *herder, const char *conn, enum target_state target,
                       herder_done done, void *arg)
{
    herder_fake_note(herder, "target %s %s; ", conn, target_state_name(target));
    if (!herder_fake_settled(herder, conn, "Unknown connector %s", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

void herder_restart(struct herder *herder, const char *conn, bool include_tasks, bool only_failed,
                    herder_done done, void *arg)
{
    bool flags = include_tasks || only_failed;
    json_t *state = flags ? herder_status(herder, "a") : NULL;

    herder_fake_note(herder, "restart %s %d %d; ", conn, include_tasks, only_failed);
    if (!herder_fake_settled(herder, conn, "Unknown connector: %s", done, arg))
        herder_fake_done(done, arg, state, false);
    json_decref(state);
}

void herder_restart_task(struct herder *herder, const char *conn, int task, herder_done done,
                         void *arg)
{
    herder_fake_note(herder, "restart task %s %d; ", conn, task);
    if (task == 9)
        herder_fake_fail(done, arg, MR_ERR_STATE, "stale configuration");
    else if (!herder_fake_settled(herder, conn, "Unknown connector: %s", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

int herder_check_claim(const struct herder *herder, const struct herder_claim *claim,
                       struct mr_error *err)
{
    (void)herder;
    if (claim->signature != NULL && strcmp(claim->signature, "right") == 0)
        return 0;
    mr_fail(err, MR_ERR_PROTOCOL, "Internal request contained invalid signature.");
    return 403;
}

void herder_put_tasks(struct herder *herder, const char *conn, const struct props *configs,
                      size_t count, herder_done done, void *arg)
{
    (void)configs;
    herder_fake_note(herder, "tasks %s %zu; ", conn, count);
    if (!herder_fake_settled(herder, conn, "Connector %s not found", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

void herder_fence(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    herder_fake_note(herder, "fence %s; ", conn);
    if (!herder_fake_settled(herder, conn, "Connector %s not found", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

void herder_catch_up(struct herder *herder, herder_done done, void *arg)
{
    if (!herder->behind || !herder_fake_keeps(herder, "slow", done, arg))
        herder_fake_done(done, arg, NULL, false);
}

struct peer *herder_peer(const struct herder *herder)
{
    (void)herder;
    return NULL;
}

#endif
