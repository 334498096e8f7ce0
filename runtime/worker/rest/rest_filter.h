/* SPDX-License-Identifier: Apache-2.0 */
/* REST filters that plugins bring: asked about requests in their own processes, through the
 * worker's services (base/service_link.h), on a thread of this file's own. What no answer comes for
 * is refused. */
#ifndef WORKER_REST_FILTER_H
#define WORKER_REST_FILTER_H

#include "base/json.h"
#include "worker/worker_config.h"

struct rest_filter;

/* One request that waits. Owner: who passes it on, but between that and done.
 *
 * question  of base/service_link.h, without "service"; taken, and gone when done is called
 * status    0: every filter admits it; else what it is refused with, and text (malloc'ed, the
 *           caller's)
 * done      called once, on the filters' thread, or from within rest_filter_pass */
struct rest_filter_call {
    json_t *question;
    int status;
    char *text;
    int64_t passed_ms; /* of rest_filter.c */
    void (*done)(struct rest_filter_call *call);
};

/* The filters of rest.extension.classes. *out: NULL when there are none. MR_ERR_CONFIG: one does
 * not start. Blocks for their start. */
int rest_filter_new(const struct worker_config *config, struct rest_filter **out,
                    struct mr_error *err);
/* Whoever waits, or comes from now on, is refused with 503. */
void rest_filter_close(struct rest_filter *filter);
void rest_filter_free(struct rest_filter **filter); /* closed, and nobody waits */

/* Ask. Any thread. */
void rest_filter_pass(struct rest_filter *filter, struct rest_filter_call *call);

/* The answer of a filter's process, as untrusted bytes: 0 = it admits, or a status of 400 to 599
 * with *text malloc'ed; negative: it is none of these. Pure. */
int rest_filter_read(const char *answer, size_t len, char **text, struct mr_error *err);

#endif
