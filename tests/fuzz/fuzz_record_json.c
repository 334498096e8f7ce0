/* SPDX-License-Identifier: Apache-2.0 */
/* JsonConverter on any bytes: a well-formed value or an error, and what it writes of that value
 * reads back as what it writes again. The first byte chooses the settings. */
#include "host/data/values.h"
#include "host/descriptor.h"
#include "host/host_api.h"
#include "host/data/record_arena.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct mr_module *millrace_module(void);

enum { SCHEMAS = 1, NUMERIC = 2, KEEP_NULLS = 4, SETTINGS = 8 };

static struct {
    struct descriptor_set set;
    struct instance converters[SETTINGS];
    struct batch_pool *pool;
} fuzz;

static void require(bool good)
{
    if (!good)
        abort();
}

static void start_converter(struct instance *inst, unsigned settings)
{
    const struct plugin *plugin = &fuzz.set.plugins[0];
    struct mr_error err = {0};
    struct props props;

    props_init(&props);
    props_set(&props, "converter.type", "value");
    props_set(&props, "schemas.enable", settings & SCHEMAS ? "true" : "false");
    props_set(&props, "decimal.format", settings & NUMERIC ? "NUMERIC" : "BASE64");
    props_set(&props, "replace.null.with.default", settings & KEEP_NULLS ? "false" : "true");
    props_set(&props, "schemas.cache.size", "3");
    require(instance_init(inst, plugin, &props, &err) == 0);
    props_deinit(&props);
    require(plugin->converter.start(inst->self, &inst->pub, &err) == 0);
}

static void start(void)
{
    struct mr_error err = {0};

    require(descriptor_read(millrace_module(), "fuzz", &fuzz.set, &err) == 0);
    fuzz.pool = batch_pool_new(&host_api_table, (size_t)64 << 20, 1000);
    for (unsigned i = 0; i < SETTINGS; i++)
        start_converter(&fuzz.converters[i], i);
}

struct bytes {
    const void *data;
    size_t len;
};

/* Half of a surrogate pair is written as an escape, which is read back in a value and not in a
 * name, as in Jackson; a schema's field may be named so. */
static bool has_half_of_a_pair(const struct bytes *json)
{
    return memmem(json->data, json->len, "\\uD", 3) != NULL;
}

/* Write a value and read that again; false: it can't be written, such as a decimal of another scale
 * than its schema's, or perhaps not be read. */
static bool turn(struct instance *inst, struct mr_arena *arena, const struct mr_schema **schema,
                 struct mr_value *value, struct bytes *out)
{
    const struct mr_converter *json = &inst->plugin->converter;

    if (json->from_connect(inst->self, arena, "t", *schema, *value, &out->data, &out->len, NULL) !=
            0 ||
        out->data == NULL || has_half_of_a_pair(out))
        return false;
    require(json->to_connect(inst->self, arena, "t", out->data, out->len, schema, value, NULL) ==
            0);
    require(values_check(*value, NULL) == 0);
    return true;
}

/* What is written reads back as what is written again. Not at the first turn: "-0.0" and "NaN" read
 * as 0.0, as in Java. */
static void round_trip(struct instance *inst, struct mr_arena *arena,
                       const struct mr_schema *schema, struct mr_value value)
{
    struct bytes first, second, third;

    if (turn(inst, arena, &schema, &value, &first) && turn(inst, arena, &schema, &value, &second) &&
        turn(inst, arena, &schema, &value, &third))
        require(second.len == third.len && memcmp(second.data, third.data, third.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mr_schema *schema = NULL;
    struct mr_value value = {0};
    struct mr_error err = {0};
    struct instance *inst;
    struct batch *batch;
    uint8_t *copy;
    int rc;

    if (size == 0)
        return 0;
    if (fuzz.pool == NULL)
        start();
    inst = &fuzz.converters[data[0] % SETTINGS];
    batch = batch_pool_take(fuzz.pool);
    copy = malloc(size); /* so that a read behind the end is seen */
    memcpy(copy, data + 1, size - 1);
    rc = inst->plugin->converter.to_connect(inst->self, &batch->arena, "t", copy, size - 1, &schema,
                                            &value, &err);
    require(rc == 0 || (err.code < 0 && err.text[0] != '\0'));
    if (rc == 0) {
        require(values_check(value, &err) == 0);
        round_trip(inst, &batch->arena, schema, value);
    }
    free(copy);
    batch_pool_give(fuzz.pool, batch);
    return 0;
}
