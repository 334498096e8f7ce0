/* SPDX-License-Identifier: Apache-2.0 */
#include "host_case.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct host_peer *host_case_peer;
const char *const host_case_nothing[] = {NULL};

int host_case_teardown(void **state)
{
    (void)state;
    if (host_case_peer != NULL)
        host_peer_end(host_case_peer);
    host_case_peer = NULL;
    return 0;
}

json_t *host_case_await(enum msg_kind kind, const char *state, int ms)
{
    json_t *body = host_peer_await(host_case_peer, kind, state, ms);

    if (body == NULL)
        fail_msg("no frame of kind %d %s within %d ms; it printed: %s", (int)kind,
                 state == NULL ? "" : state, ms, host_peer_printed(host_case_peer));
    return body;
}

void host_case_start(const char *class_name, const char *const *pairs)
{
    host_case_peer = host_peer_start();
    host_peer_connector(host_case_peer, class_name, pairs);
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000));
}

void host_case_task(int number, const char *const *pairs)
{
    host_peer_task(host_case_peer, number, pairs);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
}

void host_case_assert_answers(void)
{
    static json_int_t id = 100;
    json_t *pong;

    host_peer_send(host_case_peer, MSG_PING, json_pack("{s:I}", "id", ++id));
    pong = host_case_await(MSG_PONG, NULL, 5000);
    assert_int_equal(json_integer_value(json_object_get(pong, "id")), id);
    json_decref(pong);
}

void host_case_send(enum msg_kind kind, const char *key, json_t *value)
{
    json_t *body = json_pack("{s:s}", "conn", "c");

    json_object_set_new(body, key, value);
    host_peer_send(host_case_peer, kind, body);
}
