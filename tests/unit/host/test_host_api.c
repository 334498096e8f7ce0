/* SPDX-License-Identifier: Apache-2.0 */
/* host_api: what a plugin reads through its handle, and what comes of a plugin that reads
 * wrongly. */
#include "base/log.h"
#include "host/data/record_arena.h"
#include "host/host_api.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static struct mr_config_key keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .doc = "Topic"},
    {"batch.size", MR_CFG_INT, .fallback = "2000", .has_range = true, .min = 1, .max = 10000},
    {"ratio", MR_CFG_DOUBLE, .fallback = "0.5"},
    {"fast", MR_CFG_BOOLEAN, .fallback = "false"},
    {"password", MR_CFG_PASSWORD, .doc = "Secret"},
    {"names", MR_CFG_LIST, .fallback = "a, b"},
    {"maybe", MR_CFG_STRING, .doc = "No default"},
    {0},
};
static const char *const no_aliases[] = {NULL};

static struct plugin plugin_of(uint32_t kind, const char *const *aliases)
{
    return (struct plugin){.kind = kind,
                           .name = "Thing",
                           .version = "1.0",
                           .library = "/none",
                           .aliases = aliases,
                           .keys = keys,
                           .key_count = 7,
                           .state_size = 24};
}

struct fixture {
    struct plugin plugin;
    struct props config;
    struct instance inst;
};

static void open_instance(struct fixture *f, const char *const *pairs)
{
    struct mr_error err = {0};

    props_init(&f->config);
    for (size_t i = 0; pairs[i] != NULL; i += 2)
        props_set(&f->config, pairs[i], pairs[i + 1]);
    if (instance_init(&f->inst, &f->plugin, &f->config, &err) != 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    static struct fixture f;
    static const char *const pairs[] = {"topic",   "  t ",       "fast", "TRUE", "password",
                                        "hunter2", "undeclared", "x",    NULL};

    f.plugin = plugin_of(MR_PLUGIN_SOURCE, no_aliases);
    open_instance(&f, pairs);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    instance_deinit(&f->inst);
    props_deinit(&f->config);
    return 0;
}

static void configuration_is_read_by_type_with_defaults(void **state)
{
    struct fixture *f = *state;
    const struct mr_task *task = &f->inst.pub;

    assert_string_equal(mr_config_str(task, "topic"), "t");
    assert_int_equal(mr_config_long(task, "batch.size"), 2000);
    assert_true(mr_config_double(task, "ratio") == 0.5);
    assert_true(mr_config_bool(task, "fast"));
    assert_string_equal(mr_config_secret(task, "password"), "hunter2");
    assert_int_equal(mr_config_count(task, "names"), 2);
    assert_string_equal(mr_config_item(task, "names", 1), "b");
    assert_null(mr_config_item(task, "names", 2));
    assert_null(mr_config_str(task, "maybe"));
    assert_string_equal(mr_config_raw(task, "undeclared"), "x");
    assert_null(mr_config_raw(task, "absent"));
    assert_null(mr_config_raw(task, NULL));
    assert_int_equal(f->inst.misuse.code, 0);
}

static void undeclared_key_is_noted_and_named(void **state)
{
    struct fixture *f = *state;

    assert_null(mr_config_str(&f->inst.pub, "no.such"));
    assert_int_equal(f->inst.misuse.code, MR_ERR_FATAL);
    assert_string_equal(f->inst.misuse.text, "Thing: mr_config_str reads the configuration key "
                                             "no.such, which the plugin does not declare");
    /* the first mistake stays */
    assert_int_equal(mr_config_long(&f->inst.pub, "other"), 0);
    assert_non_null(strstr(f->inst.misuse.text, "no.such"));
}

static void wrong_type_is_noted_and_named(void **state)
{
    struct fixture *f = *state;

    assert_null(mr_config_str(&f->inst.pub, "batch.size"));
    assert_non_null(strstr(f->inst.misuse.text, "batch.size, which is declared as INT"));
}

static void secret_is_read_as_secret_only(void **state)
{
    struct fixture *f = *state;

    assert_null(mr_config_str(&f->inst.pub, "password"));
    assert_non_null(strstr(f->inst.misuse.text, "declared as PASSWORD"));
    assert_null(strstr(f->inst.misuse.text, "hunter2"));
}

static void null_key_is_noted(void **state)
{
    struct fixture *f = *state;

    assert_null(mr_config_str(&f->inst.pub, NULL));
    assert_non_null(strstr(f->inst.misuse.text, "without a key"));
}

/* A handle that is none: nothing to note it in, but nothing breaks. */
static void foreign_handle_gives_nothing(void **state)
{
    struct instance garbage;
    const struct mr_task *task = &garbage.pub;
    struct mr_error err = {0};
    int64_t out = 5;

    (void)state;
    log_set_level(LOG_OFF);
    memset(&garbage, 0x5a, sizeof(garbage));
    garbage.pub.host = &host_api_table;
    assert_null(mr_config_str(task, "topic"));
    assert_int_equal(mr_config_long(task, "x"), 0);
    assert_int_equal(mr_config_count(task, "x"), 0);
    assert_null(mr_config_secret(task, "x"));
    assert_null(mr_config_raw(task, "x"));
    assert_int_equal(mr_stop_fd(task), -1);
    mr_wake(&garbage.pub);
    mr_log(task, MR_LOG_INFO, "x");
    assert_int_equal(mr_offset_long(&garbage.pub, "n", "k", 1, &out, &err), MR_ERR_FATAL);
    assert_int_equal(out, 5);
    assert_null(host_api_table.config_text(NULL, "topic"));
    log_set_level(LOG_INFO);
}

static void handle_is_dead_after_its_end(void **state)
{
    struct fixture *f = *state;

    log_set_level(LOG_OFF);
    instance_deinit(&f->inst);
    assert_null(mr_config_str(&f->inst.pub, "topic"));
    instance_deinit(&f->inst);
    log_set_level(LOG_INFO);
}

static void every_problem_of_a_configuration_is_told(void **state)
{
    struct plugin plugin = plugin_of(MR_PLUGIN_SINK, no_aliases);
    struct instance inst;
    struct props config;
    struct mr_error err = {0};

    (void)state;
    props_init(&config);
    props_set(&config, "batch.size", "many");
    props_set(&config, "fast", "maybe");
    assert_int_equal(instance_init(&inst, &plugin, &config, &err), MR_ERR_CONFIG);
    assert_non_null(
        strstr(err.text, "Missing required configuration \"topic\" which has no default value."));
    assert_non_null(strstr(
        err.text, "Invalid value many for configuration batch.size: Not a number of type INT"));
    assert_non_null(strstr(err.text, "fast"));
    props_deinit(&config);
}

static void state_is_zeroed_and_never_null(void **state)
{
    struct fixture *f = *state;
    static const char zero[24];

    assert_memory_equal(f->inst.self, zero, sizeof(zero));
    instance_deinit(&f->inst);
    f->plugin.state_size = 0;
    assert_int_equal(instance_init(&f->inst, &f->plugin, &f->config, NULL), 0);
    assert_non_null(f->inst.self);
}

static void wake_and_stop_descriptors_are_the_owners(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;

    assert_int_equal(mr_stop_fd(&f->inst.pub), -1);
    mr_wake(&f->inst.pub);
    f->inst.stop_fd = 77;
    f->inst.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_int_equal(mr_stop_fd(&f->inst.pub), 77);
    mr_wake(&f->inst.pub);
    mr_wake(&f->inst.pub);
    assert_int_equal(read(f->inst.wake_fd, &count, sizeof(count)), sizeof(count));
    assert_int_equal(count, 2);
    close(f->inst.wake_fd);
}

static int read_stub(void *arg, const struct mr_source_partition *part, const char *key,
                     bool *found, int64_t *out, struct mr_error *err)
{
    int mode = *(int *)arg;

    if (mode < 0)
        return mr_fail(err, MR_ERR_DATA, "what is stored is no integer");
    *found = mode > 0 && strcmp(part->value, "ticks") == 0 && strcmp(key, "next") == 0;
    *out = 42;
    return 0;
}

static void stored_offset_wins_over_the_fallback(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    int64_t out = -1;
    int mode = 0;

    assert_int_equal(mr_offset_long(&f->inst.pub, "ticks", "next", 7, &out, &err),
                     MR_ERR_UNSUPPORTED);
    assert_int_equal(out, -1);
    f->inst.offset_read = read_stub;
    f->inst.offset_arg = &mode;
    assert_int_equal(mr_offset_long(&f->inst.pub, "ticks", "next", 7, &out, NULL), 0);
    assert_int_equal(out, 7);
    mode = 1;
    assert_int_equal(mr_offset_long(&f->inst.pub, "ticks", "next", 7, &out, NULL), 0);
    assert_int_equal(out, 42);
    mode = -1;
    out = 1;
    assert_int_equal(mr_offset_long(&f->inst.pub, "ticks", "next", 7, &out, NULL), MR_ERR_DATA);
    assert_int_equal(out, 1);
    assert_int_equal(mr_offset_long(&f->inst.pub, NULL, "next", 7, NULL, NULL), MR_ERR_FATAL);
}

static void plugin_lines_go_to_the_log_under_its_name(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    char line[4096];
    struct log_relayed seen;
    ssize_t n;

    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    log_relay_to(fds[1]);
    f->inst.connector = "c";
    f->inst.task = 3;
    mr_log(&f->inst.pub, MR_LOG_WARN, "100%% of %s", "it\nall");
    mr_log(&f->inst.pub, 99, "strange level");
    log_relay_to(-1);
    n = read(fds[0], line, sizeof(line) - 1);
    assert_true(n > 0);
    line[n] = '\0';
    *strchr(line, '\n') = '\0';
    assert_true(log_parse_relayed(line, &seen));
    assert_int_equal(seen.level, LOG_WARN);
    assert_string_equal(seen.logger, "plugin.Thing");
    assert_int_equal(seen.task, 3);
    assert_string_equal(seen.message, "100% of it\\nall");
    close(fds[0]);
    close(fds[1]);
}

/* --- records: the other half of the table, reached through the public headers ----------------- */

static void assert_fault(void (*add)(struct mr_batch *out), const char *words)
{
    struct batch_pool *pool = batch_pool_new(&host_api_table, 1 << 20, 100);
    struct batch *batch = batch_pool_take(pool);

    add(&batch->pub);
    if (words == NULL) {
        assert_false(batch->over);
    } else {
        assert_true(batch->over);
        if (strstr(batch->fault, words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", batch->fault, words);
    }
    batch_pool_give(pool, batch);
    batch_pool_free(&pool);
}

static void add_good(struct mr_batch *out)
{
    char name[] = "gone after the call";
    struct mr_record *rec = mr_batch_add(out, "t");

    mr_record_key(rec, mr_str(name));
    mr_record_value(rec, mr_long(5));
    mr_record_header(rec, "h", NULL, mr_null());
    mr_record_offset(rec, "n", "k", 1);
    memset(name, 'x', sizeof(name) - 1);
    assert_memory_equal(mr_key(rec).u.p, "gone after the call", 19);
}

static void add_length(struct mr_batch *out)
{
    mr_record_value(mr_batch_add(out, "t"), mr_text(NULL, (size_t)3 << 30));
}

static void add_huge(struct mr_batch *out)
{
    mr_record_key(mr_batch_add(out, "t"), mr_bytes("short", (size_t)2 << 30));
}

static void add_kind(struct mr_batch *out)
{
    mr_record_value(mr_batch_add(out, "t"), mr_ptr_of(200, out, 3));
}

static void add_no_topic(struct mr_batch *out)
{
    mr_record_value(mr_batch_add(out, NULL), mr_null());
}

static void add_no_partition(struct mr_batch *out)
{
    mr_record_offset_in(mr_batch_add(out, "t"), NULL, "k", 1);
}

static void add_no_header_name(struct mr_batch *out)
{
    mr_record_header(mr_batch_add(out, "t"), NULL, NULL, mr_null());
}

static void absurd_records_are_faults_and_no_crashes(void **state)
{
    (void)state;
    assert_fault(add_good, NULL);
    assert_fault(add_length, "a length and no pointer");
    assert_fault(add_huge, "more memory than a batch may hold");
    assert_fault(add_kind, "unknown kind");
    assert_fault(add_no_topic, "topic");
    assert_fault(add_no_partition, "without a partition");
    assert_fault(add_no_header_name, "header without a name");
}

/* --- task configurations ---------------------------------------------------------------------- */

static int two_tasks(struct mr_task *conn, int max, struct mr_task_list *list, struct mr_error *err)
{
    assert_int_equal(max, 5);
    assert_int_equal(mr_task_add(conn, list), 0);
    mr_task_set(conn, list, "part", "0");
    assert_int_equal(mr_task_add(conn, list), 1);
    mr_task_set(conn, list, "part", "1");
    mr_task_set(conn, list, "topic", "other");
    return 0;
}

static int endless_tasks(struct mr_task *conn, int max, struct mr_task_list *list,
                         struct mr_error *err)
{
    while (mr_task_add(conn, list) >= 0)
        mr_task_set(conn, list, "a", "b");
    return 0;
}

static int early_set(struct mr_task *conn, int max, struct mr_task_list *list, struct mr_error *err)
{
    mr_task_set(conn, list, "a", "b");
    return 0;
}

static int bad_text(struct mr_task *conn, int max, struct mr_task_list *list, struct mr_error *err)
{
    mr_task_add(conn, list);
    mr_task_set(conn, list, "a", "\xff");
    return 0;
}

static int failing_tasks(struct mr_task *conn, int max, struct mr_task_list *list,
                         struct mr_error *err)
{
    mr_task_add(conn, list);
    return max == 1 ? mr_fail(err, MR_ERR_RETRY, "not yet") : -77;
}

static struct props *configs_of(struct fixture *f, int max, size_t *count, struct mr_error *err)
{
    struct props *configs = NULL;

    *count = 0;
    if (instance_task_configs(&f->inst, max, &configs, count, err) != 0)
        return NULL;
    return configs;
}

static void source_is_one_task_and_sink_as_many_as_allowed(void **state)
{
    struct fixture *f = *state;
    size_t count;
    struct props *configs = configs_of(f, 5, &count, NULL);

    assert_int_equal(count, 1);
    assert_string_equal(props_get(&configs[0], "undeclared"), "x");
    /* What the framework adds is the worker's. */
    assert_null(props_find(&configs[0], "task.class"));
    instance_task_configs_free(configs, count);
    f->plugin.kind = MR_PLUGIN_SINK;
    props_set(&f->inst.raw, "topics", "a,b");
    configs = configs_of(f, 3, &count, NULL);
    assert_int_equal(count, 3);
    assert_string_equal(props_get(&configs[2], "topics"), "a,b");
    instance_task_configs_free(configs, count);
}

static void tasks_are_overlaid_on_the_connectors_configuration(void **state)
{
    struct fixture *f = *state;
    size_t count;
    struct props *configs;

    f->plugin.source.tasks = two_tasks;
    configs = configs_of(f, 5, &count, NULL);
    assert_int_equal(count, 2);
    assert_string_equal(props_get(&configs[0], "part"), "0");
    assert_string_equal(props_get(&configs[0], "topic"), "  t ");
    assert_string_equal(props_get(&configs[1], "topic"), "other");
    instance_task_configs_free(configs, count);
}

static void mistakes_in_tasks_are_errors(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    size_t count;

    f->plugin.source.tasks = endless_tasks;
    assert_null(configs_of(f, 5, &count, &err));
    assert_non_null(strstr(err.text, "more than 10000 task configurations"));
    f->plugin.source.tasks = early_set;
    err = (struct mr_error){0};
    assert_null(configs_of(f, 5, &count, &err));
    assert_non_null(strstr(err.text, "before mr_task_add"));
    f->plugin.source.tasks = bad_text;
    err = (struct mr_error){0};
    assert_null(configs_of(f, 5, &count, &err));
    assert_non_null(strstr(err.text, "not UTF-8"));
    f->plugin.source.tasks = failing_tasks;
    err = (struct mr_error){0};
    assert_null(configs_of(f, 1, &count, &err));
    assert_int_equal(err.code, MR_ERR_RETRY);
    assert_string_equal(err.text, "not yet");
    err = (struct mr_error){0};
    assert_null(configs_of(f, 2, &count, &err));
    assert_int_equal(err.code, -77);
    assert_true(err.text[0] != '\0');
}

#define with_instance(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_instance(configuration_is_read_by_type_with_defaults),
        with_instance(undeclared_key_is_noted_and_named),
        with_instance(wrong_type_is_noted_and_named),
        with_instance(secret_is_read_as_secret_only),
        with_instance(null_key_is_noted),
        cmocka_unit_test(foreign_handle_gives_nothing),
        with_instance(handle_is_dead_after_its_end),
        cmocka_unit_test(every_problem_of_a_configuration_is_told),
        with_instance(state_is_zeroed_and_never_null),
        with_instance(wake_and_stop_descriptors_are_the_owners),
        with_instance(stored_offset_wins_over_the_fallback),
        with_instance(plugin_lines_go_to_the_log_under_its_name),
        cmocka_unit_test(absurd_records_are_faults_and_no_crashes),
        with_instance(source_is_one_task_and_sink_as_many_as_allowed),
        with_instance(tasks_are_overlaid_on_the_connectors_configuration),
        with_instance(mistakes_in_tasks_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
