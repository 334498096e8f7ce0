/* SPDX-License-Identifier: Apache-2.0 */
/* GET /, GET /health, and what of us Connect has no place for. Run on the worker's loop, answered
 * at once.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.RootResource, KIP-1017. */
#include "worker/rest/openapi.h"
#include "worker/rest/rest_private.h"

void res_root_info(struct call *call)
{
    call_reply_json(call, 200, herder_root(call_herder(call)));
}

void res_root_version(struct call *call)
{
    call_reply_json(call, 200, json_pack("{s:s}", "version", MILLRACE_VERSION));
}

void res_root_openapi(struct call *call)
{
    call_reply_json(call, 200, openapi_document(routes, routes_count, MILLRACE_VERSION));
}

void res_root_health(struct call *call)
{
    struct herder *herder = call_herder(call);
    const char *unwell = herder != NULL ? herder_unwell(herder) : NULL;
    char more[CALL_STAGE_MAX] = "";
    char message[CALL_STAGE_MAX + 300];

    if (herder == NULL || !herder_ready(herder)) {
        call_stage(herder, more, sizeof(more));
        snprintf(message, sizeof(message), "Worker is still starting up.%s%s",
                 *more != '\0' ? " " : "", more);
        call_reply_health(call, 503, "starting", message);
    } else if (unwell != NULL) {
        herder_trouble(herder, more, sizeof(more));
        snprintf(message, sizeof(message), CALL_UNWELL " %.200s%s%s", unwell,
                 *more != '\0' ? " " : "", more);
        call_reply_health(call, 500, "unhealthy", message);
    } else {
        call_reply_health(call, 200, "healthy",
                          "Worker has completed startup and is ready to handle requests.");
    }
}
