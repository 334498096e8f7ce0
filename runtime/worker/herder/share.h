/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's share of a connector, brought about: reconcile.c decides, the lifecycle does. Owner:
 * the worker's loop. */
#ifndef WORKER_SHARE_H
#define WORKER_SHARE_H

#include "worker/herder/lifecycle.h"
#include "worker/herder/reconcile.h"

/* plugin   of the connector; not looked at when nothing is wanted
 * configs  of want.tasks, in their order; borrowed */
struct share {
    const struct catalog_plugin *plugin;
    struct reconcile_want want;
    const struct props **configs;
};

/* Let the lifecycle, which is not ENDING, go for what is wanted. false: it has nothing of this
 * connector any more, once it has ended. */
bool share_bring_about(struct lifecycle *lc, const struct share *share);
void share_deinit(struct share *share);

#endif
