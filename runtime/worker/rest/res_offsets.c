/* SPDX-License-Identifier: Apache-2.0 */
/* /connectors/{c}/offsets: read, changed and forgotten by the herder, who comes back when the
 * store, Kafka or the connector's own code has answered. Run on the worker's loop. Spec: KIP-875;
 * ConnectorsResource.{get,alter,reset}ConnectorOffsets. */
#include "worker/rest/rest_private.h"

static void answered(void *arg, const struct herder_answer *answer)
{
    if (!call_came_back(arg, answer))
        return;
    if (answer->text != NULL)
        call_reply_text(arg, 200, answer->text);
    else
        call_reply_json(arg, 200, json_incref((json_t *)(uintptr_t)answer->body));
}

void res_offsets_read(struct call *call)
{
    herder_offsets(call_herder(call), call_var(call, 0), answered, call);
}

/* Taken out of the exchange, since nobody is to copy many; who comes a second time (call_again) reads
 * them anew. */
static json_t *take_offsets(struct exchange *exchange)
{
    json_t *offsets = exchange->offsets;
    struct mr_error err = {0};
    bool absent;

    exchange->offsets = NULL;
    if (offsets == NULL)
        (void)request_offsets_parse(exchange->body, exchange->body_len, &offsets, &absent, &err);
    return offsets;
}

void res_offsets_alter(struct call *call)
{
    struct exchange *exchange = call_exchange(call);
    json_t *offsets;

    if (exchange->input_absent) {
        call_reply_error(call, 400,
                         "The request body must be a JSON object with the member 'offsets'");
        return;
    }
    offsets = take_offsets(exchange);
    if (json_array_size(offsets) > 0) {
        herder_change_offsets(call_herder(call), call_var(call, 0), offsets, answered, call);
        return;
    }
    json_decref(offsets);
    call_reply_error(call, 400,
                     "Partitions / offsets need to be provided for an alter offsets request");
}

void res_offsets_reset(struct call *call)
{
    herder_change_offsets(call_herder(call), call_var(call, 0), NULL, answered, call);
}
