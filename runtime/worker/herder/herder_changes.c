/* SPDX-License-Identifier: Apache-2.0 */
/* What a client, the command line or another worker wants changed, from the request to its answer:
 *
 *   herder_put ─► judge: is it valid? ─┐
 *   herder_delete, restart, … ─────────┴─► elsewhere: whose is it? ─► source ─► on_done, on_put
 *
 * Refusals that need no more than what is known are made here, in Connect's words. Every `done`
 * runs exactly once, perhaps before the call returns. Loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/herder_private.h"

#include "base/log.h"
#include "base/text.h"
#include "model/conn_config.h"
#include "worker/herder/log_control.h"
#include "worker/herder/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX ((size_t)16 << 20)

#define say(conn, task, ...) log_write_for(LOG_INFO, LOGGER, conn, task, __VA_ARGS__)

/* A change under way. */
struct pending {
    struct herder *herder;
    char *conn;
    herder_done done;
    void *arg;
    bool created;
    json_t *info; /* what a put answers when the connector is gone by then */
};

/* --- answers ---------------------------------------------------------------------------------- */

static void refuse_with(herder_done done, void *arg, const struct mr_error *err,
                        const char *message)
{
    struct herder_answer answer = {.err = err, .message = message != NULL ? message : err->text};

    done(arg, &answer);
}

static MR_PRINTF(4, 5)
void refuse(herder_done done, void *arg, int code, const char *fmt, ...)
{
    struct mr_error err = {.code = code};
    va_list args;

    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    refuse_with(done, arg, &err, NULL);
}

static struct pending *pending_new(struct herder *herder, const char *conn, herder_done done,
                                   void *arg)
{
    struct pending *pending = calloc(1, sizeof(*pending));

    mr_assert(pending != NULL);
    *pending = (struct pending){.herder = herder, .conn = text_dup(conn), .done = done, .arg = arg};
    return pending;
}

static void pending_end(struct pending *pending, const struct herder_answer *answer)
{
    pending->done(pending->arg, answer);
    json_decref(pending->info);
    free(pending->conn);
    free(pending);
}

/* Changes that answer nothing but that they are done. */
static void on_done(void *arg, const struct mr_error *err)
{
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};

    pending_end(arg, &answer);
}

static void on_put(void *arg, const struct mr_error *err)
{
    struct pending *pending = arg;
    struct herder_answer answer = {
        .err = err, .message = err != NULL ? err->text : NULL, .created = pending->created};
    json_t *info = err == NULL ? herder_info(pending->herder, pending->conn) : NULL;

    answer.body = err != NULL ? NULL : info != NULL ? info : pending->info;
    pending_end(pending, &answer);
    json_decref(info);
}

/* Is this change done by another worker, or not now by anybody? Then that is answered. */
static bool elsewhere(const struct herder *herder, enum source_deed deed, const char *conn,
                      int task, herder_done done, void *arg)
{
    struct herder_answer answer = {0};
    struct mr_error err = {0};
    const char *url = NULL;

    if (herder->source->who == NULL)
        return false;
    if (herder->source->who(herder->source, deed, conn, task, &url, &err) != 0) {
        refuse_with(done, arg, &err, NULL);
        return true;
    }
    answer.elsewhere = url;
    if (url != NULL)
        done(arg, &answer);
    return url != NULL;
}

/* --- changes ---------------------------------------------------------------------------------- */

static void on_remark(void *arg, const char *key, const char *text)
{
    log_write_for(LOG_WARN, LOGGER, arg, -1, "%s has no effect: %s", key, text);
}

static void on_left(void *arg, const char *key, const char *text)
{
    log_write_for(LOG_WARN, LOGGER, arg, -1, "%s %s", key, text);
}

/* Which references stay as they are. A mere validation tells nobody: it is asked at each
 * keystroke. */
static void tell_left(const struct validate_input *input, const char *conn)
{
    validate_references_left(input, on_left, (void *)(uintptr_t)conn);
}

/* Will no host read the configuration now, and tell what stays as it is in it? */
static bool is_at_rest(const struct herder *herder, const struct herder_put *put)
{
    struct source_conn stored;

    if (herder->source->find(herder->source, put->conn, &stored))
        return stored.target == TARGET_STOPPED;
    return !put->no_initial && put->initial == TARGET_STOPPED;
}

/* A put whose configuration is being judged. */
struct put_asked {
    struct herder *herder;
    struct herder_put put; /* conn: its own; config: the judge's */
    herder_done done;
    void *arg;
};

/* Is the configuration valid? If not, the client is told all that is wrong with it. */
static bool is_valid(const struct validate_result *result, herder_done done, void *arg)
{
    struct mr_error err = {0};
    struct buf message;

    if (validate_error_count(result) == 0)
        return true;
    buf_init(&message, MESSAGE_MAX);
    mr_fail(&err, MR_ERR_CONFIG, "%s",
            validate_message(result, &message) == 0 ? message.data
                                                    : "Connector configuration is invalid");
    refuse_with(done, arg, &err, message.failed ? NULL : message.data);
    buf_deinit(&message);
    return false;
}

static void put_valid(struct herder *herder, const struct herder_put *put,
                      const struct catalog_plugin *plugin, herder_done done, void *arg)
{
    struct source_put store = {.name = put->conn,
                               .plugin = plugin,
                               .config = put->config,
                               .target = put->no_initial ? NULL : &put->initial};
    struct source_conn before = {.name = put->conn, .plugin = plugin, .config = put->config};
    struct pending *pending;
    bool created;

    if (elsewhere(herder, SOURCE_LEADS, put->conn, -1, done, arg))
        return;
    created = !herder->source->find(herder->source, put->conn, &before);
    if (put->create_only && !created) {
        refuse(done, arg, MR_ERR_EXISTS, "Connector %s already exists", put->conn);
        return;
    }
    pending = pending_new(herder, put->conn, done, arg);
    pending->created = created;
    before.config = put->config;
    before.plugin = plugin;
    pending->info = view_info(&before);
    herder->source->put(herder->source, &store, on_put, pending);
}

static void take_judged(struct put_asked *asked, const struct validate_input *input,
                        const struct validate_result *result)
{
    const char *conn = asked->put.conn;

    if (validate_error_count(result) > 0 || is_at_rest(asked->herder, &asked->put))
        tell_left(input, conn);
    if (!is_valid(result, asked->done, asked->arg))
        return;
    asked->put.config = input->raw != NULL ? input->raw : input->config;
    validate_remarks(input, result, on_remark, (void *)(uintptr_t)conn);
    put_valid(asked->herder, &asked->put, result->plugin, asked->done, asked->arg);
}

static void on_put_judged(void *arg, const struct validate_input *input,
                          const struct validate_result *result, const struct mr_error *err)
{
    struct put_asked *asked = arg;

    if (err != NULL)
        refuse_with(asked->done, asked->arg, err, NULL);
    else
        take_judged(asked, input, result);
    free((char *)(uintptr_t)asked->put.conn);
    free(asked);
}

void herder_put(struct herder *herder, const struct herder_put *put, herder_done done, void *arg)
{
    struct put_asked *asked = calloc(1, sizeof(*asked));

    mr_assert(asked != NULL);
    *asked = (struct put_asked){herder, *put, done, arg};
    asked->put.conn = text_dup(put->conn);
    judge_config(herder->judge, put->config, on_put_judged, asked);
}

static void merge(struct props *config, const struct props *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->entries[i].value == NULL)
            props_remove(config, changes->entries[i].key);
        else
            mr_assert(props_set(config, changes->entries[i].key, changes->entries[i].value) == 0);
    }
}

void herder_patch(struct herder *herder, const char *conn, const struct props *changes,
                  herder_done done, void *arg)
{
    struct herder_put put = {.conn = conn, .no_initial = true};
    struct source_conn stored;
    struct props merged;

    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!herder->source->find(herder->source, conn, &stored)) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
        return;
    }
    mr_assert(props_copy(&merged, stored.config) == 0);
    merge(&merged, changes);
    put.config = &merged;
    if (merged.count > CONN_CONFIG_KEYS_MAX)
        refuse(done, arg, MR_ERR_CONFIG, "A connector's configuration may have at most %d keys",
               CONN_CONFIG_KEYS_MAX);
    else
        herder_put(herder, &put, done, arg);
    props_deinit(&merged);
}

void herder_delete(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!herder_knows(herder, conn))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    else
        herder->source->remove(herder->source, conn, on_done, pending_new(herder, conn, done, arg));
}

void herder_set_target(struct herder *herder, const char *conn, enum target_state target,
                       herder_done done, void *arg)
{
    enum source_deed deed = target == TARGET_STOPPED ? SOURCE_LEADS : SOURCE_ANYBODY;

    if (!herder_knows(herder, conn))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Unknown connector %s", conn);
    else if (!elsewhere(herder, deed, conn, -1, done, arg))
        herder->source->target(herder->source, conn, target, on_done,
                               pending_new(herder, conn, done, arg));
}

/* A restart by plan is answered with the states as they are marked, before anything restarts. */
static void on_plan(void *arg, const struct mr_error *err)
{
    struct pending *pending = arg;
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};
    json_t *status = NULL;

    if (err == NULL)
        status = pending->info != NULL ? json_incref(pending->info)
                                       : herder_status(pending->herder, pending->conn);
    answer.body = status;
    pending_end(pending, &answer);
    json_decref(status);
}

static void restart_by_plan(struct herder *herder, const char *conn,
                            const struct connectors_plan *plan, herder_done done, void *arg)
{
    json_t *marked = herder->source->marks ? NULL : herder_marked_status(herder, conn, plan);
    struct pending *pending;

    if (marked == NULL && !herder->source->marks) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Status for connector %s not found", conn);
        return;
    }
    pending = pending_new(herder, conn, done, arg);
    pending->info = marked;
    herder->source->restart(herder->source, conn, plan, on_plan, pending);
}

void herder_restart(struct herder *herder, const char *conn, bool include_tasks, bool only_failed,
                    herder_done done, void *arg)
{
    struct connectors_plan plan = {
        .connector = true, .tasks = include_tasks, .only_failed = only_failed};
    bool flagged = include_tasks || only_failed;

    if (!herder_knows(herder, conn)) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               flagged || herder->source->who != NULL ? "Unknown connector: %s"
                                                      : "Connector %s not found",
               conn);
        return;
    }
    if (elsewhere(herder, flagged ? SOURCE_LEADS_SETTLED : SOURCE_OWNS, conn, -1, done, arg))
        return;
    say(conn, -1, "restart of the connector%s%s", include_tasks ? " and its tasks" : "",
        only_failed ? ", of what is FAILED" : "");
    if (flagged)
        restart_by_plan(herder, conn, &plan, done, arg);
    else
        herder->source->restart(herder->source, conn, &plan, on_done,
                                pending_new(herder, conn, done, arg));
}

void herder_restart_task(struct herder *herder, const char *conn, int task, herder_done done,
                         void *arg)
{
    bool cluster = herder->source->who != NULL;
    struct source_conn stored;

    if (!herder->source->find(herder->source, conn, &stored)) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               cluster ? "Unknown connector: %s" : "Connector %s not found", conn);
    } else if (task < 0 || (size_t)task >= stored.task_count) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               cluster ? "Unknown task: %s-%d" : "Task %s-%d not found", conn, task);
    } else if (!elsewhere(herder, SOURCE_OWNS, conn, task, done, arg)) {
        say(conn, task, "restart of the task");
        herder->source->restart_task(herder->source, conn, task, on_done,
                                     pending_new(herder, conn, done, arg));
    }
}

static void set_here(struct herder *herder, const char *name, enum log_level level,
                     herder_done done, void *arg)
{
    struct mr_error err = {0};
    json_t *changed = log_control_set(herder->sup, name, level, &err);
    struct herder_answer answer = {.body = changed};

    if (changed == NULL)
        refuse_with(done, arg, &err, NULL);
    else
        done(arg, &answer);
    json_decref(changed);
}

bool herder_set_logger(struct herder *herder, const char *name, const char *level,
                       bool whole_cluster, herder_done done, void *arg)
{
    enum log_level parsed;

    if (!log_control_level(level, &parsed))
        return false;
    if (whole_cluster && herder->source->logger != NULL)
        herder->source->logger(herder->source, name, log_level_name(parsed), on_done,
                               pending_new(herder, name, done, arg));
    else
        set_here(herder, name, parsed, done, arg);
    return true;
}

void herder_offsets(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    offset_changes_read(herder->offsets, conn, done, arg);
}

void herder_change_offsets(struct herder *herder, const char *conn, json_t *entries,
                           herder_done done, void *arg)
{
    offset_changes_apply(herder->offsets, conn, entries, done, arg);
}

/* --- of other workers ------------------------------------------------------------------------- */

int herder_check_claim(const struct herder *herder, const struct herder_claim *claim,
                       struct mr_error *err)
{
    if (herder->source->is_signed != NULL)
        return herder->source->is_signed(herder->source, claim, err);
    mr_fail(err, MR_ERR_UNSUPPORTED,
            "Kafka Connect in standalone mode does not support externally setting task "
            "configurations.");
    return 500;
}

void herder_put_tasks(struct herder *herder, const char *conn, const struct props *configs,
                      size_t count, herder_done done, void *arg)
{
    struct source_conn stored;

    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!herder->source->find(herder->source, conn, &stored))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    else if (stored.target == TARGET_STOPPED && count > 0)
        refuse(done, arg, MR_ERR_CONFIG,
               "Cannot submit non-empty set of task configs for stopped connector %s", conn);
    else
        herder->source->tasks(herder->source, conn, configs, count, on_done,
                              pending_new(herder, conn, done, arg));
}

void herder_fence(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    if (herder->source->fence == NULL)
        refuse(done, arg, MR_ERR_FATAL,
               "Kafka Connect in standalone mode does not support exactly-once source connectors.");
    else if (!elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        herder->source->fence(herder->source, conn, false, on_done,
                              pending_new(herder, conn, done, arg));
}

void herder_catch_up(struct herder *herder, herder_done done, void *arg)
{
    struct pending *pending = pending_new(herder, "", done, arg);

    if (herder->source->freshen == NULL)
        on_done(pending, NULL);
    else
        herder->source->freshen(herder->source, NULL, on_done, pending);
}
