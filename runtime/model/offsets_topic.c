/* SPDX-License-Identifier: Apache-2.0 */
/* One rule for all who ask: the task that writes, and the worker that shows and changes offsets by
 * REST. Whether two Kafkas are one is judged by their addresses as they are written, as in Java:
 * asking them could take long, and a wrong answer only costs a second copy. */
#include "model/offsets_topic.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANK " \t\r\n\f"

bool offsets_topic_transactions(const struct props *worker)
{
    const char *support = props_get(worker, "exactly.once.source.support");

    return props_get(worker, "group.id") != NULL && support != NULL &&
           strcasecmp(support, "enabled") == 0;
}

/* The next item of a list: [*at, +len), trimmed; false: none. */
static bool next_item(const char **rest, const char **item, size_t *len)
{
    size_t raw;

    *rest += strspn(*rest, BLANK ",");
    raw = strcspn(*rest, ",");
    *item = *rest;
    *rest += raw;
    while (raw > 0 && strchr(BLANK, (*item)[raw - 1]) != NULL)
        raw--;
    *len = raw;
    return raw > 0;
}

static bool holds(const char *list, const char *wanted, size_t wanted_len)
{
    const char *item;
    size_t len;

    while (next_item(&list, &item, &len))
        if (len == wanted_len && strncmp(item, wanted, len) == 0)
            return true;
    return false;
}

static bool all_in(const char *list, const char *other)
{
    const char *item;
    size_t len;

    while (next_item(&list, &item, &len))
        if (!holds(other, item, len))
            return false;
    return true;
}

static const char *or_default(const char *servers)
{
    return servers != NULL ? servers : "localhost:9092";
}

/* Do the connector's producers and the worker name the same brokers? */
static bool one_kafka(const struct props *worker, const struct props *connector)
{
    const char *of_worker = or_default(props_get(worker, "bootstrap.servers"));
    const char *of_all = props_get(worker, "producer.bootstrap.servers");
    const char *own = props_get(connector, "producer.override.bootstrap.servers");
    const char *used = own != NULL ? own : of_all != NULL ? of_all : of_worker;

    return all_in(used, of_worker) && all_in(of_worker, used);
}

static char *trimmed(const char *text)
{
    const char *from = text + strspn(text, BLANK);
    size_t len = strlen(from);

    while (len > 0 && strchr(BLANK, from[len - 1]) != NULL)
        len--;
    return len > 0 ? text_dup_len(from, len) : NULL;
}

char *offsets_topic_own(const struct props *worker, const struct props *connector)
{
    const char *of_worker = props_get(worker, "offset.storage.topic");
    const char *given = props_get(connector, "offsets.storage.topic");
    char *topic;

    if (props_get(worker, "group.id") == NULL || of_worker == NULL)
        return NULL;
    topic = given != NULL ? trimmed(given) : NULL;
    if (topic == NULL && offsets_topic_transactions(worker))
        topic = trimmed(of_worker);
    if (topic != NULL && strcmp(topic, of_worker) == 0 && one_kafka(worker, connector)) {
        free(topic);
        topic = NULL;
    }
    return topic;
}
