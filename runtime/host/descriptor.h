/* SPDX-License-Identifier: Apache-2.0 */
/* From a library's static descriptors to the host's own: everything is checked and copied, nothing
 * is trusted. */
#ifndef HOST_DESCRIPTOR_H
#define HOST_DESCRIPTOR_H

#include "host/plugin_load.h"

struct descriptor_set {
    struct plugin *plugins; /* count of them */
    size_t count;
    void **kept; /* what they point to: kept_count allocations */
    size_t kept_count;
    size_t kept_cap;
};

/* Check and copy a module: magic, ABI, sizes, each descriptor. library: its path, kept by copy.
 * Kinds that this host does not know are skipped. One sentence in err, without the path. Calls
 * nothing of the plugin's. */
int descriptor_read(const struct mr_module *module, const char *library, struct descriptor_set *out,
                    struct mr_error *err);
void descriptor_set_deinit(struct descriptor_set *set);

#endif
