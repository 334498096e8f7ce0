/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of member metadata and assignments, big-endian, in the plain types of Kafka's protocol.
 * Called by the files of the membership and lead.c, on the group thread; the bytes come from other
 * members by way of the broker, so each length is held against what is left. A list takes memory in
 * proportion to the bytes that came.
 *
 * Order as Java writes it: within a connector its own -1 stands first, and connectors with their
 * own -1 come before those with tasks only; in the assigned list the former go by a hash set of
 * their names, everything else by insertion. */
#include "worker/group/connect_protocol.h"

#include "base/utf8.h"
#include "base/java_order.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[CONNECT_KINDS] = {"default", "compatible", "sessioned"};

const char *connect_protocol_name(enum connect_kind kind)
{
    return names[kind];
}

bool connect_protocol_kind(const char *name, enum connect_kind *kind)
{
    for (int i = 0; i < CONNECT_KINDS; i++)
        if (strcmp(names[i], name) == 0) {
            *kind = (enum connect_kind)i;
            return true;
        }
    return false;
}

void connect_protocol_assignment_deinit(struct connect_assignment *assignment)
{
    free(assignment->leader);
    free(assignment->leader_url);
    work_list_deinit(&assignment->assigned);
    work_list_deinit(&assignment->revoked);
    *assignment = (struct connect_assignment){0};
}

void connect_protocol_metadata_deinit(struct connect_metadata *metadata)
{
    free(metadata->url);
    if (metadata->allocation != NULL)
        connect_protocol_assignment_deinit(metadata->allocation);
    free(metadata->allocation);
    *metadata = (struct connect_metadata){0};
}

/* --- writing ---------------------------------------------------------------------------------- */

static int put16(struct buf *out, int16_t value)
{
    uint16_t be = htobe16((uint16_t)value);

    return buf_append(out, &be, sizeof(be));
}

static int put32(struct buf *out, int32_t value)
{
    uint32_t be = htobe32((uint32_t)value);

    return buf_append(out, &be, sizeof(be));
}

static int put64(struct buf *out, int64_t value)
{
    uint64_t be = htobe64((uint64_t)value);

    return buf_append(out, &be, sizeof(be));
}

static int put_text(struct buf *out, const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);

    if (len > INT16_MAX)
        return MR_ERR_TOO_LARGE;
    put16(out, (int16_t)len);
    return len == 0 ? 0 : buf_append(out, text, len);
}

static int put_entry(struct buf *out, const struct work_entry *entry)
{
    int rc = put_text(out, entry->conn);

    put32(out, (int32_t)entry->count);
    for (int tasks = 0; tasks < 2; tasks++)
        for (size_t i = 0; i < entry->count; i++)
            if ((entry->tasks[i] != WORK_LIST_CONNECTOR) == tasks)
                put32(out, entry->tasks[i]);
    return rc;
}

static bool holds_connector(const struct work_entry *entry)
{
    for (size_t i = 0; i < entry->count; i++)
        if (entry->tasks[i] == WORK_LIST_CONNECTOR)
            return true;
    return false;
}

/* Connectors with their own -1 first; gives their number. */
static size_t insertion_order(const struct work_list *list, const struct work_entry **entries)
{
    size_t n = 0;
    size_t connectors = 0;

    for (int tasks_only = 0; tasks_only < 2; tasks_only++) {
        for (size_t i = 0; i < list->count; i++)
            if (holds_connector(&list->entries[i]) != tasks_only)
                entries[n++] = &list->entries[i];
        connectors = tasks_only ? connectors : n;
    }
    return connectors;
}

static int hash_order(const struct work_entry **entries, size_t count)
{
    const struct work_entry **sorted = calloc(count + 1, sizeof(*sorted));
    const char **conns = calloc(count + 1, sizeof(*conns));
    size_t *places = calloc(count + 1, sizeof(*places));
    int rc = MR_ERR_NOMEM;

    if (sorted == NULL || conns == NULL || places == NULL)
        goto out;
    for (size_t i = 0; i < count; i++)
        conns[i] = entries[i] == NULL ? "" : entries[i]->conn;
    rc = java_order_of_set(conns, count, places);
    for (size_t i = 0; rc == 0 && i < count; i++)
        sorted[i] = entries[places[i]];
    if (rc == 0)
        memcpy(entries, sorted, count * sizeof(*entries));
out:
    free(sorted);
    free(conns);
    free(places);
    return rc;
}

static int put_list(struct buf *out, const struct work_list *list, bool by_hash)
{
    const struct work_entry **entries = calloc(list->count + 1, sizeof(*entries));
    int rc = entries == NULL ? MR_ERR_NOMEM : 0;
    size_t connectors = rc == 0 ? insertion_order(list, entries) : 0;

    if (rc == 0 && by_hash)
        rc = hash_order(entries, connectors);
    put32(out, (int32_t)list->count);
    for (size_t i = 0; rc == 0 && i < list->count && entries[i] != NULL; i++)
        rc = put_entry(out, entries[i]);
    free(entries);
    return rc;
}

/* What a writer says in the end: its own failure, or what out remembers of the appends. */
static int written(const struct buf *out, int rc)
{
    if (rc != 0 || !out->failed)
        return rc;
    return out->len >= out->max / 2 ? MR_ERR_FULL : MR_ERR_NOMEM;
}

int connect_protocol_write_assignment(struct buf *out, const struct connect_assignment *assignment)
{
    int rc;

    put16(out, assignment->version);
    put16(out, assignment->error);
    rc = put_text(out, assignment->leader);
    if (rc == 0)
        rc = put_text(out, assignment->leader_url);
    put64(out, assignment->offset);
    if (rc == 0)
        rc = put_list(out, &assignment->assigned, true);
    if (rc == 0 && assignment->version > CONNECT_EAGER)
        rc = put_list(out, &assignment->revoked, false);
    if (assignment->version > CONNECT_EAGER)
        put32(out, assignment->delay_ms);
    return written(out, rc);
}

static int put_allocation(struct buf *out, const struct connect_assignment *allocation)
{
    struct buf inner;
    int rc;

    if (allocation == NULL)
        return put32(out, -1);
    buf_init(&inner, CONNECT_PROTOCOL_MAX_BYTES);
    rc = connect_protocol_write_assignment(&inner, allocation);
    if (rc == 0) {
        put32(out, (int32_t)inner.len);
        buf_append(out, inner.data, inner.len);
    }
    buf_deinit(&inner);
    return rc;
}

int connect_protocol_write_metadata(struct buf *out, const struct connect_metadata *metadata)
{
    int rc;

    put16(out, metadata->version);
    rc = put_text(out, metadata->url);
    put64(out, metadata->offset);
    if (rc == 0 && metadata->version > CONNECT_EAGER)
        rc = put_allocation(out, metadata->allocation);
    return written(out, rc);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Where the reading stands. After the first failure every further read gives 0 or NULL. */
struct reader {
    const unsigned char *at;
    size_t left;
    int rc;
    struct mr_error *err;
};

static bool spoil(struct reader *in, int code, const char *field, const char *what)
{
    if (in->rc == 0) {
        in->rc = code;
        mr_fail(in->err, code, "group protocol: field '%s': %s", field, what);
    }
    return false;
}

static const unsigned char *take(struct reader *in, size_t len, const char *field)
{
    const unsigned char *at = in->at;

    if (in->rc == 0 && len > in->left)
        spoil(in, MR_ERR_PROTOCOL, field, "the bytes end before it does");
    if (in->rc != 0)
        return NULL;
    in->at += len;
    in->left -= len;
    return at;
}

static int64_t get(struct reader *in, size_t size, const char *field)
{
    const unsigned char *p = take(in, size, field);
    uint64_t value = p != NULL && p[0] >= 0x80 ? UINT64_MAX : 0;

    for (size_t i = 0; p != NULL && i < size; i++)
        value = (value << 8) | p[i];
    return (int64_t)value;
}

static const char *get_text(struct reader *in, const char *field, size_t *len)
{
    int64_t size = get(in, 2, field);
    const char *text;

    *len = size < 0 ? 0 : (size_t)size;
    if (in->rc == 0 && size < 0)
        spoil(in, MR_ERR_PROTOCOL, field, "a text of negative length");
    text = (const char *)take(in, *len, field);
    if (text != NULL && (memchr(text, '\0', *len) != NULL || !utf8_valid(text, *len)))
        spoil(in, MR_ERR_PROTOCOL, field, "not UTF-8");
    return in->rc == 0 ? text : NULL;
}

static char *get_dup(struct reader *in, const char *field)
{
    size_t len = 0;
    const char *text = get_text(in, field, &len);
    char *copy = text == NULL ? NULL : strndup(text, len);

    if (text != NULL && copy == NULL)
        spoil(in, MR_ERR_NOMEM, field, "out of memory");
    return copy;
}

/* The number of elements; each takes at least one byte, which bounds it. -1: null. */
static int64_t get_count(struct reader *in, bool nullable, const char *field)
{
    int64_t count = get(in, 4, field);

    if (in->rc != 0 || (count < 0 && nullable))
        return -1;
    if (count < 0)
        spoil(in, MR_ERR_PROTOCOL, field, "a negative number of elements");
    if (count > (int64_t)in->left)
        spoil(in, MR_ERR_PROTOCOL, field, "more elements than bytes");
    return in->rc == 0 ? count : -1;
}

static void get_entry(struct reader *in, struct work_list *list)
{
    size_t len = 0;
    const char *conn = get_text(in, "connector", &len);
    int64_t tasks = get_count(in, false, "tasks");
    struct work_entry *entry = in->rc == 0 ? work_list_open(list, conn, len) : NULL;

    if (in->rc == 0 && entry == NULL)
        spoil(in, MR_ERR_NOMEM, "connector", "out of memory");
    for (int64_t i = 0; in->rc == 0 && i < tasks; i++) {
        int32_t task = (int32_t)get(in, 4, "tasks");

        if (in->rc == 0 && work_list_push(list, entry, task) != 0)
            spoil(in, MR_ERR_NOMEM, "tasks", "out of memory");
        if (in->rc == 0 && list->items > CONNECT_PROTOCOL_MAX_ITEMS)
            spoil(in, MR_ERR_PROTOCOL, "tasks", "too many");
    }
    if (in->rc == 0 && list->count > CONNECT_PROTOCOL_MAX_ITEMS)
        spoil(in, MR_ERR_PROTOCOL, "connector", "too many");
}

static void get_list(struct reader *in, bool nullable, struct work_list *list, const char *field)
{
    int64_t count = get_count(in, nullable, field);

    for (int64_t i = 0; in->rc == 0 && i < count; i++)
        get_entry(in, list);
}

static int16_t get_version(struct reader *in)
{
    int16_t version = (int16_t)get(in, 2, "version");

    if (in->rc == 0 && version < 0)
        spoil(in, MR_ERR_PROTOCOL, "version", "unsupported, it is negative");
    return version;
}

static void get_cooperative_lists(struct reader *in, struct connect_assignment *out)
{
    if (in->left > 0)
        get_list(in, true, &out->assigned, "assignment");
    if (in->left > 0)
        get_list(in, true, &out->revoked, "revoked");
    if (in->left > 0)
        out->delay_ms = (int32_t)get(in, 4, "delay");
}

static struct reader reader_of(const void *data, size_t len, struct mr_error *err)
{
    struct reader in = {.at = data, .left = len, .err = err};

    if (len > CONNECT_PROTOCOL_MAX_BYTES)
        spoil(&in, MR_ERR_TOO_LARGE, "all", "more than 4 MiB");
    return in;
}

int connect_protocol_read_assignment(const void *data, size_t len, bool eager,
                                     struct connect_assignment *out, struct mr_error *err)
{
    struct reader in = reader_of(data, len, err);
    struct connect_assignment read = {.version = get_version(&in)};

    read.error = (int16_t)get(&in, 2, "error");
    read.leader = get_dup(&in, "leader");
    read.leader_url = get_dup(&in, "leader-url");
    read.offset = get(&in, 8, "config-offset");
    if (in.rc == 0 && eager)
        get_list(&in, false, &read.assigned, "assignment");
    else if (in.rc == 0)
        get_cooperative_lists(&in, &read);
    if (in.rc != 0)
        connect_protocol_assignment_deinit(&read);
    else
        *out = read;
    return in.rc;
}

/* Zero bytes are no allocation but an error, as in Java. */
static void get_allocation(struct reader *in, struct connect_metadata *out)
{
    int64_t len = get(in, 4, "allocation");
    const unsigned char *bytes = len < 0 ? NULL : take(in, (size_t)len, "allocation");

    if (bytes == NULL)
        return;
    out->allocation = calloc(1, sizeof(*out->allocation));
    if (out->allocation == NULL)
        spoil(in, MR_ERR_NOMEM, "allocation", "out of memory");
    else
        in->rc =
            connect_protocol_read_assignment(bytes, (size_t)len, false, out->allocation, in->err);
}

int connect_protocol_read_metadata(const void *data, size_t len, bool eager,
                                   struct connect_metadata *out, struct mr_error *err)
{
    struct reader in = reader_of(data, len, err);
    struct connect_metadata read = {.version = get_version(&in)};

    read.url = get_dup(&in, "url");
    read.offset = get(&in, 8, "config-offset");
    if (in.rc == 0 && !eager && in.left > 0)
        get_allocation(&in, &read);
    if (in.rc != 0)
        connect_protocol_metadata_deinit(&read);
    else
        *out = read;
    return in.rc;
}
