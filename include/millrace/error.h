/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one struct that the caller owns, filled once, read by whoever acts on it. */
#ifndef MILLRACE_ERROR_H
#define MILLRACE_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args), unused))
#define MR_MUST_CHECK __attribute__((warn_unused_result))
#else
#define MR_PRINTF(fmt, args)
#define MR_MUST_CHECK
#endif

/* What a slot or a function returns. 0 is success, positive values are MR_AGAIN and the like,
 * negative ones are failures. An unknown negative code counts as MR_ERR_FATAL.
 * Spec: reference of error classes in Kafka Connect (RetriableException, DataException,
 * ConnectException, ConfigException). */
enum mr_code {
    MR_OK = 0,
    MR_AGAIN = 1,      /* poll: nothing more now; set through mr_again_in and mr_again_on_fd only */
    MR_DROP = 2,       /* a transform: leave this record out */
    MR_ERR_RETRY = -1, /* the same call may succeed later; the framework repeats it */
    MR_ERR_DATA = -2,  /* this record is bad; errors.tolerance decides */
    MR_ERR_CONFIG = -3, /* a configuration value is wrong; text names key and remedy */
    MR_ERR_FATAL = -4,  /* the task or connector fails */
    MR_ERR_UNSUPPORTED = -5,
    MR_ERR_NOT_FOUND = -6,
    MR_ERR_EXISTS = -7,
    MR_ERR_STATE = -8, /* not allowed in the present state */
    MR_ERR_NOMEM = -9,
    MR_ERR_IO = -10,     /* file, socket or broker failed */
    MR_ERR_FULL = -11,   /* a bounded queue or budget is full: nothing was taken */
    MR_ERR_CLOSED = -12, /* the other side is gone */
    MR_ERR_TIMEOUT = -13,
    MR_ERR_TOO_LARGE = -14,
    MR_ERR_PROTOCOL = -15, /* foreign bytes broke the rules of their format */
    MR_ERR_STALE = -16     /* put of a sink with stores_offsets: what is stored is not what it last
                              had, or unknown; it is opened anew, and goes on from there */
};

/* code            enum mr_code, 0 while nothing failed
 * message_len     bytes of text that are the message: behind them may stand a line
 *                 "Caused by: <class>: <text>", which is for traces alone (mr_caused_by). 0: not
 *                 told, as by a plugin built when this was reserved: up to the first such line
 * retry_after_ms  with MR_ERR_RETRY: milliseconds to wait before the next call, 0 = the framework's
 *                 own back-off
 * text            NUL-terminated UTF-8, one sentence: what, where, what to do. It may begin with the
 *                 Java class that traces and dead letters are to name, where the code's is another
 *                 ("java.lang.IllegalArgumentException: Unknown field: id")
 *
 * Owner: whoever declared it (zeroed). A plugin gets it from the host and never creates or copies
 * one. */
struct mr_error {
    int32_t code;
    uint32_t message_len;
    int64_t retry_after_ms;
    char text[1008];
};

/* Record a failure and return its code, so that a slot can say `return mr_fail(err, MR_ERR_RETRY,
 * "...")`.
 *
 * err   may be NULL; if it already holds an error, the first one stays and its code is returned
 * code  a negative enum mr_code
 * fmt   printf format; the text is cut at 1007 bytes
 *
 * Thread: the owner of err. Never blocks. */
MR_PRINTF(3, 4)
static inline int mr_fail(struct mr_error *err, int code, const char *fmt, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    if (err->code != 0)
        return err->code;
    err->code = code;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    err->message_len = (uint32_t)strlen(err->text);
    return code;
}

/* Tell the cause of a failure, for traces: a line "Caused by: <class>: <text>" behind its message.
 *
 *     mr_fail(err, MR_ERR_DATA, "Invalid bytes field");
 *     return mr_caused_by(err, MR_ERR_DATA, "java.lang.IllegalArgumentException: %s", why);
 *
 * err   may be NULL; the first cause stays
 * code  what is returned
 * fmt   printf format of class and text
 *
 * Thread: the owner of err. Never blocks. */
MR_PRINTF(3, 4)
static inline int mr_caused_by(struct mr_error *err, int code, const char *fmt, ...)
{
    static const char line[] = "\nCaused by: ";
    va_list args;
    size_t len;

    if (err == NULL || err->message_len == 0)
        return code;
    len = err->message_len + sizeof(line) - 1;
    if (len >= sizeof(err->text) || err->text[err->message_len] != '\0')
        return code;
    memcpy(err->text + err->message_len, line, sizeof(line));
    va_start(args, fmt);
    vsnprintf(err->text + len, sizeof(err->text) - len, fmt, args);
    va_end(args);
    return code;
}

/* A value's text for a message: cut to fit, between two characters, NUL-terminated, and each U+0000
 * in it the two bytes C0 80, which dead letters turn back.
 *
 * out   size bytes, at least 1
 * text  len bytes of UTF-8; may be NULL when len is 0
 *
 * Returns out. */
static inline const char *mr_quote(char *out, size_t size, const void *text, size_t len)
{
    const char *p = (const char *)text;
    size_t at = 0, i = 0, whole = 0; /* whole: up to the last character's end */

    for (; i < len && at + 2 < size; i++) {
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            whole = at;
        if (p[i] == '\0')
            out[at++] = (char)0xc0;
        out[at++] = p[i] == '\0' ? (char)0x80 : p[i];
    }
    out[i < len && ((unsigned char)p[i] & 0xc0) == 0x80 ? whole : at] = '\0';
    return out;
}

/* With a failure of code MR_ERR_RETRY: ask to be called again after ms milliseconds. */
static inline int mr_retry_after(struct mr_error *err, int64_t ms)
{
    if (err == NULL)
        return MR_ERR_RETRY;
    err->retry_after_ms = ms;
    return err->code;
}

#ifdef __cplusplus
}
#endif

#endif
