/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters, loads and faults for scenarios. Three brokers are shared by all scenarios of a run;
 * each scenario has a group and topics of its own. Brokers stamp records with their own clock
 * (LogAppendTime), find a lost broker after the default 9 s, and let an empty group wait its
 * default 3 s: the settings that users have, and a clock that nobody here steps. */
#include "chaos/chaos.h"

#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BROKER_ENV \
    "KAFKA_EXTRA=$'broker.session.timeout.ms=9000\\nbroker.heartbeat.interval.ms=2000\\n" \
    "log.message.timestamp.type=LogAppendTime\\ngroup.initial.rebalance.delay.ms=3000'"
#define THREE_COPIES \
    "config.storage.replication.factor=3\noffset.storage.replication.factor=3\n" \
    "status.storage.replication.factor=3\n"
#define HOSTS_MAX 128

/* --- chance ----------------------------------------------------------------------------------- */

static unsigned chance;

unsigned chaos_seed(void)
{
    static unsigned seed;
    const char *given = getenv("CHAOS_SEED");

    if (seed == 0)
        seed = given != NULL && *given != '\0' ? (unsigned)strtoul(given, NULL, 10)
                                               : (unsigned)time(NULL) % 1000000 + 1;
    return seed;
}

int chaos_pick(int count)
{
    return rand_r(&chance) % count;
}

int chaos_seconds(int fallback)
{
    const char *given = getenv("CHAOS_SECONDS");

    return given != NULL && *given != '\0' ? (int)strtol(given, NULL, 10) : fallback;
}

int64_t chaos_boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the cluster ------------------------------------------------------------------------------ */

struct kafka_run *chaos_kafka(void)
{
    return kafka_run_share_three(BROKER_ENV);
}

struct worker_run *chaos_join(struct chaos_cluster *c, const char *exe)
{
    const char *props = scratch_text("session.timeout.ms=%d\nheartbeat.interval.ms=1000\n"
                                     "scheduled.rebalance.max.delay.ms=%d\n%s%s",
                                     CHAOS_SESSION_MS, CHAOS_DELAY_MS,
                                     c->kafka != NULL ? THREE_COPIES : "", c->props);

    assert_true(c->count < CHAOS_WORKERS);
    c->w[c->count] = worker_run_start(
        &(struct worker_run_options){.name = scratch_text("%s-w%d", c->group, c->count),
                                     .exe = exe,
                                     .servers = c->servers,
                                     .group = c->group,
                                     .host = c->host,
                                     .props = props});
    return c->w[c->count++];
}

static struct chaos_cluster *start(struct kafka_run *kafka, const char *servers, int workers,
                                   const char *props)
{
    struct chaos_cluster *c = scratch_keep(calloc(1, sizeof(*c)));

    printf("             seed %u\n", chaos_seed());
    chance = chaos_seed();
    *c = (struct chaos_cluster){
        .kafka = kafka, .servers = servers, .group = scratch_name("chaos"), .props = props};
    while (c->count < workers)
        chaos_join(c, NULL);
    return c;
}

struct chaos_cluster *chaos_cluster_on(struct kafka_run *kafka, int workers, const char *props)
{
    return start(kafka, kafka_run_servers_of(kafka), workers, props);
}

struct chaos_cluster *chaos_cluster(int workers, const char *props)
{
    return chaos_cluster_on(chaos_kafka(), workers, props);
}

struct chaos_cluster *chaos_cluster_small(int workers, const char *props)
{
    return start(NULL, kafka_run_servers(), workers, props);
}

bool chaos_lives(const struct worker_run *w)
{
    return process_running(w->process);
}

/* --- REST ------------------------------------------------------------------------------------- */

static bool is_answer(int status)
{
    return status != 0 && status != 409 && status < 500;
}

struct http_reply chaos_call(const struct chaos_cluster *c, const char *method, const char *path,
                             const char *body)
{
    int64_t from = scratch_now_ms();
    struct http_reply reply = {.body = "no worker lives"};

    for (int i = chaos_pick(c->count); scratch_since(from) < CHAOS_HEAL_MS; i++) {
        const struct worker_run *w = c->w[i % c->count];

        scratch_pause(10);
        if (!chaos_lives(w))
            continue;
        reply = worker_run_call(w, method, path, body);
        if (is_answer(reply.status))
            break;
    }
    return reply;
}

static void put(const struct chaos_cluster *c, const char *name, const char *fields)
{
    struct http_reply reply = chaos_call(c, "PUT", scratch_text("/connectors/%s/config", name),
                                         scratch_text("{%s}", fields));

    if (reply.status != 200 && reply.status != 201)
        fail_msg("PUT %s: %d: %s", name, reply.status, reply.body);
}

/* --- loads ------------------------------------------------------------------------------------ */

struct chaos_source *chaos_source(struct chaos_cluster *c, const char *name, int tasks, int rate,
                                  const char *more)
{
    struct chaos_source *s = scratch_keep(calloc(1, sizeof(*s)));

    *s = (struct chaos_source){.cluster = c,
                               .name = name,
                               .topic = scratch_text("%s-%s", c->group, name),
                               .ledger = scratch_path(scratch_text("%s.ledger", name)),
                               .tasks = tasks,
                               .rate = rate};
    put(c, name,
        scratch_text("\"connector.class\": \"LedgerSource\", \"tasks.max\": \"%d\", "
                     "\"topic\": \"%s\", \"ledger\": \"%s\", \"rate\": \"%d\"%s",
                     tasks, s->topic, s->ledger, rate, more));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    return s;
}

struct chaos_sink *chaos_sink(const struct chaos_source *from, const char *name, int tasks,
                              const char *more)
{
    struct chaos_sink *sink = scratch_keep(calloc(1, sizeof(*sink)));
    const char *topics = "";

    for (int i = 0; i < from->tasks; i++)
        topics = scratch_text("%s%s%s-%d", topics, i > 0 ? "," : "", from->topic, i);
    *sink = (struct chaos_sink){.from = from,
                                .name = name,
                                .ledger = scratch_path(scratch_text("%s.ledger", name)),
                                .tasks = tasks};
    put(from->cluster, name,
        scratch_text("\"connector.class\": \"LedgerSink\", \"tasks.max\": \"%d\", "
                     "\"topics\": \"%s\", \"ledger\": \"%s\", "
                     "\"consumer.override.auto.offset.reset\": \"earliest\"%s",
                     tasks, topics, sink->ledger, more));
    wait_until(CHAOS_HEAL_MS, chaos_sink_home(sink) != 0);
    return sink;
}

/* --- processes -------------------------------------------------------------------------------- */

size_t chaos_hosts(const struct worker_run *w, pid_t *pids, size_t max)
{
    pid_t all[HOSTS_MAX];
    size_t count = process_marked(w->mark, all, HOSTS_MAX), hosts = 0;

    for (size_t i = 0; i < count && i < HOSTS_MAX; i++)
        if (strncmp(process_arguments(all[i]), "millrace host ", 14) == 0 && hosts < max)
            pids[hosts++] = all[i];
    return hosts;
}

int chaos_worker_of(const struct chaos_cluster *c, pid_t pid)
{
    for (int i = 0; i < c->count; i++) {
        pid_t hosts[HOSTS_MAX];
        size_t count = chaos_hosts(c->w[i], hosts, HOSTS_MAX);

        for (size_t h = 0; h < count; h++)
            if (hosts[h] == pid)
                return i;
    }
    return -1;
}

int chaos_owner(const struct chaos_source *s, int task)
{
    pid_t pid = chaos_home(s, task);

    return pid == 0 ? -1 : chaos_worker_of(s->cluster, pid);
}

unsigned chaos_owners(const struct chaos_source *s)
{
    unsigned owners = 0;

    for (int i = 0; i < s->tasks; i++) {
        int owner = chaos_owner(s, i);

        owners |= owner < 0 ? 0 : 1u << owner;
    }
    return owners;
}

void chaos_signal(const struct worker_run *w, enum chaos_part part, int signal)
{
    pid_t hosts[HOSTS_MAX];
    size_t count = (part & CHAOS_HOSTS) != 0 ? chaos_hosts(w, hosts, HOSTS_MAX) : 0;

    if ((part & CHAOS_WORKER) != 0)
        process_signal(w->process, signal);
    for (size_t i = 0; i < count; i++)
        kill(hosts[i], signal);
}

void chaos_destroy(struct worker_run *w)
{
    pid_t all[HOSTS_MAX];
    size_t count;

    process_signal(w->process, SIGSTOP); /* so that it starts nothing meanwhile */
    count = process_marked(w->mark, all, HOSTS_MAX);
    for (size_t i = 0; i < count && i < HOSTS_MAX; i++)
        kill(all[i], SIGKILL);
    worker_run_kill(w);
}

/* --- brokers ---------------------------------------------------------------------------------- */

/* Java's String.hashCode, by which a group finds its partition of __consumer_offsets. */
static int partition_of(const char *group, int partitions)
{
    uint32_t hash = 0;

    for (; *group != '\0'; group++)
        hash = hash * 31 + (unsigned char)*group;
    return (int)((hash & 0x7fffffff) % (uint32_t)partitions);
}

void chaos_metadata(const struct chaos_cluster *c,
                    void (*look)(void *arg, const struct rd_kafka_metadata *meta), void *arg)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    const struct rd_kafka_metadata *meta;
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", c->servers, text, sizeof(text));
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(rk);
    assert_int_equal(rd_kafka_metadata(rk, 1, NULL, &meta, 30000), 0);
    look(arg, meta);
    rd_kafka_metadata_destroy(meta);
    rd_kafka_destroy(rk);
}

struct leader {
    const char *topic;
    const char *id; /* whose partition by Java's hash; NULL: the first */
    int broker;
};

static void find_leader(void *arg, const struct rd_kafka_metadata *meta)
{
    struct leader *leader = arg;

    leader->broker = -1;
    for (int t = 0; t < meta->topic_cnt; t++) {
        const struct rd_kafka_metadata_topic *topic = &meta->topics[t];

        if (strcmp(topic->topic, leader->topic) == 0 && topic->partition_cnt > 0)
            leader->broker =
                topic
                    ->partitions[leader->id != NULL ? partition_of(leader->id, topic->partition_cnt)
                                                    : 0]
                    .leader;
    }
}

int chaos_leader(const struct chaos_cluster *c, const char *topic, const char *id)
{
    struct leader leader = {.topic = topic, .id = id};

    chaos_metadata(c, find_leader, &leader);
    return leader.broker;
}

int chaos_coordinator(const struct chaos_cluster *c)
{
    return chaos_leader(c, "__consumer_offsets", c->group);
}

void chaos_broker_ports(const struct chaos_cluster *c, int *ports)
{
    const char *at = c->servers;
    int count = 0;

    while ((at = strchr(at, ':')) != NULL && count < CHAOS_BROKERS_MAX)
        ports[count++] = (int)strtol(++at, NULL, 10);
    ports[count] = 0;
}

void chaos_broker(const char *verb, int broker)
{
    kafka_run_do(chaos_kafka(), scratch_text("%s %d", verb, broker));
}

/* --- clocks ----------------------------------------------------------------------------------- */

void chaos_clock_use(const char *file)
{
    if (file == NULL) {
        unsetenv("LD_PRELOAD");
        return;
    }
    chaos_clock_step(file, 0);
    setenv("CLOCK_SHIM_FILE", file, 1);
    setenv("LD_PRELOAD", TEST_BUILD "/tests/support/preload/clock_shim.so", 1);
}

void chaos_clock_step(const char *file, int64_t seconds)
{
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && pwrite(fd, &seconds, sizeof(seconds), 0) == sizeof(seconds));
    close(fd);
}

/* --- figures ---------------------------------------------------------------------------------- */

void chaos_figure(const char *what, int64_t measured_ms, int64_t promised_ms)
{
    const char *slack = getenv("CHAOS_SLACK_MS");
    int64_t allowed_ms = promised_ms + (slack != NULL ? strtol(slack, NULL, 10) : 0);

    printf("             %s: %lld ms, promised %lld ms\n", what, (long long)measured_ms,
           (long long)promised_ms);
    fflush(stdout);
    if (measured_ms > allowed_ms)
        fail_msg("%s: %lld ms, promised %lld ms", what, (long long)measured_ms,
                 (long long)promised_ms);
}
