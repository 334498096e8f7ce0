/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that should come as 0, 1, 2 …: which are missing, twice, or behind larger ones. */
#ifndef TESTS_CHAOS_NUMBERS_H
#define TESTS_CHAOS_NUMBERS_H

#include <stdint.h>

struct chaos_numbers {
    const char *of; /* what they are the numbers of */
    int64_t next;   /* behind the largest */
    int64_t count;  /* distinct */
    int64_t twice;
    int64_t late;    /* behind a larger one */
    char first[200]; /* what was wrong first, "" nothing */
    unsigned char *seen;
    int64_t room; /* bits of it */
};

void chaos_numbers_take(struct chaos_numbers *n, int64_t number);
/* Print and free; true: nothing was wrong. */
int chaos_numbers_right(struct chaos_numbers *n);

#endif
