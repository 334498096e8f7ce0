/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets topic that a source connector has for itself, for REST: what stands in it, and what a
 * user wants there. Called by `millrace check`. Spec: Worker.sourceConnectorOffsets,
 * modifySourceConnectorOffsets. */
#ifndef HOST_CHECK_OWN_H
#define HOST_CHECK_OWN_H

#include "base/json.h"

/* question: as in link/check_format.h. found runs for each entry that is read, borrowed. MR_OK also
 * where the connector has no such topic; MR_ERR_PROTOCOL: it is of another form; else what Kafka or
 * its clients say. Blocks for as long as it takes. */
int check_own(const json_t *question, void (*found)(void *arg, json_t *entry), void *arg,
              struct mr_error *err);

#endif
