/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 both ways. Session keys of a cluster and signatures of its internal calls stand in it;
 * what is read comes from topics and clients, so anything that is not exactly Base64 is refused.
 * Bits that a last, short group leaves over are ignored, as Java does. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(struct buf *out, const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned bits = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                        (left > 2 ? (unsigned)p[i + 2] : 0);
        char group[4] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63],
                         left > 1 ? alphabet[bits >> 6 & 63] : '=',
                         left > 2 ? alphabet[bits & 63] : '='};

        buf_append(out, group, sizeof(group));
    }
    return out->failed ? MR_ERR_FULL : 0;
}

static int digit(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;

    return at != NULL ? (int)(at - alphabet) : -1;
}

/* Without its padding; false when there is some and it does not fit. */
static bool strip(const char *text, size_t *len)
{
    size_t all = *len, n = all;

    while (n > 0 && all - n < 2 && text[n - 1] == '=')
        n--;
    *len = n;
    return n % 4 != 1 && (n == all || all % 4 == 0);
}

bool base64_decode(const char *text, size_t len, unsigned char *out, size_t size, size_t *out_len)
{
    unsigned bits = 0;
    size_t n = 0;
    int have = 0;

    if (!strip(text, &len))
        return false;
    for (size_t i = 0; i < len; i++) {
        int value = digit(text[i]);

        if (value < 0)
            return false;
        bits = (bits << 6 | (unsigned)value) & 0xffffff;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (n == size)
            return false;
        out[n++] = (unsigned char)(bits >> have);
    }
    *out_len = n;
    return true;
}
