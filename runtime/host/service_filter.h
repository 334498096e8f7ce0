/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a REST filter's admit: what is behind struct mr_request. */
#ifndef HOST_SERVICE_FILTER_H
#define HOST_SERVICE_FILTER_H

#include "base/json.h"
#include "host/host_api.h"

/* Ask the filter behind inst about the request of the question (base/service_link.h). An answer's
 * object, or NULL with err: it failed. Runs plugin code. */
json_t *service_filter_run(struct instance *inst, const json_t *question, struct mr_error *err);

/* Slots of the host's table. */
const char *service_filter_text(const struct mr_request *req, int which);
const char *service_filter_header(const struct mr_request *req, const char *name);
void service_filter_refuse(struct mr_request *req, int status, const char *text);

#endif
