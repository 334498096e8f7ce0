/* SPDX-License-Identifier: Apache-2.0 */
/* What scenarios are made of: a cluster on three brokers, sources and sinks that keep ledgers
 * (tests/plugins/diary.c), faults, and the oracles that judge what came of it. One scenario at a
 * time, one thread; everything ends with the scenario.
 *
 * Every choice comes from one seed (CHAOS_SEED, else the clock), which is printed: the same seed
 * makes the same choices. */
#ifndef TESTS_CHAOS_H
#define TESTS_CHAOS_H

#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#define CHAOS_WORKERS 6
#define CHAOS_SESSION_MS 6000
#define CHAOS_DELAY_MS 2000
/* Nobody's work may stand still for longer after a silent death. */
#define CHAOS_FAILOVER_MS (CHAOS_SESSION_MS + CHAOS_DELAY_MS + 1000)
#define CHAOS_HEAL_MS 60000 /* a bound, where no figure is promised */

struct chaos_cluster {
    struct kafka_run *kafka; /* NULL: the one broker of integration tests */
    const char *servers;
    const char *group;
    const char *host;  /* of their REST APIs; NULL: 127.0.0.1 */
    const char *props; /* of all its workers, beside what chaos_rig.c gives */
    struct worker_run *w[CHAOS_WORKERS];
    int count;
};

struct chaos_source {
    const struct chaos_cluster *cluster;
    const char *name;
    const char *topic;  /* of task n: <topic>-<n>, one partition */
    const char *ledger; /* of task n: <ledger>.<n> */
    int tasks;
    int rate; /* records a second and task */
};

struct chaos_sink {
    const struct chaos_source *from;
    const char *name;
    const char *ledger;
    int tasks;
};

/* --- chance ----------------------------------------------------------------------------------- */

unsigned chaos_seed(void);
int chaos_pick(int count);       /* 0 to count - 1 */
int chaos_seconds(int fallback); /* CHAOS_SECONDS */

/* --- the rig (chaos_rig.c) -------------------------------------------------------------------- */

struct kafka_run *chaos_kafka(void);
/* A group of its own on the shared brokers, whose workers have these lines in their properties
 * too. */
struct chaos_cluster *chaos_cluster(int workers, const char *props);
/* The same on brokers of the scenario's own. */
struct chaos_cluster *chaos_cluster_on(struct kafka_run *kafka, int workers, const char *props);
/* The same on the one broker of integration tests. */
struct chaos_cluster *chaos_cluster_small(int workers, const char *props);
/* One more; exe as in worker_run. */
struct worker_run *chaos_join(struct chaos_cluster *c, const char *exe);

/* Created (or changed) through some living worker, and running. more: further fields of JSON, ",
 * \"a\": \"b\"", or "". */
struct chaos_source *chaos_source(struct chaos_cluster *c, const char *name, int tasks, int rate,
                                  const char *more);
struct chaos_sink *chaos_sink(const struct chaos_source *from, const char *name, int tasks,
                              const char *more);
/* A REST call through living workers, repeated while it is answered with 409, 5xx or not at all,
 * for at most CHAOS_HEAL_MS. */
struct http_reply chaos_call(const struct chaos_cluster *c, const char *method, const char *path,
                             const char *body);
bool chaos_lives(const struct worker_run *w);

/* Pids of this worker's hosts; how many. */
size_t chaos_hosts(const struct worker_run *w, pid_t *pids, size_t max);
/* The process in which a task lives, by its ledger and not by its status; 0: in none that lives. */
pid_t chaos_home(const struct chaos_source *s, int task);
int chaos_lives_of(const struct chaos_source *s, int task); /* how many it has had */
/* Nothing of this task lives: its last life has ended, or the process of it has. */
bool chaos_rests(const struct chaos_source *s, int task);
/* The index of the worker of that process, -1 none. */
int chaos_owner(const struct chaos_source *s, int task);
/* Bits of 1 << worker for each worker that has a task of it. */
unsigned chaos_owners(const struct chaos_source *s);
int chaos_worker_of(const struct chaos_cluster *c, pid_t host); /* index, -1 none */

enum chaos_part { CHAOS_WORKER = 1, CHAOS_HOSTS = 2, CHAOS_BOTH = 3 };
void chaos_signal(const struct worker_run *w, enum chaos_part part, int signal);
/* Worker and all its hosts die at once: the machine is lost. */
void chaos_destroy(struct worker_run *w);

/* --- brokers --- */
/* Of a topic's first partition, or (id) of the partition of an internal topic that is this group's
 * or transactional id's: the number of the broker, 1 to 3; -1 none. */
int chaos_leader(const struct chaos_cluster *c, const char *topic, const char *id);
int chaos_coordinator(const struct chaos_cluster *c); /* of its group */
struct rd_kafka_metadata;
/* What the brokers say of all topics, until look returns. */
void chaos_metadata(const struct chaos_cluster *c,
                    void (*look)(void *arg, const struct rd_kafka_metadata *meta), void *arg);
/* Of the brokers that it is given, ended by 0: CHAOS_BROKERS_MAX + 1 numbers. */
#define CHAOS_BROKERS_MAX 7
void chaos_broker_ports(const struct chaos_cluster *c, int *ports);
void chaos_broker(const char *verb, int broker); /* "kill", "restart", "pause", "resume" */

/* --- a clock of its own (tests/support/preload/clock_shim.c) --- */
/* From here on, what is started goes by the wall clock that chaos_clock_step moves; NULL: by the
 * machine's. */
void chaos_clock_use(const char *file);
void chaos_clock_step(const char *file, int64_t seconds); /* from the machine's clock */

/* --- oracles (chaos_ledger.c) ----------------------------------------------------------------- */

struct chaos_verdict {
    int64_t records;
    int64_t doubles;
    int lives;      /* incarnations of the task */
    int rewinds;    /* within a life */
    int64_t gap_ms; /* longest silence in the topic, by the broker's clock */
    int64_t gap_at_ms;
};

/* How far a task's topic is: records in it. */
int64_t chaos_progress(const struct chaos_source *s, int task);
/* Every task of it has brought something new into its topic, since now. */
void chaos_await_progress(const struct chaos_source *s, int ms);

struct chaos_terms {
    int rewinds;     /* within one life of a task: leases that were lost */
    int64_t doubles; /* at most, of one task; -1: as many as deaths explain */
    /* What a producer that was cut off has in its socket may come when the wire is mended: doubles,
     * of records and offsets. */
    bool late;
};
/* Heal, stop the source, and judge each task: nothing lost, nothing out of order, nobody beside his
 * successor, offsets that only grow and are taken up where they were left. Fails the scenario with
 * what is wrong. The worst of all tasks. */
struct chaos_verdict chaos_judge(const struct chaos_source *s, const struct chaos_terms *terms);
/* Everything in the source's topics is in the sink's ledger; nothing that was committed is
 * missing. */
void chaos_judge_sink(const struct chaos_sink *sink);
/* The process that put the last record, and when, by CLOCK_BOOTTIME; 0 before the first. */
pid_t chaos_sink_home(const struct chaos_sink *sink);
int64_t chaos_sink_last_ms(const struct chaos_sink *sink);
/* No line in any ledger of the source by this process after this moment of CLOCK_BOOTTIME. */
void chaos_assert_silent(const struct chaos_source *s, pid_t pid, int64_t since_boot_ms);
int64_t chaos_boot_ms(void);

/* Print what was measured beside what is promised; above it, and what a busy machine adds
 * (CHAOS_SLACK_MS, 0), the scenario fails. */
void chaos_figure(const char *what, int64_t measured_ms, int64_t promised_ms);

/* --- scenarios --- */
extern const struct CMUnitTest chaos_deaths[], chaos_freezes[], chaos_brokers[], chaos_network[],
    chaos_clocks[], chaos_scaling[], chaos_topics[], chaos_storms[], chaos_exactly_once[],
    chaos_replicas[], chaos_wire[], chaos_crash_points[];
extern const size_t chaos_deaths_count, chaos_freezes_count, chaos_brokers_count,
    chaos_network_count, chaos_clocks_count, chaos_scaling_count, chaos_topics_count,
    chaos_storms_count, chaos_exactly_once_count, chaos_replicas_count, chaos_wire_count,
    chaos_crash_points_count;

#endif
