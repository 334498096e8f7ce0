/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one pipe of a host (two per child.c) and logs its lines. Worker's loop thread.
 *
 *   pipe ─► chunk ─► lines ─┬─ relay form of base/log.h ─► the host's logger, level and task
 *                           └─ anything else ────────────► plugin.stdout / plugin.stderr at INFO
 *
 * Two budgets, both refilled with time: bytes read and lines logged. Without bytes left the pipe is
 * not even polled, so that a plugin which writes 100 MB/s fills its own pipe, loses its own output
 * and costs the worker nothing; without lines left what was read is dropped and counted, and the
 * count logged every ten seconds. A line is cut at LINE_BYTES. All of it is foreign text: it is
 * made printable, and a logger's name is believed only if it looks like one. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/output.h"

#include "base/clock.h"
#include "base/log.h"
#include "link/printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CHUNK 16384
#define LINE_BYTES 4000
#define BYTES_PER_SECOND (256 * 1024)
#define BYTES_BURST (1024 * 1024)
#define LINES_PER_SECOND 200
#define LINES_BURST 2000
#define REST_MS 250 /* not polled for so long when the bytes are used up */
#define REPORT_MS 10000
#define TAIL_LINES 8 /* kept for the obituary */
#define TAIL_LINE_BYTES 240
#define FINISH_BYTES (128 * 1024)

struct output {
    struct loop *loop;
    int fd;
    struct loop_fd *watch; /* NULL: end of file */
    const char *conn;
    const char *logger;
    struct loop_timer rest;
    struct loop_timer report;
    int64_t bytes_left;
    int64_t lines_left;
    int64_t refilled_ms;
    char line[LINE_BYTES + 1];
    size_t line_len;
    bool cut;               /* the line is longer: skip to its end */
    uint64_t dropped_bytes; /* in all */
    uint64_t dropped_lines;
    uint64_t told_bytes; /* of those, already logged */
    uint64_t told_lines;
    char tail[TAIL_LINES][TAIL_LINE_BYTES + 1];
    size_t tail_count; /* lines remembered in all: the newest is at (tail_count - 1) % TAIL_LINES */
};

static void refill(struct output *out)
{
    int64_t now = clock_ms();
    int64_t passed = now - out->refilled_ms;

    if (passed < 10)
        return;
    if (passed > 60000)
        passed = 60000;
    out->refilled_ms = now;
    out->bytes_left += passed * BYTES_PER_SECOND / 1000;
    out->lines_left += passed * LINES_PER_SECOND / 1000;
    if (out->bytes_left > BYTES_BURST)
        out->bytes_left = BYTES_BURST;
    if (out->lines_left > LINES_BURST)
        out->lines_left = LINES_BURST;
}

static void tell_dropped(struct output *out)
{
    uint64_t lines = out->dropped_lines - out->told_lines;
    uint64_t bytes = out->dropped_bytes - out->told_bytes;

    if (bytes == 0)
        return;
    out->told_lines = out->dropped_lines;
    out->told_bytes = out->dropped_bytes;
    log_write_for(LOG_WARN, LOGGER, out->conn, -1,
                  "%s: %llu bytes were dropped (%llu whole lines): at most %d lines a second and "
                  "%d bytes a line are logged",
                  out->logger, (unsigned long long)bytes, (unsigned long long)lines,
                  LINES_PER_SECOND, LINE_BYTES);
}

static void on_report(void *arg)
{
    tell_dropped(arg);
}

static void drop(struct output *out, size_t bytes, bool line)
{
    out->dropped_bytes += bytes;
    out->dropped_lines += line ? 1 : 0;
    if (bytes > 0 && out->report.slot == 0)
        loop_timer_start(out->loop, &out->report, REPORT_MS, on_report, out);
}

static bool logger_name(const char *name)
{
    for (; *name != '\0'; name++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-$", *name) ==
            NULL)
            return false;
    return true;
}

/* The newest TAIL_LINES lines, whether they were logged or dropped. */
static void remember(struct output *out, const char *line, size_t len)
{
    char *to = out->tail[out->tail_count++ % TAIL_LINES];

    len = printable_cut(line, len, TAIL_LINE_BYTES);
    memcpy(to, line, len);
    to[len] = '\0';
}

static bool within_budget(struct output *out, size_t len)
{
    if (out->lines_left > 0) {
        out->lines_left--;
        return true;
    }
    drop(out, len + 1, true);
    return false;
}

static void log_line(struct output *out, char *line, size_t len)
{
    struct log_relayed relayed;

    if (len == 0)
        return;
    line[len] = '\0';
    /* The mark in front of a relayed line is a control character: it must outlive the cleaning. */
    printable_clean(line + 1, len - 1);
    if (log_parse_relayed(line, &relayed) && logger_name(relayed.logger)) {
        if (within_budget(out, len))
            log_write_for(relayed.level, relayed.logger, out->conn, relayed.task, "%s",
                          relayed.message);
        return;
    }
    printable_clean(line, len);
    remember(out, line, len);
    if (within_budget(out, len))
        log_write_for(LOG_INFO, out->logger, out->conn, -1, "%s%s", line, out->cut ? "…" : "");
}

static void end_line(struct output *out)
{
    /* CRLF counts as an end of line. */
    if (out->line_len > 0 && out->line[out->line_len - 1] == '\r')
        out->line_len--;
    log_line(out, out->line, out->line_len);
    out->line_len = 0;
    out->cut = false;
}

static void take(struct output *out, const char *data, size_t len)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t piece = end != NULL ? (size_t)(end - data) : len;
        size_t room = LINE_BYTES - out->line_len;
        size_t kept = piece < room ? piece : room;

        memcpy(out->line + out->line_len, data, kept);
        out->line_len += kept;
        if (kept < piece) {
            out->cut = true;
            drop(out, piece - kept, false);
        }
        if (end != NULL) {
            end_line(out);
            piece++;
        }
        data += piece;
        len -= piece;
    }
}

/* One read. false: nothing more for now, or end of file. */
static bool read_some(struct output *out)
{
    char chunk[CHUNK];
    ssize_t n = read(out->fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        loop_fd_remove(&out->watch);
        return false;
    }
    out->bytes_left -= n;
    take(out, chunk, (size_t)n);
    return true;
}

static void on_rested(void *arg)
{
    struct output *out = arg;

    if (out->watch != NULL)
        loop_fd_events(out->watch, EPOLLIN);
}

static void on_readable(void *arg, uint32_t events)
{
    struct output *out = arg;

    (void)events;
    refill(out);
    if (out->bytes_left > 0) {
        read_some(out);
        return;
    }
    loop_fd_events(out->watch, 0);
    loop_timer_start(out->loop, &out->rest, REST_MS, on_rested, out);
}

struct output *output_new(struct loop *loop, int fd, const char *conn, const char *logger,
                          struct mr_error *err)
{
    struct output *out = calloc(1, sizeof(*out));

    if (out == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a host process");
        close(fd);
        return NULL;
    }
    out->loop = loop;
    out->fd = fd;
    out->conn = conn;
    out->logger = logger;
    out->bytes_left = BYTES_BURST;
    out->lines_left = LINES_BURST;
    out->refilled_ms = clock_ms();
    out->watch = loop_fd_add(loop, fd, EPOLLIN, on_readable, out, err);
    if (out->watch != NULL)
        return out;
    close(fd);
    free(out);
    return NULL;
}

void output_free(struct output **outp)
{
    struct output *out = *outp;

    *outp = NULL;
    if (out == NULL)
        return;
    loop_timer_cancel(&out->rest);
    loop_timer_cancel(&out->report);
    loop_fd_remove(&out->watch);
    close(out->fd);
    free(out);
}

void output_finish(struct output *out)
{
    for (size_t i = 0; i < FINISH_BYTES / CHUNK && out->watch != NULL; i++)
        if (!read_some(out))
            break;
    loop_fd_remove(&out->watch);
    if (out->line_len > 0)
        end_line(out);
    tell_dropped(out);
}

void output_last_lines(const struct output *out, struct buf *to)
{
    size_t kept = out->tail_count < TAIL_LINES ? out->tail_count : TAIL_LINES;

    for (size_t i = out->tail_count - kept; i < out->tail_count; i++)
        buf_printf(to, "%s\n", out->tail[i % TAIL_LINES]);
}

uint64_t output_dropped_bytes(const struct output *out)
{
    return out->dropped_bytes;
}
