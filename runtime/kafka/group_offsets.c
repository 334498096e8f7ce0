/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets of a group, by librdkafka's admin requests, over the client of a topic_admin. A
 * request that goes to a coordinator which is just moving is sent again until time is over.
 *
 * Brokers take a commit of several partitions by halves, and removing is another request than
 * committing. So a change looks first whether all partitions are there, notes what is committed
 * now, removes, commits, and where that breaks off puts back what it had changed. Called by the
 * worker for GET, PATCH and DELETE of a sink's offsets, on a thread made for that. */
#include "kafka/group_offsets.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_MS 200 /* between two tries */

typedef rd_kafka_topic_partition_list_t parts_t;

/* Where one call stands. */
struct act {
    struct topic_admin *admin;
    const char *group;
    int64_t until_ms;
};

static int64_t left_ms(const struct act *act)
{
    int64_t left = act->until_ms - clock_ms();

    return left > 0 ? left : 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool has_members(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
           code == RD_KAFKA_RESP_ERR_GROUP_SUBSCRIBED_TO_TOPIC ||
           code == RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP;
}

static bool passes(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
           code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
           code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
           code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS;
}

static int judge(struct act *act, rd_kafka_resp_err_t code, const char *text, struct mr_error *err)
{
    if (has_members(code))
        return mr_fail(err, MR_ERR_STATE, "the group has members: %s", rd_kafka_err2str(code));
    if (code == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
        return mr_fail(err, MR_ERR_NOT_FOUND, "there is no group %.249s", act->group);
    if (passes(code))
        return mr_fail(err, MR_ERR_RETRY, "%s", rd_kafka_err2str(code));
    return topic_admin_failed(act->admin, code, text, err);
}

static int judge_part(struct act *act, const rd_kafka_topic_partition_t *part, struct mr_error *err)
{
    int rc = judge(act, part->err, NULL, err);

    err_prefix(err, "partition %d of topic %.249s", (int)part->partition, part->topic);
    return rc;
}

/* The group of an answer that is about one; its partitions in *parts where these are wanted. */
static int judge_group(struct act *act, const rd_kafka_group_result_t **groups, size_t count,
                       const parts_t **parts, struct mr_error *err)
{
    const rd_kafka_error_t *error;
    const parts_t *list;

    if (count != 1)
        return mr_fail(err, MR_ERR_RETRY, "an answer about %zu groups", count);
    error = rd_kafka_group_result_error(groups[0]);
    if (error != NULL)
        return judge(act, rd_kafka_error_code(error), rd_kafka_error_string(error), err);
    list = rd_kafka_group_result_partitions(groups[0]);
    for (int i = 0; list != NULL && i < list->cnt; i++)
        if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR)
            return judge_part(act, &list->elems[i], err);
    if (parts != NULL)
        *parts = list;
    return 0;
}

/* --- requests --------------------------------------------------------------------------------- */

struct request {
    rd_kafka_admin_op_t op;
    const parts_t *parts; /* NULL: of the whole group */
    void (*send)(struct act *act, const struct request *req, rd_kafka_AdminOptions_t *options,
                 rd_kafka_queue_t *queue);
    const rd_kafka_group_result_t **(*groups)(const rd_kafka_event_t *event, size_t *count);
};

static void send_list(struct act *act, const struct request *req, rd_kafka_AdminOptions_t *options,
                      rd_kafka_queue_t *queue)
{
    rd_kafka_ListConsumerGroupOffsets_t *ask =
        rd_kafka_ListConsumerGroupOffsets_new(act->group, NULL);

    (void)req;
    rd_kafka_ListConsumerGroupOffsets(topic_admin_client(act->admin), &ask, 1, options, queue);
    rd_kafka_ListConsumerGroupOffsets_destroy(ask);
}

static void send_alter(struct act *act, const struct request *req, rd_kafka_AdminOptions_t *options,
                       rd_kafka_queue_t *queue)
{
    rd_kafka_AlterConsumerGroupOffsets_t *ask =
        rd_kafka_AlterConsumerGroupOffsets_new(act->group, req->parts);

    rd_kafka_AlterConsumerGroupOffsets(topic_admin_client(act->admin), &ask, 1, options, queue);
    rd_kafka_AlterConsumerGroupOffsets_destroy(ask);
}

static void send_delete(struct act *act, const struct request *req,
                        rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue)
{
    rd_kafka_DeleteConsumerGroupOffsets_t *ask =
        rd_kafka_DeleteConsumerGroupOffsets_new(act->group, req->parts);

    rd_kafka_DeleteConsumerGroupOffsets(topic_admin_client(act->admin), &ask, 1, options, queue);
    rd_kafka_DeleteConsumerGroupOffsets_destroy(ask);
}

static void send_drop(struct act *act, const struct request *req, rd_kafka_AdminOptions_t *options,
                      rd_kafka_queue_t *queue)
{
    rd_kafka_DeleteGroup_t *ask = rd_kafka_DeleteGroup_new(act->group);

    (void)req;
    rd_kafka_DeleteGroups(topic_admin_client(act->admin), &ask, 1, options, queue);
    rd_kafka_DeleteGroup_destroy(ask);
}

/* An event is also its result, of the type that it has. */
static rd_kafka_event_t *any(const rd_kafka_event_t *event)
{
    return (rd_kafka_event_t *)(uintptr_t)event;
}

static const rd_kafka_group_result_t **list_groups(const rd_kafka_event_t *event, size_t *count)
{
    const rd_kafka_ListConsumerGroupOffsets_result_t *result =
        rd_kafka_event_ListConsumerGroupOffsets_result(any(event));

    return result != NULL ? rd_kafka_ListConsumerGroupOffsets_result_groups(result, count) : NULL;
}

static const rd_kafka_group_result_t **alter_groups(const rd_kafka_event_t *event, size_t *count)
{
    const rd_kafka_AlterConsumerGroupOffsets_result_t *result =
        rd_kafka_event_AlterConsumerGroupOffsets_result(any(event));

    return result != NULL ? rd_kafka_AlterConsumerGroupOffsets_result_groups(result, count) : NULL;
}

static const rd_kafka_group_result_t **delete_groups(const rd_kafka_event_t *event, size_t *count)
{
    const rd_kafka_DeleteConsumerGroupOffsets_result_t *result =
        rd_kafka_event_DeleteConsumerGroupOffsets_result(any(event));

    return result != NULL ? rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, count) : NULL;
}

static const rd_kafka_group_result_t **drop_groups(const rd_kafka_event_t *event, size_t *count)
{
    const rd_kafka_DeleteGroups_result_t *result = rd_kafka_event_DeleteGroups_result(any(event));

    return result != NULL ? rd_kafka_DeleteGroups_result_groups(result, count) : NULL;
}

/* copy: NULL, or a copy of the answer's partitions. */
static int ask_once(struct act *act, const struct request *req, parts_t **copy,
                    struct mr_error *err)
{
    rd_kafka_AdminOptions_t *options = topic_admin_options(act->admin, req->op, left_ms(act));
    rd_kafka_event_t *event;
    const rd_kafka_group_result_t **groups;
    const parts_t *parts = NULL;
    size_t count = 0;
    int rc;

    req->send(act, req, options, topic_admin_queue(act->admin));
    rd_kafka_AdminOptions_destroy(options);
    event = topic_admin_await(act->admin, left_ms(act), err);
    if (event == NULL)
        return err->code;
    groups = req->groups(event, &count);
    if (groups == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        rc = judge(act, rd_kafka_event_error(event), rd_kafka_event_error_string(event), err);
    else
        rc = judge_group(act, groups, count, &parts, err);
    if (rc == 0 && copy != NULL)
        *copy = parts != NULL ? rd_kafka_topic_partition_list_copy(parts)
                              : rd_kafka_topic_partition_list_new(1);
    rd_kafka_event_destroy(event);
    return rc;
}

/* An empty queue brings nothing, which takes a while. */
static bool wait_between(struct act *act)
{
    rd_kafka_event_t *event;

    if (left_ms(act) <= AGAIN_MS || topic_admin_cancelled(act->admin))
        return false;
    event = rd_kafka_queue_poll(topic_admin_queue(act->admin), AGAIN_MS);
    if (event != NULL)
        rd_kafka_event_destroy(event);
    return true;
}

static int ask(struct act *act, const struct request *req, parts_t **copy, struct mr_error *err)
{
    struct mr_error last = {0};
    int rc;

    do {
        err_clear(&last);
        rc = ask_once(act, req, copy, &last);
    } while (rc == MR_ERR_RETRY && wait_between(act));
    return rc != 0 ? mr_fail(err, rc, "%s", last.text) : 0;
}

static int ask_list(struct act *act, parts_t **out, struct mr_error *err)
{
    return ask(
        act,
        &(struct request){RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, NULL, send_list, list_groups},
        out, err);
}

static int ask_alter(struct act *act, const parts_t *parts, struct mr_error *err)
{
    if (parts->cnt == 0)
        return 0;
    return ask(act,
               &(struct request){RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, parts, send_alter,
                                 alter_groups},
               NULL, err);
}

static int ask_delete(struct act *act, const parts_t *parts, struct mr_error *err)
{
    if (parts->cnt == 0)
        return 0;
    return ask(act,
               &(struct request){RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS, parts, send_delete,
                                 delete_groups},
               NULL, err);
}

/* --- listing ---------------------------------------------------------------------------------- */

void group_offsets_free(struct group_offset *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].topic);
    free(list);
}

int group_offsets_list(struct topic_admin *admin, const char *group, int64_t timeout_ms,
                       struct group_offset **out, size_t *count, struct mr_error *err)
{
    struct act act = {admin, group, clock_ms() + timeout_ms};
    parts_t *parts = NULL;
    int rc = ask_list(&act, &parts, err);

    if (rc != 0)
        return rc;
    *count = 0;
    *out = calloc((size_t)parts->cnt + 1, sizeof(**out));
    mr_assert(*out != NULL);
    for (int i = 0; i < parts->cnt; i++) {
        const rd_kafka_topic_partition_t *part = &parts->elems[i];
        char *topic = part->offset >= 0 ? strdup(part->topic) : NULL;

        if (topic != NULL)
            (*out)[(*count)++] = (struct group_offset){topic, part->partition, part->offset};
    }
    rd_kafka_topic_partition_list_destroy(parts);
    return 0;
}

/* --- changing --------------------------------------------------------------------------------- */

static int check_part(struct act *act, const struct group_offset *change, struct mr_error *err)
{
    int partitions = 0;
    int rc = topic_admin_partitions(act->admin, change->topic, left_ms(act), &partitions, err);

    if (rc != 0) {
        err_prefix(err, "topic %.249s", change->topic);
        return rc;
    }
    if (change->partition < 0 || change->partition >= partitions)
        return mr_fail(err, MR_ERR_NOT_FOUND, "topic %.249s has no partition %d", change->topic,
                       (int)change->partition);
    return 0;
}

static void add_part(parts_t *parts, const struct group_offset *change)
{
    rd_kafka_topic_partition_list_add(parts, change->topic, change->partition)->offset =
        change->offset;
}

/* Put back what `now` held before, of the partitions that were to change; best effort. */
static int take_back(struct act *act, const parts_t *changed, const parts_t *now,
                     struct mr_error *err)
{
    parts_t *had = rd_kafka_topic_partition_list_new(changed->cnt + 1);
    parts_t *had_none = rd_kafka_topic_partition_list_new(changed->cnt + 1);
    int rc;

    for (int i = 0; i < changed->cnt; i++) {
        const rd_kafka_topic_partition_t *part = &changed->elems[i];
        const rd_kafka_topic_partition_t *before = rd_kafka_topic_partition_list_find(
            (parts_t *)(uintptr_t)now, part->topic, part->partition);

        if (before != NULL && before->offset >= 0)
            rd_kafka_topic_partition_list_add(had, part->topic, part->partition)->offset =
                before->offset;
        else
            rd_kafka_topic_partition_list_add(had_none, part->topic, part->partition);
    }
    rc = ask_alter(act, had, err);
    if (rc == 0)
        rc = ask_delete(act, had_none, err);
    rd_kafka_topic_partition_list_destroy(had);
    rd_kafka_topic_partition_list_destroy(had_none);
    return rc;
}

static int apply(struct act *act, const parts_t *removed, const parts_t *set, const parts_t *now,
                 struct mr_error *err)
{
    int rc = ask_delete(act, removed, err);
    const parts_t *begun[2] = {removed, set};
    int begun_count = 1;

    if (rc == 0) {
        rc = ask_alter(act, set, err);
        begun_count = 2;
    }
    if (rc == 0 || rc == MR_ERR_STATE) /* with members nothing of it was taken */
        return rc;
    for (int i = 0; i < begun_count; i++) {
        struct act back = {act->admin, act->group, clock_ms() + (act->until_ms - clock_ms()) / 2};
        struct mr_error why = {0};

        if (back.until_ms < clock_ms() + 5000)
            back.until_ms = clock_ms() + 5000;
        if (begun[i]->cnt > 0 && take_back(&back, begun[i], now, &why) != 0)
            err_prefix(err, "what was changed could not be put back (%.200s), look at the offsets",
                       why.text);
    }
    return rc;
}

int group_offsets_change(struct topic_admin *admin, const char *group,
                         const struct group_offset *changes, size_t count, int64_t timeout_ms,
                         struct mr_error *err)
{
    struct act act = {admin, group, clock_ms() + timeout_ms};
    parts_t *removed, *set, *now = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_part(&act, &changes[i], err);
    if (rc == 0)
        rc = ask_list(&act, &now, err);
    if (rc != 0)
        return rc;
    removed = rd_kafka_topic_partition_list_new((int)count + 1);
    set = rd_kafka_topic_partition_list_new((int)count + 1);
    for (size_t i = 0; i < count; i++)
        add_part(changes[i].offset < 0 ? removed : set, &changes[i]);
    rc = apply(&act, removed, set, now, err);
    rd_kafka_topic_partition_list_destroy(removed);
    rd_kafka_topic_partition_list_destroy(set);
    rd_kafka_topic_partition_list_destroy(now);
    return rc;
}

int group_offsets_drop(struct topic_admin *admin, const char *group, int64_t timeout_ms,
                       struct mr_error *err)
{
    struct act act = {admin, group, clock_ms() + timeout_ms};
    struct mr_error why = {0};
    int rc =
        ask(&act, &(struct request){RD_KAFKA_ADMIN_OP_DELETEGROUPS, NULL, send_drop, drop_groups},
            NULL, &why);

    return rc == 0 || rc == MR_ERR_NOT_FOUND ? 0 : mr_fail(err, rc, "%s", why.text);
}
