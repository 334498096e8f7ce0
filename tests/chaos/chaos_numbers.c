/* SPDX-License-Identifier: Apache-2.0 */
/* The exactly-once rule, by a bit for each number. */
#include "chaos/chaos_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MAX (INT64_C(1) << 36)

static void make_room(struct chaos_numbers *n, int64_t number)
{
    int64_t room = n->room == 0 ? 1 << 16 : n->room;

    if (number < n->room)
        return;
    while (room <= number)
        room *= 2;
    n->seen = realloc(n->seen, (size_t)(room / 8));
    if (n->seen == NULL)
        abort();
    memset(n->seen + n->room / 8, 0, (size_t)((room - n->room) / 8));
    n->room = room;
}

static void complain(struct chaos_numbers *n, const char *what, int64_t number)
{
    if (n->first[0] == '\0')
        snprintf(n->first, sizeof(n->first), "%lld %s, behind %lld", (long long)number, what,
                 (long long)n->next - 1);
}

static int take_bit(struct chaos_numbers *n, int64_t number)
{
    unsigned char bit = (unsigned char)(1u << (number % 8)), was;

    make_room(n, number);
    was = n->seen[number / 8] & bit;
    n->seen[number / 8] |= bit;
    return was != 0;
}

void chaos_numbers_take(struct chaos_numbers *n, int64_t number)
{
    if (number < 0 || number >= ROOM_MAX) {
        complain(n, "is no number of ours", number);
        return;
    }
    if (take_bit(n, number)) {
        n->twice++;
        complain(n, "comes again", number);
        return;
    }
    n->count++;
    if (number < n->next) {
        n->late++;
        complain(n, "comes late", number);
        return;
    }
    if (number > n->next)
        complain(n, "comes too early", number);
    n->next = number + 1;
}

int chaos_numbers_right(struct chaos_numbers *n)
{
    printf("             %s: %lld records, %lld lost, %lld twice, %lld out of order%s%s\n", n->of,
           (long long)n->count, (long long)(n->next - n->count), (long long)n->twice,
           (long long)n->late, n->first[0] != '\0' ? "; first: " : "", n->first);
    free(n->seen);
    n->seen = NULL;
    return n->first[0] == '\0';
}
