/* SPDX-License-Identifier: Apache-2.0 */
/* A connector's say in offsets that a user wants changed. Called by `millrace check`. */
#ifndef HOST_CHECK_OFFSETS_H
#define HOST_CHECK_OFFSETS_H

#include "base/json.h"
#include "host/host_api.h"

/* inst: a connector's. offsets, all: as in link/check_format.h. MR_ERR_NOT_FOUND: it has no say;
 * MR_ERR_PROTOCOL: offsets are of another form; MR_ERR_FATAL: its code misused the host's
 * functions; else what it says. Runs plugin code. */
int check_offsets(struct instance *inst, const json_t *offsets, bool all, struct mr_error *err);

#endif
