/* SPDX-License-Identifier: Apache-2.0 */
/* TimestampRouter: a topic named after the record's topic and time. A bad pattern is refused with
 * the configuration, where Java fails each record. On the task's thread. */
#include "date_format.h"
#include "half.h"
#include "transforms.h"

#include <time.h>

struct timestamp_router {
    const char *topic;
    struct date_format format;
};

static const struct mr_config_key keys[] = {
    {.name = "topic.format",
     .fallback = "${topic}-${timestamp}",
     .doc = "The new topic, in which ${topic} and ${timestamp} stand for the old one and the time.",
     .importance = MR_CFG_HIGH},
    {.name = "timestamp.format",
     .fallback = "yyyyMMdd",
     .doc = "How the time is written: a pattern of java.text.SimpleDateFormat.",
     .importance = MR_CFG_HIGH},
    {0},
};

static const char *const aliases[] = {"TimestampRouter", NULL};

static int parse(struct date_format *format, const struct mr_task *task, struct mr_error *err)
{
    const char *pattern = mr_config_str(task, "timestamp.format");

    return date_format_parse(format, pattern == NULL ? "" : pattern, (int64_t)time(NULL) * 1000,
                             err);
}

static int check(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err)
{
    struct date_format format;
    int rc;

    if (strcmp(key, "timestamp.format") != 0)
        return MR_OK;
    rc = parse(&format, config, err);
    if (rc == MR_OK)
        date_format_free(&format);
    return rc;
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct timestamp_router *r = (struct timestamp_router *)self;

    r->topic = mr_config_str(task, "topic.format");
    if (r->topic == NULL)
        r->topic = "";
    return parse(&r->format, task, err);
}

static void stop(void *self)
{
    date_format_free(&((struct timestamp_router *)self)->format);
}

/* Every `mark` in text as `by`. Also in what came from the topic's own name, as Java does it. */
static struct mr_value replaced(struct mr_arena *arena, struct mr_value text, const char *mark,
                                struct mr_value by)
{
    const char *p = (const char *)text.u.p, *end = p + text.len, *found;
    size_t mark_len = strlen(mark), count = 0;
    char *made, *to;

    for (found = p; (found = (const char *)memmem(found, (size_t)(end - found), mark, mark_len));
         found += mark_len)
        count++;
    if (count == 0)
        return text;
    made = to = (char *)mr_alloc(arena, text.len + count * by.len);
    while ((found = (const char *)memmem(p, (size_t)(end - p), mark, mark_len)) != NULL) {
        memcpy(to, p, (size_t)(found - p));
        to += found - p;
        memcpy(to, by.u.p, by.len);
        to += by.len;
        p = found + mark_len;
    }
    memcpy(to, p, (size_t)(end - p));
    return mr_text(made, (size_t)(to + (end - p) - made));
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    const struct timestamp_router *r = (const struct timestamp_router *)self;
    struct mr_value topic = mr_str(r->topic);
    const char *text;
    size_t len;

    if (rec->timestamp == MR_NO_TIMESTAMP)
        return mr_fail(err, MR_ERR_DATA,
                       "Timestamp missing on record: topic %s, partition %d, offset %lld",
                       rec->topic, rec->partition, (long long)rec->offset);
    text = date_format_text(&r->format, arena, rec->timestamp, &len);
    topic = replaced(arena, topic, "${topic}", mr_str(rec->topic));
    topic = replaced(arena, topic, "${timestamp}", mr_text(text, len));
    mr_record_topic(rec, (const char *)topic.u.p, topic.len);
    return MR_OK;
}

const struct mr_transform timestamp_router_plugin =
    MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("TimestampRouter"), HALF_RELEASE,
                  .aliases = aliases, .keys = keys, .doc = "Topics named after the record's time",
                  .state_size = sizeof(struct timestamp_router), .start = start, .apply = apply,
                  .stop = stop, .check = check);
