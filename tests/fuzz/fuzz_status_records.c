/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the status topic (record_input.h). Whatever they are, the state stays whole, and what
 * is written reads back as the same. */
#include "worker/store/status_state.h"

#include "fuzz/record_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_round_trip(const struct status_record *rec)
{
    struct record_bytes first, second;
    struct status_record back;

    record_bytes_init(&first);
    record_bytes_init(&second);
    if (status_records_render(rec, &first.key, &first.value) == 0) {
        mr_assert(status_records_parse(first.key.data, first.key.len,
                                       rec->tombstone ? NULL : first.value.data, first.value.len,
                                       &back, NULL) == 0);
        mr_assert(status_records_render(&back, &second.key, &second.value) == 0);
        record_bytes_same(&first, &second);
        status_record_deinit(&back);
    }
    record_bytes_deinit(&first);
    record_bytes_deinit(&second);
}

static void check_state(const struct status_state *state, const char *conn)
{
    const char *topic;
    int before = -1;

    for (int task = -1; (task = status_state_next_task(state, conn, task)) >= 0; before = task) {
        mr_assert(task > before);
        mr_assert(status_state_task(state, conn, task)->worker_id != NULL);
    }
    for (size_t i = 0; (topic = status_state_next_topic(state, conn, &i)) != NULL;)
        mr_assert(topic[0] != '\0');
}

static void take(struct status_state *state, const struct record_input *in)
{
    struct status_record rec;
    struct mr_error err = {0};
    int rc = status_records_parse(in->key, in->key_len, in->value, in->value_len, &rec, &err);
    char *conn;

    mr_assert(rc == 0 || (rc == MR_ERR_DATA && err.code == rc && err.text[0] != '\0'));
    if (rc != 0)
        return;
    check_round_trip(&rec);
    conn = strdup(rec.conn);
    if (!rec.tombstone && rec.kind != STATUS_TOPIC)
        status_state_may_put(state, &rec);
    status_state_apply(state, &rec);
    check_state(state, conn);
    free(conn);
    status_record_deinit(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct status_state *state = status_state_new();
    struct record_input in = {.data = data, .len = len};

    while (record_input_next(&in))
        take(state, &in);
    status_state_free(&state);
    return 0;
}
