/* SPDX-License-Identifier: Apache-2.0 */
/* The worker process: puts the rooms together, in the order in which a failure costs least, and
 * takes them apart again.
 *
 *   read the worker file ─► run folder and its lock ─► bind the port ─► read the connector files
 *   ─► run the loop
 *
 *   loop: answers 503 while the starter's thread scans the plugins and buries hosts that an earlier
 *         worker left ─► open the herder ─► open REST ─► put the connectors
 *
 *   SIGTERM or SIGINT ─► REST takes no more ─► hosts are drained, all at once
 *                     ─► offsets are flushed ─► exit 0
 *
 * A worker of a cluster has no connector files, and leaves its group once the hosts have ended.
 *
 * The calling thread becomes the loop's. Signals arrive by a descriptor; all other threads have
 * them blocked from birth. Every failure of the start is one line and an exit code of worker.h. */
#define LOGGER "worker"
#include "worker/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "model/logger_names.h"
#include "worker/herder/connector_file.h"
#include "worker/herder/cluster/distributed.h"
#include "worker/herder/herder.h"
#include "worker/herder/standalone.h"
#include "worker/herder/validate/validate.h"
#include "worker/herder/view.h"
#include "worker/rest/server.h"
#include "worker/run_dir.h"
#include "worker/starter.h"
#include "worker/supervisor/orphans.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <pthread.h>

enum exit_code {
    EXIT_STOPPED = 0,
    EXIT_USAGE = 1,
    EXIT_LOST = WORKER_LOST, /* a cluster's topics or its group */
    EXIT_INITIALISATION = 2,
    EXIT_START = 3
};

#define DESCRIPTORS_OWN 64 /* of this process: logs, clients of Kafka, sockets */
#define DESCRIPTORS_EACH 6 /* a connector: link, black box, its two outputs, and while it starts */
/* Half may be clients'; the process that looks at plugins keeps some numbers free, too. */
#define DESCRIPTORS_MIN (2 * DESCRIPTORS_OWN)
#define RAISE_DESCRIPTORS \
    "Raise the hard limit (ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of a container)"
#define EXIT_SIGNAL 128           /* and the signal's number */
#define HOST_EXE "/proc/self/exe" /* right also after an upgrade replaced the file */
#define START_END_MS 1000         /* for a start that is called off */
/* timeout(1) and some supervisors send to process and group: one request. */
#define SAME_SIGNAL_MS 500
#define LEFT_MS 1000 /* for processes that are left at the end */

/* The two kinds of worker. */
struct mode {
    const char *name;
    int (*load)(struct worker_config *config, const char *path, struct mr_error *err);
    struct conn_source *(*open)(const struct source_parts *parts, struct mr_error *err);
};

static const struct mode standalone = {"standalone", worker_config_load, standalone_open};
static const struct mode cluster = {"worker", worker_config_load_cluster, distributed_open};

struct worker {
    const struct mode *mode;
    struct worker_config config;
    struct run_dir run_dir;
    struct run_dir state_dir; /* of a cluster */
    struct loop *loop;
    struct server *server;
    struct starter *starter; /* NULL once it has found what it looks for */
    struct loop_timer start_guard;
    struct catalog *catalog;
    struct herder *herder; /* NULL while the starter is at work */
    int signal_fd;
    struct loop_fd *signals;
    struct connector_file *files;
    size_t file_count;
    size_t unanswered; /* files whose connector has not been answered for */
    bool stopping;
    int64_t stopping_since_ms;
    int code;
};

/* A connector file that was put. */
struct birth {
    struct worker *worker;
    const struct connector_file *file;
};

/* --- end -------------------------------------------------------------------------------------- */

static void on_ended(void *arg)
{
    struct worker *worker = arg;

    loop_stop(worker->loop);
}

/* Nothing runs yet, so nothing is lost by not waiting. */
static void on_start_guard(void *arg)
{
    struct worker *worker = arg;

    log_warn("the look at plugins does not end, as when a file system hangs: exit without it");
    server_free(&worker->server);
    _exit(worker->code);
}

static void stop_start(struct worker *worker)
{
    starter_cancel(worker->starter);
    loop_timer_start(worker->loop, &worker->start_guard, START_END_MS, on_start_guard, worker);
}

static void stop(struct worker *worker, int code)
{
    if (worker->code == EXIT_STOPPED)
        worker->code = code;
    if (worker->stopping)
        return;
    worker->stopping = true;
    worker->stopping_since_ms = clock_ms();
    if (worker->herder != NULL)
        herder_shutdown(worker->herder, on_ended, worker);
    else
        stop_start(worker);
    /* Freed at the end: a client that reads slowly holds up no host. */
    server_close(worker->server);
}

static void on_signal(void *arg, uint32_t events)
{
    struct worker *worker = arg;
    struct signalfd_siginfo info;

    (void)events;
    while (read(worker->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        const char *name = strsignal((int)info.ssi_signo);

        if (info.ssi_signo == SIGHUP) {
            log_info("signal %u (%s): nothing to do; the configuration is read at start only",
                     info.ssi_signo, name);
        } else if (worker->stopping && clock_ms() - worker->stopping_since_ms < SAME_SIGNAL_MS) {
            log_debug("signal %u (%s) again: stopping already", info.ssi_signo, name);
        } else if (worker->stopping) {
            log_warn("signal %u (%s) while stopping: exit now, hosts end by themselves",
                     info.ssi_signo, name);
            _exit(EXIT_SIGNAL + (int)info.ssi_signo);
        } else {
            log_info("signal %u (%s): stopping", info.ssi_signo, name);
            stop(worker, EXIT_STOPPED);
        }
    }
}

/* Half of them may be clients' (rest/server.c). Told once it is known how many connectors there
 * are. */
static void judge_descriptors(const struct worker *worker)
{
    json_t *names = herder_names(worker->herder);
    size_t count = json_array_size(names);
    struct rlimit limit;
    rlim_t room;

    json_decref(names);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    room = limit.rlim_cur / 2 > DESCRIPTORS_OWN
               ? (limit.rlim_cur / 2 - DESCRIPTORS_OWN) / DESCRIPTORS_EACH
               : 0;
    if (room < count)
        log_warn(
            "open descriptors are limited to %llu (RLIMIT_NOFILE), which is enough for %llu "
            "connectors on this worker, and there are %zu: beyond that their processes may not "
            "start. " RAISE_DESCRIPTORS,
            (unsigned long long)limit.rlim_cur, (unsigned long long)room, count);
}

/* --- connectors of the command line ----------------------------------------------------------- */

static void on_born(void *arg, const struct herder_answer *answer)
{
    struct birth *birth = arg;
    struct worker *worker = birth->worker;

    worker->unanswered--;
    if (answer->err != NULL && !worker->stopping) {
        log_error("%s: %s", birth->file->path, answer->message);
        stop(worker, EXIT_START);
    } else if (answer->err == NULL) {
        log_info("%s: connector %s created", birth->file->path, birth->file->name);
    }
    free(birth);
    if (worker->unanswered == 0 && !worker->stopping) {
        judge_descriptors(worker);
        herder_started(worker->herder);
    }
}

static void put_connectors(struct worker *worker)
{
    worker->unanswered = worker->file_count;
    for (size_t i = 0; i < worker->file_count; i++) {
        const struct connector_file *file = &worker->files[i];
        struct herder_put put = {.conn = file->name,
                                 .config = &file->config,
                                 .initial = file->initial,
                                 .create_only = true};
        struct birth *birth = calloc(1, sizeof(*birth));

        mr_assert(birth != NULL);
        *birth = (struct birth){worker, file};
        herder_put(worker->herder, &put, on_born, birth);
    }
    if (worker->file_count == 0)
        herder_started(worker->herder);
}

static int read_connectors(struct worker *worker, char **paths, size_t count)
{
    worker->files = calloc(count + 1, sizeof(*worker->files));
    mr_assert(worker->files != NULL);
    for (size_t i = 0; i < count; i++) {
        struct mr_error err = {0};

        if (connector_file_read(paths[i], &worker->files[i], &err) != 0) {
            log_error("%s", err.text);
            return EXIT_START;
        }
        worker->file_count++;
    }
    return 0;
}

/* --- start ------------------------------------------------------------------------------------ */

/* Before the first thread, so that all threads inherit the mask. */
static int block_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Clients, hosts and their connections to brokers need more than the usual soft limit; hosts
 * inherit it. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    rlim_t before;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn("cannot raise the limit of open descriptors from %llu to %llu: %s",
                 (unsigned long long)before, (unsigned long long)limit.rlim_max, strerror(errno));
    else
        log_info("open descriptors: at most %llu, raised from %llu",
                 (unsigned long long)limit.rlim_max, (unsigned long long)before);
}

static int check_descriptors(struct mr_error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_MIN)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "open descriptors are limited to %llu (RLIMIT_NOFILE), and a worker needs %d at "
                   "least, and %d more for each connector. " RAISE_DESCRIPTORS,
                   (unsigned long long)limit.rlim_cur, DESCRIPTORS_MIN, 2 * DESCRIPTORS_EACH);
}

static int open_basics(struct worker *worker, struct mr_error *err)
{
    if (run_dir_open(&worker->run_dir, &worker->config, err) != 0) {
        err_prefix(err, "millrace.run.dir");
        return -1;
    }
    if (worker->mode == &cluster &&
        run_dir_open_state(&worker->state_dir, &worker->config, err) != 0) {
        err_prefix(err, "millrace.state.dir");
        return -1;
    }
    worker->loop = loop_new(err);
    if (worker->loop == NULL)
        return -1;
    if (worker->signal_fd < 0)
        return err_errno(err, "cannot receive signals");
    worker->signals = loop_fd_add(worker->loop, worker->signal_fd, EPOLLIN, on_signal, worker, err);
    if (worker->signals == NULL)
        return -1;
    worker->server = server_new(worker->loop, &worker->config, err);
    return worker->server != NULL ? 0 : -1;
}

static void on_lost(void *arg, const struct mr_error *err)
{
    log_error("%s", err->text);
    stop(arg, EXIT_LOST);
}

static void on_readable(void *arg)
{
    struct worker *worker = arg;

    if (!worker->stopping)
        judge_descriptors(worker);
}

static int open_herder(struct worker *worker, struct mr_error *err)
{
    if (validate_worker(&worker->config, worker->catalog, err) != 0)
        return -1;
    worker->herder = herder_new(&(struct herder_options){.loop = worker->loop,
                                                         .config = &worker->config,
                                                         .catalog = worker->catalog,
                                                         .open = worker->mode->open,
                                                         .readable = on_readable,
                                                         .failed = on_lost,
                                                         .arg = worker},
                                err);
    if (worker->herder == NULL)
        return -1;
    server_open(worker->server, worker->herder);
    return 0;
}

#define PLUGINS_NAMED_MAX 50

static void tell_plugins(const struct catalog *catalog)
{
    size_t count = catalog_count(catalog), named = 0;
    struct buf names;

    buf_init(&names, 65536);
    for (; named < count && named < PLUGINS_NAMED_MAX; named++) {
        const struct catalog_plugin *plugin = catalog_at(catalog, named);
        const char *version = plugin->version != NULL ? plugin->version : "without a version";

        buf_printf(&names, "%s%s %s", named > 0 ? ", " : "", plugin->name, version);
        log_debug("plugin %s %s, %s, is in %s", plugin->name, version, plugin->java_class,
                  plugin->library);
    }
    for (size_t i = 0; i < count; i++)
        logger_names_plugin(catalog_at(catalog, i)->name, catalog_at(catalog, i)->java_class);
    log_info("plugins found: %zu (%s%s)", count, names.len > 0 ? names.data : "see plugin.path",
             named < count ? ", ..." : "");
    buf_deinit(&names);
}

static void tell_settings(const struct worker *worker)
{
    const struct worker_config *config = &worker->config;

    log_info("worker %s, REST on port %d, %s %s, run folder %s, Kafka at %s", config->worker_id,
             server_port(worker->server),
             config->offset_file != NULL ? "offsets in" : "of the cluster",
             config->offset_file != NULL ? config->offset_file : config->cluster.group_id,
             config->run_dir, worker_config_servers(config));
}

/* The starter has looked: the rest of the start, on the loop. */
static void on_looked(void *arg, struct catalog *catalog, const struct mr_error *why)
{
    struct worker *worker = arg;
    struct mr_error err = *why;

    starter_free(&worker->starter);
    loop_timer_cancel(&worker->start_guard);
    worker->catalog = catalog;
    if (worker->stopping) {
        loop_stop(worker->loop);
    } else if (catalog == NULL || open_herder(worker, &err) != 0) {
        log_error("%s", err.text);
        worker->code = EXIT_INITIALISATION;
        loop_stop(worker->loop);
    } else {
        tell_plugins(catalog);
        tell_settings(worker);
        put_connectors(worker);
    }
}

static int load(struct worker *worker, const char *path, struct mr_error *err)
{
    enum log_level level;
    int rc = worker->mode->load(&worker->config, path, err);

    if (rc == 0 && log_level_from(worker->config.log_level, &level))
        log_set_level(level);
    logger_names_declare();
    return rc;
}

static int start(struct worker *worker, char **argv, int argc)
{
    struct mr_error err = {0};
    int rc;

    if (check_descriptors(&err) != 0 || load(worker, argv[0], &err) != 0 ||
        open_basics(worker, &err) != 0) {
        log_error("%s", err.text);
        return EXIT_INITIALISATION;
    }
    rc = read_connectors(worker, argv + 1, (size_t)(argc - 1));
    if (rc != 0)
        return rc;
    worker->starter = starter_new(worker->loop, HOST_EXE, &worker->config, on_looked, worker, &err);
    if (worker->starter == NULL) {
        log_error("%s", err.text);
        return EXIT_INITIALISATION;
    }
    return 0;
}

static void take_apart(struct worker *worker)
{
    server_free(&worker->server);
    herder_free(&worker->herder);
    if (worker->signals != NULL)
        loop_fd_remove(&worker->signals);
    loop_free(&worker->loop);
    if (worker->signal_fd >= 0)
        close(worker->signal_fd);
    catalog_free(&worker->catalog);
    for (size_t i = 0; i < worker->file_count; i++)
        connector_file_deinit(&worker->files[i]);
    free(worker->files);
    run_dir_close(&worker->state_dir);
    run_dir_close(&worker->run_dir);
    worker_config_deinit(&worker->config);
    if (!orphans_end(LEFT_MS))
        log_warn("not all processes that plugins have left behind can be ended");
}

static int run(const struct mode *mode, int argc, char **argv)
{
    struct worker worker = {
        .mode = mode, .signal_fd = -1, .run_dir.lock_fd = -1, .state_dir.lock_fd = -1};

    if (argc < 2) {
        fprintf(stderr, "millrace %s: the worker's properties file is missing\n", mode->name);
        return EXIT_USAGE;
    }
    worker.signal_fd = block_signals();
    orphans_adopt();
    log_info("Millrace %s starts, %s, with %s", MILLRACE_VERSION,
             mode == &cluster ? "in a cluster" : mode->name,
             argv[1][0] != '\0' ? argv[1] : "no worker file");
    raise_descriptors();
    worker.code = start(&worker, argv + 1, argc - 1);
    if (worker.code == 0)
        loop_run(worker.loop);
    take_apart(&worker);
    if (worker.code == 0)
        log_info("stopped");
    return worker.code;
}

int worker_standalone(int argc, char **argv)
{
    return run(&standalone, argc, argv);
}

int worker_cluster(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "millrace worker: takes the worker's properties file and nothing else: "
                        "connectors of a cluster are created by REST\n");
        return EXIT_USAGE;
    }
    return run(&cluster, argc, argv);
}

const char *worker_connect_version(void)
{
    return VIEW_CONNECT_VERSION;
}
