/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the config topic.
 *
 *   bytes ─► config_records_parse ─► struct config_record ─► config_state (on the loop)
 *   herder ─► struct config_record ─► config_records_render ─► bytes
 *
 * A table of key prefixes says which reader and which writer a kind has. Anybody may write into the
 * topic: each record is judged by itself, whatever is wrong with it is said in words, and none can
 * hurt its neighbours. Two verdicts are kept apart, as in Java: a value that is no JSON does not
 * move the config offset, everything else does. */
#include "worker/store/config_records.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "model/stored_json.h"

#include <limits.h>

#define FENCED_MAX 1000000 /* tasks of a connector: more are somebody's mistake, or malice */

void config_record_deinit(struct config_record *rec)
{
    free(rec->name);
    free(rec->level);
    props_deinit(&rec->props);
    *rec = (struct config_record){0};
}

static int odd(struct mr_error *err, const char *text)
{
    return mr_fail(err, MR_ERR_DATA, "%s", text);
}

/* --- values, read ----------------------------------------------------------------------------- */

static int set_prop(struct config_record *rec, const char *key, const json_t *value,
                    struct mr_error *err)
{
    char *text = NULL;
    int rc;

    if (json_is_string(value)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            return mr_fail(err, MR_ERR_DATA, "the value of '%.100s' holds a NUL character", key);
        return props_set(&rec->props, key, json_string_value(value));
    }
    if (!json_is_null(value)) {
        text = json_text(value);
        if (text == NULL)
            return MR_ERR_NOMEM;
    }
    rc = props_set(&rec->props, key, text);
    free(text);
    return rc;
}

static int read_props(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    const json_t *object = json_object_get(value, "properties");
    int rc = 0;

    if (!json_is_object(object))
        return odd(err, "its field 'properties' is no object");
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); rc == 0 && it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it))
        rc = set_prop(rec, json_object_iter_key(it), json_object_iter_value(it), err);
    if (rc == MR_ERR_NOMEM)
        mr_fail(err, rc, "out of memory");
    return rc;
}

static int read_count(const json_t *value, const char *field, int most, struct config_record *rec,
                      struct mr_error *err)
{
    int64_t count;

    if (!json_get_int(value, field, 0, most, &count))
        return mr_fail(err, MR_ERR_DATA, "its field '%s' is no whole number from 0 to %d", field,
                       most);
    rec->count = (int)count;
    return 0;
}

static int read_commit(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    return read_count(value, "tasks", INT_MAX, rec, err);
}

static int read_task_count(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    return read_count(value, "task-count", FENCED_MAX, rec, err);
}

/* state.v2 knows STOPPED; workers before 3.5 know state alone. */
static int read_target(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    const char *name;

    if (!json_get_text(value, "state.v2", &name) && !json_get_text(value, "state", &name))
        return odd(err, "it has neither a text 'state.v2' nor a text 'state'");
    if (!target_state_from(name, &rec->target))
        return mr_fail(err, MR_ERR_DATA, "the target state '%.50s' is none of ours", name);
    return 0;
}

static int read_session(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    struct config_session_key *session = &rec->session;
    const char *key, *algorithm;

    if (!json_get_text(value, "key", &key) || !json_get_text(value, "algorithm", &algorithm) ||
        !json_get_int(value, "creation-timestamp", INT64_MIN, INT64_MAX, &session->created_wall_ms))
        return odd(err,
                   "it needs texts 'key' and 'algorithm' and a whole number 'creation-timestamp'");
    if (strlen(algorithm) >= sizeof(session->algorithm))
        return odd(err, "the name of its algorithm is too long");
    if (!base64_decode(key, strlen(key), session->key, sizeof(session->key), &session->key_len) ||
        session->key_len == 0)
        return mr_fail(err, MR_ERR_DATA, "its key is no Base64 of 1 to %zu bytes",
                       sizeof(session->key));
    snprintf(session->algorithm, sizeof(session->algorithm), "%s", algorithm);
    return 0;
}

/* A field that is missing or wrong counts as false. */
static int read_restart(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    bool fine = json_get_bool(value, "include-tasks", &rec->include_tasks);

    fine = json_get_bool(value, "only-failed", &rec->only_failed) && fine;
    if (!fine && err != NULL)
        snprintf(err->text, sizeof(err->text),
                 "its fields 'include-tasks' and 'only-failed' are not both true or false: what is "
                 "not counts as false");
    return 0;
}

static int read_level(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    const char *level;

    if (!json_get_text(value, "level", &level))
        return odd(err, "its field 'level' is no text");
    rec->level = strdup(level);
    return rec->level != NULL ? 0 : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

/* --- values, written -------------------------------------------------------------------------- */

static void write_text(struct buf *out, const char *text)
{
    json_t *value = json_string(text);

    if (value != NULL)
        json_write(out, value);
    else
        out->failed = true; /* not UTF-8: nothing that REST let in */
    json_decref(value);
}

static void write_props(const struct config_record *rec, struct buf *out)
{
    buf_puts(out, "{\"properties\":{");
    for (size_t i = 0; i < rec->props.count; i++) {
        const struct props_entry *entry = &rec->props.entries[i];

        if (i > 0)
            buf_putc(out, ',');
        write_text(out, entry->key);
        buf_putc(out, ':');
        if (entry->value != NULL)
            write_text(out, entry->value);
        else
            buf_puts(out, "null");
    }
    buf_puts(out, "}}");
}

static void write_commit(const struct config_record *rec, struct buf *out)
{
    buf_printf(out, "{\"tasks\":%d}", rec->count);
}

static void write_task_count(const struct config_record *rec, struct buf *out)
{
    buf_printf(out, "{\"task-count\":%d}", rec->count);
}

static void write_target(const struct config_record *rec, struct buf *out)
{
    enum target_state old = rec->target == TARGET_STOPPED ? TARGET_PAUSED : rec->target;

    buf_printf(out, "{\"state\":\"%s\",\"state.v2\":\"%s\"}", target_state_name(old),
               target_state_name(rec->target));
}

static void write_session(const struct config_record *rec, struct buf *out)
{
    buf_puts(out, "{\"key\":\"");
    base64_encode(out, rec->session.key, rec->session.key_len);
    buf_puts(out, "\",\"algorithm\":");
    write_text(out, rec->session.algorithm);
    buf_printf(out, ",\"creation-timestamp\":%lld}", (long long)rec->session.created_wall_ms);
}

static void write_restart(const struct config_record *rec, struct buf *out)
{
    buf_printf(out, "{\"include-tasks\":%s,\"only-failed\":%s}",
               rec->include_tasks ? "true" : "false", rec->only_failed ? "true" : "false");
}

static void write_level(const struct config_record *rec, struct buf *out)
{
    buf_puts(out, "{\"level\":");
    write_text(out, rec->level);
    buf_putc(out, '}');
}

/* --- kinds ------------------------------------------------------------------------------------ */

static const struct kind {
    const char *prefix; /* of the key; the whole key where there is no name */
    bool named;
    bool may_be_tombstone;
    int (*read)(const json_t *value, struct config_record *rec, struct mr_error *err);
    void (*write)(const struct config_record *rec, struct buf *out);
} kinds[] = {
    [CONFIG_CONNECTOR] = {"connector-", true, true, read_props, write_props},
    [CONFIG_TASK] = {"task-", true, false, read_props, write_props},
    [CONFIG_COMMIT] = {"commit-", true, false, read_commit, write_commit},
    [CONFIG_TARGET] = {"target-state-", true, true, read_target, write_target},
    [CONFIG_TASK_COUNT] = {"tasks-fencing-", true, false, read_task_count, write_task_count},
    [CONFIG_SESSION_KEY] = {"session-key", false, false, read_session, write_session},
    [CONFIG_RESTART] = {"restart-connector-", true, false, read_restart, write_restart},
    [CONFIG_LOGGER] = {"logger-cluster-", true, false, read_level, write_level},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The key's kind, and what stands behind its prefix. */
static bool find_kind(const char *key, size_t len, enum config_kind *kind, size_t *prefix)
{
    for (size_t i = 0; i < KINDS; i++) {
        *prefix = strlen(kinds[i].prefix);
        if (len < *prefix || memcmp(key, kinds[i].prefix, *prefix) != 0 ||
            (!kinds[i].named && len != *prefix))
            continue;
        *kind = (enum config_kind)i;
        return true;
    }
    return false;
}

/* NAME-N: the number stands behind the last hyphen, names have hyphens too. */
static int split_task(struct config_record *rec, struct mr_error *err)
{
    char *hyphen = strrchr(rec->name, '-'), *end = NULL;
    long task =
        hyphen != NULL && hyphen[1] >= '0' && hyphen[1] <= '9' ? strtol(hyphen + 1, &end, 10) : -1;

    if (task < 0 || task > INT_MAX || *end != '\0' || hyphen == rec->name)
        return odd(err, "its key does not end in a connector's name and a task's number");
    rec->task = (int)task;
    *hyphen = '\0';
    return 0;
}

static int read_key(const char *key, size_t len, struct config_record *rec, struct mr_error *err)
{
    size_t prefix = 0;

    if (key == NULL)
        return odd(err, "it has no key");
    if (!find_kind(key, len, &rec->kind, &prefix))
        return odd(err, "its key is of no known kind");
    if (!kinds[rec->kind].named)
        return 0;
    if (len == prefix)
        return odd(err, "its key ends where a name should stand");
    if (memchr(key, 0, len) != NULL || !utf8_valid(key, len))
        return odd(err, "its key is not text");
    rec->name = strndup(key + prefix, len - prefix);
    if (rec->name == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    return rec->kind == CONFIG_TASK ? split_task(rec, err) : 0;
}

static int read_value(const json_t *value, struct config_record *rec, struct mr_error *err)
{
    rec->tombstone = value == NULL;
    if (rec->tombstone)
        return kinds[rec->kind].may_be_tombstone ? 0 : odd(err, "it has no value");
    if (!json_is_object(value))
        return odd(err, "its value is no object");
    return kinds[rec->kind].read(value, rec, err);
}

int config_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                         struct config_record *rec, struct mr_error *err)
{
    struct mr_error own = {0};
    json_t *json = NULL;
    int rc;

    err = err != NULL ? err : &own;
    *rec = (struct config_record){0};
    rc = stored_json_parse(value, value != NULL ? value_len : 0, &json, err);
    if (rc == 0)
        rc = read_key(key, key_len, rec, err);
    if (rc == 0)
        rc = read_value(json, rec, err);
    json_decref(json);
    if (rc != 0)
        config_record_deinit(rec);
    return rc;
}

int config_records_render(const struct config_record *rec, struct buf *key, struct buf *value)
{
    buf_puts(key, kinds[rec->kind].prefix);
    if (kinds[rec->kind].named)
        buf_puts(key, rec->name);
    if (rec->kind == CONFIG_TASK)
        buf_printf(key, "-%d", rec->task);
    if (!rec->tombstone)
        kinds[rec->kind].write(rec, value);
    return key->failed || value->failed ? MR_ERR_FULL : 0;
}
