/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the worker's services: plugins that are no connector's, such as config providers,
 * each in a process of its own. One connection to a socket of the worker's a question; both ways
 * one frame of four bytes of length, little endian, and a JSON object.
 *
 *   {"service": NAME, …}      a question. The rest is the kind's: of a config provider "path":
 *                             TEXT, "keys": [TEXT, …]; of a REST filter "method", "target",
 *                             "client": TEXT, "headers": [[NAME, VALUE], …], or nothing: has it
 *                             started?
 *   {"error": TEXT}           an answer: there is none, and why
 *   {…}                       one of the kind's own: of a config provider "values": {KEY: TEXT, …},
 *                             "ttl": milliseconds, left out where there is none; of a REST filter
 *                             "admit": true, or "status": 400 to 599, "text": TEXT
 *
 * The same frames go on from the worker to the service's process, which knows them by its
 * descriptor SERVICE_LINK_FD, and back. That process reads what it is to be from its descriptor 0:
 *
 *   {"name": NAME, "library": PATH, "class": NAME OF THE DESCRIPTOR, "kind": enum mr_plugin_kind,
 *    "params": {KEY: TEXT, …}} */
#ifndef BASE_SERVICE_LINK_H
#define BASE_SERVICE_LINK_H

#include "base/buf.h"

#include <stdint.h>

#define SERVICE_LINK_HEAD 4
#define SERVICE_LINK_QUESTION_MAX ((size_t)1 << 20) /* bytes of a body */
#define SERVICE_LINK_ANSWER_MAX ((size_t)8 << 20)
#define SERVICE_LINK_SETUP_MAX ((size_t)4 << 20)
#define SERVICE_LINK_FD 3
#define SERVICE_LINK_NAME_MAX 96 /* bytes of a socket's name, which is an abstract one */

/* The length that the first SERVICE_LINK_HEAD bytes say, and the bytes that say it. */
size_t service_link_length(const char *head);
void service_link_head(char *head, size_t len);

/* Blocking, with a deadline (clock_ms; -1: none): one frame. MR_ERR_CLOSED: the other side is gone,
 * MR_ERR_TIMEOUT, MR_ERR_PROTOCOL: it is longer than max, MR_ERR_IO. body: what was read, behind
 * what it held. Any descriptor of a socket, blocking or not. */
int service_link_read(int fd, size_t max, int64_t due_ms, struct buf *body, struct mr_error *err);
int service_link_write(int fd, const char *body, size_t len, int64_t due_ms, struct mr_error *err);

/* A question and its answer, on a connection to the socket called name, within wait_ms.
 * MR_ERR_CLOSED: cancel_fd (0: none) became readable before. */
struct service_link_question {
    const char *socket;
    const char *body;
    size_t len;
    int64_t wait_ms;
    int cancel_fd;
};
int service_link_ask(const struct service_link_question *q, struct buf *answer,
                     struct mr_error *err);

/* The two ends of such a socket, close-on-exec; -1 with errno. */
int service_link_listen(const char *name);
/* Does the other end of a connection belong to this user? */
bool service_link_is_ours(int fd);

#endif
