/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one frame: body length (u32), kind (u16), 0 (u16), little endian, then the body.
 * Pure. */
#ifndef LINK_FRAME_H
#define LINK_FRAME_H

#include "base/buf.h"
#include "link/msg.h"

#define FRAME_HEAD 8

struct frame {
    uint32_t kind;
    const char *body; /* into the input */
    size_t body_len;
    size_t size; /* head and body: what to consume */
};

/* Look at the front of what arrived. 1 and *out: a whole frame; 0: more bytes needed;
 * MR_ERR_PROTOCOL: unknown kind, wrong direction, body above the kind's cap, or a kind that `state`
 * does not allow: the sender is broken. */
int frame_decode(const char *data, size_t len, bool from_host, uint32_t state, struct frame *out,
                 struct mr_error *err);

int frame_encode(struct buf *out, enum msg_kind kind, const char *body, size_t len);

#endif
