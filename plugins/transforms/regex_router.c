/* SPDX-License-Identifier: Apache-2.0 */
/* RegexRouter: another topic for records whose whole topic matches. As in Java the new topic is
 * made by a second search from the front, which may find less than the whole. On the task's
 * thread. */
#include "half.h"
#include "pattern_key.h"
#include "replacement.h"
#include "transforms.h"

#include <stdlib.h>

struct regex_router {
    const char *replacement;
    struct mr_pattern *pattern;
    struct mr_span *spans;
};

static const struct mr_config_key keys[] = {
    {.name = "regex",
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Regular expression that the whole topic has to match.",
     .importance = MR_CFG_HIGH},
    {.name = "replacement",
     .flags = MR_CFG_REQUIRED,
     .doc = "The new topic, in which $1, $2 … stand for what groups matched.",
     .importance = MR_CFG_HIGH},
    {0},
};

static const char *const aliases[] = {"RegexRouter", NULL};

static int check(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err)
{
    return strcmp(key, "regex") == 0 ? pattern_key_check(config, key, shown, err) : MR_OK;
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct regex_router *r = (struct regex_router *)self;

    r->replacement = mr_config_str(task, "replacement");
    if (r->replacement == NULL)
        r->replacement = "";
    r->pattern = pattern_key_make(task, "regex", "regex", err);
    if (r->pattern == NULL)
        return err->code;
    r->spans = (struct mr_span *)calloc(r->pattern->groups + 1, sizeof(*r->spans));
    return r->spans == NULL ? mr_fail(err, MR_ERR_NOMEM, "out of memory for groups") : MR_OK;
}

static void stop(void *self)
{
    struct regex_router *r = (struct regex_router *)self;

    mr_pattern_free(r->pattern);
    free(r->spans);
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    struct regex_router *r = (struct regex_router *)self;
    size_t len = strlen(rec->topic), count = r->pattern->groups + 1, head;
    int found = mr_pattern_find(r->pattern, rec->topic, len, 0, true, NULL, 0, err);
    struct mr_value by;
    char *topic;

    if (found > 0)
        found = mr_pattern_find(r->pattern, rec->topic, len, 0, false, r->spans, count, err);
    if (found <= 0)
        return found;
    if (replacement_expand(r->replacement, r->pattern, r->spans, rec->topic, arena, &by, err) !=
        MR_OK)
        return MR_ERR_DATA;
    head = r->spans[0].start;
    len -= r->spans[0].end;
    topic = (char *)mr_alloc(arena, head + by.len + len + 1);
    memcpy(topic, rec->topic, head);
    memcpy(topic + head, by.u.p, by.len);
    memcpy(topic + head + by.len, rec->topic + r->spans[0].end, len);
    mr_record_topic(rec, topic, head + by.len + len);
    return MR_OK;
}

const struct mr_transform regex_router_plugin =
    MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("RegexRouter"), HALF_RELEASE,
                  .aliases = aliases, .keys = keys, .doc = "Another topic by a regular expression",
                  .state_size = sizeof(struct regex_router), .start = start, .apply = apply,
                  .stop = stop, .check = check);
