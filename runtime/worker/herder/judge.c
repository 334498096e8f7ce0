/* SPDX-License-Identifier: Apache-2.0 */
/* Judges configurations for the herder: validate.c says what is wrong by the tables, and where
 * classes have to be asked of values (a regular expression, a list of casts), plugin_check.c does
 * that in a process of its own. Loop thread; never blocks.
 *
 * The configuration is copied, as it may have to wait for that process; two of one connector may
 * overtake each other there, as they may in Kafka Connect. Its asker finds the world as it is when
 * it comes back, not as it was. */
#include "worker/herder/judge.h"

#include "worker/supervisor/plugin_check.h"

#define PATIENCE_MS 20000

struct judge {
    struct plugin_check *check;
    const struct catalog *catalog;
    const struct worker_config *worker;
};

struct hearing {
    struct props config;
    struct validate_input input;
    struct validate_result result;
    json_t *questions;
    judge_done done;
    void *arg;
};

static void end(struct hearing *h, const struct mr_error *err)
{
    h->done(h->arg, &h->input, err == NULL ? &h->result : NULL, err);
    json_decref(h->questions);
    validate_deinit(&h->result);
    props_deinit(&h->config);
    free(h);
}

static void on_checked(void *arg, const json_t *problems)
{
    struct hearing *h = arg;
    struct mr_error err = {0};

    if (problems == NULL) {
        mr_fail(&err, MR_ERR_CLOSED, "the worker is shutting down");
        end(h, &err);
        return;
    }
    validate_answered(&h->result, h->questions, problems);
    end(h, NULL);
}

void judge_config(struct judge *judge, const struct props *config, judge_done done, void *arg)
{
    struct hearing *h = calloc(1, sizeof(*h));
    struct mr_error err = {0};

    mr_assert(h != NULL && props_copy(&h->config, config) == 0);
    h->input = (struct validate_input){&h->config, judge->catalog, judge->worker};
    h->done = done;
    h->arg = arg;
    if (validate_connector(&h->input, &h->result, &err) != 0) {
        end(h, &err);
        return;
    }
    h->questions = validate_questions(&h->input, &h->result);
    if (h->questions == NULL)
        end(h, NULL);
    else
        plugin_check_ask(judge->check, json_incref(h->questions), on_checked, h);
}

struct judge *judge_new(struct loop *loop, const struct catalog *catalog,
                        const struct worker_config *worker)
{
    struct judge *judge = calloc(1, sizeof(*judge));

    mr_assert(judge != NULL);
    *judge = (struct judge){plugin_check_new(loop, "/proc/self/exe", PATIENCE_MS), catalog, worker};
    return judge;
}

void judge_free(struct judge **judgep)
{
    struct judge *judge = *judgep;

    *judgep = NULL;
    if (judge == NULL)
        return;
    plugin_check_free(&judge->check);
    free(judge);
}
