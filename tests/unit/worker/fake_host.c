/* SPDX-License-Identifier: Apache-2.0 */
/* Good and bad hosts, one function each. All block; none shares code with the real one. The table
 * has the names. */
#include "fake_host.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "host/host.h"
#include "link/black_box.h"
#include "link/frame.h"
#include "link/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOGGER "host.fake"
#define TASKS 16

static struct {
    const char *name;
    struct black_box *box;
    struct buf in;
    bool running[TASKS];
    int stuck; /* this task never stops, -1 none */
    bool deaf; /* does not drain */
    int lock_fd;
} host;

static void forever(void)
{
    for (;;)
        poll(NULL, 0, -1);
}

/* --- the link, with blocking calls ------------------------------------------------------------ */

static void write_bytes(const char *data, size_t len)
{
    while (len > 0) {
        struct pollfd p = {.fd = INHERIT_LINK_FD, .events = POLLOUT};
        ssize_t n = send(INHERIT_LINK_FD, data, len, MSG_NOSIGNAL);

        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            poll(&p, 1, -1);
        } else {
            _exit(99);
        }
    }
}

static void say_take(enum msg_kind kind, json_t *body)
{
    struct buf out;
    char *text = body == NULL ? strdup("{}") : json_text(body);

    buf_init(&out, 16 << 20);
    if (frame_encode(&out, kind, text, strlen(text)) != 0)
        _exit(98);
    write_bytes(out.data, out.len);
    buf_deinit(&out);
    free(text);
    json_decref(body);
}

/* The next frame's body; exits like a real host when the worker is gone. */
static json_t *hear(uint32_t *kind)
{
    uint32_t any = MSG_STATE_HELLO | MSG_STATE_OPEN | MSG_STATE_DRAINING;
    struct frame frame;

    for (;;) {
        struct pollfd p = {.fd = INHERIT_LINK_FD, .events = POLLIN};
        char chunk[4096];
        ssize_t n;

        if (frame_decode(host.in.data == NULL ? "" : host.in.data, host.in.len, false, any, &frame,
                         NULL) == 1) {
            json_t *body =
                frame.body_len == 0 ? json_object() : json_parse(frame.body, frame.body_len, NULL);

            *kind = frame.kind;
            buf_consume(&host.in, frame.size);
            return body;
        }
        poll(&p, 1, -1);
        n = recv(INHERIT_LINK_FD, chunk, sizeof(chunk), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            _exit(97);
        if (n > 0)
            buf_append(&host.in, chunk, (size_t)n);
    }
}

static void hello(int version)
{
    say_take(MSG_HELLO, json_pack("{s:i, s:i, s:s}", "version", version, "pid", (int)getpid(),
                                  "build", "fake"));
}

static void connector_status(const char *state, const char *trace)
{
    say_take(MSG_CONNECTOR_STATUS, json_pack("{s:s, s:s, s:s?, s:s}", "conn", host.name, "state",
                                             state, "trace", trace, "version", "1.0"));
}

static void task_status(int task, const char *state, const char *trace)
{
    say_take(MSG_TASK_STATUS, json_pack("{s:s, s:i, s:s, s:s?}", "conn", host.name, "task", task,
                                        "state", state, "trace", trace));
}

/* --- a host that does as it is told, but for what `host` says --------------------------------- */

static void drain(void)
{
    bool left = false;

    if (host.deaf)
        return;
    for (int i = 0; i < TASKS; i++) {
        if (!host.running[i])
            continue;
        if (i == host.stuck) {
            left = true;
            continue;
        }
        host.running[i] = false;
        task_status(i, "UNASSIGNED", NULL);
    }
    if (left)
        return;
    say_take(MSG_DRAINED, NULL);
    _exit(0);
}

static void start_task(int task)
{
    host.running[task] = true;
    black_box_enter(host.box, (size_t)task + 1, host.name, task, "poll");
    task_status(task, "RUNNING", NULL);
    if (strcmp(host.name, "failer") == 0) {
        host.running[task] = false;
        task_status(task, "FAILED", "it went wrong");
    }
    if (strcmp(host.name, "spender") == 0 && task == 1) {
        host.running[task] = false;
        say_take(MSG_TASK_STATUS,
                 json_pack("{s:s, s:i, s:s, s:s, s:b}", "conn", host.name, "task", task, "state",
                           "FAILED", "trace", "too many schemas", "spent", true));
    }
    if (strcmp(host.name, "asker") == 0) {
        say_take(MSG_OFFSETS_GET, json_pack("{s:i, s:s, s:[{s:s}]}", "id", 41, "conn", host.name,
                                            "partitions", "file", "a"));
        say_take(MSG_OFFSETS_PUT, json_pack("{s:i, s:s, s:[[{s:s}, {s:i}]]}", "id", 42, "conn",
                                            host.name, "entries", "file", "a", "at", 7));
        say_take(MSG_START_CHECK, json_pack("{s:i, s:s, s:i, s:i}", "id", 43, "conn", host.name,
                                            "task", task, "generation", 1));
        say_take(MSG_START_CHECK, json_pack("{s:i, s:s, s:i, s:i}", "id", 45, "conn", host.name,
                                            "task", task, "generation", 7));
        say_take(MSG_FENCE, json_pack("{s:i, s:s}", "id", 44, "conn", host.name));
    }
    if (strcmp(host.name, "asker-too-much") == 0)
        for (int i = 0; i < 1100; i++)
            say_take(MSG_OFFSETS_GET,
                     json_pack("{s:i, s:s, s:[]}", "id", i, "conn", host.name, "partitions"));
}

static void stop_task(int task)
{
    if (task == host.stuck)
        return;
    host.running[task] = false;
    black_box_leave(host.box, (size_t)task + 1);
    task_status(task, "UNASSIGNED", NULL);
}

/* What arrived goes back to the test as the trace of a status. */
static void echo(uint32_t kind, json_t *body)
{
    json_t *wrapped = json_pack("{s:s, s:O}", "kind", msg_rule(kind)->name, "body", body);
    char *text = json_text(wrapped);

    connector_status("RUNNING", text);
    free(text);
    json_decref(wrapped);
}

static void obey(uint32_t kind, json_t *body)
{
    int64_t task = 0, id = 0;

    json_get_int(body, "task", 0, TASKS - 1, &task);
    json_get_int(body, "id", INT64_MIN, INT64_MAX, &id);
    switch (kind) {
    case MSG_CONNECTOR_START:
        if (strcmp(host.name, "parrot") == 0)
            echo(kind, body);
        else
            connector_status("RUNNING", NULL);
        break;
    case MSG_TASK_CONFIGS:
        say_take(MSG_TASK_CONFIGS_READY,
                 json_pack("{s:s, s:[{s:s}]}", "conn", host.name, "configs", "k", "v"));
        break;
    case MSG_TASK_START:
        start_task((int)task);
        break;
    case MSG_TASK_STOP:
        stop_task((int)task);
        break;
    case MSG_PING:
        say_take(MSG_PONG, json_pack("{s:I}", "id", (json_int_t)id));
        break;
    case MSG_DRAIN:
        drain();
        break;
    case MSG_WELCOME:
        break;
    default:
        echo(kind, body);
    }
}

static void serve(void)
{
    for (;;) {
        uint32_t kind;
        json_t *body = hear(&kind);

        obey(kind, body);
        json_decref(body);
    }
}

static void open_link(void)
{
    uint32_t kind;
    json_t *body;

    hello(INHERIT_LINK_VERSION);
    body = hear(&kind);
    if (kind != MSG_WELCOME)
        _exit(96);
    json_decref(body);
}

static void good(void)
{
    hello(INHERIT_LINK_VERSION);
    serve();
}

static void ignore_all(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    host.stuck = 0;
}

/* Task 0 never stops, SIGTERM is blocked. */
static void stubborn(void)
{
    ignore_all();
    good();
}

/* The same, and out of the group that it was born to lead, as soon as a plugin could do so. */
static void mover(void)
{
    open_link();
    if (setpgid(0, getpgid(getppid())) != 0)
        _exit(92);
    ignore_all();
    serve();
}

/* Does not even drain the siblings. */
static void deaf(void)
{
    host.deaf = true;
    stubborn();
}

/* --- hosts that go wrong ---------------------------------------------------------------------- */

static void mute(void)
{
    forever();
}

static void old_version(void)
{
    hello(INHERIT_LINK_VERSION + 1);
    forever();
}

static void crash(void)
{
    open_link();
    black_box_say(host.box, "about to divide by zero", 23);
    black_box_enter(host.box, 1, host.name, 0, "poll");
    raise(SIGSEGV);
}

static void quit(void)
{
    open_link();
    _exit(3);
}

static void abort_loudly(void)
{
    open_link();
    dprintf(STDERR_FILENO, "free(): invalid \x1bpointer\n");
    abort();
}

static void garbage(void)
{
    open_link();
    write_bytes("\xde\xad\xbe\xef\xde\xad\xbe\xef", 8);
    forever();
}

static void oversized(void)
{
    open_link();
    write_bytes("\xff\xff\xff\xff\x02\0\0\0", 8);
    forever();
}

static void hasty(void)
{
    connector_status("RUNNING", NULL);
    forever();
}

static void impostor(void)
{
    open_link();
    host.name = "another";
    connector_status("RUNNING", NULL);
    forever();
}

static void confused(void)
{
    open_link();
    task_status(7, "RUNNING", NULL);
    forever();
}

static void wrong_state(void)
{
    open_link();
    connector_status("HAPPY", NULL);
    forever();
}

static void wrong_topic(void)
{
    open_link();
    say_take(MSG_TOPIC_USED,
             json_pack("{s:s, s:i, s:s}", "conn", host.name, "task", 0, "topic", "a/b"));
    forever();
}

static void stale(void)
{
    open_link();
    say_take(MSG_CONFIG_STALE, json_pack("{s:s}", "conn", host.name));
    forever();
}

static void closer(void)
{
    open_link();
    close(INHERIT_LINK_FD);
    forever();
}

/* Everything it says before it dies counts, also when it takes the worker a while to read. */
static void last_status(void)
{
    open_link();
    for (int i = 0; i < 600; i++)
        connector_status("RUNNING", NULL);
    connector_status("FAILED", "the reason");
    _exit(0);
}

static void pong_flood(void)
{
    open_link();
    connector_status("RUNNING", NULL);
    for (;;)
        say_take(MSG_PONG, NULL);
}

static void flood_with(int fd, const char *text)
{
    static char block[65536];
    size_t len = strlen(text);
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = text[i % len];
    for (;;)
        if (write(fd, block, sizeof(block)) < 0)
            poll(&p, 1, 1);
}

static void stdout_flood(void)
{
    open_link();
    connector_status("RUNNING", NULL);
    flood_with(STDOUT_FILENO, "lots and lots of output\n");
}

static void line_flood(void)
{
    open_link();
    connector_status("RUNNING", NULL);
    flood_with(STDERR_FILENO, "x");
}

static void talker(void)
{
    open_link();
    dprintf(STDOUT_FILENO, "plain output\r\n");
    dprintf(STDERR_FILENO, "\x01"
                           "3\tevil logger\t5\tnot believed\n");
    log_relay_to(STDERR_FILENO);
    log_write_for(LOG_WARN, LOGGER, NULL, 5, "a log line of the host");
    dprintf(STDERR_FILENO, "no end of line");
    connector_status("RUNNING", NULL);
    _exit(0);
}

static void report_pid(pid_t pid)
{
    char text[32];

    snprintf(text, sizeof(text), "%d", (int)pid);
    connector_status("RUNNING", text);
}

/* A child in the group that ignores what it can; then the host goes. */
static void forker(void)
{
    pid_t pid;

    open_link();
    pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        forever();
    }
    report_pid(pid);
    _exit(0);
}

/* A grandchild in a session of its own. */
static void daemonizer(void)
{
    int fds[2];
    pid_t pid = 0;

    open_link();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (pipe2(fds, O_CLOEXEC) != 0)
        _exit(95);
    if (fork() == 0) {
        pid = fork();
        if (pid == 0) {
            setsid();
            forever();
        }
        if (write(fds[1], &pid, sizeof(pid)) < 0)
            _exit(94);
        _exit(0);
    }
    if (read(fds[0], &pid, sizeof(pid)) != sizeof(pid))
        _exit(93);
    report_pid(pid);
    _exit(0);
}

/* Takes its lock file, as hosts do. */
static void locker(void)
{
    const char *path = NULL;
    uint32_t kind;
    json_t *body;

    hello(INHERIT_LINK_VERSION);
    body = hear(&kind);
    json_get_text(body, "lock", &path);
    host.lock_fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    connector_status("RUNNING", host.lock_fd >= 0 ? "locked" : "no lock");
    serve();
}

/* What it was born with, as "fd fd …|group|blocked|…". */
static void census(void)
{
    char text[1024] = "";
    size_t at = 0;
    sigset_t mask;
    int blocked = 0, ignored = 0;

    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 32; i++) {
        struct sigaction action;

        sigaction(i, NULL, &action);
        blocked += sigismember(&mask, i) == 1;
        ignored += action.sa_handler == SIG_IGN;
    }
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ", fd);
    snprintf(text + at, sizeof(text) - at, "own group %d, blocked %d, ignored %d, nonblocking %d",
             getpgrp() == getpid(), blocked, ignored,
             (fcntl(1, F_GETFL) & O_NONBLOCK) != 0 && (fcntl(2, F_GETFL) & O_NONBLOCK) != 0 &&
                 (fcntl(3, F_GETFL) & O_NONBLOCK) != 0);
    open_link();
    connector_status("RUNNING", text);
    serve();
}

static const struct {
    const char *name;
    void (*fn)(void);
} hosts[] = {
    {"mute", mute},
    {"old-version", old_version},
    {"crash", crash},
    {"quit", quit},
    {"abort", abort_loudly},
    {"garbage", garbage},
    {"oversized", oversized},
    {"hasty", hasty},
    {"impostor", impostor},
    {"confused", confused},
    {"wrong-state", wrong_state},
    {"wrong-topic", wrong_topic},
    {"stale", stale},
    {"closer", closer},
    {"last-status", last_status},
    {"pong-flood", pong_flood},
    {"stdout-flood", stdout_flood},
    {"line-flood", line_flood},
    {"talker", talker},
    {"forker", forker},
    {"daemonizer", daemonizer},
    {"census", census},
    {"locker", locker},
    {"stubborn", stubborn},
    {"mover", mover},
    {"deaf", deaf},
};

/* --- scanners: the library's name says what happens in it ------------------------------------- */

static void scan_one(const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    printf("{\"library\":\"%s\",\"begin\":true}\n", path);
    fflush(stdout);
    if (strcmp(name, "crash.so") == 0)
        raise(SIGSEGV);
    if (strcmp(name, "exit.so") == 0)
        _exit(5);
    if (strcmp(name, "hang.so") == 0)
        forever();
    if (strcmp(name, "refused.so") == 0)
        printf("{\"library\":\"%s\",\"error\":\"built for another ABI\"}\n", path);
    else if (strcmp(name, "nonsense.so") == 0)
        printf("hello\n");
    else if (strcmp(name, "swap.so") == 0)
        printf("{\"library\":\"/else.so\",\"plugins\":[]}\n");
    else
        printf("{\"library\":\"%s\",\"plugins\":[{\"name\":\"%.*s\",\"version\":\"1.0\",\"kind\":1,"
               "\"aliases\":[],"
               "\"keys\":[]}]}\n",
               path, (int)strlen(name) - 3, name);
    fflush(stdout);
}

static void scan(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        scan_one(argv[i]);
    _exit(0);
}

/* argv: host <name>. Called by the real nest too. */
int host_main(int argc, char **argv)
{
    host.name = argv[1];
    host.stuck = -1;
    host.box = black_box_map(INHERIT_BOX_FD);
    buf_init(&host.in, 16 << 20);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        if (strcmp(hosts[i].name, host.name) == 0)
            hosts[i].fn();
    good();
    return 0;
}

static bool is_nest(int pid)
{
    char path[64], args[32] = "";
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, args, sizeof(args));
    close(fd);
    return n >= 14 && memcmp(args, "millrace\0nest", 14) == 0;
}

static pid_t find_nest(void)
{
    char path[64];
    int pid = 0, found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    while (file != NULL && found == 0 && fscanf(file, "%d", &pid) == 1)
        if (is_nest(pid))
            found = pid;
    if (file != NULL)
        fclose(file);
    return found;
}

pid_t fake_host_nest(void)
{
    int64_t due = clock_ms() + 10000;
    pid_t pid = find_nest();

    while (pid == 0 && clock_ms() < due) {
        poll(NULL, 0, 1);
        pid = find_nest();
    }
    return pid;
}

void fake_host_main(int argc, char **argv)
{
    struct rlimit no_core = {0, 0};
    const char *verb = argc < 2 ? "" : argv[1];

    if (strcmp(verb, "host") != 0 && strcmp(verb, "scan") != 0 && strcmp(verb, "nest") != 0)
        return;
    setrlimit(RLIMIT_CORE, &no_core);
    if (strcmp(verb, "scan") == 0)
        scan(argc, argv);
    _exit(strcmp(verb, "nest") == 0 ? nest_main(argc - 1, argv + 1)
                                    : host_main(argc - 1, argv + 1));
}
