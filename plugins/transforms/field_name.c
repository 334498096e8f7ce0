/* SPDX-License-Identifier: Apache-2.0 */
/* Finding named members of schemaless maps. Maps of one topic mostly have the same members in the
 * same order, so that the place where a name stood last is nearly always right, and one comparison
 * a name is all that a record costs.
 * Thread: the task's. */
#include "field_name.h"

#include <stdlib.h>

int field_names_read(struct field_names *names, const struct mr_task *task, const char *option,
                     struct mr_error *err)
{
    size_t count = mr_config_count(task, option);

    names->count = 0;
    names->at = (struct field_name *)calloc(count + 1, sizeof(*names->at));
    if (names->at == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for %s", option);
    for (; names->count < count; names->count++)
        names->at[names->count] = field_name_of(mr_config_item(task, option, names->count));
    return MR_OK;
}

void field_names_free(struct field_names *names)
{
    free(names->at);
    names->at = NULL;
    names->count = 0;
}

bool field_names_have(const struct field_names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i].text, text) == 0)
            return true;
    return false;
}

int64_t field_name_find(struct field_name *name, const struct mr_pair *pairs, size_t count)
{
    if (name->last < count && field_name_is(name, pairs[name->last].key))
        return name->last;
    for (size_t i = 0; i < count; i++)
        if (field_name_is(name, pairs[i].key)) {
            name->last = (uint32_t)i;
            return (int64_t)i;
        }
    return -1;
}

struct mr_value field_name_map(struct mr_arena *arena, struct mr_value map, size_t more)
{
    struct mr_pair *pairs =
        (struct mr_pair *)mr_alloc(arena, (map.len + more) * sizeof(struct mr_pair));

    if (map.len > 0)
        memcpy(pairs, map.u.p, map.len * sizeof(*pairs));
    return mr_ptr_of(MR_KIND_MAP, pairs, map.len);
}

void field_name_put(struct field_name *name, struct mr_value *map, struct mr_value v)
{
    struct mr_pair *pairs = mr_pairs(*map);
    int64_t at = field_name_find(name, pairs, map->len);

    if (at < 0) {
        at = map->len++;
        pairs[at].key = mr_text(name->text, name->len);
    }
    pairs[at].value = v;
}
