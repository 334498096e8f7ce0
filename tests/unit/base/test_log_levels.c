/* SPDX-License-Identifier: Apache-2.0 */
/* Levels by logger: the tree, prefixes, twins, connectors, and which lines are written. The loggers
 * of a process are never removed, so each test uses names of its own and begins with all of them at
 * INFO. */
#include "base/log_levels.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

#include <cmocka.h>

static int begin(void **state)
{
    (void)state;
    log_set_level(LOG_INFO);
    return 0;
}

/* The names that a change has changed, joined by blanks. */
static const char *set(const char *prefix, enum log_level level)
{
    static char text[4096];
    const char **names = NULL;
    size_t count = 0, n = 0;

    assert_int_equal(log_levels_set(prefix, level, &names, &count, NULL), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? " " : "", names[i]);
    free(names);
    return text;
}

static enum log_level level_of(const char *name)
{
    struct log_logger logger;

    assert_true(log_levels_get(name, &logger));
    return logger.level;
}

static void levels_have_names_in_any_case(void **state)
{
    enum log_level level = LOG_INFO;

    (void)state;
    assert_true(log_level_from("all", &level));
    assert_int_equal(level, LOG_ALL);
    assert_true(log_level_from("Trace", &level) && level == LOG_TRACE);
    assert_true(log_level_from("OFF", &level) && level == LOG_OFF);
    assert_false(log_level_from("LOUD", &level));
    assert_string_equal(log_level_name(LOG_ALL), "ALL");
    assert_string_equal(log_level_name(LOG_FATAL), "FATAL");
    assert_string_equal(log_level_name(LOG_OFF), "OFF");
}

static void a_level_holds_for_what_lies_below(void **state)
{
    (void)state;
    assert_string_equal(set("t1.a", LOG_DEBUG), "t1.a");
    assert_true(log_levels_admit(LOG_DEBUG, "t1.a", NULL));
    assert_true(log_levels_admit(LOG_DEBUG, "t1.a.b.c", NULL));
    assert_false(log_levels_admit(LOG_TRACE, "t1.a.b.c", NULL));
    assert_false(log_levels_admit(LOG_DEBUG, "t1.ab", NULL));
    assert_false(log_levels_admit(LOG_DEBUG, "t1", NULL));
    set("t1.a.b", LOG_OFF);
    assert_false(log_levels_admit(LOG_FATAL, "t1.a.b.c", NULL));
    assert_true(log_levels_admit(LOG_DEBUG, "t1.a.c", NULL));
}

static void a_change_takes_all_that_begin_with_it_and_tells_what_changed(void **state)
{
    (void)state;
    set("t2.b", LOG_ERROR);
    set("t2.bc", LOG_WARN);
    assert_string_equal(set("t2.b", LOG_WARN), "t2.b");
    assert_string_equal(set("t2.", LOG_DEBUG), "t2. t2.b t2.bc");
    assert_string_equal(set("t2.", LOG_DEBUG), "");
    assert_int_equal(level_of("t2.bc"), LOG_DEBUG);
}

static void only_a_change_has_a_time(void **state)
{
    struct log_logger before, after;

    (void)state;
    set("t3", LOG_DEBUG);
    assert_true(log_levels_get("t3", &before) && before.modified_ms > 0);
    set("t3.new", LOG_DEBUG); /* has it already, by t3 */
    assert_true(log_levels_get("t3.new", &after));
    assert_int_equal(after.modified_ms, 0);
    log_set_level(LOG_INFO);
    assert_true(log_levels_get("t3", &after));
    assert_int_equal(after.modified_ms, 0);
}

static void root_means_all_of_them(void **state)
{
    struct log_logger root;

    (void)state;
    set("t4.x", LOG_TRACE);
    assert_non_null(strstr(set("RooT", LOG_ERROR), "root"));
    assert_int_equal(level_of("t4.x"), LOG_ERROR);
    assert_true(log_levels_get("ROOT", &root));
    assert_string_equal(root.name, "root");
    assert_false(log_levels_admit(LOG_WARN, "t4.never.seen", NULL));
    assert_false(log_levels_get("t4.never.seen", &root));
    assert_false(log_levels_get("t4", &root));
}

static void a_logger_is_known_by_both_of_its_names(void **state)
{
    (void)state;
    log_levels_declare("t5.own", "org.t5.Theirs");
    assert_string_equal(set("org.t5", LOG_DEBUG), "org.t5 org.t5.Theirs");
    assert_true(log_levels_admit(LOG_DEBUG, "t5.own", NULL));
    assert_string_equal(set("t5", LOG_TRACE), "t5 t5.own");
    assert_int_equal(level_of("org.t5.Theirs"), LOG_TRACE);
    set("t5.later", LOG_WARN);
    log_levels_declare("t5.later", "org.t5.Later"); /* keeps what was set */
    assert_int_equal(level_of("org.t5.Later"), LOG_WARN);
}

static void a_connector_decides_for_its_own_lines(void **state)
{
    (void)state;
    set("connector.t6 one", LOG_DEBUG);
    assert_true(log_levels_admit(LOG_DEBUG, "t6.any", "t6 one"));
    assert_false(log_levels_admit(LOG_DEBUG, "t6.any", "t6 two"));
    assert_false(log_levels_admit(LOG_DEBUG, "t6.any", NULL));
    set("connector.t6 one", LOG_ERROR);
    set("t6.any", LOG_DEBUG);
    assert_false(log_levels_admit(LOG_WARN, "t6.any", "t6 one"));
    assert_true(log_levels_admit(LOG_DEBUG, "t6.any", "t6 two"));
}

static void what_is_given_is_set_alone(void **state)
{
    (void)state;
    set("t7.a.b", LOG_ERROR);
    log_levels_give("t7.a", LOG_DEBUG);
    assert_int_equal(level_of("t7.a"), LOG_DEBUG);
    assert_int_equal(level_of("t7.a.b"), LOG_ERROR);
}

static void the_list_is_in_order(void **state)
{
    size_t count = 0;
    struct log_logger *list;

    (void)state;
    set("t8", LOG_DEBUG);
    list = log_levels_list(&count);
    assert_true(count > 1);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(list[i - 1].name, list[i].name) < 0);
    free(list);
}

static void *log_much(void *arg)
{
    for (int i = 0; i < 3000; i++)
        (void)log_levels_admit(LOG_DEBUG, arg, NULL);
    return NULL;
}

static void threads_may_log_while_levels_change(void **state)
{
    pthread_t threads[2];
    char name[] = "t9.a.b";

    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, name), 0);
    for (int i = 0; i < 300; i++)
        set("t9.a", i % 2 == 0 ? LOG_DEBUG : LOG_WARN);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* Last: nothing can be made after it. */
static void names_and_loggers_have_a_limit(void **state)
{
    char name[LOG_LEVELS_NAME_MAX + 2];
    const char **names = NULL;
    struct mr_error err = {0};
    size_t count = 0;
    int rc = 0;

    (void)state;
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(log_levels_set(name, LOG_DEBUG, &names, &count, &err), MR_ERR_TOO_LARGE);
    err = (struct mr_error){0};
    for (int i = 0; rc == 0 && i <= LOG_LEVELS_MAX; i++) {
        snprintf(name, sizeof(name), "x%d.", i);
        names = NULL;
        rc = log_levels_set(name, LOG_DEBUG, &names, &count, &err);
        free(rc == 0 ? names : NULL);
    }
    assert_int_equal(rc, MR_ERR_FULL);
    log_levels_declare("x.more", NULL);
    log_levels_give("x.more", LOG_DEBUG);
    assert_false(log_levels_get("x.more", &(struct log_logger){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(levels_have_names_in_any_case, begin),
        cmocka_unit_test_setup(a_level_holds_for_what_lies_below, begin),
        cmocka_unit_test_setup(a_change_takes_all_that_begin_with_it_and_tells_what_changed, begin),
        cmocka_unit_test_setup(only_a_change_has_a_time, begin),
        cmocka_unit_test_setup(root_means_all_of_them, begin),
        cmocka_unit_test_setup(a_logger_is_known_by_both_of_its_names, begin),
        cmocka_unit_test_setup(a_connector_decides_for_its_own_lines, begin),
        cmocka_unit_test_setup(what_is_given_is_set_alone, begin),
        cmocka_unit_test_setup(the_list_is_in_order, begin),
        cmocka_unit_test_setup(threads_may_log_while_levels_change, begin),
        cmocka_unit_test_setup(names_and_loggers_have_a_limit, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
