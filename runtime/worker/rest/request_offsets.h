/* SPDX-License-Identifier: Apache-2.0 */
/* The body of PATCH /connectors/X/offsets. Pure; any thread. Spec: what Jackson takes for
 * ConnectorOffsets. */
#ifndef WORKER_REQUEST_OFFSETS_H
#define WORKER_REQUEST_OFFSETS_H

#include "base/json.h"

#define REQUEST_OFFSETS_MAX 10000 /* in one request */

/* {"offsets": [{"partition": object or null, "offset": object or null}, …]} → *out: [[partition,
 * offset], …] as in herder/offsets/offset_entries.h, each partition once (of several the last
 * counts); the caller's. An absent or null list is an empty one.
 *
 * 0, or MR_ERR_PROTOCOL (what is wrong, where), or MR_ERR_NOMEM. *absent: the document is empty or
 * null; *out is an empty array. */
int request_offsets_parse(const char *data, size_t len, json_t **out, bool *absent,
                          struct mr_error *err);

#endif
