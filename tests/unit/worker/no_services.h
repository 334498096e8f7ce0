/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that play the catalog or the loop themselves: no file of a worker's properties is read
 * in them, so no services are opened, nothing is found for them, and the real ones are not
 * linked. */
#ifndef TESTS_NO_SERVICES_H
#define TESTS_NO_SERVICES_H

#include "worker/supervisor/catalog.h"
#include "worker/supervisor/services.h"
#include "worker/worker_services.h"

int worker_services_open(struct worker_config *config, struct mr_error *err)
{
    (void)config;
    return mr_fail(err, MR_ERR_UNSUPPORTED, "a test opens services");
}

void services_free(struct services **services)
{
    *services = NULL;
}

void catalog_free(struct catalog **cat)
{
    *cat = NULL;
}

#endif
