/* SPDX-License-Identifier: Apache-2.0 */
/* Status that is to be written: at most one write of a key under way, the newest next, again after
 * a failure.
 * Owner: the worker's loop. Spec: KafkaStatusBackingStore (put, putSafe, its retries). */
#ifndef WORKER_STATUS_DESK_H
#define WORKER_STATUS_DESK_H

#include "base/loop.h"
#include "worker/store/status_state.h"

struct status_desk;
struct status_slip; /* one key */

/* Send what the slip (NULL: no one) is for: status_desk_sent must follow, later, exactly once for
 * each. rec: borrowed. */
typedef void (*status_desk_send)(void *arg, struct status_slip *slip,
                                 const struct status_record *rec);

/* state: borrowed; what may be overwritten is judged by it. */
struct status_desk *status_desk_new(struct loop *loop, const struct status_state *state,
                                    status_desk_send send, void *arg);
void status_desk_free(struct status_desk **desk);

/* rec: taken. safe: not when a newer owner's would be overwritten; a retry never does. */
void status_desk_put(struct status_desk *desk, struct status_record *rec, bool safe);
/* How a write ended. MR_ERR_RETRY, MR_ERR_TIMEOUT and MR_ERR_FULL are tried again in a second. */
void status_desk_sent(struct status_desk *desk, struct status_slip *slip,
                      const struct mr_error *err);

/* Send everything that waits now, whatever is under way; nothing is tried again after this. For the
 * end. At most two records a key are sent. */
void status_desk_flush(struct status_desk *desk);
/* After the flush, all was answered: say in the log, once, how much was not written. */
void status_desk_tell_lost(const struct status_desk *desk);
size_t status_desk_waiting(const struct status_desk *desk); /* keys that are not written yet */

#endif
