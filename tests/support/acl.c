/* SPDX-License-Identifier: Apache-2.0 */
#include "support/acl.h"

#include "support/scratch.h"

#include <string.h>

#define CALL_MS 20000

static rd_kafka_t *client(const char *servers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", servers, why, sizeof(why)), 0);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    assert_non_null(rk);
    return rk;
}

static rd_kafka_event_t *await(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, CALL_MS);

    assert_non_null(event);
    if (rd_kafka_event_error(event) != 0)
        fail_msg("%s", rd_kafka_event_error_string(event));
    return event;
}

/* How many bindings the broker knows for the principal. */
static size_t known(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *principal)
{
    rd_kafka_AclBindingFilter_t *filter = rd_kafka_AclBindingFilter_new(
        RD_KAFKA_RESOURCE_ANY, NULL, RD_KAFKA_RESOURCE_PATTERN_ANY, principal, NULL,
        RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, NULL, 0);
    rd_kafka_event_t *event;
    size_t count = 0;

    rd_kafka_DescribeAcls(rk, filter, NULL, queue);
    rd_kafka_AclBinding_destroy(filter);
    event = await(queue);
    rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &count);
    rd_kafka_event_destroy(event);
    return count;
}

void acl_allow(const char *servers, const char *principal, const struct acl *acls, size_t count)
{
    rd_kafka_t *rk = client(servers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_AclBinding_t *bindings[64];

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        bindings[i] = rd_kafka_AclBinding_new(
            acls[i].type, acls[i].name, RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal, "*",
            acls[i].operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, NULL, 0);
    rd_kafka_CreateAcls(rk, bindings, count, NULL, queue);
    rd_kafka_event_destroy(await(queue));
    rd_kafka_AclBinding_destroy_array(bindings, count);
    wait_until(CALL_MS, known(rk, queue, principal) >= count);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}
