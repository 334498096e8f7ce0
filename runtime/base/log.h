/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line an event, `2026-11-29T14:03:07.123Z INFO  worker.herder [src|0] message`.
 * Thread safe; a pipe whose reader has stalled costs 10 ms at most (then lines are dropped, and
 * their number is told later). Each .c that logs defines LOGGER before including this. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <millrace/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_ALL = -1,
    LOG_TRACE,
    LOG_DEBUG,
    LOG_INFO,
    LOG_WARN,
    LOG_ERROR,
    LOG_FATAL,
    LOG_OFF
};

/* Where lines go. Worker: stderr as text. Host: log_relay_to(fd) writes lines that
 * log_parse_relayed understands. */
void log_relay_to(int fd);

/* Hand a short form of every line, "WARN host.task [0]: message\n", to fn as well: a host's black
 * box. Called on the thread that logs; fn must neither block nor log. Once, before other threads
 * exist. */
void log_witness(void (*fn)(const char *line, size_t len));

/* Of all loggers; lines below it are not written; at first INFO. */
void log_set_level(enum log_level level);
bool log_level_from(const char *name, enum log_level *out); /* any case */
const char *log_level_name(enum log_level level);
uint64_t log_dropped(void); /* lines lost so far */

/* Connector and task that this thread works for; NULL / -1 for none. The name is borrowed: it must
 * outlive the thread's work or be replaced. */
void log_context(const char *connector, int task);

/* Write one line. task < 0 and connector NULL take the thread's context. Newlines in the message
 * become "\n". */
MR_PRINTF(3, 4)
void log_write(enum log_level level, const char *logger, const char *fmt, ...);
MR_PRINTF(5, 6)
void log_write_for(enum log_level level, const char *logger, const char *connector, int task,
                   const char *fmt, ...);

/* A line that a host wrote through log_relay_to, taken apart in place; false when it is something
 * else (plugin output). The pointers lead into line. */
struct log_relayed {
    enum log_level level;
    const char *logger;
    int task; /* -1: none */
    const char *message;
};
bool log_parse_relayed(char *line, struct log_relayed *out);

#define log_debug(...) log_write(LOG_DEBUG, LOGGER, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, LOGGER, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, LOGGER, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, LOGGER, __VA_ARGS__)

#endif
