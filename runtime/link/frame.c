/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: eight bytes of head, then a body. Used by chan.c on both ends of the link. Pure.
 *
 * The head alone decides: kind, direction, state and length are judged as soon as eight bytes are
 * there, so a broken peer is found out before a body is waited for, and no more is ever buffered
 * than the cap of the kind it named. */
#include "link/frame.h"

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t get_u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static const char *state_text(uint32_t state)
{
    if (state == MSG_STATE_HELLO)
        return "before the greeting";
    return state == MSG_STATE_DRAINING ? "while draining" : "after the greeting";
}

static int check_head(uint32_t kind, uint32_t len, bool from_host, uint32_t state,
                      struct mr_error *err)
{
    const struct msg_rule *rule = msg_rule(kind);

    if (rule == NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "unknown kind of frame %u", kind);
    if (rule->from_host != from_host)
        return mr_fail(err, MR_ERR_PROTOCOL, "frame %s came from the wrong side", rule->name);
    if ((rule->states & state) == 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "frame %s is not allowed %s", rule->name,
                       state_text(state));
    if (len > rule->max_body)
        return mr_fail(err, MR_ERR_PROTOCOL, "frame %s of %u bytes is above its cap of %u",
                       rule->name, len, rule->max_body);
    return 0;
}

int frame_decode(const char *data, size_t len, bool from_host, uint32_t state, struct frame *out,
                 struct mr_error *err)
{
    const unsigned char *head = (const unsigned char *)data;
    uint32_t body_len, kind;
    int rc;

    if (len < FRAME_HEAD)
        return 0;
    body_len = get_u32(head);
    kind = get_u16(head + 4);
    if (get_u16(head + 6) != 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "the head of a frame is damaged");
    rc = check_head(kind, body_len, from_host, state, err);
    if (rc != 0)
        return rc;
    if (len - FRAME_HEAD < body_len)
        return 0;
    *out = (struct frame){
        .kind = kind,
        .body = data + FRAME_HEAD,
        .body_len = body_len,
        .size = FRAME_HEAD + (size_t)body_len,
    };
    return 1;
}

int frame_encode(struct buf *out, enum msg_kind kind, const char *body, size_t len)
{
    const struct msg_rule *rule = msg_rule(kind);
    unsigned char head[FRAME_HEAD] = {0};
    int rc;

    mr_assert(rule != NULL);
    if (len > rule->max_body)
        return MR_ERR_TOO_LARGE;
    for (size_t i = 0; i < 4; i++)
        head[i] = (unsigned char)(len >> (8 * i));
    head[4] = (unsigned char)kind;
    head[5] = (unsigned char)((unsigned)kind >> 8);
    rc = buf_reserve(out, FRAME_HEAD + len);
    if (rc != 0)
        return rc;
    rc = buf_append(out, head, FRAME_HEAD);
    if (rc == 0 && len > 0)
        rc = buf_append(out, body, len);
    return rc;
}
