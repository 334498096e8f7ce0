/* SPDX-License-Identifier: Apache-2.0 */
/* Is a file a shared object that this process could open? Judged before dlopen sees it, which maps
 * what the headers say and would die of a truncated file. */
#ifndef HOST_ELF_CHECK_H
#define HOST_ELF_CHECK_H

#include "base/err.h"

#include <stddef.h>

/* The machine that this build is for: e_machine of its own ELF header. */
struct elf_check_machine {
    unsigned char bits;  /* EI_CLASS */
    unsigned char order; /* EI_DATA */
    uint16_t machine;    /* e_machine */
};

/* Pure: head holds the first len bytes of a file of file_size bytes, at least up to the end of its
 * program headers when the file has that many. MR_ERR_PROTOCOL with a sentence that begins with
 * "not an ELF file" and the like. */
int elf_check_head(const unsigned char *head, size_t len, uint64_t file_size,
                   const struct elf_check_machine *machine, struct mr_error *err);

/* The same for a file on disk, against the machine of the running binary. Errors name no path. */
int elf_check_file(const char *path, struct mr_error *err);

#endif
