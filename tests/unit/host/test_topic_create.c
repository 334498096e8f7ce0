/* SPDX-License-Identifier: Apache-2.0 */
/* topic_create: which topics a source task makes and what it says when it can't. The admin client
 * is the test's: the linker sends calls of topic_admin here, and each takes the next answer of a
 * script. */
#include "host/task/send/topic_create.h"
#include "kafka/topic_admin.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- the admin client ------------------------------------------------------------------------- */

static struct {
    const int *script; /* codes, in the order of the calls; ended by the last one, which stays */
    size_t at, len;
    int clients; /* alive */
    int waits;   /* how often wait may be called before it says no */
    size_t asked;
    char created[200]; /* "topic partitions replication cleanup.policy" */
} admin;

static int next_answer(struct mr_error *err)
{
    int code = admin.script[admin.at < admin.len ? admin.at++ : admin.len - 1];

    admin.asked++;
    return code == MR_OK ? MR_OK : mr_fail(err, code, "the broker says %d", code);
}

struct topic_admin *__wrap_topic_admin_new(const struct props *java, client_conf_warn warn,
                                           void *arg, struct mr_error *err);
void __wrap_topic_admin_free(struct topic_admin **dead);
int __wrap_topic_admin_exists(struct topic_admin *a, const char *topic, int64_t timeout_ms,
                              struct mr_error *err);
int __wrap_topic_admin_create(struct topic_admin *a, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err);

struct topic_admin *__wrap_topic_admin_new(const struct props *java, client_conf_warn warn,
                                           void *arg, struct mr_error *err)
{
    assert_string_equal(props_get(java, "client.id"), "connector-adminclient-conn-0");
    admin.clients++;
    return (struct topic_admin *)(void *)&admin;
}

void __wrap_topic_admin_free(struct topic_admin **dead)
{
    admin.clients -= *dead != NULL;
    *dead = NULL;
}

int __wrap_topic_admin_exists(struct topic_admin *a, const char *topic, int64_t timeout_ms,
                              struct mr_error *err)
{
    return next_answer(err);
}

int __wrap_topic_admin_create(struct topic_admin *a, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err)
{
    const char *policy = props_get(spec->settings, "cleanup.policy");

    snprintf(admin.created, sizeof(admin.created), "%s %d %d %s", spec->topic, spec->partitions,
             spec->replication, policy == NULL ? "-" : policy);
    return next_answer(err);
}

/* --- fixture ---------------------------------------------------------------------------------- */

struct fixture {
    struct props worker;
    struct props config;
    struct topic_create *topics;
    struct mr_error err;
};

static bool wait_ms(void *arg, int64_t ms)
{
    (void)arg;
    return admin.waits-- > 0;
}

static int setup(void **state)
{
    static const char *const settings[][2] = {
        {"topic.creation.default.partitions", "2"},
        {"topic.creation.default.replication.factor", "-1"},
        {"topic.creation.groups", "logs"},
        {"topic.creation.logs.include", "log-.*"},
        {"topic.creation.logs.partitions", "5"},
        {"topic.creation.logs.cleanup.policy", "compact"},
    };
    struct fixture *f = calloc(1, sizeof(*f));

    memset(&admin, 0, sizeof(admin));
    props_init(&f->worker);
    props_init(&f->config);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        props_set(&f->config, settings[i][0], settings[i][1]);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    topic_create_close(&f->topics);
    assert_int_equal(admin.clients, 0);
    props_deinit(&f->worker);
    props_deinit(&f->config);
    free(f);
    return 0;
}

static void answer(const int *script, size_t len)
{
    admin.script = script;
    admin.len = len;
    admin.at = admin.asked = 0;
}
#define ANSWER(...) answer((const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void open_with(struct fixture *f)
{
    const struct topic_create_spec spec = {.client = {"conn", 0, &f->worker, &f->config},
                                           .wait = wait_ms};

    assert_int_equal(topic_create_open(&spec, &f->topics, &f->err), 0);
}

static int ensure(struct fixture *f, const char *topic)
{
    f->err = (struct mr_error){0};
    return topic_create_ensure(f->topics, topic, &f->err);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_missing_topic_is_made_as_its_group_says_and_asked_for_once(void **state)
{
    struct fixture *f = *state;

    open_with(f);
    ANSWER(MR_ERR_NOT_FOUND, MR_OK);
    assert_int_equal(ensure(f, "log-a"), MR_OK);
    assert_string_equal(admin.created, "log-a 5 -1 compact");
    assert_int_equal(ensure(f, "log-a"), MR_OK);
    assert_int_equal(admin.asked, 2);
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_EXISTS); /* somebody else was faster */
    assert_int_equal(ensure(f, "other"), MR_OK);
    assert_string_equal(admin.created, "other 2 -1 -");
    assert_int_equal(f->err.code, 0);
    topic_create_rest(f->topics);
    assert_int_equal(admin.clients, 0);
    assert_int_equal(ensure(f, "other"), MR_OK);
    assert_int_equal(admin.clients, 0);
}

static void without_settings_nothing_is_asked(void **state)
{
    struct fixture *f = *state;

    props_deinit(&f->config);
    props_init(&f->config);
    open_with(f);
    assert_null(f->topics);
    assert_int_equal(ensure(f, "t"), MR_OK);
}

/* wait says no: the task is asked to stop, or has no lease any more. Nothing is decided by that. */
static void the_end_of_waiting_is_no_failure(void **state)
{
    struct fixture *f = *state;

    open_with(f);
    ANSWER(MR_ERR_RETRY);
    admin.waits = 3;
    assert_int_equal(ensure(f, "t"), MR_ERR_FULL);
    assert_int_equal(f->err.code, 0);
    assert_int_equal(admin.asked, 4);
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_RETRY);
    admin.waits = 0;
    assert_int_equal(ensure(f, "t"), MR_ERR_FULL);
    assert_int_equal(f->err.code, 0);
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_RETRY, MR_ERR_RETRY, MR_OK); /* a new lease */
    admin.waits = 2;
    assert_int_equal(ensure(f, "t"), MR_OK);
    assert_int_equal(admin.asked, 4);
}

static void missing_rights_are_told_in_connects_words(void **state)
{
    struct fixture *f = *state;

    open_with(f);
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_UNSUPPORTED);
    assert_int_equal(ensure(f, "log-a"), MR_ERR_FATAL);
    assert_string_equal(f->err.text,
                        "Task failed to create new topic (name=log-a, numPartitions=5, "
                        "replicationFactor=default, replicasAssignments=null, "
                        "configs={cleanup.policy=compact}). Ensure that the task is authorized to "
                        "create topics or that the topic exists and restart the task");
    ANSWER(MR_ERR_UNSUPPORTED);
    assert_int_equal(ensure(f, "log-a"), MR_ERR_FATAL);
    assert_string_equal(f->err.text,
                        "Not authorized to describe topic(s) 'log-a': the broker says -5");
    ANSWER(MR_ERR_NOT_FOUND, MR_OK); /* a failure is not remembered */
    assert_int_equal(ensure(f, "log-a"), MR_OK);
}

static void what_the_broker_refuses_fails_the_task(void **state)
{
    struct fixture *f = *state;

    open_with(f);
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_CONFIG);
    assert_int_equal(ensure(f, "t"), MR_ERR_FATAL);
    assert_string_equal(f->err.text, "Unable to create topic(s) 't': the broker says -3");
    ANSWER(MR_ERR_NOT_FOUND, MR_ERR_IO);
    assert_int_equal(ensure(f, "t"), MR_ERR_FATAL);
    assert_string_equal(f->err.text,
                        "Error while attempting to create/find topic(s) 't': the broker says -10");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_topic_is_made_as_its_group_says_and_asked_for_once),
        TEST(without_settings_nothing_is_asked),
        TEST(the_end_of_waiting_is_no_failure),
        TEST(missing_rights_are_told_in_connects_words),
        TEST(what_the_broker_refuses_fails_the_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
