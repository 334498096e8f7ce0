/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the status topic, read on the store thread and written for it by the loop. Connectors
 * and tasks share one form of value; topics that a connector used have another. Anybody may write
 * into the topic: a record that does not fit is refused in words and skipped, and says nothing
 * about its neighbours. */
#include "worker/store/status_records.h"

#include "base/text.h"
#include "base/utf8.h"
#include "model/stored_json.h"

#include <limits.h>

#define BETWEEN ":connector-" /* topic and connector, in a key */

void status_deinit(struct status *status)
{
    free(status->worker_id);
    free(status->trace);
    free(status->version);
    *status = (struct status){0};
}

void status_copy(struct status *to, const struct status *from)
{
    *to = (struct status){
        .state = from->state,
        .generation = from->generation,
        .worker_id = text_dup(from->worker_id),
        .trace = text_dup(from->trace),
        .version = text_dup(from->version),
    };
}

void status_record_deinit(struct status_record *rec)
{
    free(rec->conn);
    free(rec->topic);
    status_deinit(&rec->status);
    *rec = (struct status_record){0};
}

static int odd(struct mr_error *err, const char *text)
{
    return mr_fail(err, MR_ERR_DATA, "%s", text);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* A text or null, perhaps missing; NUL characters end it. */
static bool take_text(const json_t *value, const char *field, char **out)
{
    const json_t *member = json_object_get(value, field);

    if (member != NULL && !json_is_null(member) && !json_is_string(member))
        return false;
    *out = text_dup(json_string_value(member));
    return true;
}

static int read_status(const json_t *value, struct status_record *rec, struct mr_error *err)
{
    struct status *status = &rec->status;
    const char *state;
    int64_t generation;

    if (!json_get_text(value, "state", &state) || !state_from(state, &status->state))
        return odd(err, "its field 'state' is no state of ours");
    if (!json_get_int(value, "generation", INT_MIN, INT_MAX, &generation))
        return odd(err, "its field 'generation' is no whole number of 32 bits");
    status->generation = (int)generation;
    if (!take_text(value, "worker_id", &status->worker_id) || status->worker_id == NULL)
        return odd(err, "its field 'worker_id' is no text");
    if (!take_text(value, "trace", &status->trace))
        return odd(err, "its field 'trace' is neither text nor null");
    if (!take_text(value, "version", &status->version))
        return odd(err, "its field 'version' is neither text nor null");
    return 0;
}

/* What key and value both say must be one thing. */
static int read_topic(const json_t *value, struct status_record *rec, struct mr_error *err)
{
    const json_t *topic = json_object_get(value, "topic");
    const char *name, *conn;
    int64_t task;

    if (!json_get_text(topic, "name", &name) || !json_get_text(topic, "connector", &conn) ||
        !json_get_int(topic, "task", 0, INT_MAX, &task) ||
        !json_get_int(topic, "discoverTimestamp", INT64_MIN, INT64_MAX, &rec->discovered_wall_ms))
        return odd(err,
                   "its field 'topic' lacks 'name', 'connector', 'task' or 'discoverTimestamp'");
    if (strcmp(name, rec->topic) != 0 || strcmp(conn, rec->conn) != 0)
        return odd(err, "its value is about another topic or connector than its key");
    rec->task = (int)task;
    return 0;
}

static int split_nothing(struct status_record *rec, struct mr_error *err)
{
    (void)rec;
    (void)err;
    return 0;
}

/* CONN-N: the number stands behind the last hyphen. */
static int split_task(struct status_record *rec, struct mr_error *err)
{
    char *hyphen = strrchr(rec->conn, '-'), *end = NULL;
    long task =
        hyphen != NULL && hyphen[1] >= '0' && hyphen[1] <= '9' ? strtol(hyphen + 1, &end, 10) : -1;

    if (task < 0 || task > INT_MAX || *end != '\0' || hyphen == rec->conn)
        return odd(err, "its key does not end in a connector's name and a task's number");
    rec->task = (int)task;
    *hyphen = '\0';
    return 0;
}

/* TOPIC:connector-CONN: no topic has a colon. */
static int split_topic(struct status_record *rec, struct mr_error *err)
{
    char *colon = strchr(rec->conn, ':');
    size_t len = strlen(BETWEEN);

    if (colon == NULL || colon == rec->conn || strncmp(colon, BETWEEN, len) != 0 ||
        colon[len] == '\0')
        return odd(err, "its key does not name a topic and a connector");
    rec->topic = text_dup_len(rec->conn, (size_t)(colon - rec->conn));
    memmove(rec->conn, colon + len, strlen(colon + len) + 1);
    return 0;
}

static void write_status(const struct status_record *rec, struct buf *out);
static void write_topic(const struct status_record *rec, struct buf *out);

static const struct kind {
    const char *prefix;
    int (*split)(struct status_record *rec, struct mr_error *err);
    int (*read)(const json_t *value, struct status_record *rec, struct mr_error *err);
    void (*write)(const struct status_record *rec, struct buf *out);
} kinds[] = {
    [STATUS_CONNECTOR] = {"status-connector-", split_nothing, read_status, write_status},
    [STATUS_TASK] = {"status-task-", split_task, read_status, write_status},
    [STATUS_TOPIC] = {"status-topic-", split_topic, read_topic, write_topic},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int read_key(const char *key, size_t len, struct status_record *rec, struct mr_error *err)
{
    if (key == NULL)
        return odd(err, "it has no key");
    if (memchr(key, 0, len) != NULL || !utf8_valid(key, len))
        return odd(err, "its key is not text");
    for (size_t i = 0; i < KINDS; i++) {
        size_t prefix = strlen(kinds[i].prefix);

        if (len < prefix || memcmp(key, kinds[i].prefix, prefix) != 0)
            continue;
        if (len == prefix)
            return odd(err, "its key ends where a name should stand");
        rec->kind = (enum status_kind)i;
        rec->conn = text_dup_len(key + prefix, len - prefix);
        return kinds[i].split(rec, err);
    }
    return odd(err, "its key is of no known kind");
}

int status_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                         struct status_record *rec, struct mr_error *err)
{
    struct mr_error own = {0};
    json_t *json = NULL;
    int rc;

    err = err != NULL ? err : &own;
    *rec = (struct status_record){0};
    rc = stored_json_parse(value, value != NULL ? value_len : 0, &json, err);
    if (rc == 0)
        rc = read_key(key, key_len, rec, err);
    rec->tombstone = json == NULL;
    if (rc == 0 && json != NULL)
        rc = json_is_object(json) ? kinds[rec->kind].read(json, rec, err)
                                  : odd(err, "its value is no object");
    json_decref(json);
    if (rc == 0)
        return 0;
    status_record_deinit(rec);
    err->code = MR_ERR_DATA;
    return MR_ERR_DATA;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_text(struct buf *out, const char *text)
{
    json_t *value = text != NULL ? json_string(text) : json_null();

    if (value != NULL)
        json_write(out, value);
    else
        out->failed = true; /* not UTF-8 */
    json_decref(value);
}

static void write_status(const struct status_record *rec, struct buf *out)
{
    const struct status *status = &rec->status;

    buf_printf(out, "{\"state\":\"%s\",\"trace\":", state_name(status->state));
    write_text(out, status->trace);
    buf_puts(out, ",\"worker_id\":");
    write_text(out, status->worker_id);
    buf_printf(out, ",\"generation\":%d,\"version\":", status->generation);
    write_text(out, status->version);
    buf_putc(out, '}');
}

static void write_topic(const struct status_record *rec, struct buf *out)
{
    buf_puts(out, "{\"topic\":{\"name\":");
    write_text(out, rec->topic);
    buf_puts(out, ",\"connector\":");
    write_text(out, rec->conn);
    buf_printf(out, ",\"task\":%d,\"discoverTimestamp\":%lld}}", rec->task,
               (long long)rec->discovered_wall_ms);
}

int status_records_render(const struct status_record *rec, struct buf *key, struct buf *value)
{
    buf_puts(key, kinds[rec->kind].prefix);
    if (rec->kind == STATUS_TOPIC)
        buf_printf(key, "%s" BETWEEN, rec->topic);
    buf_puts(key, rec->conn);
    if (rec->kind == STATUS_TASK)
        buf_printf(key, "-%d", rec->task);
    if (!rec->tombstone)
        kinds[rec->kind].write(rec, value);
    return key->failed || value->failed ? MR_ERR_FULL : 0;
}
