/* SPDX-License-Identifier: Apache-2.0 */
/* One request about offsets, from the herder to whoever keeps them and back. A change goes through
 * these steps, and at any of them may be refused; up to the last nothing was done:
 *
 *   who ─► freshen ─► is it STOPPED? ─► entries: judged, or for a reset: listed
 *                                                  │
 *                             the connector's own code (millrace check)
 *                                                  │ is it STOPPED still?
 *      message ◄─ store, or Kafka's group ◄─ producers fenced (exactly-once)
 *
 * Each step comes back as an event; an errand owns what it needs, and is answered exactly once.
 * What takes its time with very many offsets is done on a thread beside the loop (offset_jobs), which
 * has the errand meanwhile. Loop thread otherwise. */
#define LOGGER "worker.herder"
#include "worker/herder/offsets/offset_changes.h"

#include "base/log.h"
#include "base/text.h"
#include "kafka/client_conf.h"
#include "model/conn_config.h"
#include "worker/herder/offsets/offset_entries.h"
#include "worker/herder/offsets/offset_jobs.h"
#include "worker/herder/offsets/sink_offsets.h"
#include "worker/herder/offsets/source_offsets.h"
#include "worker/supervisor/plugin_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BODY_MAX ((size_t)64 << 20)
#define SHUTTING_DOWN "Worker is shutting down"
#define KAFKA_MS 60000  /* for requests to a cluster; a REST request has 90 s */
#define PLUGIN_MS 20000 /* for the connector's own code */
#define GROUP_MAX 1024

struct offset_changes {
    struct loop *loop;
    struct conn_source *source;
    const struct worker_config *config;
    struct offset_jobs *jobs;
    struct plugin_check *check;
    struct sink_offsets *sinks;
    struct source_offsets *sources;
    bool closing;
};

/* One request under way. */
struct errand {
    struct offset_changes *oc;
    char *conn;
    herder_done done;
    void *arg;
    bool reset;
    bool sink;
    bool consents; /* the connector's code has a say, and agreed */
    json_t *entries;
    struct group_offset *parts; /* of a sink */
    size_t part_count;
    struct buf text;     /* what is shown */
    json_t *question;    /* for the connector's code, without the offsets */
    int written;         /* with them; -1 not */
    struct mr_error err; /* what is wrong with the entries */
    struct mr_error why_unasked;
};

/* --- answers ---------------------------------------------------------------------------------- */

static void end(struct errand *errand, const struct herder_answer *answer)
{
    errand->done(errand->arg, answer);
    group_offsets_free(errand->parts, errand->part_count);
    json_decref(errand->entries);
    json_decref(errand->question);
    buf_deinit(&errand->text);
    if (errand->written >= 0)
        close(errand->written);
    free(errand->conn);
    free(errand);
}

static void refuse_with(struct errand *errand, const struct mr_error *err)
{
    end(errand, &(struct herder_answer){.err = err, .message = err->text});
}

static MR_PRINTF(3, 4)
void refuse(struct errand *errand, int code, const char *fmt, ...)
{
    struct mr_error err = {.code = code};
    va_list args;

    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    refuse_with(errand, &err);
}

/* The client reads Connect's sentence, the log has the reason. What is only about this worker goes
 * through as it is. */
static void fail(struct errand *errand, int code, const char *sentence, const char *why)
{
    if (code == MR_ERR_CLOSED || code == MR_ERR_FULL) {
        refuse(errand, code, "%s", why);
        return;
    }
    log_write_for(LOG_ERROR, LOGGER, errand->conn, -1, "%s: %s", sentence, why);
    refuse(errand, MR_ERR_FATAL, "%s", sentence);
}

static const char *verb(const struct errand *errand)
{
    return errand->reset ? "reset" : "alter";
}

static void succeed(struct errand *errand)
{
    struct herder_answer answer = {0};
    const char *done = errand->reset ? "reset" : "altered";
    char text[512];
    json_t *body;

    if (errand->consents)
        snprintf(text, sizeof(text), "The offsets for this connector have been %s successfully",
                 done);
    else
        snprintf(text, sizeof(text),
                 "The Connect framework-managed offsets for this connector have been %s "
                 "successfully. However, if this connector manages offsets externally, they will "
                 "need to be manually %s in the system that the connector uses.",
                 done, done);
    log_write_for(LOG_INFO, LOGGER, errand->conn, -1, "offsets %s", done);
    answer.body = body = json_pack("{s:s}", "message", text);
    end(errand, &answer);
    json_decref(body);
}

static struct errand *errand_new(struct offset_changes *oc, const char *conn, herder_done done,
                                 void *arg)
{
    struct errand *errand = calloc(1, sizeof(*errand));

    mr_assert(errand != NULL);
    *errand =
        (struct errand){.oc = oc, .conn = text_dup(conn), .done = done, .arg = arg, .written = -1};
    buf_init(&errand->text, BODY_MAX);
    return errand;
}

/* --- what is known of the connector ----------------------------------------------------------- */

/* The worker ends: refused. */
static bool is_over(struct errand *errand)
{
    if (!errand->oc->closing)
        return false;
    refuse(errand, MR_ERR_CLOSED, SHUTTING_DOWN);
    return true;
}

/* work: has the errand for itself. back: as of an offset_job. */
static void beside(struct errand *errand, void (*work)(void *arg),
                   void (*back)(void *arg, bool done))
{
    if (!is_over(errand))
        offset_jobs_run(errand->oc->jobs,
                        &(struct offset_job){.work = work, .back = back, .arg = errand});
}

/* false: refused. */
static bool find(struct errand *errand, struct source_conn *out)
{
    struct conn_source *source = errand->oc->source;
    const char *class_name;

    if (is_over(errand))
        return false;
    if (!source->find(source, errand->conn, out)) {
        refuse(errand, MR_ERR_NOT_FOUND, "Connector %s not found", errand->conn);
        return false;
    }
    if (out->plugin == NULL) {
        class_name = props_get(out->config, "connector.class");
        refuse(errand, MR_ERR_FATAL,
               "Failed to find any class that implements Connector and which name matches %s",
               class_name != NULL ? class_name : "(none)");
        return false;
    }
    errand->sink = out->plugin->kind == MR_PLUGIN_SINK;
    return true;
}

/* false: refused. With no tasks in its configuration none is started, wherever. */
static bool find_stopped(struct errand *errand, struct source_conn *out)
{
    if (!find(errand, out))
        return false;
    if (out->target == TARGET_STOPPED && out->task_count == 0)
        return true;
    refuse(errand, MR_ERR_CONFIG,
           "Connectors must be in the STOPPED state before their offsets can be modified. This can "
           "be done for the specified connector by issuing a 'PUT' request to the "
           "'/connectors/%s/stop' endpoint",
           errand->conn);
    return false;
}

/* --- a sink's group --------------------------------------------------------------------------- */

static int layer(const struct errand *errand, const struct source_conn *conn, enum client_kind kind,
                 const char *key, const char *value, struct props *out)
{
    const struct worker_config *config = errand->oc->config;
    const struct client_conf_layers layers = {
        .kind = kind, .worker = &config->props, .connector = conn->config};
    struct client_conf_layers all = layers;
    struct props built_in;
    int rc;

    props_init(&built_in);
    props_init(out);
    all.built_in = &built_in;
    rc = props_set(&built_in, key, value);
    if (rc == 0)
        rc = props_set(&built_in, "bootstrap.servers", worker_config_servers(config));
    if (rc == 0)
        rc = client_conf_layer(&all, out);
    props_deinit(&built_in);
    return rc;
}

/* As its tasks have it: connect-NAME, unless the worker's or the connector's settings say
 * otherwise. */
static int group_of(const struct errand *errand, const struct source_conn *conn, char *out,
                    size_t size)
{
    struct props consumer;
    char usual[GROUP_MAX];
    const char *group;
    int rc = conn_config_group_id(errand->conn, conn->config, usual, sizeof(usual));

    if (rc != 0)
        return rc;
    rc = layer(errand, conn, CLIENT_CONSUMER, "group.id", usual, &consumer);
    group = rc == 0 ? props_get(&consumer, "group.id") : NULL;
    if (group == NULL || (size_t)snprintf(out, size, "%s", group) >= size)
        rc = MR_ERR_TOO_LARGE;
    props_deinit(&consumer);
    return rc;
}

static void ask_group(struct errand *errand, const struct source_conn *conn,
                      enum sink_offsets_act act, sink_offsets_done done)
{
    struct sink_offsets_job job = {.act = act};
    struct mr_error err = {0};
    struct props client;
    char group[GROUP_MAX], id[512];

    snprintf(id, sizeof(id), "connector-worker-adminclient-%s", errand->conn);
    props_init(&client);
    if (group_of(errand, conn, group, sizeof(group)) != 0 ||
        layer(errand, conn, CLIENT_ADMIN, "client.id", id, &client) != 0) {
        mr_fail(&err, MR_ERR_CONFIG, "the name of its consumer group is too long");
        done(errand, NULL, 0, &err);
    } else {
        job.group = group;
        job.client = &client;
        job.providers = errand->oc->config->providers;
        job.changes = errand->parts;
        job.count = act == SINK_OFFSETS_CHANGE ? errand->part_count : 0;
        sink_offsets_ask(errand->oc->sinks, &job, done, errand);
    }
    props_deinit(&client);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* On the jobs' thread, which also frees what may be very many. */
static void write_shown(void *arg)
{
    struct errand *errand = arg;

    if (errand->sink)
        (void)offset_entries_write_group(&errand->text, errand->parts, errand->part_count);
    else
        (void)offset_entries_write(&errand->text, errand->entries);
    group_offsets_free(errand->parts, errand->part_count);
    json_decref(errand->entries);
    errand->parts = NULL;
    errand->part_count = 0;
    errand->entries = NULL;
}

static void on_shown(void *arg, bool done)
{
    struct errand *errand = arg;

    if (!done)
        refuse(errand, MR_ERR_CLOSED, SHUTTING_DOWN);
    else if (errand->text.failed)
        refuse(errand, MR_ERR_FATAL, "The offsets of this connector take more than %zu bytes",
               BODY_MAX);
    else
        end(errand, &(struct herder_answer){.text = &errand->text});
}

static MR_PRINTF(4, 5)
void fail_about(struct errand *errand, int code, const char *why, const char *fmt, ...)
{
    char sentence[1008];
    va_list args;

    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    fail(errand, code, sentence, why);
}

static void on_group_read(void *arg, struct group_offset *list, size_t count,
                          const struct mr_error *err)
{
    struct errand *errand = arg;

    errand->parts = list;
    errand->part_count = count;
    if (err != NULL)
        fail_about(errand, err->code, err->text,
                   "Failed to retrieve consumer group offsets for sink connector %s", errand->conn);
    else
        beside(errand, write_shown, on_shown);
}

static void on_source_read(void *arg, json_t *entries, const char *error)
{
    struct errand *errand = arg;

    errand->entries = entries;
    if (error != NULL)
        fail_about(errand, MR_ERR_FATAL, error,
                   "Failed to retrieve offsets for source connector %s", errand->conn);
    else
        beside(errand, write_shown, on_shown);
}

void offset_changes_read(struct offset_changes *oc, const char *conn, herder_done done, void *arg)
{
    struct errand *errand = errand_new(oc, conn, done, arg);
    struct source_conn stored;

    if (!find(errand, &stored))
        return;
    if (errand->sink)
        ask_group(errand, &stored, SINK_OFFSETS_LIST, on_group_read);
    else
        source_offsets_list(oc->sources, &(struct source_offsets_conn){conn, stored.config},
                            on_source_read, errand);
}

/* --- changing: the last step ------------------------------------------------------------------ */

static void on_stored(void *arg, const char *error)
{
    struct errand *errand = arg;

    if (error != NULL)
        fail_about(errand, MR_ERR_FATAL, error, "Failed to modify offsets for source connector %s",
                   errand->conn);
    else
        succeed(errand);
}

static void on_group_changed(void *arg, struct group_offset *list, size_t count,
                             const struct mr_error *err)
{
    struct errand *errand = arg;

    group_offsets_free(list, count);
    if (err == NULL)
        succeed(errand);
    else if (err->code == MR_ERR_STATE)
        fail_about(errand, MR_ERR_STATE, err->text,
                   "Failed to %s consumer group offsets for connector %s either because its tasks "
                   "haven't stopped completely yet or the connector was resumed before the request "
                   "to %s its offsets could be successfully completed. If the connector is in a "
                   "stopped state, this operation can be safely retried. If it doesn't eventually "
                   "succeed, the Connect cluster may need to be restarted to get rid of the zombie "
                   "sink tasks.",
                   verb(errand), errand->conn, verb(errand));
    else
        fail_about(errand, err->code, err->text,
                   "Failed to %s consumer group offsets for connector %s", verb(errand),
                   errand->conn);
}

static void write_source(struct errand *errand, const struct source_conn *conn)
{
    json_t *entries = errand->entries;

    errand->entries = NULL;
    if (json_array_size(entries) > 0) {
        source_offsets_put(errand->oc->sources,
                           &(struct source_offsets_conn){errand->conn, conn->config}, entries,
                           on_stored, errand);
    } else {
        json_decref(entries);
        succeed(errand);
    }
}

static void on_fenced(void *arg, const struct mr_error *err)
{
    struct errand *errand = arg;
    struct source_conn conn;

    if (err != NULL)
        fail_about(errand, err->code, err->text,
                   "Failed to perform zombie fencing for source connector prior to modifying "
                   "offsets");
    else if (find_stopped(errand, &conn))
        write_source(errand, &conn);
}

/* A task that hangs somewhere may still commit a transaction, with offsets from before the
 * change. */
static void fence(struct errand *errand, const struct source_conn *conn)
{
    struct conn_source *source = errand->oc->source;

    if (source->fence != NULL)
        source->fence(source, errand->conn, false, on_fenced, errand);
    else
        write_source(errand, conn);
}

/* Meanwhile it may have been resumed or deleted, or somebody else may lead. */
static void apply(struct errand *errand)
{
    struct source_conn conn;

    if (!find_stopped(errand, &conn))
        return;
    if (!errand->sink)
        fence(errand, &conn);
    else if (errand->reset)
        ask_group(errand, &conn, SINK_OFFSETS_DROP, on_group_changed);
    else if (errand->part_count > 0)
        ask_group(errand, &conn, SINK_OFFSETS_CHANGE, on_group_changed);
    else
        succeed(errand);
}

/* --- changing: the connector's own code ------------------------------------------------------- */

static void take_verdict(struct errand *errand, const json_t *problem)
{
    const char *text = NULL;
    int64_t code = MR_ERR_FATAL;

    (void)json_get_int(problem, "code", INT32_MIN, -1, &code);
    if (json_get_text(problem, "broken", &text)) {
        fail_about(errand, MR_ERR_FATAL, text, "Failed to modify offsets for connector %s: %s",
                   errand->conn, text);
        return;
    }
    errand->consents = problem == NULL;
    if (problem == NULL || code == MR_ERR_NOT_FOUND)
        apply(errand);
    else if (code == MR_ERR_UNSUPPORTED)
        refuse(errand, MR_ERR_FATAL,
               "Failed to modify offsets for connector %s because it doesn't support external "
               "modification of offsets",
               errand->conn);
    else
        refuse(errand, MR_ERR_FATAL, "%s",
               json_get_text(problem, "error", &text) ? text : "the connector refuses");
}

static void on_asked(void *arg, json_t *problems)
{
    if (problems == NULL)
        refuse(arg, MR_ERR_CLOSED, SHUTTING_DOWN);
    else
        take_verdict(arg, json_array_get(problems, 0));
    json_decref(problems);
}

static json_t *asked_offsets(const struct errand *errand)
{
    json_t *offsets;

    if (!errand->sink)
        return json_incref(errand->entries);
    offsets = json_array();
    for (size_t i = 0; i < errand->part_count; i++)
        json_array_append_new(offsets, json_pack("[s, i, I]", errand->parts[i].topic,
                                                 (int)errand->parts[i].partition,
                                                 (json_int_t)errand->parts[i].offset));
    return offsets;
}

/* --- changing: what is to change -------------------------------------------------------------- */

/* What is listed is to be forgotten. */
static void forget_all(struct errand *errand)
{
    json_t *entry;
    size_t i;

    json_array_foreach(errand->entries, i, entry)
    {
        json_array_set_new(entry, 1, json_null());
    }
    for (i = 0; i < errand->part_count; i++)
        errand->parts[i].offset = -1;
}

static int judge_entries(struct errand *errand)
{
    return errand->sink ? offset_entries_to_group(errand->entries, &errand->parts,
                                                  &errand->part_count, &errand->err)
                        : offset_entries_check(errand->entries, &errand->err);
}

/* A partition that is none has no record, and so none to remove. */
static void keep_storable(struct errand *errand)
{
    json_t *kept = json_array(), *entry;
    size_t i;

    mr_assert(kept != NULL);
    json_array_foreach(errand->entries, i, entry)
    {
        if (json_is_object(json_array_get(entry, 0)))
            mr_assert(json_array_append(kept, entry) == 0);
    }
    json_decref(errand->entries);
    errand->entries = kept;
}

/* On the jobs' thread. */
static void prepare_question(void *arg)
{
    struct errand *errand = arg;
    json_t *ask = json_array_get(errand->question, 0);

    if (errand->reset)
        forget_all(errand);
    else if (judge_entries(errand) != 0)
        return;
    json_object_set_new(ask, "offsets", asked_offsets(errand));
    errand->written = plugin_check_write(errand->question, &errand->why_unasked);
    json_object_del(ask, "offsets");
    if (!errand->sink)
        keep_storable(errand);
}

static void ask_plugin(struct errand *errand)
{
    json_t *question = errand->question;
    int written = errand->written;

    errand->question = NULL;
    errand->written = -1;
    plugin_check_ask_written(errand->oc->check, question, written, on_asked, errand);
}

static void on_prepared(void *arg, bool done)
{
    struct errand *errand = arg;
    int code = errand->err.code;

    if (!done)
        refuse(errand, MR_ERR_CLOSED, SHUTTING_DOWN);
    else if (is_over(errand))
        return;
    else if (code == MR_ERR_DATA && errand->sink)
        fail_about(errand, MR_ERR_FATAL, errand->err.text,
                   "Failed to modify offsets for sink connector %s", errand->conn);
    else if (code != 0)
        refuse(errand, code, "%s", errand->err.text);
    else if (errand->written < 0)
        fail_about(errand, MR_ERR_FATAL, errand->why_unasked.text,
                   "Failed to modify offsets for connector %s: %s", errand->conn,
                   errand->why_unasked.text);
    else
        ask_plugin(errand);
}

static void prepare(struct errand *errand)
{
    struct source_conn conn;

    if (!find_stopped(errand, &conn))
        return;
    errand->question =
        json_pack("[{s:s, s:s, s:i, s:o, s:o, s:[s], s:b}]", "library", conn.plugin->library,
                  "class", conn.plugin->name, "kind", (int)conn.plugin->kind, "worker",
                  json_from_props(&errand->oc->config->props), "config",
                  json_from_props(conn.config), "keys", "offsets", "all", errand->reset);
    if (errand->question == NULL)
        refuse(errand, MR_ERR_NOMEM, "out of memory");
    else
        beside(errand, prepare_question, on_prepared);
}

static void on_source_listed(void *arg, json_t *entries, const char *error)
{
    struct errand *errand = arg;

    errand->entries = entries;
    if (error != NULL)
        fail_about(errand, MR_ERR_FATAL, error, "Failed to modify offsets for source connector %s",
                   errand->conn);
    else
        prepare(errand);
}

static void on_group_listed(void *arg, struct group_offset *list, size_t count,
                            const struct mr_error *err)
{
    struct errand *errand = arg;

    errand->parts = list;
    errand->part_count = count;
    if (err != NULL)
        fail_about(errand, err->code, err->text,
                   "Failed to reset consumer group offsets for connector %s", errand->conn);
    else
        prepare(errand);
}

static void list_all(struct errand *errand, const struct source_conn *conn)
{
    if (errand->sink)
        ask_group(errand, conn, SINK_OFFSETS_LIST, on_group_listed);
    else
        source_offsets_list(errand->oc->sources,
                            &(struct source_offsets_conn){errand->conn, conn->config},
                            on_source_listed, errand);
}

/* --- changing: the first steps ---------------------------------------------------------------- */

/* Is it for this worker to do, now? false: answered. */
static bool is_ours(struct errand *errand)
{
    struct conn_source *source = errand->oc->source;
    struct mr_error err = {0};
    const char *url = NULL;

    if (is_over(errand))
        return false;
    if (source->who == NULL)
        return true;
    if (source->who(source, SOURCE_LEADS_SETTLED, errand->conn, -1, &url, &err) != 0)
        refuse_with(errand, &err);
    else if (url != NULL)
        end(errand, &(struct herder_answer){.elsewhere = url});
    else
        return true;
    return false;
}

static void begin(struct errand *errand)
{
    struct source_conn conn;

    if (!is_ours(errand) || !find_stopped(errand, &conn))
        return;
    if (errand->reset)
        list_all(errand, &conn);
    else
        prepare(errand);
}

static void on_freshened(void *arg, const struct mr_error *err)
{
    struct errand *errand = arg;

    if (err != NULL)
        refuse_with(errand, err);
    else
        begin(errand);
}

void offset_changes_apply(struct offset_changes *oc, const char *conn, json_t *entries,
                          herder_done done, void *arg)
{
    struct errand *errand = errand_new(oc, conn, done, arg);

    errand->reset = entries == NULL;
    errand->entries = entries;
    if (!is_ours(errand))
        return;
    if (oc->source->freshen != NULL)
        oc->source->freshen(oc->source, conn, on_freshened, errand);
    else
        begin(errand);
}

/* --- life ------------------------------------------------------------------------------------- */

struct offset_changes *offset_changes_new(struct loop *loop, struct conn_source *source,
                                          const struct worker_config *config)
{
    struct offset_changes *oc = calloc(1, sizeof(*oc));

    mr_assert(oc != NULL);
    *oc = (struct offset_changes){.loop = loop,
                                  .source = source,
                                  .config = config,
                                  .jobs = offset_jobs_new(loop),
                                  .check = plugin_check_new(loop, "/proc/self/exe", PLUGIN_MS),
                                  .sinks = sink_offsets_new(loop, KAFKA_MS)};
    oc->sources = source_offsets_new(loop, oc->jobs, &source->offsets, config);
    return oc;
}

void offset_changes_stop(struct offset_changes *oc)
{
    oc->closing = true;
    plugin_check_free(&oc->check);
    sink_offsets_free(&oc->sinks);
    source_offsets_stop(oc->sources);
    offset_jobs_free(&oc->jobs);
}

void offset_changes_free(struct offset_changes **oc)
{
    if (*oc != NULL)
        source_offsets_free(&(*oc)->sources);
    free(*oc);
    *oc = NULL;
}
