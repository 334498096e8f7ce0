/* SPDX-License-Identifier: Apache-2.0 */
/* A request that outlives the call that gave it: one that waits for a connection, or may have to be
 * sent again.
 *
 * Everything a request points to is copied into one arena. A member that is added to a struct of
 * request.h and is a pointer needs a line here. Used by wire_route.c. Pure. */
#include "request_private.h"

#include <stdlib.h>
#include <string.h>

#define COPY_MAX (16u * 1024 * 1024)

struct copier {
    struct wire_arena *arena;
    bool failed;
};

static void *keep(struct copier *c, const void *data, size_t count, size_t size)
{
    void *copy = count > 0 ? wire_arena_get(c->arena, count, size) : NULL;

    if (count > 0 && copy == NULL)
        c->failed = true;
    if (copy != NULL)
        memcpy(copy, data, count * size);
    return copy;
}

static void keep_text(struct copier *c, const char **text)
{
    if (*text != NULL)
        *text = keep(c, *text, strlen(*text) + 1, 1);
}

static void keep_bytes(struct copier *c, struct codec_bytes *bytes)
{
    bytes->data = keep(c, bytes->data, bytes->len, 1);
}

static void keep_metadata(struct copier *c, struct request_metadata *m)
{
    const char **topics = keep(c, m->topics, m->topic_count, sizeof(*topics));

    for (size_t i = 0; topics != NULL && i < m->topic_count; i++)
        keep_text(c, &topics[i]);
    m->topics = topics;
}

static void keep_join(struct copier *c, struct request_join_group *j)
{
    struct request_protocol *protocols =
        keep(c, j->protocols, j->protocol_count, sizeof(*protocols));

    for (size_t i = 0; protocols != NULL && i < j->protocol_count; i++) {
        keep_text(c, &protocols[i].name);
        keep_bytes(c, &protocols[i].metadata);
    }
    j->protocols = protocols;
    keep_text(c, &j->group);
    keep_text(c, &j->member);
    keep_text(c, &j->protocol_type);
}

static void keep_sync(struct copier *c, struct request_sync_group *s)
{
    struct request_assignment *all =
        keep(c, s->assignments, s->assignment_count, sizeof(*s->assignments));

    for (size_t i = 0; all != NULL && i < s->assignment_count; i++) {
        keep_text(c, &all[i].member);
        keep_bytes(c, &all[i].assignment);
    }
    s->assignments = all;
    keep_text(c, &s->group);
    keep_text(c, &s->member);
}

static void keep_parts(struct copier *c, struct request *r)
{
    switch (r->api) {
    case REQUEST_SASL_HANDSHAKE:
        keep_text(c, &r->sasl_handshake.mechanism);
        break;
    case REQUEST_SASL_AUTHENTICATE:
        keep_bytes(c, &r->sasl_authenticate.token);
        break;
    case REQUEST_METADATA:
        keep_metadata(c, &r->metadata);
        break;
    case REQUEST_FIND_COORDINATOR:
        keep_text(c, &r->find_coordinator.key);
        break;
    case REQUEST_JOIN_GROUP:
        keep_join(c, &r->join_group);
        break;
    case REQUEST_SYNC_GROUP:
        keep_sync(c, &r->sync_group);
        break;
    case REQUEST_HEARTBEAT:
        keep_text(c, &r->heartbeat.group);
        keep_text(c, &r->heartbeat.member);
        break;
    case REQUEST_LEAVE_GROUP:
        keep_text(c, &r->leave_group.group);
        keep_text(c, &r->leave_group.member);
        break;
    case REQUEST_DESCRIBE_GROUP:
        keep_text(c, &r->describe_group.group);
        break;
    case REQUEST_INIT_PRODUCER_ID:
        keep_text(c, &r->init_producer_id.transactional_id);
        break;
    case REQUEST_LIST_OFFSETS:
        keep_text(c, &r->list_offsets.topic);
        r->list_offsets.partitions =
            keep(c, r->list_offsets.partitions, r->list_offsets.partition_count, sizeof(int32_t));
        break;
    case REQUEST_API_VERSIONS:
    case REQUEST_API_COUNT:
        break;
    }
}

struct request_copy *request_copy_new(const struct request *request)
{
    struct request_copy *copy = calloc(1, sizeof(*copy));
    struct copier c = {0};

    if (copy == NULL)
        return NULL;
    wire_arena_init(&copy->arena, COPY_MAX);
    copy->request = *request;
    c.arena = &copy->arena;
    keep_parts(&c, &copy->request);
    if (c.failed)
        request_copy_free(&copy);
    return copy;
}

void request_copy_free(struct request_copy **cp)
{
    struct request_copy *copy = *cp;

    *cp = NULL;
    if (copy == NULL)
        return;
    wire_arena_deinit(&copy->arena);
    free(copy);
}
