/* SPDX-License-Identifier: Apache-2.0 */
/* Asks plugin code about values of a configuration, or about offsets, in a process that is gone
 * afterwards. Loop thread. */
#ifndef WORKER_PLUGIN_CHECK_H
#define WORKER_PLUGIN_CHECK_H

#include "base/json.h"
#include "base/loop.h"

struct plugin_check;

/* problems: [{"stage": N, "key": KEY, "error": TEXT, "code"?: enum mr_code} or {…, "broken": how
 * the process ended} or, which is none, {…, "found": …} of link/check_format.h, …], taken; KEY
 * is one that was asked. NULL: called off by plugin_check_free. */
typedef void (*plugin_check_done)(void *arg, json_t *problems);

/* exe: binary to run as `exe check`, borrowed. patience_ms: for one process, which is killed when it
 * takes longer, and for a question's wait before it, which is answered as broken then. */
struct plugin_check *plugin_check_new(struct loop *loop, const char *exe, int64_t patience_ms);
/* What is asked is called off, its process killed. */
void plugin_check_free(struct plugin_check **pc);

/* question: as in link/check_format.h, a non-empty array of well-formed members; taken. A few
 * processes run at a time, others wait for them: two seconds where classes of another library hang.
 * done: once, perhaps before the call returns, and after twice patience_ms at the latest. Never
 * blocks longer than a process takes to begin. */
void plugin_check_ask(struct plugin_check *pc, json_t *question, plugin_check_done done, void *arg);

/* A large question may be written beforehand, on any thread: gives a descriptor, or -1 with err. It
 * is asked with fd, taken, and then may leave out of `question` whatever is "offsets". */
int plugin_check_write(const json_t *question, struct mr_error *err);
void plugin_check_ask_written(struct plugin_check *pc, json_t *question, int fd,
                              plugin_check_done done, void *arg);

#endif
