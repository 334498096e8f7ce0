/* SPDX-License-Identifier: Apache-2.0 */
/* Faults for what runs in transactions: processes that die or freeze, brokers that die, requests
 * that are lost, late or unanswered, a slow wire, connections that end; a group that throws members
 * out, strangers in it and with a transactional id, calls that last too long; a worker that knows
 * of nothing new. */
#include "chaos/chaos_mix.h"

#include "chaos/chaos_naive.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_MAX 64
#define MEET_MS 6000   /* that the next request of a kind comes */
#define VISIT_MS 15000 /* until a stranger is given something */

/* --- processes -------------------------------------------------------------------------------- */

static void come_back(struct chaos_mix *mix, int at)
{
    chaos_proxy_use(mix->proxy, at);
    worker_run_launch(mix->cluster->w[at]);
    chaos_proxy_use(NULL, 0);
    mix->dead &= ~(1u << at);
}

struct chaos_mix chaos_mix_start(struct chaos_cluster *c, int workers,
                                 const struct chaos_flows_terms *terms)
{
    struct chaos_mix mix = {
        .cluster = c, .brokers = c->kafka != NULL, .freeze_ms = CHAOS_SESSION_MS * 3 / 2};

    mix.proxy = chaos_proxy_new(c->servers, scratch_text("%s-", c->group));
    while (c->count < workers) {
        chaos_proxy_use(mix.proxy, c->count);
        chaos_join(c, NULL);
    }
    chaos_proxy_use(NULL, 0);
    mix.flows = chaos_flows_start(c, terms);
    return mix;
}

static int random_living(const struct chaos_mix *mix)
{
    const struct chaos_cluster *c = mix->cluster;
    int from = chaos_pick(c->count);

    for (int i = 0; i < c->count; i++)
        if ((mix->dead & 1u << (from + i) % c->count) == 0)
            return (from + i) % c->count;
    fail_msg("no worker lives");
    return -1;
}

static int living(const struct chaos_mix *mix)
{
    int count = 0;

    for (int i = 0; i < mix->cluster->count; i++)
        count += (mix->dead & 1u << i) == 0;
    return count;
}

static void kill_worker(struct chaos_mix *mix)
{
    int at = random_living(mix);

    worker_run_kill(mix->cluster->w[at]);
    mix->dead |= 1u << at;
}

static void lose_machine(struct chaos_mix *mix)
{
    int at = random_living(mix);

    chaos_destroy(mix->cluster->w[at]);
    mix->dead |= 1u << at;
}

static void kill_host(struct chaos_mix *mix)
{
    pid_t hosts[HOSTS_MAX];
    size_t count = chaos_hosts(mix->cluster->w[random_living(mix)], hosts, HOSTS_MAX);

    if (count > 0)
        kill(hosts[chaos_pick((int)count)], SIGKILL);
}

static void freeze(struct chaos_mix *mix)
{
    const struct worker_run *w = mix->cluster->w[random_living(mix)];
    enum chaos_part part = (enum chaos_part)(1 + chaos_pick(3));
    int64_t from = scratch_now_ms(), ms = 500 + chaos_pick(mix->freeze_ms);

    chaos_signal(w, part, SIGSTOP);
    wait_until((int)ms + CHAOS_HEAL_MS, scratch_since(from) > ms);
    chaos_signal(w, part, SIGCONT);
}

static void kill_broker(struct chaos_mix *mix)
{
    int broker = 1 + chaos_pick(3);

    (void)mix;
    chaos_broker("kill", broker);
    chaos_broker("restart", broker);
}

static void freeze_broker(struct chaos_mix *mix)
{
    int broker = 1 + chaos_pick(3);
    int64_t from = scratch_now_ms(), ms = 500 + chaos_pick(mix->freeze_ms);

    (void)mix;
    chaos_broker("pause", broker);
    wait_until((int)ms * 2 + CHAOS_HEAL_MS, scratch_since(from) > ms);
    chaos_broker("resume", broker);
}

/* --- the wire --------------------------------------------------------------------------------- */

static int met(const struct chaos_mix *mix)
{
    struct chaos_proxy_counts counts = chaos_proxy_counts(mix->proxy);
    int sum = 0;

    for (int i = 0; i < CHAOS_MISHAPS; i++)
        sum += counts.met[i];
    return sum;
}

/* The next one may be long in coming: it is not waited for without end. */
static void mishap(struct chaos_mix *mix, enum chaos_mishap what, enum chaos_request which)
{
    int64_t from = scratch_now_ms();
    int before = met(mix);

    chaos_proxy_mishap(mix->proxy, what, which);
    while (met(mix) == before && scratch_since(from) < MEET_MS)
        scratch_pause(5);
}

static void late_end(struct chaos_mix *mix)
{
    mishap(mix, CHAOS_LATE, CHAOS_END_TXN);
}

static void lost_end(struct chaos_mix *mix)
{
    mishap(mix, CHAOS_LOST, CHAOS_END_TXN);
}

static void unanswered_end(struct chaos_mix *mix)
{
    mishap(mix, CHAOS_UNANSWERED, CHAOS_END_TXN);
}

static void other_request(struct chaos_mix *mix)
{
    static const enum chaos_request others[] = {CHAOS_PRODUCE, CHAOS_ADD_PARTITIONS,
                                                CHAOS_ADD_OFFSETS};

    mishap(mix, chaos_pick(2) == 0 ? CHAOS_LOST : CHAOS_UNANSWERED, others[chaos_pick(3)]);
}

static void slow_wire(struct chaos_mix *mix)
{
    int64_t from = scratch_now_ms(), ms = 2000 + chaos_pick(3000);

    chaos_proxy_slow(mix->proxy, 100, 100);
    wait_until(CHAOS_HEAL_MS, scratch_since(from) > ms);
    chaos_proxy_slow(mix->proxy, 0, 0);
}

static void reset(struct chaos_mix *mix)
{
    chaos_proxy_reset(mix->proxy);
}

/* --- groups and ids --------------------------------------------------------------------------- */

/* That of the relay, mostly. */
static const struct chaos_group *some_group(const struct chaos_mix *mix)
{
    return chaos_pick(3) > 0 ? &mix->flows->in : &mix->flows->out;
}

static void throw_out(struct chaos_mix *mix)
{
    chaos_group_throw_out(mix->cluster->servers, some_group(mix));
}

static void visit(struct chaos_mix *mix)
{
    chaos_group_visit(mix->cluster->servers, some_group(mix), VISIT_MS, chaos_pick(2000));
}

/* The call goes on when its partitions are with somebody else, who has gone on with them, or are
 * back. */
static void doze(struct chaos_mix *mix, const struct chaos_group *group)
{
    const char *now = scratch_text("%s.now", group->doze);
    int64_t from = scratch_now_ms();

    scratch_write_text(group->doze, "");
    while (access(now, F_OK) != 0 && scratch_since(from) < MEET_MS)
        scratch_pause(5);
    if (chaos_pick(2) == 0)
        chaos_group_throw_out(mix->cluster->servers, group);
    chaos_group_visit(mix->cluster->servers, group, VISIT_MS, chaos_pick(2000));
    unlink(group->doze);
    unlink(now);
}

static void relay_dozes(struct chaos_mix *mix)
{
    doze(mix, &mix->flows->in);
}

static void sink_dozes(struct chaos_mix *mix)
{
    doze(mix, &mix->flows->out);
}

static void take_over(struct chaos_mix *mix)
{
    const struct chaos_flows *flows = mix->flows;

    chaos_naive_take_over(mix->cluster->servers,
                          scratch_text("%s-%s-%d", mix->cluster->group,
                                       chaos_pick(2) == 0 ? flows->relay : flows->source->name,
                                       chaos_pick(flows->source->tasks)));
}

/* Its last commit is done, which nobody was told, when its id is another's: what was committed is
 * to be read back, and the memory of the task is wrong. */
static bool take_over_in_doubt(struct chaos_mix *mix, const char *connector)
{
    int64_t from = scratch_now_ms();
    const char *id;

    chaos_proxy_doubt(mix->proxy, scratch_text("%s-%s-", mix->cluster->group, connector));
    while ((id = chaos_proxy_doubted(mix->proxy)) == NULL && scratch_since(from) < MEET_MS)
        scratch_pause(5);
    if (id != NULL)
        chaos_naive_take_over(mix->cluster->servers, id);
    chaos_proxy_release(mix->proxy);
    return id != NULL;
}

static void take_relays_in_doubt(struct chaos_mix *mix)
{
    mix->relays_doubted += take_over_in_doubt(mix, mix->flows->relay);
}

static void take_sources_in_doubt(struct chaos_mix *mix)
{
    mix->sources_doubted += take_over_in_doubt(mix, mix->flows->source->name);
}

/* --- tasks that change hands ------------------------------------------------------------------ */

/* Of the workers with a task of the source: one that does not lead, and is not alone in that; -1
 * none, or nobody that lives leads. */
static int find_follower(const struct chaos_mix *mix, int *leader)
{
    const struct chaos_cluster *c = mix->cluster;
    unsigned owners = chaos_owners(mix->flows->source) & ~mix->dead;
    int from = chaos_pick(c->count);

    *leader = chaos_group_leading(c);
    if (*leader < 0 || (mix->dead & 1u << *leader) != 0)
        return -1;
    for (int i = from; i < from + c->count; i++) {
        unsigned bit = 1u << i % c->count;

        if ((owners & bit) != 0 && owners != bit && i % c->count != *leader)
            return i % c->count;
    }
    return -1;
}

/* The topics of this worker's tasks, a bit each. */
static unsigned topics_of(const struct chaos_mix *mix, int worker)
{
    unsigned topics = 0;

    for (int i = 0; i < mix->flows->source->tasks; i++)
        topics |= chaos_owner(mix->flows->source, i) == worker ? 1u << i : 0;
    return topics;
}

/* Somebody else has begun where a task of this worker is still at work, and goes on. */
static bool is_taken_over(const struct chaos_mix *mix, int worker, unsigned topics)
{
    return (topics & ~topics_of(mix, worker)) != 0;
}

static bool is_blind(const struct chaos_mix *mix, int before)
{
    return chaos_proxy_counts(mix->proxy).blinded > before;
}

static int await_follower(const struct chaos_mix *mix, int *leader)
{
    int64_t from = scratch_now_ms();
    int follower;

    while ((follower = find_follower(mix, leader)) < 0 && scratch_since(from) < VISIT_MS)
        scratch_pause(100);
    return follower;
}

static void blind(struct chaos_mix *mix, int worker)
{
    int before = chaos_proxy_counts(mix->proxy).blinded;
    int64_t from = scratch_now_ms();

    chaos_proxy_blind(mix->proxy, worker, scratch_text("%s-configs", mix->cluster->group));
    while (!is_blind(mix, before) && scratch_since(from) < MEET_MS)
        scratch_pause(5);
}

static void watch_take_over(struct chaos_mix *mix, int worker, unsigned topics)
{
    int64_t from = scratch_now_ms(), ms = 1500 + chaos_pick(2000);

    while (!is_taken_over(mix, worker, topics) && scratch_since(from) < VISIT_MS)
        scratch_pause(20);
    mix->overtaken += is_taken_over(mix, worker, topics);
    from = scratch_now_ms();
    wait_until(CHAOS_HEAL_MS, scratch_since(from) > ms);
}

/* Tasks go on in each other's places, and a worker goes on with the old ones: it reads of no new
 * set, and keeps its lease. Nothing but the fence ends their producers; and when they begin anew,
 * and take their ids back, nothing ends them but the question whether they are still to run. Who
 * leads by then, and reads nothing, has nothing to give them away. */
static void swap_unseen(struct chaos_mix *mix)
{
    int leader, follower = await_follower(mix, &leader);
    unsigned topics;

    if (follower < 0)
        return;
    topics = topics_of(mix, follower);
    blind(mix, follower);
    if (chaos_group_leading(mix->cluster) == leader &&
        chaos_flows_swap(mix->flows, mix->cluster->w[leader]))
        watch_take_over(mix, follower, topics);
    chaos_proxy_blind(mix->proxy, follower, NULL);
}

/* --- the deck --------------------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    void (*run)(struct chaos_mix *mix);
    bool brokers;
} kinds[] = {
    {"kill -9 of a worker", kill_worker, false},
    {"kill -9 of a host", kill_host, false},
    {"kill -9 of a worker and its hosts", lose_machine, false},
    {"SIGSTOP of workers, hosts or both", freeze, false},
    {"EndTxn late", late_end, false},
    {"EndTxn lost", lost_end, false},
    {"EndTxn unanswered", unanswered_end, false},
    {"other requests lost or unanswered", other_request, false},
    {"all delayed by 100 to 200 ms", slow_wire, false},
    {"all connections reset", reset, false},
    {"a member thrown out of its group", throw_out, false},
    {"a stranger in a group", visit, false},
    {"a call of the relay longer than its poll interval", relay_dozes, false},
    {"a call of the sink longer than its poll interval", sink_dozes, false},
    {"a transactional id taken by a stranger", take_over, false},
    {"a relay's id taken behind an unanswered EndTxn", take_relays_in_doubt, false},
    {"a source's id taken behind an unanswered EndTxn", take_sources_in_doubt, false},
    {"tasks that change places behind a worker's back", swap_unseen, false},
    {"kill -9 of a broker", kill_broker, true},
    {"SIGSTOP of a broker", freeze_broker, true},
};
#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) <= CHAOS_MIX_KINDS, "room for each kind");
_Static_assert(CHAOS_WORKERS <= CHAOS_PROXY_ENTRANCES, "an entrance for each worker");

static void shuffle(struct chaos_mix *mix)
{
    for (int i = 0; i < KINDS; i++)
        if (mix->brokers || !kinds[i].brokers)
            mix->deck[mix->left++] = i;
    for (int i = mix->left - 1; i > 0; i--) {
        int other = chaos_pick(i + 1), card = mix->deck[i];

        mix->deck[i] = mix->deck[other];
        mix->deck[other] = card;
    }
}

/* Who was killed earlier comes back half the times, so that some faults meet few workers. Nobody
 * dies of himself. */
static void bring_back(struct chaos_mix *mix, bool all)
{
    for (int i = 0; i < mix->cluster->count; i++)
        if ((mix->dead & 1u << i) != 0 && (all || chaos_pick(2) == 0))
            come_back(mix, i);
        else if ((mix->dead & 1u << i) == 0 && !chaos_lives(mix->cluster->w[i]))
            fail_msg("%s ended, and nobody had killed it", mix->cluster->w[i]->config);
}

static void run(struct chaos_mix *mix, int kind)
{
    bring_back(mix, living(mix) < 2);
    printf("             fault: %s\n", kinds[kind].name);
    kinds[kind].run(mix);
    mix->done[kind]++;
}

void chaos_mix_fault(struct chaos_mix *mix)
{
    if (mix->left == 0)
        shuffle(mix);
    run(mix, mix->deck[--mix->left]);
}

void chaos_mix_do(struct chaos_mix *mix, const char *name)
{
    int kind = 0;

    while (strcmp(kinds[kind].name, name) != 0)
        assert_true(++kind < KINDS);
    run(mix, kind);
}

void chaos_mix_heal(struct chaos_mix *mix)
{
    chaos_proxy_heal(mix->proxy);
    bring_back(mix, true);
}

static void tell(const struct chaos_mix *mix)
{
    struct chaos_proxy_counts counts = chaos_proxy_counts(mix->proxy);

    for (int i = 0; i < KINDS; i++)
        if (mix->done[i] > 0)
            printf("             %4d times %s\n", mix->done[i], kinds[i].name);
    printf("             requests: %d late (of these %d overtaken by a later transaction, %d then "
           "refused, %d torn), %d lost, %d unanswered; %d connections ended; %d EndTxn in all\n",
           counts.met[CHAOS_LATE], counts.overtaken, counts.refused, counts.torn,
           counts.met[CHAOS_LOST], counts.met[CHAOS_UNANSWERED], counts.resets, counts.ends);
    printf("             changes of places behind a worker's back: %d, others went on beside it; "
           "ids taken in doubt: %d of relays, %d of sources\n",
           mix->overtaken, mix->relays_doubted, mix->sources_doubted);
    fflush(stdout);
}

void chaos_mix_judge(struct chaos_mix *mix)
{
    int64_t records;

    chaos_mix_heal(mix);
    chaos_flows_await(mix->flows, CHAOS_HEAL_MS * 2);
    records = chaos_flows_judge(mix->flows);
    chaos_atomic_judge(mix->flows);
    printf("             %lld records in all\n", (long long)records);
    tell(mix);
    assert_int_equal(chaos_proxy_counts(mix->proxy).torn, 0);
}
