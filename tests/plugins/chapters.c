/* SPDX-License-Identifier: Apache-2.0 */
/* A source that counts from 0 to `count` - 1 into `topic`, ten numbers a poll, and says where its
 * transactions end. Key `ends`:
 *
 *   record  behind each number: …4 commits, …7 aborts
 *   batch   each poll's batch commits, but every third aborts
 *   later   the poll behind a batch, which gives nothing, commits
 *   both    commits and aborts at one record
 *
 * Its place is the offset {"name": "chapters"} → {"next": number}. */
#include <millrace/plugin.h>

#include <stdio.h>
#include <string.h>

#define BATCH 10
#define PAUSE_MS 20

struct chapters {
    const char *topic;
    const char *ends;
    int64_t next;
    int64_t count;
    bool owes; /* `later`: the last batch is not committed */
};

static const struct mr_config_key keys[] = {
    {.name = "topic", .type = MR_CFG_STRING, .doc = "where to"},
    {.name = "ends", .type = MR_CFG_STRING, .doc = "record, batch, later or both"},
    {.name = "count", .type = MR_CFG_LONG, .doc = "how many"},
    {0},
};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct chapters *c = self;

    c->topic = mr_config_str(task, "topic");
    c->ends = mr_config_str(task, "ends");
    c->count = mr_config_long(task, "count");
    return mr_offset_long(task, "chapters", "next", 0, &c->next, err);
}

static void end_at(const struct chapters *c, struct mr_record *rec, int64_t number)
{
    bool both = strcmp(c->ends, "both") == 0;

    if (!both && strcmp(c->ends, "record") != 0)
        return;
    if (both || number % 10 == 4)
        mr_record_commit(rec);
    if (both || number % 10 == 7)
        mr_record_abort(rec);
}

static void add(struct chapters *c, struct mr_batch *out)
{
    struct mr_record *rec = mr_batch_add(out, c->topic);
    char text[24];
    int len = snprintf(text, sizeof(text), "%lld", (long long)c->next);

    mr_record_value(rec, mr_text_copy(out->arena, text, (size_t)len));
    mr_record_offset(rec, "chapters", "next", c->next + 1);
    end_at(c, rec, c->next++);
}

static int poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct chapters *c = self;
    int64_t batch = c->next / BATCH;

    (void)err;
    if (c->owes) {
        c->owes = false;
        mr_batch_commit(out);
        return MR_OK;
    }
    if (c->next >= c->count)
        return mr_again_in(out, 1000);
    for (int i = 0; i < BATCH && c->next < c->count; i++)
        add(c, out);
    c->owes = strcmp(c->ends, "later") == 0;
    if (strcmp(c->ends, "batch") == 0 && batch % 3 == 2)
        mr_batch_abort(out);
    else if (strcmp(c->ends, "batch") == 0)
        mr_batch_commit(out);
    return mr_again_in(out, c->owes ? 0 : PAUSE_MS);
}

MR_SOURCE(Chapters, "1.0", .keys = keys, .state_size = sizeof(struct chapters), .start = start,
          .poll = poll, .exactly_once = "", .boundaries = true)
