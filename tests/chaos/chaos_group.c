/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a group's own, and who leads that of the workers. The member that is thrown out is not
 * told: it learns it by its next heartbeat, or by its next offsets. The stranger is first in the
 * order of members, so that it is given partitions, whichever assignor there is. */
#include "chaos/chaos_group.h"

#include "chaos/chaos.h"

#include "base/props.h"
#include "wire/wire_call.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

#define CALL_MS 20000
#define MEMBERS_MAX 64
#define LOOK_MS 20

/* --- thrown out ------------------------------------------------------------------------------- */

struct members {
    const char *id[MEMBERS_MAX];
    int count;
};

static void take_member(void *arg, const struct answer_described_member *member)
{
    struct members *members = arg;

    if (members->count < MEMBERS_MAX)
        members->id[members->count++] = scratch_text("%s", member->member);
}

static struct wire_call *client(const char *servers)
{
    struct wire_call *call;
    struct props settings;

    props_init(&settings);
    props_set(&settings, "bootstrap.servers", servers);
    call = wire_call_new(&settings, NULL);
    props_deinit(&settings);
    assert_non_null(call);
    return call;
}

static struct members members_of(struct wire_call *call, const char *id)
{
    struct members members = {0};
    struct mr_error err = {0};

    if (wire_call_members(
            call, &(struct wire_call_members){.group = id, .fn = take_member, .arg = &members},
            CALL_MS, &err) != 0)
        printf("             %s: %s\n", id, err.text);
    return members;
}

int chaos_group_members(const char *servers, const char *id)
{
    struct wire_call *call = client(servers);
    struct members members = members_of(call, id);

    wire_call_free(&call);
    return members.count;
}

bool chaos_group_throw_out(const char *servers, const struct chaos_group *group)
{
    struct wire_call *call = client(servers);
    struct members members = members_of(call, group->id);
    struct mr_error err = {0};

    if (members.count > 0 &&
        wire_call_leave(call, group->id, members.id[chaos_pick(members.count)], CALL_MS, &err) != 0)
        printf("             %s: %s\n", group->id, err.text);
    wire_call_free(&call);
    return members.count > 0;
}

/* --- who leads -------------------------------------------------------------------------------- */

struct leading {
    const struct chaos_cluster *c;
    int at;
};

/* The leader's URL stands in what each member was assigned. */
static void look_for_leader(void *arg, const struct answer_described_member *member)
{
    const struct codec_bytes *given = &member->assignment;
    struct leading *leading = arg;

    for (int i = 0; i < leading->c->count && given->len > 0; i++) {
        const char *url = leading->c->w[i]->url;

        if (memmem(given->data, given->len, url, strlen(url)) != NULL)
            leading->at = i;
    }
}

int chaos_group_leading(const struct chaos_cluster *c)
{
    struct leading leading = {c, -1};
    struct wire_call *call = client(c->servers);
    struct mr_error err = {0};

    if (wire_call_members(
            call,
            &(struct wire_call_members){.group = c->group, .fn = look_for_leader, .arg = &leading},
            CALL_MS, &err) != 0)
        printf("             %s: %s\n", c->group, err.text);
    wire_call_free(&call);
    return leading.at;
}

/* --- a stranger ------------------------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char text[256];

    if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        fail_msg("%s", text);
}

static rd_kafka_t *consumer(const char *servers, const struct chaos_group *group)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    set(conf, "bootstrap.servers", servers);
    set(conf, "group.id", group->id);
    set(conf, "client.id", "a-stranger");
    set(conf, "partition.assignment.strategy", group->assignor);
    set(conf, "session.timeout.ms", "6000");
    set(conf, "heartbeat.interval.ms", "500");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "log_level", "0");
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (rk == NULL)
        fail_msg("%s", text);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static void subscribe(rd_kafka_t *rk, const char *topics)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    char *save, *all = (char *)(uintptr_t)scratch_text("%s", topics);

    for (char *one = strtok_r(all, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save))
        rd_kafka_topic_partition_list_add(list, one, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static int assigned(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *list = NULL;
    int count;

    if (rd_kafka_assignment(rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    count = list->cnt;
    rd_kafka_topic_partition_list_destroy(list);
    return count;
}

static void read_on(rd_kafka_t *rk)
{
    rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, LOOK_MS);

    if (msg != NULL)
        rd_kafka_message_destroy(msg);
}

int chaos_group_visit(const char *servers, const struct chaos_group *group, int wait_ms,
                      int stay_ms)
{
    rd_kafka_t *rk = consumer(servers, group);
    int64_t from = scratch_now_ms();
    int given = 0;

    subscribe(rk, group->topics);
    while ((given = assigned(rk)) == 0 && scratch_since(from) < wait_ms)
        read_on(rk);
    for (from = scratch_now_ms(); given > 0 && scratch_since(from) < stay_ms;)
        read_on(rk);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return given;
}
