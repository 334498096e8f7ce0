/* SPDX-License-Identifier: Apache-2.0 */
#include "host_peer.h"

#include "base/clock.h"
#include "base/json.h"
#include "host/host.h"
#include "link/frame.h"
#include "link/inherit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HOSTILE TEST_BUILD "/tests/plugins/hostile.so"

const char *host_peer_servers = "127.0.0.1:1";
const char *host_peer_flush_ms = "50";

void host_peer_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "host") == 0)
        _exit(host_main(argc - 1, argv + 1));
    if (argc > 1 && strcmp(argv[1], "scan") == 0)
        _exit(scan_main(argc - 1, argv + 1));
}

/* In the child of fork: descriptors as link/inherit.h says. */
static void become_host(int link, int box, int out)
{
    int null = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    link = fcntl(link, F_DUPFD, 20);
    box = fcntl(box, F_DUPFD, 20);
    out = fcntl(out, F_DUPFD, 20);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    dup2(link, INHERIT_LINK_FD);
    dup2(box, INHERIT_BOX_FD);
    closefrom(INHERIT_BOX_FD + 1);
    execl("/proc/self/exe", "millrace", "host", "c", (char *)NULL);
    _exit(99);
}

struct host_peer *host_peer_spawn(void)
{
    struct host_peer *peer = calloc(1, sizeof(*peer));
    int pair[2], pipes[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    peer->box = black_box_create();
    peer->stored = peer->put = -1;
    peer->link = pair[0];
    peer->out = pipes[0];
    buf_init(&peer->in, 16 << 20);
    buf_init(&peer->printed, 16 << 20);
    snprintf(peer->dir, sizeof(peer->dir), "/tmp/test-host-XXXXXX");
    assert_non_null(mkdtemp(peer->dir));
    fflush(NULL);
    peer->pid = fork();
    if (peer->pid == 0)
        become_host(pair[1], peer->box, pipes[1]);
    setpgid(peer->pid, peer->pid);
    peer->pidfd = pidfd_open(peer->pid, 0);
    assert_true(peer->pidfd >= 0);
    close(pair[1]);
    close(pipes[1]);
    return peer;
}

static json_t *welcome(struct host_peer *peer)
{
    char lock[100];

    snprintf(lock, sizeof(lock), "%s/lock", peer->dir);
    return json_pack(
        "{s:i, s:{s:s, s:s, s:s, s:s, s:s, s:s}, s:s}", "version", INHERIT_LINK_VERSION, "worker",
        "bootstrap.servers", host_peer_servers, "key.converter", "HostileConverter",
        "value.converter", "HostileConverter", "offset.flush.interval.ms", host_peer_flush_ms,
        "task.shutdown.graceful.timeout.ms", "1000", "producer.max.block.ms", "1000", "lock", lock);
}

struct host_peer *host_peer_start(void)
{
    struct host_peer *peer = host_peer_spawn();
    json_t *hello = host_peer_await(peer, MSG_HELLO, NULL, 10000);

    if (hello == NULL)
        fail_msg("no hello; it printed: %s", host_peer_printed(peer));
    json_decref(hello);
    host_peer_send(peer, MSG_WELCOME, welcome(peer));
    return peer;
}

void host_peer_close(struct host_peer *peer)
{
    if (peer->link >= 0)
        close(peer->link);
    peer->link = -1;
}

void host_peer_end(struct host_peer *peer)
{
    char command[200];

    kill(-peer->pid, SIGKILL);
    if (!peer->reaped)
        kill(peer->pid, SIGKILL); /* it may have left its group */
    if (host_peer_status(peer, 5000) < 0)
        fail_msg("process %d does not die", (int)peer->pid);
    host_peer_close(peer);
    close(peer->pidfd);
    close(peer->box);
    close(peer->out);
    buf_deinit(&peer->in);
    buf_deinit(&peer->printed);
    snprintf(command, sizeof(command), "rm -rf %s", peer->dir);
    assert_int_equal(system(command), 0);
    free(peer);
}

void host_peer_send(struct host_peer *peer, enum msg_kind kind, json_t *body)
{
    char *text = body == NULL ? strdup("{}") : json_dumps(body, JSON_COMPACT);
    struct buf out;
    size_t at = 0;

    assert_non_null(text);
    buf_init(&out, 16 << 20);
    assert_int_equal(frame_encode(&out, kind, text, strlen(text)), 0);
    while (at < out.len) {
        ssize_t n = send(peer->link, out.data + at, out.len - at, MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = peer->link, .events = POLLOUT};

            assert_int_equal(poll(&p, 1, 5000), 1);
        } else if (n < 0) {
            break;
        } else {
            at += (size_t)n;
        }
    }
    buf_deinit(&out);
    free(text);
    json_decref(body);
}

static void note_put(struct host_peer *peer, const json_t *body)
{
    json_t *entries = json_object_get(body, "entries");
    json_t *last = json_array_get(entries, json_array_size(entries) - 1);

    peer->put = json_integer_value(json_object_get(json_array_get(last, 1), "next"));
    peer->puts++;
}

static void answer(struct host_peer *peer, uint32_t kind, const json_t *body)
{
    json_int_t id = json_integer_value(json_object_get(body, "id"));

    if (peer->silent || peer->link < 0)
        return;
    if (kind == MSG_START_CHECK)
        host_peer_send(peer, MSG_START_CHECKED,
                       json_pack("{s:I, s:b}", "id", id, "ok", !peer->refuse_start));
    if (kind == MSG_OFFSETS_GET && peer->stored < 0)
        host_peer_send(peer, MSG_OFFSETS, json_pack("{s:I, s:[]}", "id", id, "entries"));
    if (kind == MSG_OFFSETS_GET && peer->stored >= 0)
        host_peer_send(peer, MSG_OFFSETS,
                       json_pack("{s:I, s:[[O, {s:I}]]}", "id", id, "entries",
                                 json_array_get(json_object_get(body, "partitions"), 0), "next",
                                 (json_int_t)peer->stored));
    if (kind == MSG_OFFSETS_PUT) {
        note_put(peer, body);
        host_peer_send(peer, MSG_OFFSETS_STORED, json_pack("{s:I}", "id", id));
    }
}

/* Take in what is there, waiting at most ms for it. */
static void receive(struct host_peer *peer, int ms)
{
    struct pollfd p[2] = {{.fd = peer->link, .events = POLLIN},
                          {.fd = peer->out, .events = POLLIN}};
    ssize_t n;

    poll(p, 2, ms);
    if (p[0].revents != 0) {
        assert_int_equal(buf_reserve(&peer->in, 65536), 0);
        n = recv(peer->link, peer->in.data + peer->in.len, 65536, 0);
        if (n > 0)
            peer->in.len += (size_t)n;
        else if (n == 0 || errno != EAGAIN)
            host_peer_close(peer);
    }
    if (p[1].revents & POLLIN) {
        char line[65536];

        n = read(peer->out, line, sizeof(line));
        if (n > 0 && peer->printed.len < (8 << 20))
            buf_append(&peer->printed, line, (size_t)n);
    }
}

/* The next frame, or NULL when none is whole yet. Its body is new. */
static json_t *next_frame(struct host_peer *peer, uint32_t *kind)
{
    struct mr_error err = {0};
    struct frame frame;
    json_t *body;
    int rc = peer->in.len == 0 ? 0
                               : frame_decode(peer->in.data, peer->in.len, true,
                                              MSG_STATE_HELLO | MSG_STATE_OPEN | MSG_STATE_DRAINING,
                                              &frame, &err);

    if (rc < 0)
        fail_msg("the host sent a bad frame: %s", err.text);
    if (rc == 0)
        return NULL;
    body = json_parse(frame.body_len == 0 ? "{}" : frame.body,
                      frame.body_len == 0 ? 2 : frame.body_len, &err);
    if (body == NULL)
        fail_msg("the host sent a bad body: %s", err.text);
    *kind = frame.kind;
    buf_consume(&peer->in, frame.size);
    return body;
}

static bool fits(uint32_t kind, const json_t *body, enum msg_kind wanted, const char *state)
{
    const char *seen = json_string_value(json_object_get(body, "state"));

    return kind == (uint32_t)wanted &&
           (state == NULL || (seen != NULL && strcmp(seen, state) == 0));
}

json_t *host_peer_await(struct host_peer *peer, enum msg_kind wanted, const char *state, int ms)
{
    int64_t until = clock_ms() + ms;

    for (;;) {
        uint32_t kind;
        json_t *body = next_frame(peer, &kind);

        if (body != NULL) {
            answer(peer, kind, body);
            if (fits(kind, body, wanted, state))
                return body;
            json_decref(body);
            continue;
        }
        if (clock_ms() >= until || peer->link < 0)
            return NULL;
        receive(peer, (int)(until - clock_ms()));
    }
}

void host_peer_serve(struct host_peer *peer, int ms)
{
    json_decref(host_peer_await(peer, MSG_KIND_END, NULL, ms));
}

static bool in_call(struct host_peer *peer, const char *call)
{
    static struct black_box box;

    host_peer_read_box(peer, &box);
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++)
        if (strcmp(box.slots[i].call, call) == 0)
            return true;
    return false;
}

void host_peer_await_call(struct host_peer *peer, const char *call)
{
    int64_t until = clock_ms() + 10000;

    while (!in_call(peer, call)) {
        if (clock_ms() > until)
            fail_msg("not in %s after 10 s; it printed: %s", call, host_peer_printed(peer));
        host_peer_serve(peer, 2);
    }
}

int host_peer_status(struct host_peer *peer, int ms)
{
    struct pollfd p = {.fd = peer->pidfd, .events = POLLIN};
    int64_t until = clock_ms() + ms;

    if (peer->reaped)
        return peer->status;
    while (poll(&p, 1, 0) == 0) {
        if (clock_ms() >= until)
            return -1;
        if (peer->link >= 0)
            host_peer_serve(peer, 2);
        else
            poll(&p, 1, 2);
    }
    receive(peer, 0);
    assert_int_equal(waitpid(peer->pid, &peer->status, WNOHANG), peer->pid);
    peer->reaped = true;
    return peer->status;
}

void host_peer_read_box(struct host_peer *peer, struct black_box *box)
{
    assert_true(black_box_read(peer->box, box));
}

const char *host_peer_printed(struct host_peer *peer)
{
    receive(peer, 0);
    return peer->printed.data == NULL ? "" : peer->printed.data;
}

/* Is this process of the group, and no zombie? Nobody but init reaps what a dead host forked. */
static bool alive_in(const char *pid, pid_t group)
{
    char path[300], text[1000] = "", state = 'Z';
    int fd, pgrp = 0;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof(text) - 1) > 0 && strrchr(text, ')') != NULL)
        sscanf(strrchr(text, ')'), ") %c %*d %d", &state, &pgrp);
    close(fd);
    return pgrp == group && state != 'Z';
}

bool host_peer_group_alive(struct host_peer *peer)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    bool alive = false;

    assert_non_null(dir);
    while (!alive && (entry = readdir(dir)) != NULL)
        alive = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                alive_in(entry->d_name, peer->pid);
    closedir(dir);
    return alive;
}

json_t *host_peer_object(const char *const *pairs)
{
    json_t *object = json_object();

    for (size_t i = 0; pairs != NULL && pairs[i] != NULL; i += 2)
        json_object_set_new(object, pairs[i], json_string(pairs[i + 1]));
    return object;
}

json_t *host_peer_connector_body(const char *class_name, const char *const *pairs)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:{s:{s:s, s:s}, s:{s:s, s:s}}}", "conn", "c",
                     "library", HOSTILE, "class", class_name, "config", host_peer_object(pairs),
                     "target", "STARTED", "plugins", "key.converter", "library", HOSTILE, "class",
                     "HostileConverter", "value.converter", "library", HOSTILE, "class",
                     "HostileConverter");
}

void host_peer_connector(struct host_peer *peer, const char *class_name, const char *const *pairs)
{
    host_peer_send(peer, MSG_CONNECTOR_START, host_peer_connector_body(class_name, pairs));
}

void host_peer_task(struct host_peer *peer, int number, const char *const *pairs)
{
    host_peer_send(peer, MSG_TASK_START,
                   json_pack("{s:s, s:i, s:o, s:s, s:i}", "conn", "c", "task", number, "config",
                             host_peer_object(pairs), "target", "STARTED", "generation", 3));
}
