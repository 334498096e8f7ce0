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

#include <string.h>

bool record_tail_is_bare(const void *value, size_t len)
{
    const unsigned char *at = value;
    unsigned char varint[10];
    uint64_t rest = (uint64_t)len * 2;
    size_t size = 0;

    for (; rest > 0x7f; rest >>= 7)
        varint[size++] = (unsigned char)(rest | 0x80);
    varint[size++] = (unsigned char)rest;
    return memcmp(at - size, varint, size) == 0 && at[len] == 0;
}
