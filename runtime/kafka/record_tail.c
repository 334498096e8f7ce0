/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around a record's value in the buffer that was fetched: so that a record without
 * headers, which is most of them, costs no call. Called by consumer.c for each message. Pure.
 *
 *   newest format (v2):  … | length of value, a varint | value | number of headers, a varint | …
 *   older ones (v0, v1): … | length of value, 4 bytes  | value |
 *
 * Which format a message came in librdkafka does not tell, but the length does: as a zigzag varint
 * its bytes are never the last of the same number as 4 bytes, highest first. For one byte those
 * would be 2 n and n; of a longer one the first has its highest bit set, where the other would
 * have n / 256 or less, so n would not fit into that varint.
 *
 * The byte behind a value that a broker has cut short may be no longer of the buffer. One on the
 * value's own page is there to be read all the same, and says nothing that matters: such a record
 * has no headers. One on the next page is not looked at. */
#include "kafka/kafka_private.h"

#define PAGE 4096 /* or a multiple */

/* A sanitizer would mind what is said above. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define UNCHECKED __attribute__((no_sanitize("address")))
#else
#define UNCHECKED
#endif

UNCHECKED bool record_tail_is_bare(const void *value, size_t len)
{
    const unsigned char *end = (const unsigned char *)value + len;
    const unsigned char *at = (const unsigned char *)value - 1;
    uint64_t rest = (uint64_t)len * 2;

    for (uint64_t n = rest; n > 0x7f; n >>= 7)
        at--;
    for (; rest > 0x7f; rest >>= 7)
        if (*at++ != (unsigned char)(rest | 0x80))
            return false;
    return *at == rest && (uintptr_t)end % PAGE != 0 && *end == 0;
}
