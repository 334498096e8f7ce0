/* SPDX-License-Identifier: Apache-2.0 */
/* A library that was built for a later, incompatible ABI. */
#include <millrace/plugin.h>

MR_EXPORT const struct mr_module *millrace_module(void);
MR_EXPORT const struct mr_module *millrace_module(void)
{
    /* Nothing behind the versions may be read: the list leads nowhere. */
    static const struct mr_module module = {MR_MODULE_MAGIC,
                                            sizeof(struct mr_module),
                                            MR_ABI_MAJOR + 1,
                                            MR_ABI_MINOR,
                                            1,
                                            (const struct mr_plugin *const *)(uintptr_t)16};

    return &module;
}
