/* SPDX-License-Identifier: Apache-2.0 */
/* Two places in the order that KIP-618 gives them:
 *
 *   list   worker's store ─► own topic ─► merged
 *   put    removals to the worker's store ─► all to the own topic
 *                                         ─► the rest to the worker's store, as a copy
 *
 * so that at no moment a removed offset stands in the worker's store alone, where it would count
 * again. The own topic is looked into by a throwaway process (`millrace check`), with the
 * connector's clients and, perhaps, on another Kafka: the worker opens no client of a source's.
 * Where there is none of its own the store is all. What takes its time with very many offsets,
 * merging them and writing them for the process, is done beside the loop (offset_jobs). Each job is
 * answered once. Loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/offsets/source_offsets.h"

#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "model/offsets_topic.h"
#include "worker/supervisor/plugin_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOPPING "the worker is stopping"
#define PATIENCE_MS 60000 /* for one look; a REST request has 90 s */

struct source_offsets {
    const struct offset_store *store;
    const struct worker_config *config;
    struct offset_jobs *jobs;
    struct plugin_check *check;
    bool closing;
};

struct job {
    struct source_offsets *so;
    char *conn;
    struct props config;
    json_t *entries;  /* read so far, or to write, without removals where those go first */
    json_t *removals; /* to write */
    json_t *found;    /* as the process tells it */
    json_t *question; /* for the process, without what is to be written */
    int written;      /* all of it; -1 not */
    struct mr_error err;
    offset_store_read_fn read_fn;
    offset_store_written_fn written_fn;
    void *arg;
};

/* --- answers ---------------------------------------------------------------------------------- */

/* error: NULL it went well. */
static void end(struct job *job, const char *error)
{
    json_t *entries = NULL;

    if (job->read_fn != NULL && error == NULL) {
        entries = job->entries;
        job->entries = NULL;
    }
    if (job->read_fn != NULL)
        job->read_fn(job->arg, entries, error);
    else
        job->written_fn(job->arg, error);
    json_decref(job->entries);
    json_decref(job->removals);
    json_decref(job->found);
    json_decref(job->question);
    if (job->written >= 0)
        close(job->written);
    props_deinit(&job->config);
    free(job->conn);
    free(job);
}

static struct job *job_new(struct source_offsets *so, const struct source_offsets_conn *conn,
                           void *arg)
{
    struct job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    *job = (struct job){.so = so, .conn = text_dup(conn->name), .written = -1, .arg = arg};
    mr_assert(props_copy(&job->config, conn->config) == 0);
    return job;
}

/* What reads a file is not resolved here: then the process finds out. */
static bool has_own_topic(const struct job *job)
{
    const struct worker_config *config = job->so->config;
    struct props resolved;
    char *topic;

    providers_glance_all(config->providers, &job->config, &resolved);
    topic = offsets_topic_own(&config->props, &resolved);
    props_deinit(&resolved);
    free(topic);
    return topic != NULL;
}

/* --- the process ------------------------------------------------------------------------------ */

static const char *error_of(const json_t *problem)
{
    const char *text = NULL;

    return json_get_text(problem, "error", &text) || json_get_text(problem, "broken", &text) ? text
                                                                                             : NULL;
}

/* The first error; NULL none. */
static const char *first_error(const json_t *problems)
{
    const json_t *problem;
    size_t i;

    json_array_foreach(problems, i, problem)
    {
        if (error_of(problem) != NULL)
            return error_of(problem);
    }
    return NULL;
}

/* verb: read, or write, which is behind the question when it is asked. NULL out of memory. */
static json_t *question_of(const struct job *job, const char *verb)
{
    return json_pack("[{s:s, s:s, s:o, s:o, s:[s]}]", "own", verb, "conn", job->conn, "worker",
                     json_from_props(&job->so->config->props), "config",
                     json_from_props(&job->config), "keys", "offsets");
}

static void ask_own(struct job *job, plugin_check_done done)
{
    json_t *question = job->question;
    int written = job->written;

    job->question = NULL;
    job->written = -1;
    if (job->so->closing) {
        json_decref(question);
        if (written >= 0)
            close(written);
        end(job, STOPPING);
    } else if (question == NULL) {
        end(job, "out of memory");
    } else {
        plugin_check_ask_written(job->so->check, question, written, done, job);
    }
}

static void beside(struct job *job, void (*work)(void *arg), void (*back)(void *arg, bool done))
{
    if (job->so->closing)
        end(job, STOPPING);
    else
        offset_jobs_run(job->so->jobs,
                        &(struct offset_job){.work = work, .back = back, .arg = job});
}

/* --- reading ---------------------------------------------------------------------------------- */

static char *canonical(const json_t *entry)
{
    char *text = json_dumps(json_array_get(entry, 0), JSON_SORT_KEYS | JSON_COMPACT);

    mr_assert(text != NULL);
    return text;
}

static void add(json_t *entries, struct map *known, json_t *entry)
{
    char *key = canonical(entry);

    if (map_get(known, key) == NULL)
        mr_assert(json_array_append(entries, entry) == 0);
    map_set(known, key, known);
    free(key);
}

/* The first one of a partition counts. On the jobs' thread. */
static void merge(void *arg)
{
    struct job *job = arg;
    struct map *known = map_new();
    json_t *merged = json_array(), *item;
    size_t i;

    mr_assert(merged != NULL);
    json_array_foreach(job->found, i, item)
    {
        add(merged, known, json_object_get(item, "found"));
    }
    json_array_foreach(job->entries, i, item)
    {
        add(merged, known, item);
    }
    map_free(&known, NULL);
    json_decref(job->entries);
    json_decref(job->found);
    job->entries = merged;
    job->found = NULL;
}

static void on_merged(void *arg, bool done)
{
    end(arg, done ? NULL : STOPPING);
}

static void on_own_read(void *arg, json_t *problems)
{
    struct job *job = arg;
    const char *error = problems == NULL ? STOPPING : first_error(problems);

    job->found = problems;
    if (error == NULL)
        beside(job, merge, on_merged);
    else
        end(job, error);
}

static void on_worker_read(void *arg, json_t *entries, const char *error)
{
    struct job *job = arg;

    job->entries = entries;
    if (error != NULL || !has_own_topic(job)) {
        end(job, error);
    } else {
        job->question = question_of(job, "read");
        ask_own(job, on_own_read);
    }
}

void source_offsets_list(struct source_offsets *so, const struct source_offsets_conn *conn,
                         offset_store_read_fn fn, void *arg)
{
    struct job *job = job_new(so, conn, arg);

    job->read_fn = fn;
    so->store->list(so->store->self, job->conn, on_worker_read, job);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put(struct job *job, json_t **entries, offset_store_written_fn fn)
{
    const struct offset_store *store = job->so->store;
    json_t *some = *entries;

    *entries = NULL;
    if (json_array_size(some) > 0) {
        store->put(store->self, job->conn, some, fn, job);
    } else {
        json_decref(some);
        fn(job, NULL);
    }
}

/* The question with all that is to be written, which then is divided. On the jobs' thread. */
static void write_all(void *arg)
{
    struct job *job = arg;
    json_t *ask = json_array_get(job->question, 0), *rest = json_array(), *entry;
    size_t i;

    job->removals = json_array();
    mr_assert(job->removals != NULL && rest != NULL);
    if (json_object_set(ask, "offsets", job->entries) != 0)
        mr_fail(&job->err, MR_ERR_NOMEM, "out of memory");
    else
        job->written = plugin_check_write(job->question, &job->err);
    json_object_del(ask, "offsets");
    json_array_foreach(job->entries, i, entry)
    {
        mr_assert(json_array_append(json_is_null(json_array_get(entry, 1)) ? job->removals : rest,
                                    entry) == 0);
    }
    json_decref(job->entries);
    job->entries = rest;
}

static void on_copied(void *arg, const char *error)
{
    struct job *job = arg;

    if (error != NULL)
        log_write_for(LOG_WARN, LOGGER, job->conn, -1,
                      "offsets stand in its own topic, but not in the worker's as well: %s", error);
    end(job, NULL);
}

static void on_own_written(void *arg, json_t *problems)
{
    struct job *job = arg;
    const char *error = problems == NULL ? STOPPING : first_error(problems);

    job->found = problems;
    if (error != NULL)
        end(job, error);
    else
        put(job, &job->entries, on_copied);
}

static void on_removed(void *arg, const char *error)
{
    struct job *job = arg;

    if (error != NULL)
        end(job, error);
    else
        ask_own(job, on_own_written);
}

static void on_all_written(void *arg, const char *error)
{
    end(arg, error);
}

static void on_prepared(void *arg, bool done)
{
    struct job *job = arg;

    if (!done || job->so->closing)
        end(job, STOPPING);
    else if (job->written < 0)
        end(job, job->err.text);
    else
        put(job, &job->removals, on_removed);
}

void source_offsets_put(struct source_offsets *so, const struct source_offsets_conn *conn,
                        json_t *entries, offset_store_written_fn fn, void *arg)
{
    struct job *job = job_new(so, conn, arg);

    job->written_fn = fn;
    job->entries = entries;
    if (!has_own_topic(job)) {
        put(job, &job->entries, on_all_written);
        return;
    }
    job->question = question_of(job, "write");
    if (job->question == NULL)
        end(job, "out of memory");
    else
        beside(job, write_all, on_prepared);
}

/* --- life ------------------------------------------------------------------------------------- */

struct source_offsets *source_offsets_new(struct loop *loop, struct offset_jobs *jobs,
                                          const struct offset_store *store,
                                          const struct worker_config *config)
{
    struct source_offsets *so = calloc(1, sizeof(*so));

    mr_assert(so != NULL);
    *so = (struct source_offsets){.store = store,
                                  .config = config,
                                  .jobs = jobs,
                                  .check = plugin_check_new(loop, "/proc/self/exe", PATIENCE_MS)};
    return so;
}

void source_offsets_stop(struct source_offsets *so)
{
    so->closing = true;
    plugin_check_free(&so->check);
}

void source_offsets_free(struct source_offsets **so)
{
    free(*so);
    *so = NULL;
}
