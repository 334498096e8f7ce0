/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions that a consumer has, found by topic name and number.
 *
 * Part of consumer.c's state, used by its owner thread only. Topic structs stay for the consumer's
 * life, since their names are lent to the owner; partitions come and go with the assignment.
 * Numbers come from other members of the group, so they are bounded. */
#include "kafka/kafka_private.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1000000

int consumer_parts_init(struct consumer_parts *p)
{
    memset(p, 0, sizeof(*p));
    p->topics = map_new();
    return 0;
}

static void free_topic(void *arg)
{
    struct consumer_topic *topic = arg;

    free(topic->name);
    free(topic->parts);
    free(topic);
}

void consumer_parts_deinit(struct consumer_parts *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->items[i]);
    free(p->items);
    map_free(&p->topics, free_topic);
    memset(p, 0, sizeof(*p));
}

struct consumer_part *consumer_parts_find(const struct consumer_parts *p, const char *topic,
                                          int32_t number)
{
    const struct consumer_topic *t = map_get(p->topics, topic);

    return t != NULL && number >= 0 && (size_t)number < t->cap ? t->parts[number] : NULL;
}

static struct consumer_topic *topic_of(struct consumer_parts *p, const char *name)
{
    struct consumer_topic *topic = map_get(p->topics, name);

    if (topic != NULL)
        return topic;
    topic = calloc(1, sizeof(*topic));
    if (topic == NULL || (topic->name = strdup(name)) == NULL) {
        free(topic);
        return NULL;
    }
    map_set(p->topics, name, topic);
    return topic;
}

static bool grow_topic(struct consumer_topic *topic, size_t number)
{
    size_t cap = number + 8;
    struct consumer_part **parts;

    if (number < topic->cap)
        return true;
    parts = realloc(topic->parts, cap * sizeof(struct consumer_part *));
    if (parts == NULL)
        return false;
    memset(parts + topic->cap, 0, (cap - topic->cap) * sizeof(struct consumer_part *));
    topic->parts = parts;
    topic->cap = cap;
    return true;
}

static bool grow_items(struct consumer_parts *p)
{
    size_t cap = p->cap == 0 ? 8 : p->cap * 2;
    struct consumer_part **items;

    if (p->count < p->cap)
        return true;
    items = realloc(p->items, cap * sizeof(struct consumer_part *));
    if (items == NULL)
        return false;
    p->items = items;
    p->cap = cap;
    return true;
}

struct consumer_part *consumer_parts_add(struct consumer_parts *p, const char *topic,
                                         int32_t number)
{
    struct consumer_part *part = consumer_parts_find(p, topic, number);
    struct consumer_topic *t;

    if (part != NULL)
        return part;
    if (number < 0 || number > NUMBER_MAX)
        return NULL;
    t = topic_of(p, topic);
    part = calloc(1, sizeof(*part));
    if (t == NULL || part == NULL || !grow_topic(t, (size_t)number) || !grow_items(p)) {
        free(part);
        return NULL;
    }
    *part = (struct consumer_part){.topic = t, .number = number, .next = -1};
    t->parts[number] = part;
    p->items[p->count++] = part;
    return part;
}

void consumer_parts_remove(struct consumer_parts *p, struct consumer_part *part)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i] != part)
            continue;
        part->topic->parts[part->number] = NULL;
        memmove(&p->items[i], &p->items[i + 1],
                (p->count - i - 1) * sizeof(struct consumer_part *));
        p->count--;
        free(part);
        return;
    }
}
