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
 * Where there is none of its own the store is all. Each job is answered once. Loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/offsets/source_offsets.h"

#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "model/offsets_topic.h"
#include "worker/supervisor/plugin_check.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 60000 /* for one look; a REST request has 90 s */

struct source_offsets {
    const struct offset_store *store;
    const struct worker_config *config;
    struct plugin_check *check;
    bool closing;
};

struct job {
    struct source_offsets *so;
    char *conn;
    struct props config;
    json_t *entries; /* read so far, or to write */
    offset_store_read_fn read;
    offset_store_written_fn written;
    void *arg;
};

/* --- answers ---------------------------------------------------------------------------------- */

/* error: NULL it went well. */
static void end(struct job *job, const char *error)
{
    if (job->read != NULL)
        job->read(job->arg, error == NULL ? json_incref(job->entries) : NULL, error);
    else
        job->written(job->arg, error);
    json_decref(job->entries);
    props_deinit(&job->config);
    free(job->conn);
    free(job);
}

static struct job *job_new(struct source_offsets *so, const struct source_offsets_conn *conn,
                           void *arg)
{
    struct job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    *job = (struct job){.so = so, .conn = text_dup(conn->name), .arg = arg};
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

static void ask_own(struct job *job, const char *verb, plugin_check_done done)
{
    struct source_offsets *so = job->so;
    json_t *question;

    if (so->closing) {
        end(job, "the worker is stopping");
        return;
    }
    question = json_pack("[{s:s, s:s, s:o, s:o, s:[s], s:O?}]", "own", verb, "conn", job->conn,
                         "worker", json_from_props(&so->config->props), "config",
                         json_from_props(&job->config), "keys", "offsets", "offsets", job->entries);
    if (question == NULL)
        end(job, "out of memory");
    else
        plugin_check_ask(so->check, question, done, job);
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

/* The first one of a partition counts. */
static json_t *merge(const json_t *problems, const json_t *of_worker)
{
    struct map *known = map_new();
    json_t *entries = json_array(), *item;
    size_t i;

    mr_assert(entries != NULL);
    json_array_foreach(problems, i, item)
    {
        add(entries, known, json_object_get(item, "found"));
    }
    json_array_foreach(of_worker, i, item)
    {
        add(entries, known, item);
    }
    map_free(&known, NULL);
    return entries;
}

static void on_own_read(void *arg, const json_t *problems)
{
    struct job *job = arg;
    const char *error = problems == NULL ? "the worker is stopping" : first_error(problems);
    json_t *of_worker = job->entries;

    if (error == NULL) {
        job->entries = merge(problems, of_worker);
        json_decref(of_worker);
    }
    end(job, error);
}

static void on_worker_read(void *arg, json_t *entries, const char *error)
{
    struct job *job = arg;

    job->entries = entries;
    if (error != NULL || !has_own_topic(job))
        end(job, error);
    else
        ask_own(job, "read", on_own_read);
}

void source_offsets_list(struct source_offsets *so, const struct source_offsets_conn *conn,
                         offset_store_read_fn fn, void *arg)
{
    struct job *job = job_new(so, conn, arg);

    job->read = fn;
    so->store->list(so->store->self, job->conn, on_worker_read, job);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_some(struct job *job, bool removals, offset_store_written_fn fn)
{
    const struct offset_store *store = job->so->store;
    json_t *some = json_array(), *entry;
    size_t i;

    mr_assert(some != NULL);
    json_array_foreach(job->entries, i, entry)
    {
        if (json_is_null(json_array_get(entry, 1)) == removals)
            mr_assert(json_array_append(some, entry) == 0);
    }
    if (json_array_size(some) > 0)
        store->put(store->self, job->conn, some, fn, job);
    else
        fn(job, NULL);
    json_decref(some);
}

static void on_copied(void *arg, const char *error)
{
    struct job *job = arg;

    if (error != NULL)
        log_write_for(LOG_WARN, LOGGER, job->conn, -1,
                      "offsets stand in its own topic, but not in the worker's as well: %s", error);
    end(job, NULL);
}

static void on_own_written(void *arg, const json_t *problems)
{
    struct job *job = arg;
    const char *error = problems == NULL ? "the worker is stopping" : first_error(problems);

    if (error != NULL)
        end(job, error);
    else
        put_some(job, false, on_copied);
}

static void on_removed(void *arg, const char *error)
{
    struct job *job = arg;

    if (error != NULL)
        end(job, error);
    else
        ask_own(job, "write", on_own_written);
}

static void on_all_written(void *arg, const char *error)
{
    end(arg, error);
}

void source_offsets_put(struct source_offsets *so, const struct source_offsets_conn *conn,
                        const json_t *entries, offset_store_written_fn fn, void *arg)
{
    struct job *job = job_new(so, conn, arg);

    job->written = fn;
    job->entries = json_deep_copy(entries);
    mr_assert(job->entries != NULL);
    if (has_own_topic(job))
        put_some(job, true, on_removed);
    else
        so->store->put(so->store->self, job->conn, job->entries, on_all_written, job);
}

/* --- life ------------------------------------------------------------------------------------- */

struct source_offsets *source_offsets_new(struct loop *loop, const struct offset_store *store,
                                          const struct worker_config *config)
{
    struct source_offsets *so = calloc(1, sizeof(*so));

    mr_assert(so != NULL);
    *so = (struct source_offsets){.store = store,
                                  .config = config,
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
