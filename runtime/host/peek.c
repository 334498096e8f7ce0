/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted pointers, read through a pipe: write(2) answers EFAULT for an address that is not
 * mapped, where a load would raise SIGSEGV. Used by descriptor.c for everything that a library's
 * static data points to. The bare system call is made because sanitizers check the arguments of the
 * library's. (process_vm_readv would do as well, but containers forbid it.)
 * Thread: whichever loads a library; a struct peek belongs to one call. */
#include "host/peek.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* No machine has smaller pages: the rest of one is readable when its first byte is. */
#define PAGE 4096u

int peek_init(struct peek *peek, struct mr_error *err)
{
    if (pipe2(peek->fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_errno(err, "cannot make a pipe");
    return 0;
}

void peek_deinit(struct peek *peek)
{
    close(peek->fds[0]);
    close(peek->fds[1]);
}

/* At most a page: a pipe holds that much, so neither call can block or fall short. */
static bool copy_piece(const struct peek *peek, char *to, uintptr_t from, size_t len)
{
    ssize_t written = syscall(SYS_write, peek->fds[1], from, len);

    if (written <= 0)
        return false;
    return read(peek->fds[0], to, (size_t)written) == written && (size_t)written == len;
}

bool peek_copy(const struct peek *peek, void *to, const void *from, size_t len)
{
    char *at = to;
    uintptr_t address = (uintptr_t)from;

    while (len > 0) {
        size_t piece = PAGE - address % PAGE;

        if (piece > len)
            piece = len;
        if (!copy_piece(peek, at, address, piece))
            return false;
        at += piece;
        address += piece;
        len -= piece;
    }
    return true;
}

int peek_text(const struct peek *peek, const char *from, size_t max, char **out)
{
    uintptr_t address = (uintptr_t)from;
    char *text = malloc(max + 1);
    size_t len = 0;

    if (text == NULL)
        return MR_ERR_NOMEM;
    while (len <= max) {
        size_t piece = PAGE - (address + len) % PAGE;
        char *end;

        if (piece > max + 1 - len)
            piece = max + 1 - len;
        if (!copy_piece(peek, text + len, address + len, piece)) {
            free(text);
            return MR_ERR_PROTOCOL;
        }
        end = memchr(text + len, '\0', piece);
        if (end != NULL) {
            char *fit = realloc(text, (size_t)(end - text) + 1);

            *out = fit == NULL ? text : fit;
            return 0;
        }
        len += piece;
    }
    free(text);
    return MR_ERR_TOO_LARGE;
}
