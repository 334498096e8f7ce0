/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the status topic, many in one input: a byte with the key's length (0xff: no key), two
 * with the value's (0xffff: no value), key, value. Whatever they are, the state stays whole, and
 * what is written reads back as the same. */
#include "worker/store/status_state.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MAX ((size_t)1 << 20)

static void check_round_trip(const struct status_record *rec)
{
    struct buf key[2], value[2];
    struct status_record back;

    for (int i = 0; i < 2; i++) {
        buf_init(&key[i], MAX);
        buf_init(&value[i], MAX);
    }
    if (status_records_render(rec, &key[0], &value[0]) == 0) {
        mr_assert(status_records_parse(key[0].data, key[0].len,
                                       rec->tombstone ? NULL : value[0].data, value[0].len, &back,
                                       NULL) == 0);
        mr_assert(status_records_render(&back, &key[1], &value[1]) == 0);
        mr_assert(key[0].len == key[1].len && memcmp(key[0].data, key[1].data, key[0].len) == 0);
        mr_assert(value[0].len == value[1].len &&
                  (value[0].len == 0 || memcmp(value[0].data, value[1].data, value[0].len) == 0));
        status_record_deinit(&back);
    }
    for (int i = 0; i < 2; i++) {
        buf_deinit(&key[i]);
        buf_deinit(&value[i]);
    }
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

static void take(struct status_state *state, const uint8_t *key, size_t key_len,
                 const uint8_t *value, size_t value_len)
{
    struct status_record rec;
    struct mr_error err = {0};
    int rc = status_records_parse(key, key_len, value, value_len, &rec, &err);
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
    size_t at = 0;

    while (len - at >= 3) {
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
        take(state, key, key_len, value, value_len);
    }
    status_state_free(&state);
    return 0;
}
