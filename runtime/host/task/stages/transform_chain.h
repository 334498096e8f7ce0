/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of a connector, in order, each for the records its predicate lets through. Owner:
 * the task's thread.
 * Spec: org.apache.kafka.connect.runtime.TransformationChain, TransformationStage. */
#ifndef HOST_TRANSFORM_CHAIN_H
#define HOST_TRANSFORM_CHAIN_H

#include "base/json.h"
#include "host/data/record_arena.h"
#include "host/task/stages/plugin_stage.h"

struct transform_chain;

/* config: the connector's; plugins: where they are (plugin_places.h). Both borrowed for the
 * call. */
struct transform_chain *transform_chain_new(const struct stage_owner *owner,
                                            const struct props *config, const json_t *plugins,
                                            struct mr_error *err);
void transform_chain_free(struct transform_chain **chain);
size_t transform_chain_length(const struct transform_chain *chain);
/* As plugin_stage_check. */
int transform_chain_check(const struct transform_chain *chain, struct mr_error *err);

/* Apply those from *at on. MR_OK, MR_DROP, or a negative code: then *at says which one failed, and
 * the record is what it was before that one. Call again with the same *at for another try. */
int transform_chain_apply(struct transform_chain *chain, struct record *rec, size_t *at,
                          struct mr_error *err);
const char *transform_chain_class(const struct transform_chain *chain, size_t at);

#endif
