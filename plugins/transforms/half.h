/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of one half of a record: Cast$Key and Cast$Value are one transform, told apart by how
 * they were started. */
#ifndef TRANSFORMS_HALF_H
#define TRANSFORMS_HALF_H

#include <millrace/plugin.h>

enum half_side { HALF_KEY, HALF_VALUE };

static inline const struct mr_schema *half_schema(const struct mr_record *rec, enum half_side side)
{
    return side == HALF_KEY ? rec->key_schema : rec->value_schema;
}

static inline struct mr_value half_value(const struct mr_record *rec, enum half_side side)
{
    return side == HALF_KEY ? rec->key : rec->value;
}

static inline int half_put(struct mr_record *rec, enum half_side side,
                           const struct mr_schema *schema, struct mr_value v)
{
    if (side == HALF_KEY)
        mr_record_put_key(rec, schema, v);
    else
        mr_record_put_value(rec, schema, v);
    return MR_OK;
}

#define HALF_CLASS(name) "org.apache.kafka.connect.transforms." name
#define HALF_RELEASE "4.3.1" /* of Kafka, whose classes these stand in for */

#define HALF_START(id, side) \
    static int id##_start_##side(void *self, struct mr_task *task, struct mr_error *err) \
    { \
        return id##_start(self, task, side, err); \
    }

/* Define <id>_key_plugin and <id>_value_plugin; each is started by <id>_start(self, task, side,
 * err). */
#define HALF_TRANSFORM(id, name, ...) \
    HALF_START(id, HALF_KEY) \
    HALF_START(id, HALF_VALUE) \
    const struct mr_transform id##_key_plugin = \
        MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS(name) "$Key", HALF_RELEASE, \
                      .start = id##_start_HALF_KEY, __VA_ARGS__); \
    const struct mr_transform id##_value_plugin = \
        MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS(name) "$Value", HALF_RELEASE, \
                      .start = id##_start_HALF_VALUE, __VA_ARGS__)

/* The option that most of them have. */
#define HALF_DEFAULTS_KEY \
    { \
        .name = "replace.null.with.default", .type = MR_CFG_BOOLEAN, .fallback = "true", \
        .doc = "Whether a field that is null and has a default value gets that value; " \
               "otherwise it stays null.", \
        .importance = MR_CFG_MEDIUM \
    }

static inline bool half_defaults(const struct mr_task *task)
{
    return mr_config_bool(task, "replace.null.with.default");
}

#endif
