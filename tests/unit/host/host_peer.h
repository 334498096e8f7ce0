/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of a real host process, for tests: the test's own binary, run again as `host` or
 * `scan`. One thread. */
#ifndef TESTS_HOST_PEER_H
#define TESTS_HOST_PEER_H

#include "base/buf.h"
#include "link/black_box.h"
#include "link/msg.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct host_peer {
    pid_t pid;
    int pidfd;
    int link; /* -1: closed */
    int box;
    int out; /* what it prints, stdout and stderr together */
    struct buf in;
    struct buf printed;
    bool silent;       /* questions of tasks are not answered */
    bool refuse_start; /* START_CHECK is answered with no */
    int64_t stored;    /* offset "next" that OFFSETS_GET is answered with; -1 none */
    int64_t put;       /* the last "next" of OFFSETS_PUT; -1 none */
    int puts;
    bool reaped;
    int status;
    char dir[64];
};

/* In main(): runs the process's other life when it was started as one, and does not return then. */
void host_peer_main(int argc, char **argv);
extern const char *host_peer_servers;  /* bootstrap.servers for its tasks */
extern const char *host_peer_flush_ms; /* offset.flush.interval.ms */

struct host_peer *host_peer_spawn(void);    /* no frame exchanged yet */
struct host_peer *host_peer_start(void);    /* HELLO and WELCOME done */
void host_peer_end(struct host_peer *peer); /* kills what is left */

void host_peer_send(struct host_peer *peer, enum msg_kind kind, json_t *body); /* taken */
/* Read frames until one of this kind (and, when state is given, with this state) arrives, for at
 * most ms; questions are answered on the way. NULL: none came. The caller frees it. */
json_t *host_peer_await(struct host_peer *peer, enum msg_kind kind, const char *state, int ms);
void host_peer_serve(struct host_peer *peer, int ms); /* answer questions for that long */
/* Until a thread of its is in that call of a plugin, by its black box: 10 s at most. */
void host_peer_await_call(struct host_peer *peer, const char *call);
void host_peer_close(struct host_peer *peer); /* end of file on the link */

/* Wait for its end for at most ms: waitpid's status, or -1 when it lives on. */
int host_peer_status(struct host_peer *peer, int ms);
void host_peer_read_box(struct host_peer *peer, struct black_box *box);
const char *host_peer_printed(struct host_peer *peer); /* everything up to now */
bool host_peer_group_alive(struct host_peer *peer);

/* The usual commands. pairs: key, value, …, NULL. */
json_t *host_peer_object(const char *const *pairs);
json_t *host_peer_connector_body(const char *class_name, const char *const *pairs);
void host_peer_connector(struct host_peer *peer, const char *class_name, const char *const *pairs);
void host_peer_task(struct host_peer *peer, int number, const char *const *pairs);

#endif
