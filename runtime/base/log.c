/* SPDX-License-Identifier: Apache-2.0 */
/* The log. A line is built on the stack and handed to the kernel in one write of at most PIPE_BUF
 * bytes, so lines do not mix. It is written only when the descriptor says that it can take it: a
 * reader that has stalled costs whoever logs at most WAIT_MS once, then lines are dropped and
 * counted, and the first one that goes through again is preceded by their number. The levels
 * (log_levels.c), the descriptor, the counts and the lock around poll-and-write are the only
 * globals of the runtime besides the signal pipe.
 *
 * Worker form:  2026-11-29T14:03:07.123Z INFO  worker.herder [src|0] message
 * Relay form:   \x01<level digit>\t<logger>\t<task>\tmessage
 *               (a host to its worker, which knows the connector) */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_hide.h"
#include "base/log_levels.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4000 /* below PIPE_BUF: one write is one line */
#define RELAY_MARK '\x01'
#define WAIT_MS 10 /* how long a full pipe or terminal may hold up a line, once */

static atomic_int relay_fd = -1;
static atomic_ullong dropped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long untold; /* dropped since the log last said so; under lock */
static _Atomic(void (*)(const char *line, size_t len)) witness;
static _Thread_local const char *context_connector;
static _Thread_local int context_task = -1;

typedef size_t (*log_head_fn)(char *line, size_t size, enum log_level level, const char *logger,
                              const char *connector, int task);

/* From LOG_ALL on. */
static const char *const level_names[] = {"ALL",  "TRACE", "DEBUG", "INFO",
                                          "WARN", "ERROR", "FATAL", "OFF"};

void log_relay_to(int fd)
{
    atomic_store(&relay_fd, fd);
}

void log_witness(void (*fn)(const char *line, size_t len))
{
    atomic_store(&witness, fn);
}

void log_set_level(enum log_level level)
{
    log_levels_reset(level);
}

bool log_level_from(const char *name, enum log_level *out)
{
    for (int i = LOG_ALL; i <= LOG_OFF; i++)
        if (strcasecmp(name, level_names[i - LOG_ALL]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

const char *log_level_name(enum log_level level)
{
    return level >= LOG_ALL && level <= LOG_OFF ? level_names[level - LOG_ALL] : "OFF";
}

uint64_t log_dropped(void)
{
    return atomic_load(&dropped);
}

void log_context(const char *connector, int task)
{
    context_connector = connector;
    context_task = task;
}

/* Control bytes become visible escapes, so that one event stays one line whatever a plugin or a
 * client put into it. */
static size_t put_escaped(char *to, size_t room, const char *from)
{
    size_t n = 0;

    for (; *from != '\0' && n + 4 < room; from++) {
        unsigned char c = (unsigned char)*from;

        if (c >= 0x20 && c != 0x7f) {
            to[n++] = (char)c;
        } else if (c == '\n' || c == '\t' || c == '\r') {
            to[n++] = '\\';
            to[n++] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        } else {
            n += (size_t)snprintf(to + n, room - n, "\\x%02x", c);
        }
    }
    return n;
}

static size_t put_head(char *line, size_t size, enum log_level level, const char *logger,
                       const char *connector, int task)
{
    char when[32];
    char name[128] = "";
    int n;

    clock_iso(clock_wall_ms(), when, sizeof(when));
    n = snprintf(line, size, "%s %-5s %s ", when, log_level_name(level), logger);
    if (connector != NULL) {
        name[put_escaped(name, sizeof(name) - 1, connector)] = '\0';
        if (task >= 0)
            n += snprintf(line + n, size - (size_t)n, "[%s|%d] ", name, task);
        else
            n += snprintf(line + n, size - (size_t)n, "[%s] ", name);
    }
    return (size_t)n;
}

static size_t put_relay_head(char *line, size_t size, enum log_level level, const char *logger,
                             const char *connector, int task)
{
    (void)connector;
    return (size_t)snprintf(line, size, "%c%d\t%.100s\t%d\t", RELAY_MARK, (int)level, logger, task);
}

/* Can fd take a line without blocking? Linux calls a pipe writable when a whole PIPE_BUF fits. */
static bool writable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, wait_ms) == 1 && (p.revents & POLLOUT) != 0;
}

static bool put(int fd, const char *line, size_t len, int wait_ms)
{
    return writable(fd, wait_ms) && write(fd, line, len) == (ssize_t)len;
}

static void emit(int fd, const char *line, size_t len, log_head_fn head)
{
    pthread_mutex_lock(&lock);
    if (untold > 0) {
        char told[512];
        size_t n = head(told, sizeof(told), LOG_WARN, "log", NULL, -1);

        n += (size_t)snprintf(told + n, sizeof(told) - n,
                              "%llu lines were dropped: the log's reader is slow\n", untold);
        if (put(fd, told, n, 0))
            untold = 0;
    }
    if (untold > 0 || !put(fd, line, len, WAIT_MS)) {
        untold++;
        atomic_fetch_add(&dropped, 1);
    }
    pthread_mutex_unlock(&lock);
}

static void tell_witness(enum log_level level, const char *logger, int task, const char *message)
{
    void (*fn)(const char *line, size_t len) = atomic_load(&witness);
    char line[512];
    size_t n;

    if (fn == NULL)
        return;
    if (task >= 0)
        n = (size_t)snprintf(line, sizeof(line) / 2, "%s %.100s [%d]: ", log_level_name(level),
                             logger, task);
    else
        n = (size_t)snprintf(line, sizeof(line) / 2, "%s %.100s: ", log_level_name(level), logger);
    n += put_escaped(line + n, sizeof(line) - n - 1, message);
    line[n++] = '\n';
    fn(line, n);
}

static void write_line(enum log_level level, const char *logger, const char *connector, int task,
                       const char *text)
{
    char line[LINE_MAX_BYTES];
    char *hidden = log_hidden(text);
    const char *message = hidden != NULL ? hidden : text;
    int relay = atomic_load(&relay_fd);
    log_head_fn head = relay >= 0 ? put_relay_head : put_head;
    size_t n = head(line, 400, level, logger, connector, task);

    tell_witness(level, logger, task, message);
    n += put_escaped(line + n, sizeof(line) - n - 1, message);
    line[n++] = '\n';
    emit(relay >= 0 ? relay : STDERR_FILENO, line, n, head);
    free(hidden);
}

void log_write(enum log_level level, const char *logger, const char *fmt, ...)
{
    char message[LINE_MAX_BYTES];
    va_list args;

    if (!log_levels_admit(level, logger, context_connector))
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    write_line(level, logger, context_connector, context_task, message);
}

void log_write_for(enum log_level level, const char *logger, const char *connector, int task,
                   const char *fmt, ...)
{
    char message[LINE_MAX_BYTES];
    va_list args;

    if (!log_levels_admit(level, logger, connector != NULL ? connector : context_connector))
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (connector == NULL)
        connector = context_connector;
    if (task < 0 && connector == context_connector)
        task = context_task;
    write_line(level, logger, connector, task, message);
}

bool log_parse_relayed(char *line, struct log_relayed *out)
{
    char *logger;
    char *task;
    char *message;
    char *end;
    long number;

    if (line[0] != RELAY_MARK || line[1] < '0' || line[1] > '0' + LOG_FATAL || line[2] != '\t')
        return false;
    logger = line + 3;
    task = strchr(logger, '\t');
    if (task == NULL || task == logger || task - logger > 100)
        return false;
    message = strchr(task + 1, '\t');
    if (message == NULL)
        return false;
    number = strtol(task + 1, &end, 10);
    if (end != message || end == task + 1 || number < -1 || number > 1000000)
        return false;
    *task = '\0';
    out->level = (enum log_level)(line[1] - '0');
    out->logger = logger;
    out->task = (int)number;
    out->message = message + 1;
    return true;
}
