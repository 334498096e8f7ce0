/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that begin most transforms. Called on the task's thread, for each record. */
#include "requirement.h"

int requirement_map(struct mr_value v, const char *purpose, struct mr_error *err)
{
    if (v.kind == MR_KIND_MAP)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA,
                   "Only Map objects supported in absence of schema for [%s], found: %s", purpose,
                   mr_java_class(v));
}

int requirement_struct(const struct mr_schema *schema, struct mr_value v, const char *purpose,
                       struct mr_error *err)
{
    if (v.kind != MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA, "Only Struct objects supported for [%s], found: %s",
                       purpose, mr_java_class(v));
    if (((const struct mr_struct *)v.u.p)->schema != schema)
        return mr_fail(err, MR_ERR_DATA, "Struct schemas do not match.");
    return MR_OK;
}

int requirement_fields(const struct mr_schema *schema, struct mr_error *err)
{
    if (schema->kind == MR_KIND_STRUCT)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA, "Cannot list fields on non-struct type");
}
