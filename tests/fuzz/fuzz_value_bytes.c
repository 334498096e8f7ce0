/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin keeps, as read from its topic: any bytes are a value or an error, and a value is
 * written as bytes that are read as what is written so again. */
#include "host/data/record_arena.h"
#include "host/data/value_bytes.h"
#include "host/host_api.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST ((size_t)1 << 20)

static void require(bool good)
{
    if (!good)
        abort();
}

static void write_again(struct mr_arena *arena, struct mr_value value)
{
    struct mr_value back;
    struct buf first, second;

    buf_init(&first, MOST);
    buf_init(&second, MOST);
    require(value_bytes_write(&first, value, NULL) == 0);
    require(value_bytes_read(arena, first.data, first.len, &back, NULL) == 0);
    require(value_bytes_write(&second, back, NULL) == 0);
    require(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    buf_deinit(&first);
    buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct batch_pool *pool;
    struct mr_value value;
    struct batch *batch;

    if (pool == NULL)
        pool = batch_pool_new(&host_api_table, (size_t)64 << 20, 10);
    batch = batch_pool_take(pool);
    if (size <= MOST / 16 && value_bytes_read(batch->pub.arena, data, size, &value, NULL) == 0)
        write_again(batch->pub.arena, value);
    batch_pool_give(pool, batch);
    return 0;
}
