/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of brokers, and when each may be tried again. Pure: the time is given, randomness comes
 * from a seed. */
#ifndef WIRE_WIRE_BOOK_H
#define WIRE_WIRE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_BOOK_MAX 2000 /* addresses; further ones are left out */

struct wire_book_entry {
    char *host;
    uint16_t port;
    int32_t id;   /* of the broker there; -1: bootstrap */
    bool seed;    /* stays when brokers are learnt anew */
    bool learnt;  /* named by the newest metadata */
    int failures; /* since it last worked */
    int64_t retry_at_ms;
};

struct wire_book {
    struct wire_book_entry *entries;
    size_t count;
    uint64_t seed;
    int64_t backoff_ms; /* reconnect.backoff.ms */
    int64_t backoff_max_ms;
};

void wire_book_init(struct wire_book *b, int64_t backoff_ms, int64_t backoff_max_ms, uint64_t seed);
void wire_book_deinit(struct wire_book *b);

/* Add, or find again: back-off goes on. NULL when the book is full. Pointers live until the next
 * add or sweep. */
struct wire_book_entry *wire_book_add(struct wire_book *b, const char *host, uint16_t port);
struct wire_book_entry *wire_book_find(struct wire_book *b, int32_t id);
/* Forget what is neither a seed nor learnt; take the marks off. */
void wire_book_sweep(struct wire_book *b);
/* Who to try: of those that may be tried now one with the fewest failures, at random; else the one
 * that may be tried first. NULL: the book is empty. */
struct wire_book_entry *wire_book_pick(struct wire_book *b, int64_t now_ms);

/* A connection was made; or could not be made, or ended: tried again after a time that doubles with
 * each failure from backoff_ms to backoff_max_ms, a fifth more or less. */
void wire_book_worked(struct wire_book *b, const char *host, uint16_t port);
void wire_book_failed(struct wire_book *b, const char *host, uint16_t port, int64_t now_ms);
/* Milliseconds until this address may be tried; 0: now. */
int64_t wire_book_wait(struct wire_book *b, const char *host, uint16_t port, int64_t now_ms);

#endif
