/* SPDX-License-Identifier: Apache-2.0 */
/* /connectors/{c}/offsets: read, changed and forgotten by the herder, who comes back when the
 * store, Kafka or the connector's own code has answered. Run on the worker's loop. Spec: KIP-875;
 * ConnectorsResource.{get,alter,reset}ConnectorOffsets. */
#include "worker/rest/rest_private.h"

static void answered(void *arg, const struct herder_answer *answer)
{
    if (call_came_back(arg, answer))
        call_reply_json(arg, 200, json_incref((json_t *)(uintptr_t)answer->body));
}

void res_offsets_read(struct call *call)
{
    herder_offsets(call_herder(call), call_var(call, 0), answered, call);
}

void res_offsets_alter(struct call *call)
{
    const struct exchange *exchange = call_exchange(call);

    if (exchange->input_absent)
        call_reply_error(call, 400,
                         "The request body must be a JSON object with the member 'offsets'");
    else if (json_array_size(exchange->offsets) == 0)
        call_reply_error(call, 400,
                         "Partitions / offsets need to be provided for an alter offsets request");
    else
        herder_change_offsets(call_herder(call), call_var(call, 0), exchange->offsets, answered,
                              call);
}

void res_offsets_reset(struct call *call)
{
    herder_change_offsets(call_herder(call), call_var(call, 0), NULL, answered, call);
}
