/* SPDX-License-Identifier: Apache-2.0 */
/* What a `millrace check` process prints, read as untrusted bytes against what it was asked. Pure;
 * loop thread. Spec: link/check_format.h. */
#ifndef WORKER_CHECK_ANSWERS_H
#define WORKER_CHECK_ANSWERS_H

#include "base/buf.h"
#include "base/json.h"

struct check_answers {
    const json_t *question;
    json_t *problems; /* so far, as plugin_check_done has them */
    struct buf out;   /* what is not read as a line yet */
    size_t seen;      /* bytes of all lines */
    int64_t stage;    /* what it is at; -1 nothing yet */
    char *key;
    bool ended;    /* it said so */
    bool nonsense; /* nothing more of it is read */
};

/* question: as plugin_check_ask takes it, borrowed. */
void check_answers_init(struct check_answers *a, const json_t *question);
void check_answers_deinit(struct check_answers *a);

/* Some more bytes; false: they are nonsense. */
bool check_answers_take(struct check_answers *a, const void *bytes, size_t len);

/* The process broke off at what it is at: a problem of that key's, with the words why. */
MR_PRINTF(2, 3)
void check_answers_broken(struct check_answers *a, const char *fmt, ...);

#endif
