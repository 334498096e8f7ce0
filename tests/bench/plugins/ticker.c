/* SPDX-License-Identifier: Apache-2.0 */
/* A source whose interruptions show: each task writes `rate` records a second into a partition of
 * its own, the first at once. Value "<number> <worker> <life>": numbers go up by one and are the
 * offset; worker is $BENCH_WORKER of its worker. */
#include <millrace/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCH_MAX 500

struct ticker {
    const char *topic;
    const char *worker;
    char name[300];
    char life[48];
    int32_t partition;
    int64_t rate, next, first, from_ms;
};

static const struct mr_config_key ticker_keys[] = {
    {"name", MR_CFG_STRING, .fallback = "ticker", .doc = "Of the connector"},
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic to write to"},
    {"first", MR_CFG_INT, .fallback = "0", .doc = "Partition of the first task"},
    {"rate", MR_CFG_LONG, .fallback = "50", .doc = "Records a second and task"},
    {"number", MR_CFG_INT, .fallback = "0", .doc = "Of this task"},
    {0},
};

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int ticker_tasks(struct mr_task *conn, int max, struct mr_task_list *list,
                        struct mr_error *err)
{
    char number[24];

    for (int i = 0; i < max; i++) {
        if (mr_task_add(conn, list) < 0)
            return MR_ERR_FULL;
        snprintf(number, sizeof(number), "%d", i);
        mr_task_set(conn, list, "number", number);
    }
    return MR_OK;
}

static int ticker_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct ticker *t = self;
    int64_t number = mr_config_long(task, "number");

    t->topic = mr_config_str(task, "topic");
    t->partition = (int32_t)(mr_config_long(task, "first") + number);
    t->rate = mr_config_long(task, "rate");
    t->worker = getenv("BENCH_WORKER");
    t->from_ms = clock_ms();
    snprintf(t->name, sizeof(t->name), "%s-%lld", mr_config_str(task, "name"), (long long)number);
    snprintf(t->life, sizeof(t->life), "%d-%lld", (int)getpid(), (long long)t->from_ms);
    if (mr_offset_long(task, t->name, "next", 0, &t->next, err) != MR_OK)
        return err->code;
    t->first = t->next;
    return MR_OK;
}

static int ticker_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct ticker *t = self;
    int64_t due = t->first + 1 + (clock_ms() - t->from_ms) * t->rate / 1000;
    char text[200];

    for (int n = 0; t->next < due && n < BATCH_MAX; n++) {
        struct mr_record *rec = mr_batch_add(out, t->topic);
        int len = snprintf(text, sizeof(text), "%lld %s %s", (long long)t->next,
                           t->worker != NULL ? t->worker : "?", t->life);

        rec->partition = t->partition;
        mr_record_value(rec, mr_text_copy(out->arena, text, (size_t)len));
        mr_record_offset(rec, t->name, "next", ++t->next);
    }
    due = t->from_ms + (t->next - t->first) * 1000 / t->rate - clock_ms();
    return mr_again_in(out, due > 1 ? due : 1);
}

MR_SOURCE(Ticker, "1", .keys = ticker_keys, .state_size = sizeof(struct ticker),
          .start = ticker_start, .poll = ticker_poll, .tasks = ticker_tasks)
