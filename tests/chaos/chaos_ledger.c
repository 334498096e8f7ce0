/* SPDX-License-Identifier: Apache-2.0 */
/* The oracles. What a task said that it would do (its ledger, written before it does it) is held
 * against what the topics have, as a client of its own reads them, in the broker's order and by the
 * broker's clock. Nothing here asks a worker how it is.
 *
 *   loss        the numbers in a topic go up by one, but for what is there a second time
 *   order       within a life they go back only where a lease was lost; a life begins with the
 *               number that it was given
 *   one owner   in the ledger, and in the topic, nothing of a life comes after its successor's
 *               first
 *   offsets     what is stored for a task only grows, and a life begins no lower than what was
 *               stored before it
 *   doubles     no more than deaths explain
 *   sinks       every record is in the ledger, and was there before its offset was committed */
#include "chaos/chaos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIVES_MAX 512
#define COMMIT_SLACK_MS 3000 /* between the look at the offsets and the line in the ledger */
#define UNCOMMITTED_MS 5000  /* what may be under way, or not yet flushed, when a host dies */

struct life {
    char name[48];
    int64_t first;    /* number that it was to begin with */
    int64_t offered;  /* highest that it handed over, -1 none */
    int64_t start_ms; /* CLOCK_BOOTTIME */
    int64_t last_ms;  /* of its last line */
    bool ended;       /* politely */
    bool seen;        /* in the topic */
};

struct lives {
    struct life life[LIVES_MAX];
    int count;
    int late_ends;      /* stopped after the successor had started: only what was quiet may */
    const char *beside; /* the first line of a life that went on beside its successor, NULL: none */
};

/* --- ledgers of sources ----------------------------------------------------------------------- */

static const char *ledger_of(const struct chaos_source *s, int task)
{
    return scratch_text("%s.%d", s->ledger, task);
}

static int find_life(const struct lives *lives, const char *name)
{
    for (int i = lives->count - 1; i >= 0; i--)
        if (strcmp(lives->life[i].name, name) == 0)
            return i;
    return -1;
}

static void begin_life(struct lives *lives, const char *name, int64_t first, int64_t boot_ms)
{
    struct life *life = &lives->life[lives->count];

    assert_true(lives->count++ < LIVES_MAX);
    *life = (struct life){.first = first, .offered = -1, .start_ms = boot_ms, .last_ms = boot_ms};
    snprintf(life->name, sizeof(life->name), "%s", name);
}

static void take_line(struct lives *lives, const char *file, const char *line)
{
    char kind, name[48];
    long long a = 0, b = 0, c = 0;
    int fields = sscanf(line, "%c %47s %lld %lld %lld", &kind, name, &a, &b, &c), at;

    assert_true(fields >= 3);
    if (kind == 'S') {
        begin_life(lives, name, a, b);
        return;
    }
    at = find_life(lives, name);
    assert_true(at >= 0);
    if (at != lives->count - 1 && kind == 'P' && lives->beside == NULL)
        lives->beside = scratch_text("%s: two owners: %s went on after %s had started: %s", file,
                                     name, lives->life[lives->count - 1].name, line);
    lives->life[at].last_ms = kind == 'P' ? c : a;
    if (kind == 'P')
        lives->life[at].offered = b;
    else
        lives->life[at].ended = true;
    lives->late_ends += at != lives->count - 1;
}

/* Lines are whole: each is one write. */
static struct lives *read_lives(const struct chaos_source *s, int task)
{
    struct lives *lives = scratch_keep(calloc(1, sizeof(*lives)));
    const char *file = ledger_of(s, task);
    size_t len;
    char *text = scratch_read(file, &len), *save = NULL;

    if (text == NULL)
        return lives;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        take_line(lives, file, line);
    return lives;
}

/* The last line that starts a life, without reading the whole. */
static pid_t last_pid(const char *file)
{
    char *text = scratch_read(file, NULL);
    pid_t pid = 0;

    for (char *at = text; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (*at == '\0')
            break;
        if (at[0] == 'S')
            pid = (pid_t)strtol(at + 2, NULL, 10);
    }
    return pid;
}

pid_t chaos_home(const struct chaos_source *s, int task)
{
    pid_t pid = last_pid(ledger_of(s, task));

    return pid != 0 && process_arguments(pid)[0] != '\0' ? pid : 0;
}

int chaos_lives_of(const struct chaos_source *s, int task)
{
    return read_lives(s, task)->count;
}

bool chaos_rests(const struct chaos_source *s, int task)
{
    const struct lives *lives = read_lives(s, task);

    return lives->count == 0 || lives->life[lives->count - 1].ended || chaos_home(s, task) == 0;
}

void chaos_assert_silent(const struct chaos_source *s, pid_t pid, int64_t since_boot_ms)
{
    for (int task = 0; task < s->tasks; task++) {
        const struct lives *lives = read_lives(s, task);

        for (int i = 0; i < lives->count; i++)
            if (strtol(lives->life[i].name, NULL, 10) == pid &&
                lives->life[i].last_ms > since_boot_ms)
                fail_msg("%s: %s did something %lld ms after it should have been silent",
                         ledger_of(s, task), lives->life[i].name,
                         (long long)(lives->life[i].last_ms - since_boot_ms));
    }
}

/* --- progress --------------------------------------------------------------------------------- */

static const char *topic_of(const struct chaos_source *s, int task)
{
    return scratch_text("%s-%d", s->topic, task);
}

int64_t chaos_progress(const struct chaos_source *s, int task)
{
    return topic_count(s->cluster->servers, topic_of(s, task));
}

void chaos_await_progress(const struct chaos_source *s, int ms)
{
    int64_t from = scratch_now_ms(), before[64];

    assert_true(s->tasks <= 64);
    for (int i = 0; i < s->tasks; i++)
        before[i] = chaos_progress(s, i);
    for (int i = 0; i < s->tasks; i++)
        while (chaos_progress(s, i) <= before[i]) {
            if (scratch_since(from) > ms)
                fail_msg("nothing came into %s for %d ms", topic_of(s, i), ms);
            scratch_pause(20);
        }
}

/* --- stored offsets --------------------------------------------------------------------------- */

struct stored {
    int64_t next;
    int64_t at_ms; /* wall clock of the broker */
};

static bool stored_of(const struct topic_record *rec, const char *key, struct stored *out)
{
    const char *at;

    if (rec->key == NULL || rec->value == NULL || strcmp(rec->key, key) != 0)
        return false;
    at = strstr(rec->value, "\"next\":");
    if (at == NULL)
        fail_msg("odd offset: %s", rec->value);
    *out = (struct stored){strtoll(at + 7, NULL, 10), rec->timestamp_ms};
    return true;
}

static int64_t wall_minus_boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - chaos_boot_ms();
}

static void judge_start(const char *topic, const struct life *life, const struct stored *before)
{
    if (life->first < before->next)
        fail_msg("%s: %s began at %lld, but %lld had been stored %lld ms before", topic, life->name,
                 (long long)life->first, (long long)before->next,
                 (long long)(life->start_ms + wall_minus_boot_ms() - before->at_ms));
}

static void judge_offsets(const struct chaos_source *s, int task, const struct lives *lives,
                          struct topic_records offsets, bool may_be_late)
{
    const char *key = scratch_text("[\"%s\",{\"name\":\"%s-%d\"}]", s->name, s->name, task);
    int64_t shift_ms = wall_minus_boot_ms();
    struct stored last = {0}, now;
    int next = 0;

    for (size_t i = 0; i < offsets.count; i++) {
        if (!stored_of(&offsets.records[i], key, &now))
            continue;
        if (now.next < last.next && !may_be_late)
            fail_msg("%s: the offset %lld was stored after %lld", topic_of(s, task),
                     (long long)now.next, (long long)last.next);
        for (; next < lives->count &&
               lives->life[next].start_ms + shift_ms < now.at_ms + COMMIT_SLACK_MS;
             next++)
            judge_start(topic_of(s, task), &lives->life[next], &last);
        last = now;
    }
    for (; next < lives->count; next++)
        if (lives->life[next].start_ms + shift_ms >= last.at_ms + COMMIT_SLACK_MS)
            judge_start(topic_of(s, task), &lives->life[next], &last);
    if (last.next != lives->life[lives->count - 1].offered + 1)
        fail_msg("%s: %lld was handed over, the task stopped politely, and %lld is stored",
                 topic_of(s, task), (long long)lives->life[lives->count - 1].offered,
                 (long long)last.next);
}

/* --- the topic -------------------------------------------------------------------------------- */

struct walk {
    const char *topic;
    struct lives *lives;
    struct chaos_verdict verdict;
    int late;         /* records of earlier lives that may still come */
    int life;         /* newest seen, -1 none */
    int64_t highest;  /* number, -1 none */
    int64_t previous; /* number */
    int64_t at_ms;
};

static void enter_life(struct walk *w, int life, int64_t number, int64_t offset)
{
    if (life < w->life)
        fail_msg("%s: offset %lld is of %s, after records of its successor %s", w->topic,
                 (long long)offset, w->lives->life[life].name, w->lives->life[w->life].name);
    if (!w->lives->life[life].seen && number != w->lives->life[life].first)
        fail_msg("%s: %s began with %lld, not with %lld", w->topic, w->lives->life[life].name,
                 (long long)number, (long long)w->lives->life[life].first);
    w->lives->life[life].seen = true;
    if (life == w->life && number != w->previous + 1)
        w->verdict.rewinds++;
    w->life = life;
}

/* One request's worth, of what its successor had written before it came. */
static bool comes_late(struct walk *w, int life, int64_t number)
{
    if (life >= w->life || number > w->highest || w->late == 0)
        return false;
    w->late--;
    w->verdict.doubles++;
    w->verdict.records++;
    return true;
}

static void step(struct walk *w, const struct topic_record *rec)
{
    char name[48];
    long long number = 0;

    if (rec->value == NULL || sscanf(rec->value, "%lld %47s", &number, name) != 2)
        fail_msg("%s: odd record at %lld", w->topic, (long long)rec->offset);
    if (find_life(w->lives, name) < 0)
        fail_msg("%s: %s is in no ledger", w->topic, name);
    if (number > w->highest + 1)
        fail_msg("%s: %lld to %lld are missing at offset %lld", w->topic, (long long)w->highest + 1,
                 number - 1, (long long)rec->offset);
    if (comes_late(w, find_life(w->lives, name), number))
        return;
    enter_life(w, find_life(w->lives, name), number, rec->offset);
    w->verdict.doubles += number <= w->highest;
    w->highest = number > w->highest ? number : w->highest;
    w->previous = number;
    if (w->at_ms != 0 && rec->timestamp_ms - w->at_ms > w->verdict.gap_ms) {
        w->verdict.gap_ms = rec->timestamp_ms - w->at_ms;
        w->verdict.gap_at_ms = w->at_ms;
    }
    w->at_ms = rec->timestamp_ms;
    w->verdict.records++;
}

static void judge_bounds(const struct chaos_source *s, const struct walk *w,
                         const struct chaos_terms *terms)
{
    const struct life *last = &w->lives->life[w->lives->count - 1];
    int64_t doubles = terms->doubles;

    if (doubles < 0)
        doubles =
            (int64_t)(w->lives->count - 1 + w->verdict.rewinds) * s->rate * UNCOMMITTED_MS / 1000;
    if (w->highest < last->offered)
        fail_msg("%s: ends at %lld, but %lld was handed over and the task stopped politely",
                 w->topic, (long long)w->highest, (long long)last->offered);
    if (w->lives->late_ends > terms->rewinds)
        fail_msg("%s: %d lives stopped only after their successors had started", w->topic,
                 w->lives->late_ends);
    if (w->verdict.rewinds > terms->rewinds)
        fail_msg("%s: went back %d times within a life, not %d times at most", w->topic,
                 w->verdict.rewinds, terms->rewinds);
    if (w->verdict.doubles > doubles)
        fail_msg("%s: %lld records twice, not %lld at most", w->topic,
                 (long long)w->verdict.doubles, (long long)doubles);
}

static struct chaos_verdict judge_task(const struct chaos_source *s, int task,
                                       const struct chaos_terms *terms,
                                       struct topic_records offsets)
{
    struct walk w = {.topic = topic_of(s, task),
                     .lives = read_lives(s, task),
                     .late = terms->late ? s->rate : 0,
                     .life = -1,
                     .highest = -1};
    struct topic_records records = topic_read(s->cluster->servers, w.topic, 1, CHAOS_HEAL_MS);

    if (w.lives->beside != NULL)
        fail_msg("%s", w.lives->beside);
    for (size_t i = 0; i < records.count; i++)
        step(&w, &records.records[i]);
    judge_bounds(s, &w, terms);
    judge_offsets(s, task, w.lives, offsets, terms->late);
    w.verdict.lives = w.lives->count;
    printf(
        "             %s-%d: %lld records, %lld twice, %d lives, %d rewinds, silent for %lld ms at "
        "most\n",
        s->name, task, (long long)w.verdict.records, (long long)w.verdict.doubles, w.verdict.lives,
        w.verdict.rewinds, (long long)w.verdict.gap_ms);
    return w.verdict;
}

static bool all_ended(const struct chaos_source *s)
{
    for (int i = 0; i < s->tasks; i++) {
        const struct lives *lives = read_lives(s, i);

        if (lives->count == 0 || !lives->life[lives->count - 1].ended)
            return false;
    }
    return true;
}

static void stop_source(const struct chaos_source *s)
{
    struct http_reply reply =
        chaos_call(s->cluster, "PUT", scratch_text("/connectors/%s/stop", s->name), NULL);

    if (reply.status != 204)
        fail_msg("PUT %s/stop: %d: %s", s->name, reply.status, reply.body);
    wait_until(CHAOS_HEAL_MS, all_ended(s));
}

struct chaos_verdict chaos_judge(const struct chaos_source *s, const struct chaos_terms *terms)
{
    struct chaos_verdict worst = {0};
    struct topic_records offsets;

    chaos_await_progress(s, CHAOS_HEAL_MS);
    stop_source(s);
    offsets = topic_read(s->cluster->servers, scratch_text("%s-offsets", s->cluster->group), 1,
                         CHAOS_HEAL_MS);
    for (int i = 0; i < s->tasks; i++) {
        struct chaos_verdict v = judge_task(s, i, terms, offsets);

        worst.records += v.records;
        worst.doubles += v.doubles;
        worst.lives = v.lives > worst.lives ? v.lives : worst.lives;
        worst.rewinds = v.rewinds > worst.rewinds ? v.rewinds : worst.rewinds;
        if (v.gap_ms > worst.gap_ms) {
            worst.gap_ms = v.gap_ms;
            worst.gap_at_ms = v.gap_at_ms;
        }
    }
    fflush(stdout);
    return worst;
}

/* --- sinks ------------------------------------------------------------------------------------ */

struct put_set {
    unsigned char *seen; /* times that an offset was put, at most 255 */
    size_t size;
    int64_t lines;
    int64_t distinct;
};

static void mark_put(struct put_set *set, size_t offset)
{
    if (offset >= set->size) {
        size_t size = (offset + 1) * 2;

        set->seen = realloc(set->seen, size);
        assert_non_null(set->seen);
        memset(set->seen + set->size, 0, size - set->size);
        set->size = size;
    }
    set->lines++;
    set->distinct += set->seen[offset] == 0;
    set->seen[offset] += set->seen[offset] < 255;
}

static void read_puts(const struct chaos_sink *sink, const char *topic, struct put_set *set)
{
    char *text = scratch_read(sink->ledger, NULL), *save = NULL;
    size_t len = strlen(topic);

    *set = (struct put_set){0};
    if (text == NULL)
        return;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, topic, len) == 0 && strncmp(line + len, " 0 ", 3) == 0)
            mark_put(set, strtoull(line + len + 3, NULL, 10));
}

static void judge_committed(const struct chaos_sink *sink, const char *topic)
{
    int64_t committed = topic_committed(sink->from->cluster->servers,
                                        scratch_text("connect-%s", sink->name), topic, 0);
    struct put_set set;

    read_puts(sink, topic, &set);
    for (int64_t i = 0; i < committed; i++)
        if ((size_t)i >= set.size || set.seen[i] == 0)
            fail_msg("%s: %lld was committed, but %lld was never put", topic, (long long)committed,
                     (long long)i);
    free(set.seen);
}

void chaos_judge_sink(const struct chaos_sink *sink)
{
    for (int i = 0; i < sink->from->tasks; i++) {
        const char *topic = topic_of(sink->from, i);
        int64_t from = scratch_now_ms(), wanted;
        struct put_set set = {0};

        judge_committed(sink, topic);
        do {
            free(set.seen);
            wanted = chaos_progress(sink->from, i);
            read_puts(sink, topic, &set);
            if (set.distinct < wanted && scratch_since(from) > CHAOS_HEAL_MS)
                fail_msg("%s: %lld of %lld records were put", topic, (long long)set.distinct,
                         (long long)wanted);
        } while (set.distinct < wanted);
        printf("             %s: %lld records put, %lld of them twice\n", sink->name,
               (long long)set.distinct, (long long)(set.lines - set.distinct));
        free(set.seen);
    }
    fflush(stdout);
}

/* The last whole line's words. */
static bool last_put(const struct chaos_sink *sink, int *pid, long long *boot_ms)
{
    size_t len = 0;
    char *text = scratch_read(sink->ledger, &len), *line;

    if (text == NULL || len == 0 || text[len - 1] != '\n')
        return false;
    text[len - 1] = '\0';
    line = strrchr(text, '\n');
    return sscanf(line == NULL ? text : line + 1, "%*s %*d %*d %d-%*d %lld", pid, boot_ms) == 2;
}

pid_t chaos_sink_home(const struct chaos_sink *sink)
{
    long long boot_ms;
    int pid;

    return last_put(sink, &pid, &boot_ms) ? (pid_t)pid : 0;
}

int64_t chaos_sink_last_ms(const struct chaos_sink *sink)
{
    long long boot_ms;
    int pid;

    return last_put(sink, &pid, &boot_ms) ? boot_ms : 0;
}
