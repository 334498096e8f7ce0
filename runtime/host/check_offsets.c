/* SPDX-License-Identifier: Apache-2.0 */
/* From the worker's JSON to what the slot alter_offsets takes, and the slot's call. Partitions and
 * offsets become maps that borrow their texts from the JSON; integers are 64 bits wide, as Connect
 * has them after they were stored. One thread, in `millrace check`, where a plugin may crash or
 * hang; memory is freed by the end of the process. Spec: {Source,Sink}Connector.alterOffsets. */
#include "host/check_offsets.h"

#include <limits.h>
#include <stdlib.h>

static int wrong(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_PROTOCOL, "the worker sent offsets of another form");
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    mr_assert(p != NULL);
    return p;
}

static struct mr_value value_of(const json_t *json)
{
    if (json_is_string(json))
        return mr_text(json_string_value(json), json_string_length(json));
    if (json_is_integer(json))
        return mr_long(json_integer_value(json));
    if (json_is_real(json))
        return mr_double(json_real_value(json));
    return json_is_boolean(json) ? mr_bool(json_is_true(json)) : mr_null();
}

static struct mr_value map_of(const json_t *object)
{
    struct mr_pair *pairs = allocate(json_object_size(object), sizeof(*pairs));
    size_t count = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return mr_null();
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        pairs[count++] = (struct mr_pair){mr_str(key), value_of(value)};
    }
    return mr_ptr_of(MR_KIND_MAP, pairs, count);
}

static bool is_map_or_null(const json_t *json)
{
    return json_is_object(json) || json_is_null(json);
}

static int source_offsets(struct instance *inst, const json_t *offsets, struct mr_error *err)
{
    size_t count = json_array_size(offsets);
    struct mr_offset_change *changes = allocate(count, sizeof(*changes));
    struct mr_offset_list list = {.host = inst->pub.host,
                                  .changes = (const char *)changes,
                                  .change_size = sizeof(*changes),
                                  .count = count};
    size_t i;
    const json_t *entry;

    json_array_foreach(offsets, i, entry)
    {
        const json_t *partition = json_array_get(entry, 0), *offset = json_array_get(entry, 1);

        if (!is_map_or_null(partition) || !is_map_or_null(offset))
            return wrong(err);
        changes[i] =
            (struct mr_offset_change){.partition = map_of(partition), .offset = map_of(offset)};
    }
    return inst->plugin->source.alter_offsets(&inst->pub, &list, err);
}

static int sink_offsets(struct instance *inst, const json_t *offsets, bool all,
                        struct mr_error *err)
{
    size_t count = json_array_size(offsets);
    struct mr_partition *parts = allocate(count, sizeof(*parts));
    struct mr_partition_list list = {.host = inst->pub.host,
                                     .parts = (char *)parts,
                                     .part_size = sizeof(*parts),
                                     .count = count,
                                     .all = all};
    size_t i;
    const json_t *entry;

    json_array_foreach(offsets, i, entry)
    {
        const json_t *partition = json_array_get(entry, 1);

        parts[i] = (struct mr_partition){.topic = json_string_value(json_array_get(entry, 0)),
                                         .partition = (int32_t)json_integer_value(partition),
                                         .offset = json_integer_value(json_array_get(entry, 2)),
                                         .stored = -1};
        if (parts[i].topic == NULL || json_integer_value(partition) > INT32_MAX)
            return wrong(err);
    }
    return inst->plugin->sink.alter_offsets(&inst->pub, &list, err);
}

int check_offsets(struct instance *inst, const json_t *offsets, bool all, struct mr_error *err)
{
    bool source = inst->plugin->kind == MR_PLUGIN_SOURCE;
    int rc;

    if (!json_is_array(offsets))
        return wrong(err);
    if (source ? inst->plugin->source.alter_offsets == NULL
               : inst->plugin->sink.alter_offsets == NULL)
        return mr_fail(err, MR_ERR_NOT_FOUND, "it has no alter_offsets");
    rc = source ? source_offsets(inst, offsets, err) : sink_offsets(inst, offsets, all, err);
    if (inst->misuse.code != 0) {
        *err = inst->misuse;
        return err->code = MR_ERR_FATAL;
    }
    if (rc >= 0)
        return MR_OK;
    err_without_text(err, rc, "alter_offsets");
    return err->code = rc;
}
