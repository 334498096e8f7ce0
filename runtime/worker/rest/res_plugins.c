/* SPDX-License-Identifier: Apache-2.0 */
/* GET /connector-plugins. Run on the worker's loop, answered from the catalog at once.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.ConnectorPluginsResource. */
#include "worker/rest/rest_private.h"

void res_plugins_list(struct call *call)
{
    bool connectors_only = router_flag(&call_exchange(call)->target, "connectorsOnly", true);

    call_reply_json(call, 200, herder_plugins(call_herder(call), connectors_only));
}
