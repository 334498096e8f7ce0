/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the config topic (record_input.h). Whatever they are, the state stays whole, and what
 * is written reads back as the same. */
#include "worker/store/config_state.h"

#include "fuzz/record_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was read is written, read again, and written as before. */
static void check_round_trip(const struct config_record *rec)
{
    struct record_bytes first, second;
    struct config_record back;

    record_bytes_init(&first);
    record_bytes_init(&second);
    if (config_records_render(rec, &first.key, &first.value) == 0) {
        mr_assert(config_records_parse(first.key.data, first.key.len,
                                       rec->tombstone ? NULL : first.value.data, first.value.len,
                                       &back, NULL) == 0);
        mr_assert(config_records_render(&back, &second.key, &second.value) == 0);
        record_bytes_same(&first, &second);
        config_record_deinit(&back);
    }
    record_bytes_deinit(&first);
    record_bytes_deinit(&second);
}

static void check_state(const struct config_state *state)
{
    const struct config_conn *conn;
    size_t live = 0;

    for (size_t i = 0; (conn = config_state_next(state, &i)) != NULL; live++) {
        int tasks = config_state_tasks(conn);

        mr_assert(tasks == 0 || !conn->inconsistent);
        mr_assert(config_state_task(conn, tasks) == NULL);
        for (int task = 0; task < tasks; task++)
            mr_assert(config_state_task(conn, task) != NULL);
    }
    mr_assert(live == config_state_count(state));
}

static void take(struct config_state *state, int64_t offset, const struct record_input *in)
{
    struct config_record rec;
    struct config_change change;
    struct mr_error err = {0};
    int64_t before = config_state_offset(state);
    int rc = config_records_parse(in->key, in->key_len, in->value, in->value_len, &rec, &err);

    mr_assert(rc == 0 || (rc == err.code && err.text[0] != '\0' && rec.name == NULL));
    if (rc == MR_ERR_DATA)
        config_state_skip(state, offset);
    if (rc == 0) {
        check_round_trip(&rec);
        config_state_apply(state, offset, &rec, &change);
    }
    mr_assert(config_state_offset(state) == (rc == MR_ERR_PROTOCOL ? before : offset + 1));
    config_record_deinit(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct config_state *state = config_state_new();
    struct record_input in = {.data = data, .len = len};
    int64_t offset = 0;

    while (record_input_next(&in))
        take(state, offset++, &in);
    check_state(state);
    config_state_free(&state);
    return 0;
}
