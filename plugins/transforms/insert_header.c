/* SPDX-License-Identifier: Apache-2.0 */
/* InsertHeader: one header more, its value read from a text as header values are. The text is read
 * for each record: the value stands in the record's arena. On the task's thread. */
#include "half.h"
#include "transforms.h"

struct insert_header {
    const char *header;
    const char *literal;
    size_t len;
};

static const struct mr_config_key keys[] = {
    {.name = "header",
     .flags = MR_CFG_REQUIRED,
     .doc = "Name of the header.",
     .importance = MR_CFG_HIGH},
    {.name = "value.literal",
     .flags = MR_CFG_REQUIRED,
     .doc = "Its value, in the form in which header values are read from text.",
     .importance = MR_CFG_HIGH},
    {0},
};

static const char *const aliases[] = {"InsertHeader", NULL};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct insert_header *h = (struct insert_header *)self;

    h->header = mr_config_str(task, "header");
    h->literal = mr_config_str(task, "value.literal");
    if (h->header == NULL || h->literal == NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value null for configuration %s: Value must be non-null",
                       h->header == NULL ? "header" : "value.literal");
    h->len = strlen(h->literal);
    return MR_OK;
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    const struct insert_header *h = (const struct insert_header *)self;
    const struct mr_schema *schema = NULL;
    struct mr_value v;
    int rc = mr_value_parse(arena, h->literal, h->len, &schema, &v, err);

    if (rc == MR_OK)
        mr_record_header(rec, h->header, schema, v);
    return rc;
}

const struct mr_transform insert_header_plugin =
    MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("InsertHeader"), HALF_RELEASE,
                  .aliases = aliases, .keys = keys, .doc = "Adds a header",
                  .state_size = sizeof(struct insert_header), .start = start, .apply = apply);
