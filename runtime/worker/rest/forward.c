/* SPDX-License-Identifier: Apache-2.0 */
/* A request that another worker has to answer: sent on as it came, the answer taken over. Called by
 * call.c when the herder says whose it is; the HTTP runs on the peer thread (worker/peer.h),
 * everything here on the worker's loop.
 *
 *   client ─► here ─ forward=true ─► leader ─ forward=false ─► owner          no further: 409
 *
 * What the other worker wrote is read here before its answer is passed on, so that no client that
 * stays with this worker sees anything older than it was told; for a moment at most, since it has
 * come about whether it can be read here or not.
 *
 * When the leader changes meanwhile, the call begins again, once, if it may be done twice: who led
 * before does nothing any more once its lease is over (herder/cluster/cluster_changes.c).
 *
 * Only Authorization travels along, and the signature of an internal call. Spec: RestClient,
 * HerderRequestHandler. */
#define LOGGER "worker.rest"
#include "worker/rest/rest_private.h"

#include "base/json.h"
#include "base/log.h"
#include "model/conn_config.h"
#include "worker/peer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A connector that could be created can be named to every worker, in every request. */
_Static_assert(CONN_CONFIG_NAME_MAX +
                       sizeof("/connectors//tasks/2147483647/restart"
                              "?forward=false&includeTasks=false&onlyFailed=false") <=
                   ROUTER_TARGET_MAX,
               "names are bounded by what a path has room for");

/* Before the call's own deadline, which could not say whom it waited for. */
#define TIMEOUT_MS 89000
#define CATCH_UP_MS 3000

static const char *query_of(const struct router_target *target, const char *key)
{
    for (size_t i = 0; i < target->query_count; i++)
        if (strcmp(target->query[i].key, key) == 0)
            return target->query[i].value;
    return NULL;
}

/* The path as the client spelled it, with the parameters that count. */
static char *target_of(const struct exchange *exchange, bool last_hop)
{
    static const char *const flags[] = {"includeTasks", "onlyFailed"};
    const char *sent = exchange->target.sent;
    struct buf out;

    buf_init(&out, 2 * ROUTER_TARGET_MAX);
    buf_append(&out, sent, strcspn(sent, "?"));
    buf_printf(&out, "?forward=%s", last_hop ? "false" : "true");
    for (size_t i = 0; i < 2; i++)
        if (query_of(&exchange->target, flags[i]) != NULL)
            buf_printf(&out, "&%s=%s", flags[i],
                       router_flag(&exchange->target, flags[i], false) ? "true" : "false");
    return out.failed ? NULL : buf_take(&out);
}

static void take_error(struct answer *out, const struct peer_answer *from)
{
    json_t *body = json_parse(from->body, from->len, NULL);
    const char *message = NULL;

    if (json_get_text(body, "message", &message))
        entities_error(out, from->status, message);
    else
        entities_error(out, from->status >= 400 ? from->status : 500,
                       "Error trying to forward REST request: the other worker's answer is no "
                       "error that can be read");
    json_decref(body);
}

static void take_success(struct exchange *exchange, const struct peer_answer *from)
{
    json_t *body = from->len > 0 ? json_parse(from->body, from->len, NULL) : NULL;

    if (from->len == 0)
        entities_empty(&exchange->answer, from->status);
    else if (body == NULL)
        entities_error(&exchange->answer, 500,
                       "Error trying to forward REST request: the other worker's answer is no "
                       "JSON");
    else
        entities_json(&exchange->answer, from->status, body);
    if (from->status == 201 && body != NULL) {
        const char *name = NULL;

        if (json_get_text(body, "name", &name))
            exchange->answer.location = entities_location(exchange->base, name);
    }
    json_decref(body);
}

/* Has the same effect twice as once. Creating answers 409 the second time, restarting restarts. */
static bool repeatable(const struct exchange *exchange)
{
    return strcmp(exchange->match.route->method, "POST") != 0;
}

static void on_caught_up(void *arg, const struct herder_answer *answer)
{
    if (answer->err != NULL)
        log_warn("what another worker has done for a client may be seen here later: %s",
                 answer->message);
    if (call_take_back(arg) != NULL)
        call_end(arg);
}

static void on_answered(void *arg, const struct peer_answer *answer)
{
    struct exchange *exchange = call_take_back(arg);
    char text[768];

    if (exchange == NULL || (answer->given_up && repeatable(exchange) && call_again(arg)))
        return;
    if (answer->given_up) {
        snprintf(text, sizeof(text), "IO Error trying to forward REST request: %s", answer->error);
        entities_error(&exchange->answer, 500, text);
    } else if (answer->status == 0) {
        snprintf(text, sizeof(text),
                 "IO Error trying to forward REST request: %s; the other worker must be reachable "
                 "at the address that it advertises (rest.advertised.host.name and "
                 "rest.advertised.port, else its first listener)",
                 answer->error);
        entities_error(&exchange->answer, 500, text);
    } else if (answer->status >= 200 && answer->status < 300) {
        take_success(exchange, answer);
    } else if (answer->status >= 400) {
        take_error(&exchange->answer, answer);
    } else {
        snprintf(text, sizeof(text), "Unexpected status code when handling forwarded request: %d",
                 answer->status);
        entities_error(&exchange->answer, 500, text);
    }
    if (exchange->answer.status >= 300) {
        call_end(arg);
        return;
    }
    call_hold(arg, CATCH_UP_MS);
    herder_catch_up(call_herder(arg), on_caught_up, arg);
}

static void send(struct call *call, const char *base, bool last_hop)
{
    struct exchange *exchange = call_exchange(call);
    char *target = target_of(exchange, last_hop), *url;

    if (target == NULL) {
        call_reply_error(call, 500, "the request's path is too long to be forwarded");
        return;
    }
    url = peer_url(base, target);
    peer_send(herder_peer(call_herder(call)),
              &(struct peer_request){.url = url,
                                     .method = exchange->match.route->method,
                                     .body = exchange->body,
                                     .len = exchange->body_len,
                                     .authorization = exchange->authorization,
                                     .signature = exchange->signature,
                                     .signature_algorithm = exchange->signature_algorithm,
                                     .timeout_ms = TIMEOUT_MS},
              on_answered, call);
    free(url);
    free(target);
}

void forward_call(struct call *call, const char *url)
{
    const char *hop = query_of(&call_exchange(call)->target, "forward");
    bool second = hop != NULL && strcasecmp(hop, "true") == 0;

    if (hop != NULL && !second)
        call_reply_error(call, 409,
                         "Cannot complete request because of a conflicting operation (e.g. worker "
                         "rebalance)");
    else if (url[0] == '\0')
        call_reply_error(call, 409,
                         "Cannot complete request momentarily due to no known leader URL, likely "
                         "because a rebalance was underway.");
    else
        send(call, url, second);
}
