/* SPDX-License-Identifier: Apache-2.0 */
/* Finds plugin libraries and has `millrace scan` look into them, on the starter's thread. Blocks,
 * with deadlines.
 *
 * One scanner process goes through many libraries; it names each before it opens it. If it dies,
 * hangs for LIBRARY_MS or prints nonsense, the library it was on is left out, and a new process
 * goes on behind it (promise 2: a plugin can hurt only itself). The scanner has a group of its own,
 * killed at the end with whatever a library's constructor has forked. */
#define LOGGER "worker.catalog"
#include "worker/supervisor/catalog.h"

#include "base/clock.h"
#include "base/log.h"
#include "link/scan_format.h"
#include "model/plugin_version.h"
#include "worker/supervisor/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY_MS 10000
#define EXIT_MS 1000 /* for the scanner's end, after its last line */
#define LIBRARIES_MAX 10000
#define PER_PROCESS 200 /* libraries; keeps the command line short */

/* Paths of libraries, owned. */
struct libraries {
    char **paths;
    size_t count;
};

/* One scanner at work on libraries[next...]. */
struct scanner {
    pid_t pid;
    int pidfd;
    int out_fd;
    struct buf out; /* what arrived of the next line */
    bool begun;     /* the line before libraries[next] was read */
};

/* --- finding libraries ------------------------------------------------------------------------ */

static void add_library(struct libraries *libs, const char *path)
{
    char *real;

    if (libs->count >= LIBRARIES_MAX)
        return;
    real = realpath(path, NULL);
    if (real == NULL) {
        log_warn("plugin library %s is left out: %s", path, strerror(errno));
        return;
    }
    for (size_t i = 0; i < libs->count; i++)
        if (strcmp(libs->paths[i], real) == 0) {
            free(real);
            return;
        }
    libs->paths = realloc(libs->paths, (libs->count + 1) * sizeof(*libs->paths));
    mr_assert(libs->paths != NULL);
    libs->paths[libs->count++] = real;
}

static bool is_library_name(const char *name)
{
    size_t len = strlen(name);

    return len > 3 && name[0] != '.' && strcmp(name + len - 3, ".so") == 0;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void find_in(struct libraries *libs, const char *folder, int depth)
{
    struct dirent **names;
    int count = scandir(folder, &names, visible, alphasort);

    if (count < 0) {
        log_warn("plugin folder %s is left out: %s", folder, strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat st;
        bool fits =
            (size_t)snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name) < sizeof(path);

        if (fits && stat(path, &st) == 0) {
            if (S_ISREG(st.st_mode) && is_library_name(names[i]->d_name))
                add_library(libs, path);
            else if (S_ISDIR(st.st_mode) && depth > 0)
                find_in(libs, path, depth - 1);
        }
        free(names[i]);
    }
    free(names);
}

static void find_libraries(struct libraries *libs, const char *const *folders)
{
    struct stat st;

    for (size_t i = 0; folders[i] != NULL; i++) {
        if (stat(folders[i], &st) == 0 && S_ISREG(st.st_mode))
            add_library(libs, folders[i]);
        else
            find_in(libs, folders[i], 1);
    }
}

/* --- the scanner process ---------------------------------------------------------------------- */

static int scanner_start(struct scanner *s, const char *exe, const struct libraries *libs,
                         size_t first, struct mr_error *err)
{
    char program[] = "millrace", verb[] = "scan";
    char *argv[PER_PROCESS + 3] = {program, verb};
    size_t count = libs->count - first < PER_PROCESS ? libs->count - first : PER_PROCESS;
    int fds[2];

    memcpy(argv + 2, libs->paths + first, count * sizeof(*argv));
    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_errno(err, "cannot open a pipe to scan plugins");
    errno = spawn_run(exe, argv, (const int[]){-1, fds[1], -1}, 3, &s->pid);
    close(fds[1]);
    if (errno != 0) {
        close(fds[0]);
        return err_errno(err, "cannot run %s to scan plugins", exe);
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    s->out_fd = fds[0];
    s->pidfd = pidfd_open(s->pid, 0);
    s->begun = false;
    buf_init(&s->out, SCAN_FORMAT_LINE_MAX + 65536);
    return 0;
}

/* How it ended, in words; "" with code 0. Kills what is left of it, and its group. */
static void scanner_end(struct scanner *s, bool kill_now, char *how, size_t size)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    siginfo_t end = {0};

    if (!kill_now)
        poll(&p, 1, EXIT_MS);
    kill(-s->pid, SIGKILL);
    kill(s->pid, SIGKILL); /* a library may have moved it out of its group */
    waitid(P_PID, (id_t)s->pid, &end, WEXITED);
    spawn_forget(s->pid);
    if (end.si_code != CLD_EXITED)
        snprintf(how, size, "the scanner was killed by signal %d (SIG%s) in it", end.si_status,
                 sigabbrev_np(end.si_status) == NULL ? "?" : sigabbrev_np(end.si_status));
    else if (end.si_status != 0)
        snprintf(how, size, "the scanner exited with code %d in it", end.si_status);
    else
        how[0] = '\0';
    if (s->pidfd >= 0)
        close(s->pidfd);
    close(s->out_fd);
    buf_deinit(&s->out);
}

/* --- one run ---------------------------------------------------------------------------------- */

struct run {
    struct catalog *cat;
    const struct libraries *libs;
    int cancel_fd;
    size_t next; /* the library whose answer is waited for */
    size_t end;  /* the first one that this process was not given */
    struct scanner scanner;
};

static void leave_out(const struct run *run, const char *why)
{
    log_warn("plugin library %s is left out: %s", run->libs->paths[run->next], why);
}

/* false: the scanner talks nonsense. */
static bool take_line(struct run *run, const char *data, size_t len)
{
    struct catalog_line *line = malloc(sizeof(*line));
    struct mr_error err = {0};
    const char *expected = run->next < run->end ? run->libs->paths[run->next] : "";
    bool ok;

    mr_assert(line != NULL);
    ok = expected[0] != '\0' && catalog_read_line(run->cat, data, len, line, &err) == 0 &&
         strcmp(line->library, expected) == 0 &&
         (line->kind == CATALOG_LINE_BEGIN) != run->scanner.begun;
    if (!ok) {
        mr_fail(&err, MR_ERR_PROTOCOL, "the scanner's answers are out of order");
        if (run->next < run->end)
            leave_out(run, err.text);
    } else if (line->kind == CATALOG_LINE_BEGIN) {
        run->scanner.begun = true;
    } else {
        if (line->kind == CATALOG_LINE_ERROR)
            leave_out(run, line->error);
        run->scanner.begun = false;
        run->next++;
    }
    free(line);
    return ok;
}

/* false: nonsense. */
static bool take_lines(struct run *run)
{
    struct buf *out = &run->scanner.out;

    for (;;) {
        char *end = out->len == 0 ? NULL : memchr(out->data, '\n', out->len);
        bool ok;

        if (end == NULL) {
            if (out->len <= SCAN_FORMAT_LINE_MAX)
                return true;
            leave_out(run, "the scanner printed a line that is too long");
            return false;
        }
        ok = take_line(run, out->data, (size_t)(end - out->data));
        buf_consume(out, (size_t)(end - out->data) + 1);
        if (!ok)
            return false;
    }
}

/* Read what is there. 1: read, 0: end of file, -1: nothing now. */
static int read_some(struct run *run)
{
    struct buf *out = &run->scanner.out;
    ssize_t n;

    mr_assert(buf_reserve(out, 65536) == 0);
    n = read(run->scanner.out_fd, out->data + out->len, 65536);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    out->len += (size_t)n;
    out->data[out->len] = '\0';
    return n > 0;
}

enum outcome { ENDED, HUNG, NONSENSE, CANCELLED };

/* Follow the scanner until it ended, or is stuck in one library. A forked child may hold the pipe
 * open, so the process's own end counts as well as that of the pipe. */
static enum outcome follow(struct run *run)
{
    int64_t due = clock_ms() + LIBRARY_MS;

    for (;;) {
        struct pollfd p[3] = {{.fd = run->scanner.out_fd, .events = POLLIN},
                              {.fd = run->scanner.pidfd, .events = POLLIN},
                              {.fd = run->cancel_fd, .events = POLLIN}};
        int64_t left = due - clock_ms();
        size_t before = run->next;
        int rc;

        if (left <= 0)
            return HUNG;
        if (poll(p, 3, (int)left) < 0 && errno != EINTR)
            return HUNG;
        if (p[2].revents & POLLIN)
            return CANCELLED;
        rc = read_some(run);
        if (!take_lines(run))
            return NONSENSE;
        if (rc == 0 || (rc < 0 && (p[1].revents & POLLIN)))
            return ENDED;
        if (run->next != before)
            due = clock_ms() + LIBRARY_MS;
    }
}

/* One process over the libraries from run->next on; afterwards run->next is the first that still
 * has to be looked at. MR_ERR_IO: scanning itself does not work. */
static int run_scanner(struct run *run, const char *exe, struct mr_error *err)
{
    size_t first = run->next;
    enum outcome outcome;
    char how[128];
    int rc = scanner_start(&run->scanner, exe, run->libs, first, err);

    if (rc != 0)
        return rc;
    run->end = run->libs->count - first < PER_PROCESS ? run->libs->count : first + PER_PROCESS;
    outcome = follow(run);
    scanner_end(&run->scanner, outcome != ENDED, how, sizeof(how));
    if (outcome == CANCELLED)
        return mr_fail(err, MR_ERR_CLOSED, "the scan of plugins was called off");
    if (outcome == ENDED && run->next == run->end)
        return 0;
    if (!run->scanner.begun && run->next == first)
        return mr_fail(err, MR_ERR_IO, "%s does not scan plugins%s%s", exe,
                       how[0] != '\0' ? ": " : "", how);
    if (!run->scanner.begun && outcome != NONSENSE)
        return 0;
    if (outcome == HUNG)
        leave_out(run, "it took longer than 10 s to open");
    else if (outcome == ENDED)
        leave_out(run, how[0] != '\0' ? how : "the scanner exited in it");
    run->next++;
    return 0;
}

/* As when an example was copied, and its class kept its name. The catalog lists them one behind the
 * other. */
static void tell_doubles(const struct catalog *cat)
{
    for (size_t i = 1; i < catalog_count(cat); i++) {
        const struct catalog_plugin *a = catalog_at(cat, i - 1), *b = catalog_at(cat, i);

        if (a->kind == b->kind && strcmp(a->java_class, b->java_class) == 0 &&
            plugin_version_compare(a->version, b->version) == 0)
            log_warn("plugin %s %s is in %s and in %s: that of %s is used", a->name, a->version,
                     a->library, b->library, catalog_find(cat, a->kind, a->java_class)->library);
    }
}

struct catalog *catalog_scan(const char *exe, const char *const *folders, int cancel_fd,
                             struct mr_error *err)
{
    struct libraries libs = {0};
    struct run run = {.cat = catalog_new(), .libs = &libs, .cancel_fd = cancel_fd};

    find_libraries(&libs, folders);
    while (run.next < libs.count)
        if (run_scanner(&run, exe, err) != 0) {
            catalog_free(&run.cat);
            break;
        }
    for (size_t i = 0; i < libs.count; i++)
        free(libs.paths[i]);
    free(libs.paths);
    if (run.cat != NULL)
        tell_doubles(run.cat);
    return run.cat;
}
