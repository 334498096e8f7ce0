/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of wire/ share: a loop, settings for a stub, answers noted as they come. */
#ifndef TESTS_WIRE_RIG_H
#define TESTS_WIRE_RIG_H

#include "stub_broker.h"

#include "wire/coordinator.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RIG_MS 10000 /* bound of every wait */

extern struct loop *rig_loop;
extern struct stub_broker *rig_stub; /* stopped at the end of the test */

/* cmocka setup and teardown: the loop; stub and conf are freed. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define rig_test(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

/* A conf for rig_stub: "key", "value", …, NULL beside bootstrap.servers and client.id "rig". Freed
 * at the end. */
struct wire_conf *rig_conf(const char *key, ...);

/* One call's outcome. */
struct rig_call {
    int told;
    enum request_api api;
    int error;  /* of the answer; -999: failed */
    int failed; /* 0, or the code */
    char text[1008];
    int64_t sent_boot_ms;
    char member[64];
    void (*then)(void *arg); /* run in the callback */
    void *then_arg;
};
void rig_note(void *rig_call, const struct answer *answer, const struct mr_error *err);

/* Run the loop until the condition holds. */
typedef bool (*rig_condition)(void *arg);
void rig_run_until(rig_condition condition, void *arg, const char *what);
void rig_await(struct rig_call *call);
void rig_run_for(int64_t ms); /* to see that nothing happens, or that time goes by */

/* Requests to put into calls. */
struct request rig_heartbeat(void);
struct request rig_join(void);

/* text has word */
void rig_has(const char *text, const char *word);

#endif
