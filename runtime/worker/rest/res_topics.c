/* SPDX-License-Identifier: Apache-2.0 */
/* The topics that a connector has used. Both operations are answered at once, by any worker and for
 * any name: what is not known has used none. Run on the worker's loop. Spec: KIP-558;
 * ConnectorsResource.getConnectorActiveTopics. */
#include "worker/rest/rest_private.h"

#define FORBIDDEN 403

void res_topics_list(struct call *call)
{
    struct mr_error err = {0};
    json_t *topics = herder_topics(call_herder(call), call_var(call, 0), &err);

    if (err.code != 0)
        call_reply_error(call, FORBIDDEN, "%s", err.text);
    else
        call_reply_json(call, 200, topics);
}

void res_topics_reset(struct call *call)
{
    struct mr_error err = {0};

    if (herder_reset_topics(call_herder(call), call_var(call, 0), &err) != 0)
        call_reply_error(call, FORBIDDEN, "%s", err.text);
    else
        call_reply_empty(call, 202);
}
