/* SPDX-License-Identifier: Apache-2.0 */
/* The black box: a host's threads note in shared memory what they do, the worker reads it when the
 * host is dead. Made by the supervisor before a host is spawned, mapped by the host, read once by
 * child.c for the obituary.
 *
 * The file is a memfd whose size is sealed: the host may write what it likes, but the worker, which
 * only ever preads it, can't be made to fault. Writing takes no lock and no system call, since it
 * happens around every call into a plugin and in a handler of deadly signals. A slot is written by
 * one thread; `call` is emptied first and filled last, so a slot with a call in it is whole. The
 * ring of last words is shared: a place is reserved by one atomic add. */
#include "link/black_box.h"

#include "base/clock.h"
#include "link/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#define BLACK_BOX_VERSION 1

int black_box_create(void)
{
    int fd = memfd_create("millrace-black-box", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int saved;

    if (fd < 0)
        return -1;
    if (ftruncate(fd, sizeof(struct black_box)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

struct black_box *black_box_map(int fd)
{
    struct black_box *box = mmap(NULL, sizeof(*box), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (box == MAP_FAILED)
        return NULL;
    box->version = BLACK_BOX_VERSION;
    __atomic_store_n(&box->magic, BLACK_BOX_MAGIC, __ATOMIC_RELEASE);
    return box;
}

static void put_text(char *to, size_t size, const char *from)
{
    size_t len = strnlen(from, size - 1);

    memcpy(to, from, len);
    to[len] = '\0';
}

void black_box_enter(struct black_box *box, size_t slot, const char *connector, int task,
                     const char *call)
{
    struct black_box_slot *s;

    if (slot >= BLACK_BOX_SLOTS || call[0] == '\0')
        return;
    s = &box->slots[slot];
    __atomic_store_n(&s->call[0], '\0', __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->task = task;
    s->since_boot_ms = clock_boot_ms();
    put_text(s->connector, sizeof(s->connector), connector);
    put_text(s->call + 1, sizeof(s->call) - 1, call + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&s->call[0], call[0], __ATOMIC_RELEASE);
}

void black_box_leave(struct black_box *box, size_t slot)
{
    if (slot < BLACK_BOX_SLOTS)
        __atomic_store_n(&box->slots[slot].call[0], '\0', __ATOMIC_RELEASE);
}

void black_box_say(struct black_box *box, const char *line, size_t len)
{
    uint32_t at;

    while (len > 0 && line[len - 1] == '\n')
        len--;
    if (len > BLACK_BOX_WORDS - 1) {
        line += len - (BLACK_BOX_WORDS - 1);
        len = BLACK_BOX_WORDS - 1;
    }
    at = __atomic_fetch_add(&box->words_at, (uint32_t)len + 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < len; i++)
        __atomic_store_n(&box->words[(at + i) % BLACK_BOX_WORDS], line[i], __ATOMIC_RELAXED);
    __atomic_store_n(&box->words[(at + len) % BLACK_BOX_WORDS], '\n', __ATOMIC_RELAXED);
}

/* --- the worker's side: everything below reads bytes that a plugin may have written over --- */

static void end_text(char *text, size_t size)
{
    size_t len;

    text[size - 1] = '\0';
    len = strlen(text);
    memset(text + len, 0, size - len);
    printable_clean(text, len);
}

static void clean_slot(struct black_box_slot *slot, int64_t now)
{
    if (slot->task < -1)
        slot->task = -1;
    if (slot->since_boot_ms < 0 || slot->since_boot_ms > now)
        slot->since_boot_ms = now;
    slot->reserved = 0;
    end_text(slot->connector, sizeof(slot->connector));
    end_text(slot->call, sizeof(slot->call));
    end_text(slot->member_id, sizeof(slot->member_id));
    end_text(slot->transactional_id, sizeof(slot->transactional_id));
}

bool black_box_read(int fd, struct black_box *out)
{
    int64_t now = clock_boot_ms();

    if (pread(fd, out, sizeof(*out), 0) != (ssize_t)sizeof(*out))
        return false;
    if (out->magic != BLACK_BOX_MAGIC || out->version != BLACK_BOX_VERSION)
        return false;
    if (out->culprit < 0 || out->culprit > BLACK_BOX_SLOTS)
        out->culprit = 0;
    if (out->deadly_signal < 0 || out->deadly_signal > 64)
        out->deadly_signal = 0;
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++)
        clean_slot(&out->slots[i], now);
    return true;
}

void black_box_words(const struct black_box *box, char *out, size_t size)
{
    char words[BLACK_BOX_WORDS];
    size_t start = box->words_at % BLACK_BOX_WORDS;
    size_t len = 0, from = 0;

    /* Oldest first; what was never written is NUL. */
    for (size_t i = 0; i < BLACK_BOX_WORDS; i++) {
        char c = box->words[(start + i) % BLACK_BOX_WORDS];

        if (c != '\0')
            words[len++] = c;
    }
    while (len > 0 && words[len - 1] == '\n')
        len--;
    printable_clean(words, len);
    if (len > size - 1 || len >= BLACK_BOX_WORDS - 1) {
        const char *line;

        from = len > size - 1 ? len - (size - 1) : 0;
        line = memchr(words + from, '\n', len - from);
        if (line != NULL)
            from = (size_t)(line - words) + 1;
        else
            while (from < len && ((unsigned char)words[from] & 0xc0) == 0x80)
                from++;
    }
    memcpy(out, words + from, len - from);
    out[len - from] = '\0';
}

const struct black_box_slot *black_box_last_call(const struct black_box *box)
{
    const struct black_box_slot *longest = NULL;

    if (box->culprit > 0 && box->culprit <= BLACK_BOX_SLOTS &&
        box->slots[box->culprit - 1].call[0] != '\0')
        return &box->slots[box->culprit - 1];
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++) {
        const struct black_box_slot *slot = &box->slots[i];

        if (slot->call[0] == '\0')
            continue;
        if (longest == NULL || slot->since_boot_ms < longest->since_boot_ms)
            longest = slot;
    }
    return longest;
}
