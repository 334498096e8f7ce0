/* SPDX-License-Identifier: Apache-2.0 */
/* topic_patience, by two of those that go by it: topics that a source makes, and the dead-letter
 * topic. The brokers are away at first, and then too few. Requests and clock are the test's: the
 * linker sends them here. */
#include "base/clock.h"
#include "host/task/send/topic_create.h"
#include "host/task/stages/dead_letters.h"
#include "kafka/topic_admin.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- brokers, and time ------------------------------------------------------------------------ */

static struct {
    int64_t now_ms;
    int64_t up_ms;     /* they answer from then on */
    int64_t enough_ms; /* and can make a topic from then on */
    bool known;        /* also while they are away: there is no such topic */
} brokers;

int64_t __wrap_clock_ms(void);
struct topic_admin *__wrap_topic_admin_new(const struct props *java, client_conf_warn warn,
                                           void *arg, struct mr_error *err);
void __wrap_topic_admin_free(struct topic_admin **dead);
int __wrap_topic_admin_create(struct topic_admin *admin, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err);
int __wrap_topic_admin_exists(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                              struct mr_error *err);
int __wrap_topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                                  int *count, struct mr_error *err);

int64_t __wrap_clock_ms(void)
{
    return brokers.now_ms;
}

struct topic_admin *__wrap_topic_admin_new(const struct props *java, client_conf_warn warn,
                                           void *arg, struct mr_error *err)
{
    return (struct topic_admin *)(void *)&brokers;
}

void __wrap_topic_admin_free(struct topic_admin **dead)
{
    *dead = NULL;
}

/* false: it waits for as long as it may. */
static bool answer(int64_t timeout_ms, struct mr_error *err)
{
    if (brokers.now_ms >= brokers.up_ms)
        return true;
    brokers.now_ms += timeout_ms;
    mr_fail(err, MR_ERR_RETRY, "no broker answered in time");
    return false;
}

int __wrap_topic_admin_create(struct topic_admin *admin, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err)
{
    if (!answer(timeout_ms, err))
        return err->code;
    return brokers.now_ms >= brokers.enough_ms
               ? MR_OK
               : mr_fail(err, MR_ERR_RETRY, "replication factor is larger than 1");
}

static int there_is_none(int64_t timeout_ms, struct mr_error *err)
{
    return brokers.known || answer(timeout_ms, err)
               ? mr_fail(err, MR_ERR_NOT_FOUND, "no such topic")
               : err->code;
}

int __wrap_topic_admin_exists(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                              struct mr_error *err)
{
    return there_is_none(timeout_ms, err);
}

int __wrap_topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                                  int *count, struct mr_error *err)
{
    return there_is_none(timeout_ms, err);
}

static bool wait_ms(void *arg, int64_t ms)
{
    brokers.now_ms += ms;
    return true;
}

/* --- who asks --------------------------------------------------------------------------------- */

static int carry(void *carrier, const char *topic, const struct producer_record *rec,
                 struct mr_error *err)
{
    return MR_OK;
}

static bool letters_open(const struct props *config, struct mr_error *err)
{
    const struct dead_letters_spec spec = {.client = {"conn", 0, config, config},
                                           .topic = "dead",
                                           .replication = 3,
                                           .wait = wait_ms,
                                           .carry = carry};
    struct dead_letters *letters = dead_letters_open(&spec, err);
    bool opened = letters != NULL;

    dead_letters_close(&letters);
    return opened;
}

static bool topic_made(const struct props *config, struct mr_error *err)
{
    const struct topic_create_spec spec = {.client = {"conn", 0, config, config}, .wait = wait_ms};
    struct topic_create *topics;
    int rc;

    assert_int_equal(topic_create_open(&spec, &topics, err), MR_OK);
    rc = topic_create_ensure(topics, "t", err);
    topic_create_close(&topics);
    return rc == MR_OK;
}

static bool try(bool (*ask)(const struct props *config, struct mr_error *err), int64_t up_ms,
                int64_t enough_ms, bool known)
{
    struct mr_error err = {0};
    struct props config;
    bool made;

    props_init(&config);
    props_set(&config, "topic.creation.default.partitions", "1");
    props_set(&config, "topic.creation.default.replication.factor", "3");
    brokers.now_ms = 1000;
    brokers.up_ms = 1000 + up_ms;
    brokers.enough_ms = 1000 + enough_ms;
    brokers.known = known;
    made = ask(&config, &err);
    props_deinit(&config);
    return made;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void brokers_that_were_away_get_their_time_to_be_enough(void **state)
{
    (void)state;
    assert_true(try(letters_open, 6000, 10000, false));
    assert_true(try(letters_open, 6000, 10000, true));
    assert_true(try(topic_made, 12000, 20000, true));
}

static void what_is_refused_time_after_time_fails_soon(void **state)
{
    (void)state;
    assert_false(try(letters_open, 0, 100000, false));
    assert_in_range(brokers.now_ms, 6000, 6500);
    assert_false(try(letters_open, 6000, 100000, false));
    assert_in_range(brokers.now_ms, 12000, 14000);
    assert_false(try(topic_made, 0, 100000, false));
    assert_in_range(brokers.now_ms, 11000, 11500);
}

/* Such as a controller that is elected: it is no refusal. */
static void a_request_that_runs_out_of_time_is_asked_for_longer(void **state)
{
    (void)state;
    assert_true(try(letters_open, 20000, 20000, true));
    assert_false(try(letters_open, 100000, 100000, true));
    assert_in_range(brokers.now_ms, 31000, 34000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brokers_that_were_away_get_their_time_to_be_enough),
        cmocka_unit_test(what_is_refused_time_after_time_fails_soon),
        cmocka_unit_test(a_request_that_runs_out_of_time_is_asked_for_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
