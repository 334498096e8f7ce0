/* SPDX-License-Identifier: Apache-2.0 */
/* The predicates, which say whether a transform is for a record: HasHeaderKey, RecordIsTombstone,
 * TopicNameMatches. On the task's thread. */
#include "half.h"
#include "pattern_key.h"
#include "transforms.h"

#include <millrace/pattern.h>

#define PREDICATE_CLASS(name) HALF_CLASS("predicates." name)

/* --- HasHeaderKey ----------------------------------------------------------------------------- */

struct has_header_key {
    struct mr_value name;
};

static const struct mr_config_key header_keys[] = {
    {.name = "name",
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Name of the header.",
     .importance = MR_CFG_MEDIUM},
    {0},
};

static const char *const header_aliases[] = {"HasHeaderKey", NULL};

static int header_start(void *self, struct mr_task *task, struct mr_error *err)
{
    const char *name = mr_config_str(task, "name");

    ((struct has_header_key *)self)->name = name == NULL ? mr_null() : mr_str(name);
    return MR_OK;
}

static int header_test(void *self, const struct mr_record *rec, struct mr_error *err)
{
    struct mr_value name = ((struct has_header_key *)self)->name;

    for (uint32_t i = 0; i < rec->header_count && !mr_is_null(name); i++) {
        const struct mr_header *header = mr_header_at(rec, i);

        if (header->name_len == name.len && memcmp(header->name, name.u.p, name.len) == 0)
            return 1;
    }
    return 0;
}

const struct mr_predicate has_header_key_plugin = MR_DESCRIPTOR(
    mr_predicate, MR_PLUGIN_PREDICATE, PREDICATE_CLASS("HasHeaderKey"), HALF_RELEASE,
    .aliases = header_aliases, .keys = header_keys, .doc = "Records with a header of that name",
    .state_size = sizeof(struct has_header_key), .start = header_start, .test = header_test);

/* --- RecordIsTombstone ------------------------------------------------------------------------ */

static const char *const tombstone_aliases[] = {"RecordIsTombstone", NULL};

static int tombstone_test(void *self, const struct mr_record *rec, struct mr_error *err)
{
    return mr_is_null(mr_value(rec));
}

const struct mr_predicate record_is_tombstone_plugin = MR_DESCRIPTOR(
    mr_predicate, MR_PLUGIN_PREDICATE, PREDICATE_CLASS("RecordIsTombstone"), HALF_RELEASE,
    .aliases = tombstone_aliases, .doc = "Records whose value is null", .test = tombstone_test);

/* --- TopicNameMatches ------------------------------------------------------------------------- */

struct topic_name_matches {
    struct mr_pattern *pattern;
};

static const struct mr_config_key topic_keys[] = {
    {.name = "pattern",
     .flags = MR_CFG_REQUIRED | MR_CFG_NON_EMPTY | MR_CFG_CHECK_NULL,
     .doc = "Regular expression that the whole topic has to match.",
     .importance = MR_CFG_MEDIUM},
    {0},
};

static const char *const topic_aliases[] = {"TopicNameMatches", NULL};

static int topic_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct topic_name_matches *t = (struct topic_name_matches *)self;

    t->pattern = pattern_key_make(task, "pattern", "pattern", err);
    return t->pattern == NULL ? err->code : MR_OK;
}

static void topic_stop(void *self)
{
    mr_pattern_free(((struct topic_name_matches *)self)->pattern);
}

static int topic_test(void *self, const struct mr_record *rec, struct mr_error *err)
{
    struct topic_name_matches *t = (struct topic_name_matches *)self;

    return mr_pattern_find(t->pattern, rec->topic, strlen(rec->topic), 0, true, NULL, 0, err);
}

const struct mr_predicate topic_name_matches_plugin = MR_DESCRIPTOR(
    mr_predicate, MR_PLUGIN_PREDICATE, PREDICATE_CLASS("TopicNameMatches"), HALF_RELEASE,
    .aliases = topic_aliases, .keys = topic_keys, .doc = "Records whose topic matches",
    .state_size = sizeof(struct topic_name_matches), .start = topic_start, .test = topic_test,
    .stop = topic_stop, .check = pattern_key_check);
