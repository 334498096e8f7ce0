/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's non-flexible types, read and written.
 *
 * Reading is for bytes that a broker sent and that may be anything: every step first looks whether
 * the bytes are there, a count must fit into what is left, a text must be UTF-8 without NUL. The
 * first fault empties the reader, so that loops over what is left end by themselves. Used by
 * request_*.c, on the thread of the connection. Pure. */
#include "wire/codec.h"

#include "base/utf8.h"

#include <string.h>

/* --- reading ---------------------------------------------------------------------------------- */

void codec_reader_init(struct codec_reader *r, const void *data, size_t len,
                       struct wire_arena *arena)
{
    static const uint8_t none[1];
    const uint8_t *at = len > 0 ? data : none;

    *r = (struct codec_reader){.at = at, .end = at + len, .arena = arena};
}

void codec_fault(struct codec_reader *r, const char *fault)
{
    if (r->fault == NULL)
        r->fault = fault;
    r->at = r->end;
}

static size_t left(const struct codec_reader *r)
{
    return (size_t)(r->end - r->at);
}

static uint64_t get_number(struct codec_reader *r, size_t bytes)
{
    uint64_t value = 0;

    if (left(r) < bytes) {
        codec_fault(r, "it ends too early");
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | *r->at++;
    return value;
}

bool codec_get_bool(struct codec_reader *r)
{
    return get_number(r, 1) != 0;
}

int8_t codec_get_i8(struct codec_reader *r)
{
    return (int8_t)get_number(r, 1);
}

int16_t codec_get_i16(struct codec_reader *r)
{
    return (int16_t)get_number(r, 2);
}

int32_t codec_get_i32(struct codec_reader *r)
{
    return (int32_t)get_number(r, 4);
}

int64_t codec_get_i64(struct codec_reader *r)
{
    return (int64_t)get_number(r, 8);
}

/* A length of bytes that follow. false: null, or a fault. */
static bool get_length(struct codec_reader *r, int64_t length, size_t *len)
{
    if (length == -1 || r->fault != NULL)
        return false;
    if (length < 0)
        codec_fault(r, "a length is negative");
    else if ((uint64_t)length > left(r))
        codec_fault(r, "a length goes beyond its end");
    else
        *len = (size_t)length;
    return r->fault == NULL;
}

const char *codec_get_null_text(struct codec_reader *r)
{
    size_t len;
    char *copy;

    if (!get_length(r, codec_get_i16(r), &len))
        return r->fault != NULL ? "" : NULL;
    if (memchr(r->at, 0, len) != NULL || !utf8_valid((const char *)r->at, len)) {
        codec_fault(r, "a text is not UTF-8");
        return "";
    }
    copy = wire_arena_get(r->arena, len + 1, 1);
    if (copy == NULL) {
        codec_fault(r, "it is too large");
        return "";
    }
    memcpy(copy, r->at, len);
    r->at += len;
    return copy;
}

void codec_skip_text(struct codec_reader *r)
{
    size_t len;

    if (get_length(r, codec_get_i16(r), &len))
        r->at += len;
}

const char *codec_get_text(struct codec_reader *r)
{
    const char *text = codec_get_null_text(r);

    if (text != NULL)
        return text;
    codec_fault(r, "a text is null that may not be");
    return "";
}

struct codec_bytes codec_get_bytes(struct codec_reader *r)
{
    struct codec_bytes bytes = {0};
    size_t len;

    if (!get_length(r, codec_get_i32(r), &len))
        return bytes;
    bytes = (struct codec_bytes){.data = r->at, .len = len};
    r->at += len;
    return bytes;
}

size_t codec_get_count(struct codec_reader *r, size_t min_bytes)
{
    int32_t count = codec_get_i32(r);

    if (count == -1 || r->fault != NULL)
        return 0;
    if (count < 0)
        codec_fault(r, "a count is negative");
    else if ((uint64_t)(uint32_t)count > left(r) / min_bytes)
        codec_fault(r, "a count goes beyond its end");
    return r->fault == NULL ? (size_t)count : 0;
}

void *codec_get_array(struct codec_reader *r, size_t min_bytes, size_t item_bytes, size_t *count)
{
    void *items = NULL;

    *count = codec_get_count(r, min_bytes);
    if (*count > 0)
        items = wire_arena_get(r->arena, *count, item_bytes);
    if (*count > 0 && items == NULL) {
        codec_fault(r, "it is too large");
        *count = 0;
    }
    return items;
}

int codec_reader_end(const struct codec_reader *r, struct mr_error *err)
{
    if (r->fault != NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "%s", r->fault);
    if (left(r) > 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "%zu bytes are left over at its end", left(r));
    return 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_number(struct buf *out, uint64_t value, size_t bytes)
{
    unsigned char text[8];

    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
    buf_append(out, text, bytes);
}

void codec_put_bool(struct buf *out, bool value)
{
    put_number(out, value, 1);
}

void codec_put_i8(struct buf *out, int8_t value)
{
    put_number(out, (uint64_t)value, 1);
}

void codec_put_i16(struct buf *out, int16_t value)
{
    put_number(out, (uint64_t)value, 2);
}

void codec_put_i32(struct buf *out, int32_t value)
{
    put_number(out, (uint64_t)value, 4);
}

void codec_put_i64(struct buf *out, int64_t value)
{
    put_number(out, (uint64_t)value, 8);
}

void codec_put_text(struct buf *out, const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;

    if (len > INT16_MAX) {
        out->failed = true;
        return;
    }
    codec_put_i16(out, text != NULL ? (int16_t)len : -1);
    buf_append(out, text, len);
}

void codec_put_bytes(struct buf *out, struct codec_bytes bytes)
{
    if (bytes.len > INT32_MAX) {
        out->failed = true;
        return;
    }
    codec_put_i32(out, (int32_t)bytes.len);
    buf_append(out, bytes.data, bytes.len);
}

void codec_put_count(struct buf *out, size_t count)
{
    if (count > INT32_MAX)
        out->failed = true;
    codec_put_i32(out, (int32_t)count);
}
