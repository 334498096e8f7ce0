/* SPDX-License-Identifier: Apache-2.0 */
/* Three flows and their oracles. Topics are read by a client of the test's own, committed records
 * only, each record in turn; the sink's file, as it is written: nobody is asked how he is.
 *
 *   source  numbers without a gap, each once, in order; none of a life behind its successor's;
 *           the offset stored last is behind the last number
 *   relay   the same, and the count that it carries as state is that of each number
 *   sink    the same of what it stored, and each commit begins where the one before it ended */
#include "chaos/chaos_flows.h"

#include "chaos/chaos_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVES_MAX 4096
#define TASKS_MAX 16

/* --- start ------------------------------------------------------------------------------------ */

static const char *topic_of(const struct chaos_flows *flows, int task)
{
    return scratch_text("%s-%d", flows->source->topic, task);
}

static const char *out_of(const struct chaos_flows *flows, int task)
{
    return scratch_text("%s-%d-out", flows->source->topic, task);
}

static const char *topics(const struct chaos_flows *flows,
                          const char *(*name)(const struct chaos_flows *, int))
{
    const char *text = "";

    for (int i = 0; i < flows->source->tasks; i++)
        text = scratch_text("%s%s%s", text, i > 0 ? "," : "", name(flows, i));
    return text;
}

static void put(const struct chaos_flows *flows, const char *name, const char *fields)
{
    struct http_reply reply =
        chaos_call(flows->source->cluster, "PUT", scratch_text("/connectors/%s/config", name),
                   scratch_text("{%s}", fields));

    if (reply.status / 100 != 2)
        fail_msg("PUT %s: %d: %s", name, reply.status, reply.body);
}

/* Topics of one partition all go to the same member by range, the default. */
static const struct assignor {
    const char *name; /* librdkafka's */
    const char *property;
} assignors[] = {
    {"roundrobin", ", \"consumer.override.partition.assignment.strategy\": "
                   "\"org.apache.kafka.clients.consumer.RoundRobinAssignor\""},
    {"cooperative-sticky", ", \"consumer.override.partition.assignment.strategy\": "
                           "\"org.apache.kafka.clients.consumer.CooperativeStickyAssignor\""},
};

static struct chaos_group group_of(const char *connector, const char *topics,
                                   const struct assignor *assignor)
{
    return (struct chaos_group){scratch_text("connect-%s", connector), topics, assignor->name,
                                scratch_path(scratch_text("%s.doze", connector))};
}

/* What the members of a group have in their configuration. */
static const char *of_group(const struct chaos_group *group, const struct chaos_flows_terms *terms,
                            const struct assignor *assignor)
{
    int poll_ms = terms->poll_ms > 0 ? terms->poll_ms : CHAOS_FLOWS_POLL_MS;

    return scratch_text("\"tasks.max\": \"%d\", \"topics\": \"%s\", \"doze\": \"%s\", "
                        "\"consumer.override.session.timeout.ms\": \"%d\", "
                        "\"consumer.override.max.poll.interval.ms\": \"%d\"%s",
                        terms->tasks, group->topics, group->doze, poll_ms, poll_ms,
                        assignor->property);
}

/* With short transactions the refusal of a commit tells a relay that it is out of its group, with
 * long ones a heartbeat does, while one is open: what is lost with that must not be committed. */
static const char *const paces[] = {"", ", \"millrace.commit.interval.ms\": \"1000\", "
                                        "\"consumer.override.heartbeat.interval.ms\": \"250\""};

struct chaos_flows *chaos_flows_start(struct chaos_cluster *c,
                                      const struct chaos_flows_terms *terms)
{
    struct chaos_flows *flows = scratch_keep(calloc(1, sizeof(*flows)));
    const struct assignor *assignor = &assignors[chaos_pick(2)];
    const char *pace = paces[chaos_pick(2)];
    const char *boundary = terms->interval_ms == 0
                               ? ""
                               : scratch_text(", \"transaction.boundary\": \"interval\", "
                                              "\"transaction.boundary.interval.ms\": \"%d\"",
                                              terms->interval_ms);

    assert_true(terms->tasks <= TASKS_MAX);
    *flows = (struct chaos_flows){.relay = scratch_text("%s-relay", c->group),
                                  .sink = scratch_text("%s-sink", c->group),
                                  .file = scratch_path("sink.stored")};
    flows->more = scratch_text("%s%s", boundary, terms->clients);
    flows->source = chaos_source(c, "src", terms->tasks, terms->rate, flows->more);
    for (int i = 0; i < terms->tasks; i++) /* or else the sink finds them after minutes */
        topic_create(c->servers, out_of(flows, i), 1);
    flows->in = group_of(flows->relay, topics(flows, topic_of), assignor);
    flows->out = group_of(flows->sink, topics(flows, out_of), assignor);
    put(flows, flows->relay,
        scratch_text("\"connector.class\": \"AbacusRelay\", %s%s%s",
                     of_group(&flows->in, terms, assignor), pace, terms->clients));
    put(flows, flows->sink,
        scratch_text("\"connector.class\": \"AbacusSink\", %s, \"file\": \"%s\", "
                     "\"consumer.override.isolation.level\": \"read_committed\"",
                     of_group(&flows->out, terms, assignor), flows->file));
    return flows;
}

void chaos_flows_scale(const struct chaos_flows *flows, int tasks)
{
    const struct chaos_source *s = flows->source;

    put(flows, s->name,
        scratch_text("\"connector.class\": \"LedgerSource\", \"tasks.max\": \"%d\", "
                     "\"topic\": \"%s\", \"ledger\": \"%s\", \"rate\": \"%d\"%s",
                     tasks, s->topic, s->ledger, s->rate, flows->more));
}

/* The connector makes its tasks anew where it is: its configuration stays. */
bool chaos_flows_swap(struct chaos_flows *flows, struct worker_run *through)
{
    const struct chaos_source *s = flows->source;
    const struct chaos_cluster alone = {.w = {through}, .count = 1};
    struct http_reply reply;

    flows->shift = (flows->shift + 1) % s->tasks;
    scratch_write_text(scratch_text("%s.shift", s->ledger), scratch_text("%d", flows->shift));
    reply = chaos_call(&alone, "POST", scratch_text("/connectors/%s/restart", s->name), NULL);
    return reply.status / 100 == 2;
}

/* --- the sink's file -------------------------------------------------------------------------- */

struct kept {
    struct chaos_numbers numbers[TASKS_MAX];
    long long next[TASKS_MAX]; /* offset */
    int commits;
};

static int task_of(const struct chaos_flows *flows, const char *topic)
{
    for (int i = 0; i < flows->source->tasks; i++)
        if (strcmp(topic, out_of(flows, i)) == 0)
            return i;
    return -1;
}

static void take_runs(struct chaos_numbers *numbers, const char *runs)
{
    long long first, last;
    int used;

    while (sscanf(runs, "%lld-%lld,%n", &first, &last, &used) == 2) {
        for (; first <= last; first++)
            chaos_numbers_take(numbers, first);
        runs += used;
    }
}

static void take_commit(const struct chaos_flows *flows, struct kept *kept, const char *part)
{
    char topic[250];
    long long stored, next;
    int partition, used, task;

    if (sscanf(part, "%249s %d %lld %lld %n", topic, &partition, &stored, &next, &used) != 4)
        fail_msg("%s: odd commit: %s", flows->file, part);
    task = task_of(flows, topic);
    if (task < 0 || partition != 0)
        fail_msg("%s: a commit for %s-%d", flows->file, topic, partition);
    if (stored != kept->next[task])
        fail_msg("%s: a commit for %s from %lld on, where %lld was stored", flows->file, topic,
                 stored, kept->next[task]);
    kept->next[task] = next;
    take_runs(&kept->numbers[task], part + used);
}

/* A last line without an end is under way, or torn. */
static void read_file(const struct chaos_flows *flows, struct kept *kept)
{
    char *text = scratch_read(flows->file, NULL), *end, *save, *part;

    *kept = (struct kept){0};
    for (int i = 0; i < flows->source->tasks; i++) {
        kept->numbers[i].of = scratch_text("%s of %s", flows->sink, topic_of(flows, i));
        kept->next[i] = -1;
    }
    for (char *line = text; line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        strtok_r(line, ";", &save);
        while ((part = strtok_r(NULL, ";", &save)) != NULL)
            take_commit(flows, kept, part);
        kept->commits++;
    }
}

static void forget(struct kept *kept)
{
    for (int i = 0; i < TASKS_MAX; i++)
        free(kept->numbers[i].seen);
}

/* Numbers that each topic's part of the file ends with. */
static void ends_of(const struct chaos_flows *flows, int64_t *ends)
{
    struct kept kept;

    read_file(flows, &kept);
    for (int i = 0; i < flows->source->tasks; i++)
        ends[i] = kept.numbers[i].next;
    forget(&kept);
}

static int first_behind(const struct chaos_flows *flows, const int64_t *ends, const int64_t *wanted)
{
    for (int i = 0; i < flows->source->tasks; i++)
        if (ends[i] < wanted[i])
            return i;
    return -1;
}

/* wanted: how far each topic is to come in the file. ms: without a step towards it; what has piled
 * up behind a fault may take its time. */
static void await_ends(const struct chaos_flows *flows, const int64_t *wanted, int ms)
{
    int64_t from = scratch_now_ms(), ends[TASKS_MAX] = {0}, before[TASKS_MAX];
    int behind;

    for (;;) {
        memcpy(before, ends, sizeof(ends));
        ends_of(flows, ends);
        if ((behind = first_behind(flows, ends, wanted)) < 0)
            return;
        if (ends[behind] > before[behind])
            from = scratch_now_ms();
        if (scratch_since(from) > ms)
            fail_msg("%s: %s has come to %lld, not to %lld, and no further for %d ms", flows->file,
                     topic_of(flows, behind), (long long)ends[behind], (long long)wanted[behind],
                     ms);
        scratch_pause(200);
    }
}

void chaos_flows_await(const struct chaos_flows *flows, int ms)
{
    int64_t wanted[TASKS_MAX];

    ends_of(flows, wanted);
    for (int i = 0; i < flows->source->tasks; i++)
        wanted[i]++;
    await_ends(flows, wanted, ms);
}

/* --- the topics ------------------------------------------------------------------------------- */

struct topic {
    struct chaos_numbers numbers;
    char (*lives)[48]; /* in their order; LIVES_MAX */
    int life_count;
    char wrong[200];
};

static void complain(struct topic *t, const char *what, const struct topic_record *rec)
{
    if (t->wrong[0] == '\0')
        snprintf(t->wrong, sizeof(t->wrong), "%s: \"%.60s\" at offset %lld", what,
                 rec->value == NULL ? "null" : rec->value, (long long)rec->offset);
}

static void enter_life(struct topic *t, const char *life, const struct topic_record *rec)
{
    if (t->life_count > 0 && strcmp(t->lives[t->life_count - 1], life) == 0)
        return;
    for (int i = 0; i < t->life_count; i++)
        if (strcmp(t->lives[i], life) == 0) {
            complain(t, "of a life behind its successor's", rec);
            return;
        }
    assert_true(t->life_count < LIVES_MAX);
    snprintf(t->lives[t->life_count++], sizeof(t->lives[0]), "%s", life);
}

static void take_made(void *arg, const struct topic_record *rec)
{
    struct topic *t = arg;
    char life[48];
    long long number;

    if (rec->value == NULL || sscanf(rec->value, "%lld %47s", &number, life) != 2) {
        complain(t, "odd", rec);
        return;
    }
    chaos_numbers_take(&t->numbers, number);
    enter_life(t, life, rec);
}

static void take_relayed(void *arg, const struct topic_record *rec)
{
    struct topic *t = arg;
    long long number, count;

    if (rec->value == NULL || sscanf(rec->value, "%lld %lld", &number, &count) != 2) {
        complain(t, "odd", rec);
        return;
    }
    chaos_numbers_take(&t->numbers, number);
    if (number != count)
        complain(t, "the state does not fit", rec);
}

static bool right(struct topic *t)
{
    bool numbers_right = chaos_numbers_right(&t->numbers);

    if (t->wrong[0] != '\0')
        printf("             %s: %s\n", t->numbers.of, t->wrong);
    fflush(stdout);
    return numbers_right && t->wrong[0] == '\0';
}

struct stored {
    const char *key;
    long long next;
};

static void take_stored(void *arg, const struct topic_record *rec)
{
    struct stored *stored = arg;
    long long next;

    if (rec->key == NULL || rec->value == NULL || strcmp(rec->key, stored->key) != 0)
        return;
    if (sscanf(rec->value, "{\"next\":%lld}", &next) != 1 || next < stored->next)
        fail_msg("%s: %s was stored behind %lld", stored->key, rec->value, stored->next);
    stored->next = next;
}

static long long stored_of(const struct chaos_source *s, int task)
{
    struct stored stored = {scratch_text("[\"%s\",{\"name\":\"%s-%d\"}]", s->name, s->name, task),
                            0};

    topic_walk(s->cluster->servers, scratch_text("%s-offsets", s->cluster->group), take_stored,
               &stored);
    return stored.next;
}

static bool judge_made(const struct chaos_flows *flows, int task, int64_t *count)
{
    struct topic t = {.numbers.of = topic_of(flows, task),
                      .lives = scratch_keep(calloc(LIVES_MAX, sizeof(*t.lives)))};
    long long stored = stored_of(flows->source, task);

    topic_walk(flows->source->cluster->servers, topic_of(flows, task), take_made, &t);
    *count = t.numbers.next;
    if (stored != t.numbers.next && t.wrong[0] == '\0')
        snprintf(t.wrong, sizeof(t.wrong), "%lld was stored as its offset", stored);
    printf("             %s: %d lives\n", t.numbers.of, t.life_count);
    return right(&t);
}

static bool judge_relayed(const struct chaos_flows *flows, int task)
{
    struct topic t = {.numbers.of = out_of(flows, task)};

    topic_walk(flows->source->cluster->servers, out_of(flows, task), take_relayed, &t);
    return right(&t);
}

static bool judge_kept(const struct chaos_flows *flows, const int64_t *wanted)
{
    struct kept kept;
    bool all_right = true;

    read_file(flows, &kept);
    for (int i = 0; i < flows->source->tasks; i++)
        all_right =
            chaos_numbers_right(&kept.numbers[i]) && kept.numbers[i].next == wanted[i] && all_right;
    printf("             %s: %d commits\n", flows->sink, kept.commits);
    forget(&kept);
    return all_right;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static bool rests(const struct chaos_source *s)
{
    for (int i = 0; i < s->tasks; i++)
        if (!chaos_rests(s, i))
            return false;
    return true;
}

static void stop(const struct chaos_source *s)
{
    struct http_reply reply =
        chaos_call(s->cluster, "PUT", scratch_text("/connectors/%s/stop", s->name), NULL);

    if (reply.status != 204)
        fail_msg("PUT %s/stop: %d: %s", s->name, reply.status, reply.body);
    wait_until(CHAOS_HEAL_MS, rests(s));
}

int64_t chaos_flows_judge(const struct chaos_flows *flows)
{
    int64_t made[TASKS_MAX], records = 0;
    bool all_right = true;

    stop(flows->source);
    for (int i = 0; i < flows->source->tasks; i++) {
        all_right = judge_made(flows, i, &made[i]) && all_right;
        records += made[i] * 3;
    }
    if (all_right)
        await_ends(flows, made, CHAOS_HEAL_MS * 2);
    for (int i = 0; i < flows->source->tasks; i++)
        all_right = judge_relayed(flows, i) && all_right;
    all_right = judge_kept(flows, made) && all_right;
    if (!all_right)
        fail_msg("not exactly once: see above");
    return records;
}
