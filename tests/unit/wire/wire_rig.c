/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_rig.h"

#include "base/clock.h"

#include <signal.h>

struct loop *rig_loop;
struct stub_broker *rig_stub;
static struct wire_conf *conf;

int rig_setup(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    rig_loop = loop_new(NULL);
    return rig_loop == NULL;
}

int rig_teardown(void **state)
{
    stub_broker_stop(&rig_stub);
    loop_free(&rig_loop);
    wire_conf_free(&conf);
    return 0;
}

struct wire_conf *rig_conf(const char *key, ...)
{
    struct mr_error err = {0};
    struct props p;
    char address[64];
    va_list args;

    props_init(&p);
    snprintf(address, sizeof(address), "127.0.0.1:%u",
             rig_stub != NULL ? stub_broker_port(rig_stub) : 1);
    props_set(&p, "bootstrap.servers", address);
    props_set(&p, "client.id", "rig");
    va_start(args, key);
    while (key != NULL) {
        props_set(&p, key, va_arg(args, const char *));
        key = va_arg(args, const char *);
    }
    va_end(args);
    wire_conf_free(&conf);
    conf = wire_conf_new(&p, &err);
    if (conf == NULL)
        fail_msg("%s", err.text);
    props_deinit(&p);
    return conf;
}

void rig_note(void *rig_call, const struct answer *answer, const struct mr_error *err)
{
    struct rig_call *call = rig_call;

    call->told++;
    mr_assert(call->told == 1 && (answer == NULL) != (err == NULL));
    if (err != NULL) {
        mr_assert(err->code < 0 && err->text[0] != '\0');
        call->failed = err->code;
        call->error = -999;
        snprintf(call->text, sizeof(call->text), "%s", err->text);
    } else {
        call->api = answer->api;
        call->error = answer->error;
        call->sent_boot_ms = answer->sent_boot_ms;
        if (answer->api == REQUEST_JOIN_GROUP)
            snprintf(call->member, sizeof(call->member), "%s", answer->join_group.member);
    }
    if (call->then != NULL)
        call->then(call->then_arg);
    loop_stop(rig_loop);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* In small steps: the condition may come true by anything that runs. */
void rig_run_until(rig_condition condition, void *arg, const char *what)
{
    int64_t end_ms = clock_ms() + RIG_MS;

    while (!condition(arg)) {
        struct loop_timer timer = {0};

        if (clock_ms() > end_ms)
            fail_msg("not within %d ms: %s", RIG_MS, what);
        loop_timer_start(rig_loop, &timer, 2, stop, rig_loop);
        loop_run(rig_loop);
        loop_timer_cancel(&timer);
    }
}

static bool is_told(void *arg)
{
    return ((struct rig_call *)arg)->told > 0;
}

void rig_await(struct rig_call *call)
{
    rig_run_until(is_told, call, "an answer");
}

void rig_run_for(int64_t ms)
{
    struct loop_timer timer = {0};

    loop_timer_start(rig_loop, &timer, ms, stop, rig_loop);
    loop_run(rig_loop);
    loop_timer_cancel(&timer);
}

struct request rig_heartbeat(void)
{
    return (struct request){.api = REQUEST_HEARTBEAT,
                            .heartbeat = {.group = "g", .generation = 5, .member = "me"}};
}

struct request rig_join(void)
{
    static const struct request_protocol protocol = {"default", {(const uint8_t *)"x", 1}};

    return (struct request){.api = REQUEST_JOIN_GROUP,
                            .join_group = {.group = "g",
                                           .session_timeout_ms = 10000,
                                           .rebalance_timeout_ms = 60000,
                                           .member = "",
                                           .protocol_type = "connect",
                                           .protocols = &protocol,
                                           .protocol_count = 1}};
}

void rig_has(const char *text, const char *word)
{
    if (strstr(text, word) == NULL)
        fail_msg("\"%s\" is not in: %s", word, text);
}
