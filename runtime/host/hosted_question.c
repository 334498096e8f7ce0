/* SPDX-License-Identifier: Apache-2.0 */
/* The questions that tasks have put to the worker and that are not answered yet: source offsets,
 * whether to start. A task's thread posts its question to the control thread (hosted_task.c), which
 * sends it and remembers whose it is.
 *
 * Invariant: every question of a task is answered, or its task is gone. */
#include "host/hosted_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTIONS_MAX 4096 /* open at a time; a task has one or two */

static void answer(struct tenant *t, const struct hosted_answer *from)
{
    struct task_answer *to = calloc(1, sizeof(*to));

    mr_assert(to != NULL);
    to->id = from->id;
    to->entries = from->entries;
    to->ok = from->ok;
    snprintf(to->error, sizeof(to->error), "%s", from->error == NULL ? "" : from->error);
    task_answer_take(t->task, to);
}

static void refuse(struct tenant *t, int64_t id, const char *why)
{
    answer(t, &(struct hosted_answer){.id = id, .error = why});
}

static const char no_memory[] = "out of memory";

static const char *refusal(int code)
{
    switch (code) {
    case MR_ERR_FULL:
        return "the worker does not read what this host tells it";
    case MR_ERR_TOO_LARGE:
        return "the question is larger than the link to the worker carries";
    default:
        return "the worker is gone";
    }
}

/* NULL, or why not. */
static const char *remember(struct hosted *h, struct tenant *t, int64_t id)
{
    if (h->question_count == h->question_cap) {
        size_t cap = h->question_cap == 0 ? 16 : h->question_cap * 2;
        struct question *grown;

        if (cap > QUESTIONS_MAX)
            return "too many questions to the worker are open";
        grown = realloc(h->questions, cap * sizeof(*grown));
        if (grown == NULL)
            return no_memory;
        h->questions = grown;
        h->question_cap = cap;
    }
    h->questions[h->question_count++] = (struct question){.id = id, .tenant = t};
    return NULL;
}

/* false: no memory for it, or none for the body. */
static bool address(json_t *body, const struct tenant *t, int64_t id)
{
    return json_object_set_new(body, "id", json_integer(id)) == 0 &&
           json_object_set_new(body, "conn", json_string(t->conn->name)) == 0;
}

void hosted_question_ask(struct tenant *t, enum msg_kind kind, int64_t id, json_t *body)
{
    struct hosted *h = t->conn->hosted;
    const char *why = h->worker_gone          ? "the worker is gone"
                      : !address(body, t, id) ? no_memory
                                              : remember(h, t, id);
    int rc;

    if (why != NULL) {
        json_decref(body);
        refuse(t, id, why);
        return;
    }
    rc = hosted_send(h, kind, body);
    if (rc != 0) {
        h->question_count--;
        refuse(t, id, refusal(rc));
    }
}

void hosted_question_answer_take(struct hosted *h, const struct hosted_answer *from)
{
    for (size_t i = 0; i < h->question_count; i++)
        if (h->questions[i].id == from->id) {
            struct tenant *t = h->questions[i].tenant;

            h->questions[i] = h->questions[--h->question_count];
            answer(t, from);
            return;
        }
    json_decref(from->entries);
}

void hosted_question_forget(struct hosted *h, const struct tenant *t)
{
    for (size_t i = h->question_count; i > 0; i--)
        if (h->questions[i - 1].tenant == t)
            h->questions[i - 1] = h->questions[--h->question_count];
}

void hosted_question_refuse_all(struct hosted *h)
{
    while (h->question_count > 0) {
        struct question q = h->questions[--h->question_count];

        refuse(q.tenant, q.id, "the worker is gone");
    }
}
