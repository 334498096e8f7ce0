/* SPDX-License-Identifier: Apache-2.0 */
/* Is a configuration valid? By the tables of its plugins, and by what their own code says. Loop
 * thread. */
#ifndef WORKER_JUDGE_H
#define WORKER_JUDGE_H

#include "base/loop.h"
#include "worker/herder/validate/validate.h"

struct judge;

/* input, result: the configuration as it was judged, and its keys with their problems, borrowed.
 * err: there was nothing to judge by, as validate_connector says; or MR_ERR_CLOSED: the judge went
 * away. Then result is NULL. */
typedef void (*judge_done)(void *arg, const struct validate_input *input,
                           const struct validate_result *result, const struct mr_error *err);

/* Borrowed. */
struct judge *judge_new(struct loop *loop, const struct catalog *catalog,
                        const struct worker_config *worker);
void judge_free(struct judge **judge); /* what waits is answered */

/* config: copied. done: exactly once, before the call returns where no plugin has to be asked. */
void judge_config(struct judge *judge, const struct props *config, judge_done done, void *arg);

#endif
