/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the config topic, many in one input: a byte with the key's length (0xff: no key), two
 * with the value's (0xffff: no value), key, value. Whatever they are, the state stays whole, and
 * what is written reads back as the same. */
#include "worker/store/config_state.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MAX ((size_t)1 << 20)

/* What was read is written, read again, and written as before. */
static void check_round_trip(const struct config_record *rec)
{
    struct buf key[2], value[2];
    struct config_record back;

    for (int i = 0; i < 2; i++) {
        buf_init(&key[i], MAX);
        buf_init(&value[i], MAX);
    }
    if (config_records_render(rec, &key[0], &value[0]) == 0) {
        mr_assert(config_records_parse(key[0].data, key[0].len,
                                       rec->tombstone ? NULL : value[0].data, value[0].len, &back,
                                       NULL) == 0);
        mr_assert(config_records_render(&back, &key[1], &value[1]) == 0);
        mr_assert(key[0].len == key[1].len && memcmp(key[0].data, key[1].data, key[0].len) == 0);
        mr_assert(value[0].len == value[1].len &&
                  (value[0].len == 0 || memcmp(value[0].data, value[1].data, value[0].len) == 0));
        config_record_deinit(&back);
    }
    for (int i = 0; i < 2; i++) {
        buf_deinit(&key[i]);
        buf_deinit(&value[i]);
    }
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

static void take(struct config_state *state, int64_t offset, const uint8_t *key, size_t key_len,
                 const uint8_t *value, size_t value_len)
{
    struct config_record rec;
    struct config_change change;
    struct mr_error err = {0};
    int64_t before = config_state_offset(state);
    int rc = config_records_parse(key, key_len, value, value_len, &rec, &err);

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
    size_t at = 0;

    for (int64_t offset = 0; len - at >= 3; offset++) {
        size_t key_len = data[at], value_len = (size_t)data[at + 1] << 8 | data[at + 2];
        bool no_key = key_len == 0xff, no_value = value_len == 0xffff;
        const uint8_t *key, *value;

        at += 3;
        key_len = no_key ? 0 : key_len < len - at ? key_len : len - at;
        key = no_key ? NULL : data + at;
        at += key_len;
        value_len = no_value ? 0 : value_len < len - at ? value_len : len - at;
        value = no_value ? NULL : data + at;
        at += value_len;
        take(state, offset, key, key_len, value, value_len);
    }
    check_state(state);
    config_state_free(&state);
    return 0;
}
