/* SPDX-License-Identifier: Apache-2.0 */
/* REST answers that do not depend on the moment, nor on hash maps. */
#include "support/rest_answer.h"

#include "support/scratch.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_MS 120000

/* What both answer while a round is open, Java to reads, too. */
static bool is_for_later(const struct http_reply *reply)
{
    return reply->status == 409
               ? strstr(reply->body, "already exists") == NULL
               : reply->status == 500 && strstr(reply->body, "a rebalance is expected") != NULL;
}

struct http_reply rest_answer_call(const struct worker_run *w, const char *method, const char *path,
                                   const char *body)
{
    int64_t from = scratch_now_ms();
    struct http_reply reply;

    do {
        reply = worker_run_call(w, method, path, body);
        if (!is_for_later(&reply))
            return reply;
        scratch_pause(20);
    } while (scratch_since(from) < WAIT_MS);
    fail_msg("%s%s %s: still %d: %s", w->url, method, path, reply.status, reply.body);
    return reply;
}

struct http_reply rest_answer_expect(const struct worker_run *w, int status, const char *method,
                                     const char *path, const char *body)
{
    struct http_reply reply = rest_answer_call(w, method, path, body);

    if (reply.status != status)
        fail_msg("%s %s%s: %d, not %d: %s", method, w->url, path, reply.status, status, reply.body);
    return reply;
}

bool rest_answer_leads(const struct worker_run *w)
{
    return worker_run_call(w, "DELETE", "/connectors/none?forward=false", NULL).status == 404;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Members sorted; also a list of texts, whose order is the hash map's. */
const char *rest_answer_canonical(const json_t *json)
{
    size_t count = json_array_size(json);
    const char **texts = scratch_keep(calloc(count + 1, sizeof(*texts)));
    const char *out = "";

    if (!json_is_string(json_array_get(json, 0)))
        return scratch_keep(json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY));
    for (size_t i = 0; i < count; i++)
        texts[i] = json_string_value(json_array_get(json, i));
    qsort(texts, count, sizeof(*texts), by_text);
    for (size_t i = 0; i < count; i++)
        out = scratch_text("%s %s", out, texts[i]);
    return out;
}

const char *rest_answer_get(const struct worker_run *w, const char *path)
{
    struct http_reply reply = rest_answer_call(w, "GET", path, NULL);

    return scratch_text("%d %s", reply.status,
                        reply.json != NULL ? rest_answer_canonical(reply.json) : reply.body);
}

const char *rest_answer_replaced(const char *text, const char *from, const char *to)
{
    const char *out = "", *at;

    while ((at = strstr(text, from)) != NULL) {
        out = scratch_text("%s%.*s%s", out, (int)(at - text), text, to);
        text = at + strlen(from);
    }
    return scratch_text("%s%s", out, text);
}
