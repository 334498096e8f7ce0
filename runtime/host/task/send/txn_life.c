/* SPDX-License-Identifier: Apache-2.0 */
/* How the life of a task in transactions begins, and when it may begin anew in place. Thread: the
 * task's.
 *
 *   lease ─► fencing round ─► producer ─► transactional id ─► (task_begin: is it still ours?)
 *     ▲                                                                        │
 *     └── after 0, 1, 5, 30, 30 … s ◄── its transaction broke ◄────────────────┘ */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/task_client.h"
#include "host/task/send/txn.h"

#define LOGGER "host.task.txn"
#include "base/log.h"

#define DEATHS_MS 600000

/* How often its transaction broke. */
struct deaths {
    int64_t since_ms;
    int64_t count;
};

bool txn_claim(const struct txn_claim *claim)
{
    struct task *task = claim->task;
    struct task_answer *answer = NULL;
    struct mr_error err = {0};
    int rc = MR_ERR_CLOSED;

    if (claim->fence)
        answer = task_answer_wait(task, task->events->ask_fence(task->arg, task));
    if (answer != NULL && answer->error[0] != '\0')
        rc = mr_fail(&err, MR_ERR_FATAL, "%s", answer->error);
    else if ((answer != NULL || !claim->fence) && task_lease_act(task))
        rc = claim->open(claim->arg, &err);
    CRASH_POINT(TXN_FENCED);
    if (rc == MR_OK)
        rc = txn_init(claim->txn, &err);
    CRASH_POINT(TXN_CLAIMED);
    task_lease_rest(task);
    task_answer_free(answer);
    if (rc != MR_OK && rc != MR_ERR_CLOSED)
        task_fail(task, &err, NULL);
    return rc == MR_OK;
}

static void give_up(struct task *task, int64_t count, const struct mr_error *why)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_FATAL,
            "A transaction could not be committed %lld times in ten minutes. The last time: "
            "%.600s. If it was open for longer than transaction.timeout.ms, a faster %s, "
            "a larger producer.override.transaction.timeout.ms%s may help; if "
            "another producer has taken its id over, see that no other cluster has this "
            "group.id and a connector of this name",
            (long long)count, why->text,
            task->plugin->kind == MR_PLUGIN_SOURCE ? "producer" : "plugin",
            task->plugin->kind == MR_PLUGIN_SOURCE
                ? ", a shorter transaction.boundary.interval.ms or transaction.boundary=poll"
                : " or a smaller consumer.override.max.poll.records");
    task_fail(task, &err, NULL);
}

/* Whose transaction breaks without a word of the worker's has a twin, or was too slow, or its
 * brokers are in trouble. It begins anew as a host does that died, and not for ever: false: it
 * failed, or is to end. Waits, in between. */
static bool bear(struct deaths *deaths, struct task *task, const struct mr_error *why)
{
    static const int64_t delays_ms[] = {0, 1000, 5000, 30000};
    int64_t most = task_client_number(task->worker, "millrace.restart.max", 5, 0, INT32_MAX);
    int64_t now_ms = clock_ms();
    size_t at;

    if (now_ms - deaths->since_ms > DEATHS_MS)
        *deaths = (struct deaths){.since_ms = now_ms};
    at = (size_t)deaths->count++;
    if (deaths->count > most) {
        give_up(task, deaths->count, why);
        return false;
    }
    at = at < 4 ? at : 3;
    log_warn("its transaction is broken (%s): the task begins anew in %lld ms", why->text,
             (long long)delays_ms[at]);
    return task_lease_sleep(task, delays_ms[at]);
}

void txn_lives(struct task *task, bool (*live)(struct task *task, struct mr_error *why))
{
    struct deaths deaths = {0};
    struct mr_error why = {0};

    while (live(task, &why)) {
        task_unmake(task);
        task_lease_rest(task);
        if (why.code != 0 && !bear(&deaths, task, &why))
            return;
    }
}
