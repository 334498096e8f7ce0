/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses a client knows: those of bootstrap.servers, which stay, and those of the brokers it
 * has learnt of, which come and go with the metadata. Each carries its own back-off, so that one
 * dead broker holds up nobody else and a connection that is made in vain is not made again at once.
 * Owned by wire_client.c. Pure. */
#include "wire/wire_book.h"

#include "base/err.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void wire_book_init(struct wire_book *b, int64_t backoff_ms, int64_t backoff_max_ms, uint64_t seed)
{
    *b = (struct wire_book){.seed = seed | 1,
                            .backoff_ms = backoff_ms,
                            .backoff_max_ms =
                                backoff_max_ms > backoff_ms ? backoff_max_ms : backoff_ms};
}

void wire_book_deinit(struct wire_book *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->entries[i].host);
    free(b->entries);
    *b = (struct wire_book){0};
}

/* xorshift64*; below `below`, which is small. */
static uint64_t roll(struct wire_book *b, uint64_t below)
{
    b->seed ^= b->seed >> 12;
    b->seed ^= b->seed << 25;
    b->seed ^= b->seed >> 27;
    return (b->seed * 0x2545F4914F6CDD1Du >> 32) % below;
}

static struct wire_book_entry *look_up(struct wire_book *b, const char *host, uint16_t port)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].port == port && strcasecmp(b->entries[i].host, host) == 0)
            return &b->entries[i];
    return NULL;
}

struct wire_book_entry *wire_book_add(struct wire_book *b, const char *host, uint16_t port)
{
    struct wire_book_entry *entry = look_up(b, host, port);
    struct wire_book_entry *grown;

    if (entry != NULL || b->count >= WIRE_BOOK_MAX)
        return entry;
    grown = realloc(b->entries, (b->count + 1) * sizeof(*grown));
    mr_assert(grown != NULL);
    b->entries = grown;
    entry = &grown[b->count++];
    *entry = (struct wire_book_entry){.host = text_dup(host), .port = port, .id = -1};
    return entry;
}

struct wire_book_entry *wire_book_find(struct wire_book *b, int32_t id)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].id == id)
            return &b->entries[i];
    return NULL;
}

void wire_book_sweep(struct wire_book *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->count; i++) {
        struct wire_book_entry *entry = &b->entries[i];

        if (!entry->learnt)
            entry->id = -1;
        if (entry->learnt || entry->seed)
            b->entries[kept++] = *entry;
        else
            free(entry->host);
    }
    b->count = kept;
    for (size_t i = 0; i < kept; i++)
        b->entries[i].learnt = false;
}

struct wire_book_entry *wire_book_pick(struct wire_book *b, int64_t now_ms)
{
    struct wire_book_entry *best = NULL;
    size_t from = b->count > 0 ? roll(b, b->count) : 0;

    for (size_t i = 0; i < b->count; i++) {
        struct wire_book_entry *entry = &b->entries[(from + i) % b->count];
        bool now = entry->retry_at_ms <= now_ms;
        bool best_now = best != NULL && best->retry_at_ms <= now_ms;

        if (best == NULL || (now && !best_now) ||
            (now && best_now && entry->failures < best->failures) ||
            (!now && !best_now && entry->retry_at_ms < best->retry_at_ms))
            best = entry;
    }
    return best;
}

void wire_book_worked(struct wire_book *b, const char *host, uint16_t port)
{
    struct wire_book_entry *entry = look_up(b, host, port);

    if (entry != NULL)
        entry->failures = 0;
}

void wire_book_failed(struct wire_book *b, const char *host, uint16_t port, int64_t now_ms)
{
    struct wire_book_entry *entry = look_up(b, host, port);
    int64_t ms = b->backoff_ms;

    if (entry == NULL)
        return;
    for (int i = 0; i < entry->failures && ms < b->backoff_max_ms; i++)
        ms *= 2;
    ms = ms < b->backoff_max_ms ? ms : b->backoff_max_ms;
    ms = ms - ms / 5 + (int64_t)roll(b, (uint64_t)(ms / 5 * 2 + 1));
    entry->failures++;
    entry->retry_at_ms = now_ms + ms;
}

int64_t wire_book_wait(struct wire_book *b, const char *host, uint16_t port, int64_t now_ms)
{
    struct wire_book_entry *entry = look_up(b, host, port);

    return entry != NULL && entry->retry_at_ms > now_ms ? entry->retry_at_ms - now_ms : 0;
}
