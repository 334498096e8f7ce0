/* SPDX-License-Identifier: Apache-2.0 */
/* Connect's string form on any text: what is parsed is well-formed, prints and converts to every
 * kind without harm, and what it prints parses again. */
#include "host/data/schema_tree.h"
#include "host/data/utf8_text.h"
#include "host/data/values.h"
#include "host/host_api.h"
#include "host/data/record_arena.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct batch_pool *pool;

static void require(bool good)
{
    if (!good)
        abort();
}

static void convert_all(struct mr_arena *arena, const struct mr_schema *from, struct mr_value v)
{
    for (uint8_t kind = MR_KIND_BOOL; kind <= MR_KIND_TIMESTAMP; kind++) {
        struct mr_error err = {0};
        struct mr_schema_spec spec = {.kind = kind};
        const struct mr_schema *to = kind == MR_KIND_DECIMAL ? schema_tree_decimal(2, NULL)
                                     : kind >= MR_KIND_LIST && kind <= MR_KIND_STRUCT
                                         ? schema_tree_bare(&spec, NULL)
                                         : schema_tree_plain(kind);
        struct mr_value made = mr_null();

        if (mr_value_convert(arena, to, from, v, &made, &err) == 0)
            require(values_check(made, NULL) == 0);
        else
            require(err.code < 0 && err.text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mr_schema *schema = NULL;
    struct mr_error err = {0};
    struct batch *batch;
    struct mr_arena *arena;
    struct mr_value text, v = mr_null();
    const char *printed;
    size_t len;

    if (pool == NULL)
        pool = batch_pool_new(&host_api_table, (size_t)64 << 20, 1000);
    batch = batch_pool_take(pool);
    arena = &batch->arena;
    text = mr_text_from(arena, data, size);
    if (mr_value_parse(arena, (const char *)text.u.p, text.len, &schema, &v, &err) == 0) {
        require(values_check(v, &err) == 0);
        require((schema == NULL) == mr_is_null(v));
        printed = mr_value_string(arena, v, &len);
        convert_all(arena, schema, v);
        convert_all(arena, NULL, text);
        if (printed != NULL)
            require(mr_value_parse(arena, printed, len, &schema, &v, &err) == 0 ||
                    err.code == MR_ERR_FULL || err.code == MR_ERR_DATA);
        schema = NULL;
        if (mr_schema_infer(arena, v, &schema, &err) != 0)
            require(err.code < 0);
    }
    require(!batch->over);
    batch_pool_give(pool, batch);
    return 0;
}
