/* SPDX-License-Identifier: Apache-2.0 */
/* Judges configurations for the herder: validate.c says what is wrong by the tables, and where
 * classes have to be asked of values (a regular expression, a list of casts), plugin_check.c does
 * that in a process of its own. Loop thread; never blocks.
 *
 * References to config providers are resolved first, by resolver.c, and what they stand for is put
 * back into what is told.
 * The configuration is copied, as it may have to wait for that process; two of one connector may
 * overtake each other there, as they may in Kafka Connect. Its asker finds the world as it is when
 * it comes back, not as it was. */
#include "worker/herder/validate/judge.h"

#include "worker/herder/validate/resolver.h"
#include "worker/supervisor/plugin_check.h"

#define PATIENCE_MS 20000

struct judge {
    struct plugin_check *check;
    struct resolver *resolver;
    const struct catalog *catalog;
    const struct worker_config *worker;
};

struct hearing {
    struct judge *judge;
    struct props config;
    struct props resolved;   /* config, where it has references */
    struct secrets *secrets; /* NULL: nothing was resolved */
    struct map *why;         /* likewise: references stay as they are */
    struct validate_input input;
    struct validate_result result;
    json_t *questions;
    judge_done done;
    void *arg;
};

/* Nothing that was resolved leaves in words. */
static void hide(struct hearing *h, struct mr_error *err)
{
    char *hidden = secrets_hide(h->secrets, err->text);

    validate_hide(&h->result, h->secrets);
    if (hidden != NULL)
        snprintf(err->text, sizeof(err->text), "%s", hidden);
    free(hidden);
}

static void end(struct hearing *h, const struct mr_error *err)
{
    struct mr_error told = {0};

    if (err != NULL)
        told = *err;
    if (h->secrets != NULL)
        hide(h, &told);
    h->done(h->arg, &h->input, err == NULL ? &h->result : NULL, err != NULL ? &told : NULL);
    json_decref(h->questions);
    validate_deinit(&h->result);
    props_deinit(&h->config);
    props_deinit(&h->resolved);
    if (h->secrets != NULL)
        secrets_free(&h->secrets);
    map_free(&h->why, free);
    free(h);
}

static void on_checked(void *arg, json_t *problems)
{
    struct hearing *h = arg;
    struct mr_error err = {0};

    if (problems == NULL) {
        mr_fail(&err, MR_ERR_CLOSED, "the worker is shutting down");
        end(h, &err);
        return;
    }
    validate_answered(&h->result, h->questions, problems);
    json_decref(problems);
    end(h, NULL);
}

static void hear(struct hearing *h)
{
    struct mr_error err = {0};

    if (validate_connector(&h->input, &h->result, &err) != 0) {
        end(h, &err);
        return;
    }
    h->questions = validate_questions(&h->input, &h->result);
    if (h->questions == NULL)
        end(h, NULL);
    else
        plugin_check_ask(h->judge->check, json_incref(h->questions), on_checked, h);
}

static void on_resolved(void *arg, struct props *config, struct secrets **secrets, struct map **why,
                        const struct mr_error *err)
{
    struct hearing *h = arg;

    if (err != NULL) {
        end(h, err);
        return;
    }
    h->resolved = *config;
    h->secrets = *secrets;
    props_init(config);
    *secrets = NULL;
    h->why = *why;
    *why = NULL;
    h->input.config = &h->resolved;
    h->input.raw = &h->config;
    h->input.why = h->why;
    hear(h);
}

void judge_config(struct judge *judge, const struct props *config, judge_done done, void *arg)
{
    struct hearing *h = calloc(1, sizeof(*h));
    struct mr_error err = {0};

    mr_assert(h != NULL && props_copy(&h->config, config) == 0);
    props_init(&h->resolved);
    h->judge = judge;
    h->input = (struct validate_input){
        .config = &h->config, .catalog = judge->catalog, .worker = judge->worker};
    h->done = done;
    h->arg = arg;
    if (!providers_refer_any(judge->worker->providers, config))
        hear(h);
    else if (validate_size(config, &err) != 0)
        end(h, &err);
    else
        resolver_ask(judge->resolver, config, on_resolved, h);
}

struct judge *judge_new(struct loop *loop, const struct catalog *catalog,
                        const struct worker_config *worker)
{
    struct judge *judge = calloc(1, sizeof(*judge));

    mr_assert(judge != NULL);
    *judge = (struct judge){plugin_check_new(loop, "/proc/self/exe", PATIENCE_MS),
                            resolver_new(loop, worker->providers), catalog, worker};
    return judge;
}

void judge_free(struct judge **judgep)
{
    struct judge *judge = *judgep;

    *judgep = NULL;
    if (judge == NULL)
        return;
    resolver_free(&judge->resolver);
    plugin_check_free(&judge->check);
    free(judge);
}
