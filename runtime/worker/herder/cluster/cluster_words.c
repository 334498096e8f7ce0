/* SPDX-License-Identifier: Apache-2.0 */
/* What this worker tells other workers of Millrace beside Connect's protocol, and what it does when
 * it hears such a word (store/word_records.h). Nothing here is needed for the group to work:
 * without the topic, or beside Java's workers, it does as these do.
 *
 *   leaving  said when the work here has stopped, before LeaveGroup: so a leader knows it from a
 *            crash, and its work moves at once. Heard: join again, no heartbeat has to tell. A
 *            leader takes it back once a round was made without that member; who starts anew takes
 *            back what its predecessor said, and what is older than a day
 *   round    said when what a round took away has stopped: the others need not wait for a heartbeat
 *            either
 *   consumer said when a sink task has joined its consumer group, by what name: if its machine is
 *            lost, whoever runs it next makes that member leave. The leader takes it back when the
 *            connector is deleted
 *   twins    said by a leader that sees two members advertise one URL: each of them says so in its
 *            log
 *
 * Called by cluster_topics.c and cluster_round.c, at the end by distributed.c; loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define SAY_MS 10000
#define TELL_TRIES 6
#define GOODBYE_MS 1000 /* for the word; leaving does not wait longer for it */
#define OLD_MS ((int64_t)24 * 60 * 60 * 1000)

static void say(struct distributed *d, const struct word *word)
{
    cluster_store_say(d->store, word, SAY_MS, NULL, NULL);
}

static bool is_me(const struct distributed *d, const char *member)
{
    return strcmp(member, d->member_id) == 0;
}

/* --- goodbye ---------------------------------------------------------------------------------- */

static void leave(struct distributed *d)
{
    loop_timer_cancel(&d->goodbye_timer);
    if (!d->leaving)
        member_leave(d->member);
    d->leaving = true;
}

static void on_said(void *arg, const struct mr_error *err)
{
    struct distributed *d = arg;

    if (err != NULL && err->code == MR_ERR_UNSUPPORTED)
        log_info("no word that this worker leaves: %s", err->text);
    else if (err != NULL && !d->leaving)
        log_warn("the other workers could not be told that this one leaves, and take it for a "
                 "crash: %s",
                 err->text);
    leave(d);
}

static void on_goodbye_late(void *arg)
{
    log_warn("the brokers did not confirm in time that this worker leaves: it leaves without it");
    leave(arg);
}

void cluster_words_goodbye(struct distributed *d)
{
    struct word word = {.kind = WORD_LEAVING,
                        .member = d->member_id,
                        .url = d->url,
                        .generation = d->generation,
                        .stopped = true};

    if (d->member_id[0] == '\0' || !d->joined) {
        leave(d);
        return;
    }
    loop_timer_start(d->parts.loop, &d->goodbye_timer, GOODBYE_MS, on_goodbye_late, d);
    cluster_store_say(d->store, &word, GOODBYE_MS, on_said, d);
}

/* --- hearing ---------------------------------------------------------------------------------- */

static void heard_leaving(struct distributed *d, const struct word *word)
{
    log_info("%s (%s) leaves the group", word->url, word->member);
    if (d->rebalancing)
        d->word_missed = true; /* unless this round's leader reads it in time */
    else if (word->generation >= d->generation)
        distributed_report(d, "a worker leaves");
}

static void heard_round(struct distributed *d, const struct word *word)
{
    if (!d->rebalancing && word->generation == d->generation)
        distributed_report(d, "another worker wants a round");
}

/* A leader has told it already. Once for each: one that was set right and comes back has another
 * id. */
static void tell_twin(struct distributed *d, const char *other)
{
    if (strcmp(d->twin, other) == 0)
        return;
    if (!d->leads)
        log_error("another live worker of the group %s, %s, advertises %s as this one does: set "
                  "rest.advertised.host.name and rest.advertised.port of one of them",
                  d->parts.config->cluster.group_id, other, d->url);
    text_replace(&d->twin, other);
}

static void heard_twins(struct distributed *d, const struct word *word)
{
    if (is_me(d, word->member))
        tell_twin(d, word->other);
    else if (is_me(d, word->other))
        tell_twin(d, word->member);
}

void cluster_words_led_by(struct distributed *d, const char *leader, const char *url)
{
    if (!d->leads && strcmp(url, d->url) == 0)
        tell_twin(d, leader);
}

void cluster_words_heard(struct distributed *d, const struct word *word)
{
    static void (*const acts[])(struct distributed *, const struct word *) = {
        [WORD_LEAVING] = heard_leaving,
        [WORD_ROUND] = heard_round,
        [WORD_TWINS] = heard_twins,
        [WORD_CONSUMER] = NULL, /* kept by word_state */
    };

    if (!d->closing && acts[word->kind] != NULL &&
        (word->kind == WORD_TWINS || !is_me(d, word->member)))
        acts[word->kind](d, word);
}

/* --- the leader's round ----------------------------------------------------------------------- */

/* Who may still work is no leaver: that is waited out. */
void cluster_words_leavers(struct distributed *d, struct lead_snapshot *snapshot)
{
    const struct word *word;

    map_free(&d->leavers, NULL);
    d->leavers = map_new();
    d->word_missed = false;
    for (size_t i = 0; (word = word_state_next(cluster_store_words(d->store), &i)) != NULL;) {
        if (word->stopped)
            mr_assert(lead_snapshot_add_leaver(snapshot, word->member) == 0);
        map_set(d->leavers, word->member, d);
    }
}

static bool tell_twins(struct distributed *d, const struct lead_member *a,
                       const struct lead_member *b)
{
    struct word word = {
        .kind = WORD_TWINS, .member = a->id, .other = b->id, .url = a->metadata.url};

    if (!a->readable || !b->readable || strcmp(word.url, b->metadata.url) != 0 ||
        word.url[0] == '\0' || strlen(word.url) > WORD_URL_MAX)
        return false;
    if (!d->twins_told)
        say(d, &word);
    return true;
}

/* A leaver that is still a member is not seen off. */
void cluster_words_led(struct distributed *d, const struct lead *lead)
{
    bool twins = false;

    for (size_t i = 0; i < lead->count; i++) {
        map_remove(d->leavers, lead->members[i].id);
        for (size_t j = 0; j < i; j++)
            twins |= tell_twins(d, &lead->members[j], &lead->members[i]);
    }
    d->twins_told = twins;
}

/* --- after a round ---------------------------------------------------------------------------- */

static void take_back(struct distributed *d, const char *member)
{
    struct word word = {
        .kind = WORD_LEAVING, .tombstone = true, .member = (char *)(uintptr_t)member};

    say(d, &word);
}

/* The round that we are in was made without our predecessor, whoever leads it. */
static void take_back_predecessors(struct distributed *d)
{
    const struct word *word;

    for (size_t i = 0; (word = word_state_next(cluster_store_words(d->store), &i)) != NULL;)
        if (!is_me(d, word->member) &&
            (strcmp(word->url, d->url) == 0 || clock_wall_ms() - word->said_wall_ms > OLD_MS))
            take_back(d, word->member);
}

/* "CONN-TASK": is that connector known? */
static bool is_known(const struct distributed *d, const char *task)
{
    char *conn = text_dup_len(task, (size_t)(strrchr(task, '-') - task));
    bool known;

    known = config_state_conn(distributed_config(d), conn) != NULL;
    free(conn);
    return known;
}

static void take_back_consumers(struct distributed *d)
{
    const struct word *word;

    for (size_t i = 0;
         (word = word_state_next_consumer(cluster_store_words(d->store), &i)) != NULL;) {
        struct word gone = {.kind = WORD_CONSUMER, .tombstone = true, .other = word->other};

        if (strrchr(word->other, '-') == NULL || !is_known(d, word->other))
            say(d, &gone);
    }
}

void cluster_words_settled(struct distributed *d)
{
    const char *member;

    take_back_predecessors(d);
    if (d->leads)
        take_back_consumers(d);
    for (size_t i = 0; d->leads && map_next(d->leavers, &i, &member, NULL);) {
        take_back(d, member);
        map_remove(d->leavers, member);
    }
}

/* A sink task's member of its group, while it is told. */
struct telling {
    struct telling *next;
    struct distributed *d;
    char *task;
    char *member;
    bool stale; /* a later one is on its way */
    int tries;
};

static void tell_consumer(struct telling *telling);

static void telling_end(struct telling *telling)
{
    struct telling **at = &telling->d->tellings;

    while (*at != telling)
        at = &(*at)->next;
    *at = telling->next;
    free(telling->task);
    free(telling->member);
    free(telling);
}

/* Without the word a lost machine's sink is waited for until its session ends. */
static void on_consumer_told(void *arg, const struct mr_error *err)
{
    struct telling *telling = arg;
    bool may_pass = err != NULL && (err->code == MR_ERR_TIMEOUT || err->code == MR_ERR_IO);

    if (may_pass && !telling->stale && !telling->d->closing && ++telling->tries < TELL_TRIES)
        tell_consumer(telling);
    else
        telling_end(telling);
}

static void tell_consumer(struct telling *telling)
{
    struct word word = {.kind = WORD_CONSUMER, .member = telling->member, .other = telling->task};

    cluster_store_say(telling->d->store, &word, SAY_MS, on_consumer_told, telling);
}

void cluster_words_joined(struct distributed *d, const char *task, const char *member)
{
    struct telling *telling;

    if (d->closing || strlen(task) > WORD_MEMBER_MAX)
        return;
    for (telling = d->tellings; telling != NULL; telling = telling->next)
        telling->stale = telling->stale || strcmp(telling->task, task) == 0;
    telling = calloc(1, sizeof(*telling));
    mr_assert(telling != NULL);
    *telling = (struct telling){
        .next = d->tellings, .d = d, .task = text_dup(task), .member = text_dup(member)};
    d->tellings = telling;
    tell_consumer(telling);
}

void cluster_words_want_round(struct distributed *d)
{
    struct word word = {.kind = WORD_ROUND, .member = d->member_id, .generation = d->generation};

    if (d->member_id[0] != '\0')
        say(d, &word);
}
