/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's non-flexible encoding: big-endian numbers, texts behind an INT16, bytes and arrays behind
 * an INT32. Pure. Errors are sticky on both sides: a run of calls is checked once, at its end. */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "base/buf.h"
#include "wire/wire_arena.h"

/* Borrowed bytes; data is NULL for a null, and may be NULL when len is 0. */
struct codec_bytes {
    const uint8_t *data;
    size_t len;
};

/* --- reading: what a broker sent -------------------------------------------------------------- */

/* Reads from len bytes that outlive the reader. After the first fault every call gives 0, false,
 * NULL or no bytes, and `fault` says what was wrong. Texts and arrays come from `arena`. */
struct codec_reader {
    const uint8_t *at;
    const uint8_t *end;
    const char *fault; /* NULL: none so far; a constant, in words */
    struct wire_arena *arena;
};

void codec_reader_init(struct codec_reader *r, const void *data, size_t len,
                       struct wire_arena *arena);
bool codec_get_bool(struct codec_reader *r);
int8_t codec_get_i8(struct codec_reader *r);
int16_t codec_get_i16(struct codec_reader *r);
int32_t codec_get_i32(struct codec_reader *r);
int64_t codec_get_i64(struct codec_reader *r);
/* A copy that ends with NUL. Text that is not UTF-8 or holds a NUL is a fault. text: null is a
 * fault; null_text: null is NULL, without a fault. "" after a fault, so that nobody trips over
 * NULL. */
const char *codec_get_text(struct codec_reader *r);
const char *codec_get_null_text(struct codec_reader *r);
void codec_skip_text(struct codec_reader *r); /* whatever is in it */
/* Borrowed from the data; null: no bytes. */
struct codec_bytes codec_get_bytes(struct codec_reader *r);
/* Count of an array whose elements take at least min_bytes (1 or more) each: one that the rest of
 * the data cannot hold is a fault, seen before anything is allocated. A null array counts 0. */
size_t codec_get_count(struct codec_reader *r, size_t min_bytes);
/* As codec_get_count, with zeroed room for the elements; NULL when there are none. */
void *codec_get_array(struct codec_reader *r, size_t min_bytes, size_t item_bytes, size_t *count);
/* At the end: 0 when all was well and nothing is left over, else MR_ERR_PROTOCOL with the fault's
 * words. */
int codec_reader_end(const struct codec_reader *r, struct mr_error *err);
void codec_fault(struct codec_reader *r, const char *fault); /* constant; the first one stays */

/* --- writing: what a broker shall get --------------------------------------------------------- */

/* All append to out, whose cap and sticky `failed` hold; texts longer than 32767 bytes fail it. */
void codec_put_bool(struct buf *out, bool value);
void codec_put_i8(struct buf *out, int8_t value);
void codec_put_i16(struct buf *out, int16_t value);
void codec_put_i32(struct buf *out, int32_t value);
void codec_put_i64(struct buf *out, int64_t value);
void codec_put_text(struct buf *out, const char *text); /* NULL: null */
void codec_put_bytes(struct buf *out, struct codec_bytes bytes);
void codec_put_count(struct buf *out, size_t count); /* of an array */

#endif
