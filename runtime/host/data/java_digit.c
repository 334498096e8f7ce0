/* SPDX-License-Identifier: Apache-2.0 */
/* Which characters are digits. The parsers of numbers and dates ask for each character that is no
 * ASCII digit; any thread.
 *
 * Each script's digits stand in a row, so a table of the zeros is enough. Bytes that are no UTF-8
 * are no digits. */
#include "host/data/java_digit.h"

static const unsigned short zeros[] = {
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
};

static size_t char_len(unsigned char first)
{
    return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int java_digit_at(const char *p, const char *end, size_t *len)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned c;

    *len = char_len(*u);
    if (*len > (size_t)(end - p))
        *len = (size_t)(end - p);
    if (*u < 0x80)
        return *u >= '0' && *u <= '9' ? *u - '0' : -1;
    if (*len == 2)
        c = (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    else if (*len == 3)
        c = (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    else
        return -1;
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        if (c - zeros[i] < 10)
            return (int)(c - zeros[i]);
    return -1;
}
