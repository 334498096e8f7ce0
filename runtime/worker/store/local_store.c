/* SPDX-License-Identifier: Apache-2.0 */
/* Source offsets of a standalone worker. The herder asks and tells on the loop; the store thread
 * owns the offsets and the file, answers reads after all earlier writes are on disk, and joins
 * writes that wait into one. A write is the whole file: written beside the old one, fsynced,
 * renamed. So after a crash at any moment the old or the new file is there, and an answer "stored"
 * is true for good (promise: a source's offset is acknowledged only when durable).
 *
 * The file is JSON lines, to be read by people and checked by us:
 *
 *   {"millrace":"source offsets of a standalone worker","format":1,"about":"…"}
 *   {"connector":"src","partition":{"filename":"in.txt"},"offset":{"position":132}}
 *   {"end":1,"crc32":"8a3f00c1"}
 *
 * `end` counts the offsets, crc32 is over all bytes before that line. Whoever edits the file by
 * hand drops crc32 and mends `end`. Anything else that does not fit is damage: refused with its
 * byte, never guessed at. The file has one writer: whoever has it open holds the record lock of
 * FILE.lock beside it, whatever its run folder. Offsets of deleted connectors stay, as in Connect:
 * who creates the connector again goes on where it was. */
#include "worker/store/local_store.h"

#include "base/crash_point.h"
#include "base/file.h"
#include "base/queue.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)64 << 20) /* of the file */
#define MAX_QUEUED 4096              /* requests */
#define BATCH 256                    /* requests joined into one write */
#define HEAD \
    "{\"millrace\":\"source offsets of a standalone worker\",\"format\":1,\"about\":\"one line " \
    "an offset; the last " \
    "line counts them and holds the CRC-32 of all bytes before it\"}\n"

struct request {
    struct local_store *store; /* NULL: answered when the store was closed */
    struct request *prev;      /* of the store's open ones; loop side */
    struct request *next;
    bool write;
    char *conn;
    json_t *body;    /* partitions (null: all) or entries; then the answer's entries */
    char error[512]; /* "" none */
    local_store_read_fn read_fn;
    local_store_written_fn written_fn;
    void *arg;
};

/* loop side: open. Thread side: offsets, undo, waiting. */
struct local_store {
    struct loop *loop;
    char *path;
    int lock_fd; /* -1: not held */
    struct queue *queue;
    pthread_t thread;
    struct request *open; /* asked and not answered, oldest first */
    struct request *newest;
    json_t *offsets;
    json_t *undo; /* [[key, entry before | null]] since the last write to disk */
    struct request *waiting[BATCH];
    size_t waiting_count;
};

/* --- the file's text -------------------------------------------------------------------------- */

static uint32_t crc32_of(const char *data, size_t len)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* One text for all spellings of a partition: members sorted, no blanks. NULL out of memory. */
static char *key_of(const char *conn, const json_t *partition)
{
    json_t *pair = json_pack("[sO]", conn, partition);
    char *key = pair != NULL ? json_dumps(pair, JSON_SORT_KEYS | JSON_COMPACT) : NULL;

    json_decref(pair);
    return key;
}

struct reader {
    const char *name;
    const char *data;
    size_t len;
    size_t at;   /* of the line */
    size_t next; /* of the line after it */
    struct mr_error *err;
};

static MR_PRINTF(3, 4)
int damaged(struct reader *r, size_t byte, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return mr_fail(
        r->err, MR_ERR_PROTOCOL,
        "%s: byte %zu: %s; put back a copy of the file, or remove it to let sources begin "
        "anew",
        r->name, byte, text);
}

/* The next line as an object; NULL with err. */
static json_t *next_line(struct reader *r)
{
    const char *begin = r->data + r->next, *end = memchr(begin, '\n', r->len - r->next);
    size_t len = end != NULL ? (size_t)(end - begin) : r->len - r->next;
    json_error_t at = {.position = 0};
    struct mr_error err = {0};
    json_t *line;

    r->at = r->next;
    r->next += end != NULL ? len + 1 : len;
    if (len == 0) {
        damaged(r, r->at,
                r->at == r->len ? "the file ends here, before its last line" : "an empty line");
        return NULL;
    }
    line = json_parse(begin, len, &err);
    if (json_is_object(line))
        return line;
    if (line == NULL)
        json_decref(json_loadb(begin, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &at));
    damaged(r, r->at + (size_t)(at.position > 0 ? at.position : 0),
            line == NULL ? "%s" : "not a JSON object", at.text[0] != '\0' ? at.text : err.text);
    json_decref(line);
    return NULL;
}

static int read_head(struct reader *r)
{
    json_t *line;
    int64_t format;
    int rc = 0;

    if (r->len >= 4 && memcmp(r->data, "\xac\xed\x00\x05", 4) == 0)
        return mr_fail(
            r->err, MR_ERR_UNSUPPORTED,
            "%s: byte 0: this is an offset file of the Java worker, which Millrace does "
            "not take over (Java's file source counts characters in it, Millrace bytes): set "
            "offset.storage.file.filename to a new file; sources then begin anew",
            r->name);
    if (r->len == 0)
        return damaged(r, 0, "the file is empty");
    line = next_line(r);
    if (line == NULL)
        return r->err != NULL ? r->err->code : MR_ERR_PROTOCOL;
    if (!json_is_string(json_object_get(line, "millrace")) ||
        !json_get_int(line, "format", 0, INT64_MAX, &format))
        rc = damaged(r, r->at, "not an offset file of Millrace");
    else if (format != 1)
        rc = damaged(r, r->at, "format %lld, of a newer Millrace; this one reads format 1",
                     (long long)format);
    json_decref(line);
    return rc;
}

static int read_entry(struct reader *r, json_t *line, json_t *offsets)
{
    json_t *partition = json_object_get(line, "partition"),
           *offset = json_object_get(line, "offset");
    const char *conn;
    char *key;
    int rc = 0;

    if (!json_get_text(line, "connector", &conn) || !json_is_object(partition) ||
        !json_is_object(offset))
        return damaged(r, r->at,
                       "not an offset: members connector, partition and offset are needed");
    key = key_of(conn, partition);
    if (key == NULL)
        return mr_fail(r->err, MR_ERR_NOMEM, "%s: out of memory", r->name);
    if (json_object_get(offsets, key) != NULL)
        rc = damaged(r, r->at, "the same partition again");
    else if (json_object_set_new(offsets, key, json_pack("[sOO]", conn, partition, offset)) != 0)
        rc = mr_fail(r->err, MR_ERR_NOMEM, "%s: out of memory", r->name);
    free(key);
    return rc;
}

static int read_end(struct reader *r, const json_t *line, const json_t *offsets)
{
    const char *crc = NULL;
    char want[9];
    int64_t count;

    if (!json_get_int(line, "end", 0, INT64_MAX, &count) ||
        (size_t)count != json_object_size(offsets))
        return damaged(r, r->at, "the last line counts %lld offsets, but there are %zu",
                       (long long)json_integer_value(json_object_get(line, "end")),
                       json_object_size(offsets));
    if (r->next != r->len)
        return damaged(r, r->next, "bytes behind the last line");
    snprintf(want, sizeof(want), "%08x", crc32_of(r->data, r->at));
    if (json_object_get(line, "crc32") != NULL &&
        (!json_get_text(line, "crc32", &crc) || strcmp(crc, want) != 0))
        return damaged(r, r->at,
                       "the bytes before do not match their checksum: %s was written, they give %s",
                       crc != NULL ? crc : "no text", want);
    return 0;
}

json_t *local_store_parse(const char *data, size_t len, const char *name, struct mr_error *err)
{
    struct mr_error own = {0};
    struct reader r = {name, data, len, 0, 0, err != NULL ? err : &own};
    json_t *offsets = json_object();
    int rc =
        offsets == NULL ? mr_fail(r.err, MR_ERR_NOMEM, "%s: out of memory", name) : read_head(&r);

    while (rc == 0) {
        json_t *line = next_line(&r);
        bool end = json_object_get(line, "end") != NULL;

        rc = line == NULL ? r.err->code
             : end        ? read_end(&r, line, offsets)
                          : read_entry(&r, line, offsets);
        json_decref(line);
        if (end)
            break;
    }
    if (rc == 0)
        return offsets;
    json_decref(offsets);
    return NULL;
}

int local_store_render(const json_t *offsets, struct buf *out)
{
    const char *key;
    json_t *entry;

    buf_puts(out, HEAD);
    json_object_foreach((json_t *)(uintptr_t)offsets, key, entry)
    {
        buf_puts(out, "{\"connector\":");
        json_write(out, json_array_get(entry, 0));
        buf_puts(out, ",\"partition\":");
        json_write(out, json_array_get(entry, 1));
        buf_puts(out, ",\"offset\":");
        json_write(out, json_array_get(entry, 2));
        buf_puts(out, "}\n");
    }
    if (!out->failed)
        buf_printf(out, "{\"end\":%zu,\"crc32\":\"%08x\"}\n", json_object_size(offsets),
                   crc32_of(out->data, out->len));
    return out->failed ? MR_ERR_FULL : 0;
}

/* --- the store thread ------------------------------------------------------------------------- */

static void request_free(struct request *req)
{
    free(req->conn);
    json_decref(req->body);
    free(req);
}

static void unlink_request(struct request *req)
{
    struct local_store *store = req->store;

    mr_assert(store != NULL); /* each is told once */
    if (req->prev != NULL)
        req->prev->next = req->next;
    else
        store->open = req->next;
    if (req->next != NULL)
        req->next->prev = req->prev;
    else
        store->newest = req->prev;
    req->store = NULL;
}

/* On the loop: unlink and tell. */
static void tell(struct request *req)
{
    const char *error = req->error[0] != '\0' ? req->error : NULL;
    json_t *entries = error == NULL && !req->write ? req->body : NULL;

    unlink_request(req);
    if (entries != NULL)
        req->body = NULL;
    if (req->write)
        req->written_fn(req->arg, error);
    else
        req->read_fn(req->arg, entries, error);
}

static void deliver(void *arg)
{
    struct request *req = arg;

    if (req->store != NULL)
        tell(req);
    request_free(req);
}

static void answer(struct request *req)
{
    /* The store is closed before its loop. */
    mr_assert(loop_post(req->store->loop, deliver, req) == 0);
}

/* Set or remove one offset and note what was there. Gives false when memory is short (nothing
 * changed). */
static bool apply(struct local_store *store, const char *conn, json_t *partition, json_t *offset)
{
    char *key = key_of(conn, partition);
    json_t *before = key != NULL ? json_object_get(store->offsets, key) : NULL;
    bool same =
        before == NULL ? json_is_null(offset) : json_equal(json_array_get(before, 2), offset);
    bool ok = key != NULL;

    if (ok && !same) {
        ok = json_array_append_new(store->undo, before != NULL ? json_pack("[sO]", key, before)
                                                               : json_pack("[sn]", key)) == 0;
        if (ok && json_is_null(offset))
            json_object_del(store->offsets, key);
        else if (ok)
            ok = json_object_set_new(store->offsets, key,
                                     json_pack("[sOO]", conn, partition, offset)) == 0;
    }
    free(key);
    return ok;
}

static void undo(struct local_store *store, size_t keep)
{
    while (json_array_size(store->undo) > keep) {
        json_t *step = json_array_get(store->undo, json_array_size(store->undo) - 1);
        const char *key = json_string_value(json_array_get(step, 0));
        json_t *before = json_array_get(step, 1);

        if (json_is_null(before))
            json_object_del(store->offsets, key);
        else
            json_object_set(store->offsets, key, before);
        json_array_remove(store->undo, json_array_size(store->undo) - 1);
    }
}

/* All offsets of a request, or none and false when memory is short. */
static bool apply_all(struct local_store *store, const struct request *req)
{
    size_t mark = json_array_size(store->undo), i;
    json_t *pair;

    json_array_foreach(req->body, i, pair)
    {
        if (!apply(store, req->conn, json_array_get(pair, 0), json_array_get(pair, 1))) {
            undo(store, mark);
            return false;
        }
    }
    return true;
}

static void take_write(struct local_store *store, struct request *req)
{
    if (apply_all(store, req)) {
        store->waiting[store->waiting_count++] = req;
        return;
    }
    snprintf(req->error, sizeof(req->error), "cannot store offsets: out of memory");
    answer(req);
}

static int write_file(struct local_store *store, struct mr_error *err)
{
    struct buf text;
    int rc;

    buf_init(&text, MAX_BYTES);
    rc = local_store_render(store->offsets, &text);
    if (rc != 0)
        mr_fail(err, rc, "cannot store offsets in %s: more than %zu bytes, or out of memory",
                store->path, MAX_BYTES);
    else
        rc = file_write_atomic(store->path, text.data, text.len, err);
    buf_deinit(&text);
    return rc;
}

/* Bring what was applied to disk. A failure leaves the old file, and the offsets as they are in
 * it. */
static int commit(struct local_store *store, struct mr_error *err)
{
    int rc = json_array_size(store->undo) > 0 ? write_file(store, err) : 0;

    CRASH_POINT(FILE_STORED);
    if (rc != 0)
        undo(store, 0);
    json_array_clear(store->undo);
    return rc;
}

static void answer_write(struct request *req, const char *error)
{
    snprintf(req->error, sizeof(req->error), "%.500s", error);
    json_decref(req->body); /* parts of it live on in the offsets: not the loop's to free */
    req->body = NULL;
    answer(req);
}

/* The joined write made the file too large: only those that do so by themselves are refused. */
static void commit_singly(struct local_store *store)
{
    for (size_t i = 0; i < store->waiting_count; i++) {
        struct request *req = store->waiting[i];
        struct mr_error err = {0};

        if (!apply_all(store, req))
            mr_fail(&err, MR_ERR_NOMEM, "cannot store offsets: out of memory");
        else
            commit(store, &err);
        answer_write(req, err.text);
    }
}

/* One write for all requests that wait. */
static void flush(struct local_store *store)
{
    struct mr_error err = {0};
    int rc = commit(store, &err);

    if (rc == MR_ERR_FULL && store->waiting_count > 1)
        commit_singly(store);
    else
        for (size_t i = 0; i < store->waiting_count; i++)
            answer_write(store->waiting[i], err.text);
    store->waiting_count = 0;
}

static bool find_all(struct local_store *store, const char *conn, json_t *found)
{
    const char *key;
    json_t *entry;
    bool ok = true;

    json_object_foreach(store->offsets, key, entry)
    {
        if (strcmp(json_string_value(json_array_get(entry, 0)), conn) == 0)
            ok = ok && json_array_append_new(found, json_pack("[OO]", json_array_get(entry, 1),
                                                              json_array_get(entry, 2))) == 0;
    }
    return ok;
}

static bool find_some(struct local_store *store, const struct request *req, json_t *found)
{
    json_t *partition;
    bool ok = true;
    size_t i;

    json_array_foreach(req->body, i, partition)
    {
        char *key = key_of(req->conn, partition);
        json_t *entry = key != NULL ? json_object_get(store->offsets, key) : NULL;

        ok = ok && key != NULL &&
             (entry == NULL ||
              json_array_append_new(found,
                                    json_pack("[OO]", partition, json_array_get(entry, 2))) == 0);
        free(key);
    }
    return ok;
}

static void take_read(struct local_store *store, struct request *req)
{
    json_t *found = json_array();

    if (found == NULL || !(json_is_null(req->body) ? find_all(store, req->conn, found)
                                                   : find_some(store, req, found)))
        snprintf(req->error, sizeof(req->error), "cannot read offsets: out of memory");
    json_decref(req->body);
    /* The answer must share nothing with what this thread keeps: jansson's values are not for two
     * threads. */
    req->body = json_deep_copy(found);
    json_decref(found);
    answer(req);
}

static void *run(void *arg)
{
    struct local_store *store = arg;
    struct request *req;

    pthread_setname_np(pthread_self(), "store");
    while ((req = queue_pop(store->queue, -1)) != NULL) {
        do {
            bool write = req->write; /* an answered request is the loop's, and perhaps gone */

            if (write)
                take_write(store, req);
            if (!write || store->waiting_count == BATCH)
                flush(store);
            if (!write)
                take_read(store, req);
        } while ((req = queue_pop(store->queue, 0)) != NULL);
        flush(store);
    }
    return NULL;
}

/* --- the loop's side -------------------------------------------------------------------------- */

static json_t *load(const char *path, struct mr_error *err)
{
    struct buf text;
    json_t *offsets = NULL;
    int rc;

    buf_init(&text, MAX_BYTES);
    rc = file_read(path, &text, err);
    if (rc == MR_ERR_NOT_FOUND) {
        err_clear(err);
        offsets = json_object();
    } else if (rc == 0) {
        offsets = local_store_parse(text.data != NULL ? text.data : "", text.len, path, err);
    }
    buf_deinit(&text);
    return offsets;
}

/* The folder is resolved and the file's own name is not: a write replaces a link by a file of that
 * name. */
static int lock_path_of(const char *path, char *out, size_t size, struct mr_error *err)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n;

    if (slash == NULL)
        n = snprintf(folder, sizeof(folder), ".");
    else
        n = snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (n >= (int)sizeof(folder))
        return mr_fail(err, MR_ERR_IO, "offset file %.200s…: the name is too long", path);
    if (realpath(folder, real) == NULL)
        return err_errno(err, "offset file %s: no folder", path);
    n = snprintf(out, size, "%s/%s.lock", real, slash != NULL ? slash + 1 : path);
    if (n >= (int)size)
        return mr_fail(err, MR_ERR_IO, "offset file %.200s…: the name is too long", path);
    return 0;
}

static int lock(struct local_store *store, struct mr_error *err)
{
    char path[PATH_MAX];
    int64_t pid = 0;
    int rc = lock_path_of(store->path, path, sizeof(path), err);

    if (rc == 0)
        rc = file_lock(path, &store->lock_fd, &pid, err);
    if (rc != MR_ERR_EXISTS)
        return rc;
    err_clear(err);
    return mr_fail(err, rc,
                   "another worker (pid %lld) has the offset file %s open: stop it, or give this "
                   "one an offset.storage.file.filename of its own",
                   (long long)pid, store->path);
}

/* All but the queue and the thread. */
static void store_free(struct local_store *store)
{
    char path[PATH_MAX];

    json_decref(store->offsets);
    json_decref(store->undo);
    if (store->lock_fd >= 0 && lock_path_of(store->path, path, sizeof(path), NULL) == 0)
        file_unlock(path, &store->lock_fd);
    free(store->path);
    free(store);
}

struct local_store *local_store_open(const char *path, struct loop *loop, struct mr_error *err)
{
    struct mr_error own = {0};
    struct local_store *store = calloc(1, sizeof(*store));

    err = err != NULL ? err : &own;
    mr_assert(store != NULL);
    store->loop = loop;
    store->lock_fd = -1;
    store->path = text_dup(path);
    store->undo = json_array();
    mr_assert(store->undo != NULL);
    store->offsets = lock(store, err) == 0 ? load(path, err) : NULL;
    /* Written at once, changed or not: a folder or file that can't be written ends the start, and
     * not the first offset. */
    if (store->offsets != NULL && write_file(store, err) == 0) {
        store->queue = queue_new(MAX_QUEUED);
        errno = thread_start(&store->thread, run, store);
        if (errno == 0)
            return store;
        err_errno(err, "cannot start the store thread");
        queue_free(&store->queue, NULL);
    }
    store_free(store);
    return NULL;
}

void local_store_close(struct local_store **storep)
{
    struct local_store *store = *storep;

    *storep = NULL;
    if (store == NULL)
        return;
    loop_assert_owner(store->loop);
    queue_close(store->queue);
    pthread_join(store->thread, NULL);
    queue_free(&store->queue, NULL);
    while (store->open != NULL)
        tell(store->open);
    store_free(store);
}

/* body: taken, and nobody else's: jansson's values are not for two threads. */
static void ask(struct local_store *store, struct request *req, const char *conn, json_t *body)
{
    loop_assert_owner(store->loop);
    req->store = store;
    req->prev = store->newest;
    *(req->prev != NULL ? &req->prev->next : &store->open) = req;
    store->newest = req;
    req->conn = strdup(conn);
    req->body = body;
    if (req->error[0] == '\0' && (req->conn == NULL || req->body == NULL))
        snprintf(req->error, sizeof(req->error), "out of memory");
    if (req->error[0] == '\0' && queue_push(store->queue, req) == 0)
        return;
    if (req->error[0] == '\0')
        snprintf(req->error, sizeof(req->error), "more than %d requests wait for the offset file",
                 MAX_QUEUED);
    answer(req);
}

static struct request *request_new(void *arg)
{
    struct request *req = calloc(1, sizeof(*req));

    mr_assert(req != NULL);
    req->arg = arg;
    return req;
}

void local_store_get(struct local_store *store, const char *conn, const json_t *partitions,
                     local_store_read_fn fn, void *arg)
{
    struct request *req = request_new(arg);
    json_t *partition;
    size_t i;

    req->read_fn = fn;
    if (!json_is_array(partitions))
        snprintf(req->error, sizeof(req->error), "partitions are not an array");
    json_array_foreach(partitions, i, partition)
    {
        if (!json_is_object(partition))
            snprintf(req->error, sizeof(req->error), "partition %zu is not an object", i);
    }
    ask(store, req, conn, json_deep_copy(partitions));
}

void local_store_list(struct local_store *store, const char *conn, local_store_read_fn fn,
                      void *arg)
{
    struct request *req = request_new(arg);

    req->read_fn = fn;
    ask(store, req, conn, json_null());
}

void local_store_put(struct local_store *store, const char *conn, json_t *entries,
                     local_store_written_fn fn, void *arg)
{
    struct request *req = request_new(arg);
    json_t *entry;
    size_t i;

    req->write = true;
    req->written_fn = fn;
    if (!json_is_array(entries))
        snprintf(req->error, sizeof(req->error), "offsets are not an array");
    json_array_foreach(entries, i, entry)
    {
        const json_t *offset = json_array_get(entry, 1);

        if (json_array_size(entry) != 2 || !json_is_object(json_array_get(entry, 0)) ||
            (!json_is_object(offset) && !json_is_null(offset)))
            snprintf(req->error, sizeof(req->error), "offset %zu is not [object, object or null]",
                     i);
    }
    ask(store, req, conn, entries);
}
