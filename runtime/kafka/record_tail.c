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
 * have n / 256 or less, so n would not fit into that varint. */
#include "kafka/kafka_private.h"

bool record_tail_is_bare(const void *value, size_t len)
{
    const unsigned char *at = (const unsigned char *)value - 1;
    uint64_t rest = (uint64_t)len * 2;

    for (uint64_t n = rest; n > 0x7f; n >>= 7)
        at--;
    for (; rest > 0x7f; rest >>= 7)
        if (*at++ != (unsigned char)(rest | 0x80))
            return false;
    return *at == rest && ((const unsigned char *)value)[len] == 0;
}
