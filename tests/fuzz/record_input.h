/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a topic, many in one input of a fuzzer: a byte with the key's length (0xff: no key),
 * two with the value's (0xffff: no value), key, value; whatever is cut short ends with the input.
 * And what was rendered twice, to be the same. */
#ifndef FUZZ_RECORD_INPUT_H
#define FUZZ_RECORD_INPUT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>
#include <string.h>

struct record_input {
    const uint8_t *data;
    size_t len;
    const uint8_t *key, *value; /* of the record that was taken last; NULL none */
    size_t key_len, value_len;
};

static inline const uint8_t *record_input_part(struct record_input *in, bool none, size_t *len)
{
    const uint8_t *part = in->data;

    *len = none ? 0 : *len < in->len ? *len : in->len;
    in->data += *len;
    in->len -= *len;
    return none ? NULL : part;
}

/* The next record, of an input that begins as {.data, .len}; false: that was the last. */
static inline bool record_input_next(struct record_input *in)
{
    if (in->len < 3)
        return false;
    in->key_len = in->data[0];
    in->value_len = (size_t)in->data[1] << 8 | in->data[2];
    in->data += 3;
    in->len -= 3;
    in->key = record_input_part(in, in->key_len == 0xff, &in->key_len);
    in->value = record_input_part(in, in->value_len == 0xffff, &in->value_len);
    return true;
}

struct record_bytes {
    struct buf key, value;
};

static inline void record_bytes_init(struct record_bytes *bytes)
{
    buf_init(&bytes->key, (size_t)1 << 20);
    buf_init(&bytes->value, (size_t)1 << 20);
}

static inline void record_bytes_deinit(struct record_bytes *bytes)
{
    buf_deinit(&bytes->key);
    buf_deinit(&bytes->value);
}

static inline void record_bytes_same(const struct record_bytes *a, const struct record_bytes *b)
{
    mr_assert(a->key.len == b->key.len && memcmp(a->key.data, b->key.data, a->key.len) == 0);
    mr_assert(a->value.len == b->value.len &&
              (a->value.len == 0 || memcmp(a->value.data, b->value.data, a->value.len) == 0));
}

#endif
