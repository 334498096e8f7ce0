/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs on struct mr_error. Any thread: an error belongs to whoever declared it. The first failure
 * wins; callers on the way up only put words before it. */
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void err_prefix(struct mr_error *err, const char *fmt, ...)
{
    char words[sizeof(err->text)];
    char text[sizeof(err->text)];
    va_list args;

    if (err == NULL || err->code == 0)
        return;
    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    memcpy(text, err->text, sizeof(text));
    snprintf(err->text, sizeof(err->text), "%.500s: %.500s", words, text);
    if (err->message_len != 0)
        err->message_len =
            (uint32_t)(strnlen(words, 500) + 2 + (err->message_len < 500 ? err->message_len : 500));
}

int err_errno(struct mr_error *err, const char *fmt, ...)
{
    int saved = errno;
    char words[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    mr_fail(err, MR_ERR_IO, "%s: %s", words, strerror(saved));
    errno = saved;
    return MR_ERR_IO;
}

void err_clear(struct mr_error *err)
{
    memset(err, 0, offsetof(struct mr_error, text) + 1);
}

const char *err_code_name(int code)
{
    static const char *const names[] = {
        "OK",        "RETRY",   "DATA",      "CONFIG",   "FATAL", "UNSUPPORTED",
        "NOT_FOUND", "EXISTS",  "STATE",     "NOMEM",    "IO",    "FULL",
        "CLOSED",    "TIMEOUT", "TOO_LARGE", "PROTOCOL", "STALE",
    };

    if (code == MR_AGAIN)
        return "AGAIN";
    if (code == MR_DROP)
        return "DROP";
    return code <= 0 && -code < (int)(sizeof(names) / sizeof(names[0])) ? names[-code] : "FATAL";
}

/* -1 is what C's own functions return, and here it means: the same call again. */
int err_without_text(struct mr_error *err, int rc, const char *what)
{
    return mr_fail(err, rc, "%s failed with %s and no text%s", what, err_code_name(rc),
                   rc == MR_ERR_RETRY ? " (-1 is MR_ERR_RETRY: it is called again; to fail, "
                                        "return mr_fail(err, MR_ERR_FATAL, \"...\"))"
                                      : "");
}

void err_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "millrace: a bug: %s does not hold at %s:%d\n", expr, file, line);
    abort();
}
