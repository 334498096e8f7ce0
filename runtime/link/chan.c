/* SPDX-License-Identifier: Apache-2.0 */
/* One end of the link: reads frames off a stream socket, has frame.c judge each by the table of
 * msg.h, parses the body and hands it on; queues frames the other way. Both the supervisor (for
 * each host) and a host's control thread hold one.
 * Thread: the loop's.
 *
 *   bytes ─► in ─► frame_decode ─► JSON object ─► events.frame
 *   chan_send_take ─► out ─► socket
 *
 * Invariants
 * - Never blocks, and never does much at once: per wake-up one read of CHUNK bytes and BATCH
 *   frames, per window of WINDOW_MS only WINDOW_FRAMES and WINDOW_BYTES. Beyond that the socket is
 *   left unread, which slows the sender.
 * - A frame that breaks a rule closes the channel with the reason; nothing after it is looked at.
 * - End of file is told after everything that arrived before it was delivered.
 * - events.closed comes once, always from the loop, never from inside a call of ours. chan_free
 *   inside a callback is allowed: the memory goes when the callback has returned. */
#include "link/chan.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHAN_MAGIC 0x6368616eu
#define CHUNK (64u * 1024)
#define BATCH 64
#define WINDOW_MS 50
#define WINDOW_FRAMES 512
#define WINDOW_BYTES (1024u * 1024)
#define OUT_MAX (32u * 1024 * 1024)
#define IN_MAX (FRAME_HEAD + 4u * 1024 * 1024 + CHUNK)
#define KEEP_BYTES (256u * 1024) /* a buffer that grew beyond this is given back when empty */
#define VALUES_MAX 250000        /* JSON values in one body: bounds the memory that parsing takes */

struct chan {
    unsigned magic;
    struct loop *loop;
    int fd;
    struct loop_fd *watch; /* NULL: end of file was seen, or closed */
    bool from_host;
    enum msg_state state;
    const struct chan_events *events;
    void *arg;
    struct buf in;
    size_t in_at; /* bytes of in that are done with */
    struct buf out;
    size_t out_at;
    struct loop_timer later; /* go on with what is buffered; reading rests until then */
    bool resting;
    bool eof;
    bool closed;
    int calls;         /* callbacks under way */
    bool freed;        /* by its owner inside one of them */
    int64_t window_ms; /* when this window began */
    size_t window_frames;
    size_t window_bytes;
};

static void on_later(void *arg);

static void set_interest(struct chan *ch)
{
    uint32_t events = 0;

    if (ch->watch == NULL)
        return;
    if (!ch->resting)
        events |= EPOLLIN;
    if (ch->out_at < ch->out.len)
        events |= EPOLLOUT;
    loop_fd_events(ch->watch, events);
}

static void shut(struct chan *ch)
{
    if (ch->closed)
        return;
    ch->closed = true;
    loop_timer_cancel(&ch->later);
    loop_fd_remove(&ch->watch);
    close(ch->fd);
    ch->fd = -1;
    buf_deinit(&ch->in);
    buf_deinit(&ch->out);
    ch->in_at = ch->out_at = 0;
}

static void destroy(struct chan *ch)
{
    ch->magic = 0;
    free(ch);
}

static void call_ended(struct chan *ch)
{
    ch->calls--;
    if (ch->calls == 0 && ch->freed)
        destroy(ch);
}

static void tell_closed(struct chan *ch, const struct mr_error *err)
{
    shut(ch);
    ch->events->closed(ch->arg, err);
}

/* Read nothing more for now; go on with what is here in delay_ms. */
static void rest(struct chan *ch, int64_t delay_ms)
{
    ch->resting = true;
    loop_timer_start(ch->loop, &ch->later, delay_ms, on_later, ch);
    set_interest(ch);
}

/* How long the budget of this window is used up for; 0: there is some left. */
static int64_t window_wait(struct chan *ch)
{
    int64_t now = loop_now_ms(ch->loop);
    int64_t left = ch->window_ms + WINDOW_MS - now;

    if (left <= 0) {
        ch->window_ms = now;
        ch->window_frames = ch->window_bytes = 0;
        return 0;
    }
    return ch->window_frames < WINDOW_FRAMES && ch->window_bytes < WINDOW_BYTES ? 0 : left;
}

/* Upper bound of the values in a body, without parsing it: a parsed value costs tens of times its
 * bytes. */
static bool too_many_values(const char *body, size_t len)
{
    size_t count = 0;
    bool text = false;

    for (size_t i = 0; i < len; i++) {
        if (body[i] == '"')
            text = !text;
        else if (text && body[i] == '\\')
            i++;
        else if (!text && (body[i] == ',' || body[i] == '[' || body[i] == '{' || body[i] == ':'))
            count++;
    }
    return count > VALUES_MAX;
}

static json_t *parse_body(const struct frame *frame, struct mr_error *err)
{
    json_t *body;

    if (frame->body_len == 0)
        return json_object();
    if (too_many_values(frame->body, frame->body_len)) {
        mr_fail(err, MR_ERR_PROTOCOL, "the body holds more than %d values", VALUES_MAX);
        return NULL;
    }
    body = json_parse(frame->body, frame->body_len, err);
    if (body != NULL && !json_is_object(body)) {
        json_decref(body);
        mr_fail(err, MR_ERR_PROTOCOL, "the body is not a JSON object");
        return NULL;
    }
    return body;
}

static int deliver(struct chan *ch, const struct frame *frame, struct mr_error *err)
{
    json_t *body = parse_body(frame, err);

    if (body == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
        err_prefix(err, "frame %s", msg_rule(frame->kind)->name);
        return err->code;
    }
    ch->window_frames++;
    ch->events->frame(ch->arg, (enum msg_kind)frame->kind, body);
    json_decref(body);
    return 0;
}

/* Drop the bytes in front once they are worth the move. */
static void compact(struct buf *b, size_t *at)
{
    if (*at == b->len) {
        if (b->cap > KEEP_BYTES)
            buf_deinit(b);
        else
            buf_reset(b);
        *at = 0;
    } else if (*at >= b->len / 2) {
        buf_consume(b, *at);
        *at = 0;
    }
}

/* Deliver whole frames, at most BATCH. 1: there may be more, 0: none for now, negative: the peer is
 * broken. The frame callback may close or free the channel; both end the loop. */
static int take_frames(struct chan *ch, struct mr_error *err)
{
    for (int i = 0; i < BATCH; i++) {
        struct frame frame;
        int rc =
            frame_decode(ch->in.data == NULL ? "" : ch->in.data + ch->in_at, ch->in.len - ch->in_at,
                         ch->from_host, (uint32_t)ch->state, &frame, err);

        if (rc <= 0)
            return rc;
        rc = deliver(ch, &frame, err);
        if (rc != 0 || ch->closed)
            return rc;
        ch->in_at += frame.size;
    }
    return 1;
}

static void work(struct chan *ch)
{
    struct mr_error err = {0};
    int rc;

    ch->calls++;
    rc = take_frames(ch, &err);
    if (ch->closed) {
        call_ended(ch);
        return;
    }
    compact(&ch->in, &ch->in_at);
    if (rc < 0)
        tell_closed(ch, &err);
    else if (rc > 0)
        rest(ch, window_wait(ch));
    else if (ch->eof)
        tell_closed(ch, NULL);
    call_ended(ch);
}

static void on_later(void *arg)
{
    struct chan *ch = arg;

    mr_assert(ch->magic == CHAN_MAGIC);
    ch->resting = false;
    set_interest(ch);
    work(ch);
}

static void end_of_file(struct chan *ch)
{
    ch->eof = true;
    loop_fd_remove(&ch->watch);
}

static void receive(struct chan *ch, bool hung_up)
{
    int64_t wait = window_wait(ch);
    ssize_t n;

    /* A peer that hung up can't send any more: what the socket still holds is little, and reading
     * on ends the event. */
    if (wait > 0 && !hung_up) {
        rest(ch, wait);
        return;
    }
    compact(&ch->in, &ch->in_at);
    if (buf_reserve(&ch->in, CHUNK) != 0) {
        struct mr_error err = {0};

        mr_fail(&err, MR_ERR_NOMEM, "out of memory while reading the link");
        ch->calls++;
        tell_closed(ch, &err);
        call_ended(ch);
        return;
    }
    n = recv(ch->fd, ch->in.data + ch->in.len, CHUNK, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_of_file(ch);
    } else {
        ch->in.len += (size_t)n;
        ch->in.data[ch->in.len] = '\0';
        ch->window_bytes += (size_t)n;
    }
    work(ch);
}

/* A failed write says nothing that the reading side won't say better, after what the peer wrote
 * last. */
static void flush_out(struct chan *ch)
{
    while (ch->out_at < ch->out.len) {
        ssize_t n = send(ch->fd, ch->out.data + ch->out_at, ch->out.len - ch->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            ch->out_at = ch->out.len;
        if (n < 0)
            break;
        ch->out_at += (size_t)n;
    }
    compact(&ch->out, &ch->out_at);
    set_interest(ch);
}

static void on_fd(void *arg, uint32_t events)
{
    struct chan *ch = arg;

    mr_assert(ch->magic == CHAN_MAGIC);
    if (events & EPOLLOUT)
        flush_out(ch);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(ch, (events & (EPOLLHUP | EPOLLERR)) != 0);
}

static int put_frame(struct chan *ch, enum msg_kind kind, const json_t *body)
{
    struct buf text;
    int rc = 0;

    buf_init(&text, msg_rule(kind)->max_body);
    if (body != NULL)
        rc = json_write(&text, body);
    if (rc == MR_ERR_FULL) {
        rc = MR_ERR_TOO_LARGE;
    } else if (rc == 0) {
        if (ch->out.max - ch->out.len < FRAME_HEAD + text.len) {
            buf_consume(&ch->out, ch->out_at);
            ch->out_at = 0;
        }
        rc = frame_encode(&ch->out, kind, text.data, text.len);
        ch->out.failed = false;
    }
    buf_deinit(&text);
    return rc;
}

int chan_send_take(struct chan *ch, enum msg_kind kind, json_t *body)
{
    int rc;

    loop_assert_owner(ch->loop);
    mr_assert(msg_rule((uint32_t)kind) != NULL &&
              msg_rule((uint32_t)kind)->from_host != ch->from_host);
    rc = ch->closed || ch->eof ? MR_ERR_CLOSED : put_frame(ch, kind, body);
    json_decref(body);
    if (rc == 0)
        set_interest(ch);
    return rc;
}

bool chan_idle(const struct chan *ch)
{
    return ch->out_at == ch->out.len;
}

void chan_set_state(struct chan *ch, enum msg_state state)
{
    ch->state = state;
}

struct chan *chan_new(struct loop *loop, int fd, bool from_host, const struct chan_events *events,
                      void *arg, struct mr_error *err)
{
    struct chan *ch = calloc(1, sizeof(*ch));

    if (ch == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a link");
        close(fd);
        return NULL;
    }
    *ch = (struct chan){.magic = CHAN_MAGIC,
                        .loop = loop,
                        .fd = fd,
                        .from_host = from_host,
                        .state = MSG_STATE_HELLO,
                        .events = events,
                        .arg = arg};
    buf_init(&ch->in, IN_MAX);
    buf_init(&ch->out, OUT_MAX);
    ch->watch = loop_fd_add(loop, fd, EPOLLIN, on_fd, ch, err);
    if (ch->watch == NULL) {
        close(fd);
        free(ch);
        return NULL;
    }
    return ch;
}

void chan_free(struct chan **chp)
{
    struct chan *ch = *chp;

    *chp = NULL;
    if (ch == NULL)
        return;
    mr_assert(ch->magic == CHAN_MAGIC);
    shut(ch);
    if (ch->calls > 0)
        ch->freed = true;
    else
        destroy(ch);
}
