/* SPDX-License-Identifier: Apache-2.0 */
/* Names of fields, as an option lists them, and finding them in maps. One transform, one thread. */
#ifndef TRANSFORMS_FIELD_NAME_H
#define TRANSFORMS_FIELD_NAME_H

#include <millrace/plugin.h>

struct field_name {
    const char *text; /* NUL-terminated; as long-lived as the task's handle */
    uint32_t len;
    uint32_t last; /* where it stood in the map before: there it is looked for first */
};

struct field_names {
    struct field_name *at;
    size_t count;
};

/* An option of type LIST. MR_ERR_NOMEM. */
int field_names_read(struct field_names *names, const struct mr_task *task, const char *option,
                     struct mr_error *err);
void field_names_free(struct field_names *names);
bool field_names_have(const struct field_names *names, const char *text);

static inline struct field_name field_name_of(const char *text)
{
    struct field_name name = {text, (uint32_t)strlen(text), 0};

    return name;
}

static inline bool field_name_is(const struct field_name *name, struct mr_value key)
{
    return key.len == name->len && key.kind == MR_KIND_STRING &&
           (key.len == 0 || memcmp(key.u.p, name->text, key.len) == 0);
}

/* The pair's index among count pairs, or -1. */
int64_t field_name_find(struct field_name *name, const struct mr_pair *pairs, size_t count);

/* A map with the same pairs, and room for `more` beyond its len. */
struct mr_value field_name_map(struct mr_arena *arena, struct mr_value map, size_t more);
/* Set a member of such a map: the value of a pair that is there, or a new pair at its end. */
void field_name_put(struct field_name *name, struct mr_value *map, struct mr_value v);

#endif
