/* SPDX-License-Identifier: Apache-2.0 */
/* What other members put into the group: any bytes give an error, or values that are written and
 * read again as the same. The first byte chooses the reader: bit 0 eager, bit 1 metadata. */
#include "worker/group/connect_protocol.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_assignment(struct connect_assignment *read, bool eager)
{
    struct connect_assignment again = {0};
    struct buf out;

    buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
    read->version = eager ? CONNECT_EAGER : CONNECT_SESSIONED;
    mr_assert(connect_protocol_write_assignment(&out, read) == 0);
    mr_assert(connect_protocol_read_assignment(out.data, out.len, eager, &again, NULL) == 0);
    mr_assert(strcmp(again.leader, read->leader) == 0 && again.offset == read->offset);
    mr_assert(work_list_same(&again.assigned, &read->assigned) &&
              work_list_same(&again.revoked, &read->revoked) && again.delay_ms == read->delay_ms);
    connect_protocol_assignment_deinit(&again);
    buf_deinit(&out);
}

static void check_metadata(struct connect_metadata *read)
{
    struct connect_metadata again = {0};
    struct buf out;

    buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
    read->version = CONNECT_SESSIONED;
    mr_assert(connect_protocol_write_metadata(&out, read) == 0);
    mr_assert(connect_protocol_read_metadata(out.data, out.len, false, &again, NULL) == 0);
    mr_assert(strcmp(again.url, read->url) == 0 && again.offset == read->offset);
    mr_assert((again.allocation == NULL) == (read->allocation == NULL));
    if (read->allocation != NULL)
        check_assignment(read->allocation, false);
    connect_protocol_metadata_deinit(&again);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct connect_assignment assignment = {0};
    struct connect_metadata metadata = {0};
    struct mr_error err = {0};
    bool eager = size > 0 && (data[0] & 1) != 0;
    int rc;

    if (size == 0 || size > 4096)
        return 0;
    if ((data[0] & 2) == 0) {
        rc = connect_protocol_read_assignment(data + 1, size - 1, eager, &assignment, &err);
        if (rc == 0)
            check_assignment(&assignment, eager);
    } else {
        rc = connect_protocol_read_metadata(data + 1, size - 1, eager, &metadata, &err);
        if (rc == 0)
            check_metadata(&metadata);
    }
    mr_assert((rc == 0) == (err.code == 0) && (rc == 0 || err.text[0] != '\0'));
    connect_protocol_assignment_deinit(&assignment);
    connect_protocol_metadata_deinit(&metadata);
    return 0;
}
