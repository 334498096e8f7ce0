/* SPDX-License-Identifier: Apache-2.0 */
/* DropHeaders: records without the headers of some names. On the task's thread. */
#include "half.h"
#include "transforms.h"

struct drop_headers {
    const struct mr_task *task;
    size_t count;
};

static const struct mr_config_key keys[] = {
    {.name = "headers",
     .type = MR_CFG_LIST,
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Names of the headers to remove.",
     .importance = MR_CFG_HIGH},
    {0},
};

static const char *const aliases[] = {"DropHeaders", NULL};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct drop_headers *d = (struct drop_headers *)self;

    d->task = task;
    d->count = mr_config_count(task, "headers");
    return MR_OK;
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    struct drop_headers *d = (struct drop_headers *)self;

    for (size_t i = 0; i < d->count && rec->header_count > 0; i++)
        mr_record_header_drop(rec, mr_config_item(d->task, "headers", i));
    return MR_OK;
}

const struct mr_transform drop_headers_plugin =
    MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("DropHeaders"), HALF_RELEASE,
                  .aliases = aliases, .keys = keys, .doc = "Removes headers by name",
                  .state_size = sizeof(struct drop_headers), .start = start, .apply = apply);
