/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations: one row each. Adding an operation is adding a row and its function.
 * Matched by router.c on the HTTP threads, run by call.c on the worker's loop. */
#include "worker/rest/rest_private.h"

#define REQUEST_MS 90000 /* Connect's constant */
#define HEALTH_MS 10000
#define FENCE_MS 115000 /* a round takes 90 s at most */

#define CHANGE ROUTE_CHANGE
#define INTERNAL (ROUTE_CHANGE | ROUTE_ANY_TYPE | ROUTE_SIGNED)

const struct route routes[] = {
    {"GET", "/", ROUTE_ANY_TYPE, ROUTE_NO_BODY, REQUEST_MS, res_root_info},
    {"GET", "/millrace/version", ROUTE_ANY_TYPE, ROUTE_NO_BODY, REQUEST_MS, res_root_version},
    {"GET", "/millrace/openapi.json", ROUTE_ANY_TYPE, ROUTE_NO_BODY, REQUEST_MS, res_root_openapi},
    {"GET", "/health", ROUTE_ANY_TYPE | ROUTE_ALWAYS, ROUTE_NO_BODY, HEALTH_MS, res_root_health},
    {"GET", "/connectors", 0, ROUTE_NO_BODY, REQUEST_MS, res_connectors_list},
    {"POST", "/connectors", CHANGE, ROUTE_CREATE, REQUEST_MS, res_connectors_create},
    {"GET", "/connectors/{c}", 0, ROUTE_NO_BODY, REQUEST_MS, res_connectors_info},
    {"DELETE", "/connectors/{c}", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_connectors_delete},
    {"GET", "/connectors/{c}/config", 0, ROUTE_NO_BODY, REQUEST_MS, res_connectors_config},
    {"PUT", "/connectors/{c}/config", CHANGE, ROUTE_CONFIG, REQUEST_MS, res_connectors_put_config},
    {"PATCH", "/connectors/{c}/config", CHANGE, ROUTE_CONFIG, REQUEST_MS,
     res_connectors_patch_config},
    {"GET", "/connectors/{c}/status", 0, ROUTE_NO_BODY, REQUEST_MS, res_connectors_status},
    {"POST", "/connectors/{c}/restart", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_connectors_restart},
    {"PUT", "/connectors/{c}/pause", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_connectors_pause},
    {"PUT", "/connectors/{c}/resume", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_connectors_resume},
    {"PUT", "/connectors/{c}/stop", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_connectors_stop},
    {"GET", "/connectors/{c}/tasks", 0, ROUTE_NO_BODY, REQUEST_MS, res_tasks_list},
    {"POST", "/connectors/{c}/tasks", INTERNAL, ROUTE_RAW, REQUEST_MS, res_tasks_put},
    {"PUT", "/connectors/{c}/fence", INTERNAL, ROUTE_RAW, FENCE_MS, res_tasks_fence},
    {"GET", "/connectors/{c}/tasks/{t}/status", 0, ROUTE_NO_BODY, REQUEST_MS, res_tasks_status},
    {"POST", "/connectors/{c}/tasks/{t}/restart", CHANGE, ROUTE_NO_BODY, REQUEST_MS,
     res_tasks_restart},
    {"GET", "/connectors/{c}/offsets", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_offsets_read},
    {"PATCH", "/connectors/{c}/offsets", CHANGE, ROUTE_OFFSETS, REQUEST_MS, res_offsets_alter},
    {"DELETE", "/connectors/{c}/offsets", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_offsets_reset},
    {"GET", "/connectors/{c}/topics", 0, ROUTE_NO_BODY, REQUEST_MS, res_topics_list},
    {"PUT", "/connectors/{c}/topics/reset", CHANGE, ROUTE_NO_BODY, REQUEST_MS, res_topics_reset},
    {"GET", "/connector-plugins", 0, ROUTE_NO_BODY, REQUEST_MS, res_plugins_list},
    {"GET", "/connector-plugins/{c}/config", 0, ROUTE_NO_BODY, REQUEST_MS, res_plugins_config},
    {"PUT", "/connector-plugins/{c}/config/validate", 0, ROUTE_CONFIG, REQUEST_MS,
     res_plugins_validate},
    {"GET", "/admin/loggers", 0, ROUTE_NO_BODY, REQUEST_MS, res_loggers_list},
    {"GET", "/admin/loggers/{c}", 0, ROUTE_NO_BODY, REQUEST_MS, res_loggers_get},
    {"PUT", "/admin/loggers/{c}", CHANGE, ROUTE_CONFIG, REQUEST_MS, res_loggers_set},
};

const size_t routes_count = sizeof(routes) / sizeof(*routes);
