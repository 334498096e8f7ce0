/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the front of a shared object: judged without reading outside of them. The first two
 * give the file's size. */
#include "host/elf_check.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct elf_check_machine machine = {ELFCLASS64, ELFDATA2LSB, EM_X86_64};
    struct mr_error err = {0};
    uint64_t file_size;

    if (size < 2)
        return 0;
    file_size = (uint64_t)data[0] | (uint64_t)data[1] << 8;
    if (elf_check_head(data + 2, size - 2, file_size, &machine, &err) != 0 && err.text[0] == '\0')
        abort();
    return 0;
}
