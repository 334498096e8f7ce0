/* SPDX-License-Identifier: Apache-2.0 */
/* The body of PATCH offsets, from its bytes to what is written. Whatever comes: what is taken is a
 * list of partitions, each once, with an offset or null; shown as the same body and read again it
 * is the same list; refusals say why. */
#include "worker/herder/offsets/offset_entries.h"
#include "worker/rest/request_offsets.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAIRS_MAX 100 /* that are compared each with each */

static void check_refusal(int rc, const struct mr_error *err)
{
    mr_assert(rc == err->code && err->text[0] != '\0');
}

static void check_entries(const json_t *list)
{
    size_t count = json_array_size(list);

    mr_assert(json_is_array(list) && count <= REQUEST_OFFSETS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(list, i);

        mr_assert(json_array_size(entry) == 2);
        for (size_t k = 0; k < 2; k++)
            mr_assert(json_is_object(json_array_get(entry, k)) ||
                      json_is_null(json_array_get(entry, k)));
        for (size_t j = i + 1; j < count && j < PAIRS_MAX; j++)
            mr_assert(
                !json_equal(json_array_get(entry, 0), json_array_get(json_array_get(list, j), 0)));
    }
}

static void check_shown_and_read_again(const json_t *list)
{
    json_t *again = NULL;
    bool absent = false;
    struct buf body;

    buf_init(&body, SIZE_MAX);
    mr_assert(offset_entries_write(&body, list) == 0);
    mr_assert(request_offsets_parse(body.data, body.len, &again, &absent, NULL) == 0);
    mr_assert(!absent && json_equal(again, list));
    json_decref(again);
    buf_deinit(&body);
}

static void check_use(const json_t *list)
{
    struct group_offset *parts = NULL;
    struct mr_error source = {0}, sink = {0};
    size_t count = 0;
    int rc = offset_entries_check(list, &source);

    if (rc != 0)
        check_refusal(rc, &source);
    rc = offset_entries_to_group(list, &parts, &count, &sink);
    if (rc != 0) {
        check_refusal(rc, &sink);
        return;
    }
    for (size_t i = 0; i < count; i++)
        mr_assert(parts[i].topic != NULL && parts[i].offset >= -1);
    group_offsets_free(parts, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    json_t *list = NULL;
    bool absent = false;
    int rc = request_offsets_parse((const char *)data, size, &list, &absent, &err);

    if (rc != 0) {
        check_refusal(rc, &err);
        mr_assert(list == NULL);
        return 0;
    }
    mr_assert(!absent || json_array_size(list) == 0);
    check_entries(list);
    check_shown_and_read_again(list);
    check_use(list);
    json_decref(list);
    return 0;
}
