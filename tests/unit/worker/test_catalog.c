/* SPDX-License-Identifier: Apache-2.0 */
/* catalog: names as users write them, versions, the order of REST; a scanner's output as foreign
 * bytes; libraries that crash, hang or lie cost themselves only (the scanner is fake_host.c). */
#include "fake_host.h"

#include "base/clock.h"
#include "link/scan_format.h"
#include "worker/supervisor/catalog.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PLUGIN(name, version, kind, aliases) \
    "{\"library\":\"/p/" name "-" version ".so\",\"plugins\":[{\"name\":\"" name \
    "\",\"version\":\"" version "\",\"kind\":" kind ",\"aliases\":[" aliases \
    "],\"doc\":\"What it does.\",\"keys\":[]}]}\n"

static const char scan[] = "{\"library\":\"/p/a.so\",\"begin\":true}\n" PLUGIN(
    "FileStreamSource", "1.0", "1", "\"org.apache.kafka.connect.file.FileStreamSourceConnector\"")
    PLUGIN("FileStreamSink", "1.0", "2",
           "\"FileSink\",\"org.apache.kafka.connect.file.FileStreamSinkConnector\"")
        PLUGIN("JsonConverter", "2.0", "3", "\"org.apache.kafka.connect.json.JsonConverter\"")
            PLUGIN("Ticks", "1.9", "1", "") PLUGIN("Ticks", "1.10", "1", "")
                PLUGIN("Ticks", "1.10-rc2", "1", "") PLUGIN("TicksConnector", "0.1", "1", "")
                    PLUGIN("Ticks", "9", "3",
                           "") "{\"library\":\"/p/b.so\",\"error\":\"it is \\u0007 broken\"}\n";

/* Line by line, up to the first that is wrong. */
static int read_lines(struct catalog *cat, const char *text, struct mr_error *err)
{
    static struct catalog_line line;
    int rc = 0;

    while (rc == 0 && *text != '\0') {
        size_t len = strcspn(text, "\n");

        rc = catalog_read_line(cat, text, len, &line, err);
        text += len + (text[len] == '\n');
    }
    return rc;
}

static struct catalog *read_ok(const char *text)
{
    struct catalog *cat = catalog_new();
    struct mr_error err = {0};

    if (read_lines(cat, text, &err) != 0)
        fail_msg("%s", err.text);
    return cat;
}

static void expect_found(const struct catalog *cat, uint32_t kind, const char *name,
                         const char *library)
{
    const struct catalog_plugin *plugin = catalog_find(cat, kind, name);

    if (plugin == NULL) {
        fail_msg("%s is not found", name);
        return;
    }
    assert_string_equal(plugin->library, library);
}

static void plugins_are_found_by_all_their_names(void **state)
{
    static const char *const sources[] = {"FileStreamSource", "FileStreamSourceConnector",
                                          "org.apache.kafka.connect.file.FileStreamSourceConnector",
                                          "org.apache.kafka.connect.file.FileStreamSource", NULL};
    struct catalog *cat = read_ok(scan);

    (void)state;
    for (size_t i = 0; sources[i] != NULL; i++) {
        expect_found(cat, 0, sources[i], "/p/FileStreamSource-1.0.so");
        expect_found(cat, MR_PLUGIN_SOURCE, sources[i], "/p/FileStreamSource-1.0.so");
        assert_null(catalog_find(cat, MR_PLUGIN_SINK, sources[i]));
    }
    expect_found(cat, 0, "FileSink", "/p/FileStreamSink-1.0.so");
    expect_found(cat, MR_PLUGIN_CONVERTER, "Json", "/p/JsonConverter-2.0.so");
    expect_found(cat, MR_PLUGIN_CONVERTER, "org.apache.kafka.connect.json.JsonConverter",
                 "/p/JsonConverter-2.0.so");
    assert_null(catalog_find(cat, 0, "JsonConverter"));
    catalog_free(&cat);
}

static void other_names_are_not_found(void **state)
{
    static const char *const names[] = {"",
                                        "Connector",
                                        "filestreamsource",
                                        "com.example.FileStreamSource",
                                        "FileStream",
                                        "kafka.connect.file.FileStreamSourceConnector",
                                        NULL};
    struct catalog *cat = read_ok(scan);

    (void)state;
    for (size_t i = 0; names[i] != NULL; i++)
        assert_null(catalog_find(cat, 0, names[i]));
    catalog_free(&cat);
}

static void the_highest_version_of_the_best_name_wins(void **state)
{
    struct catalog *cat = read_ok(scan);

    (void)state;
    expect_found(cat, 0, "Ticks", "/p/Ticks-1.10.so");
    expect_found(cat, 0, "TicksConnector", "/p/TicksConnector-0.1.so");
    expect_found(cat, MR_PLUGIN_CONVERTER, "Ticks", "/p/Ticks-9.so");
    catalog_free(&cat);
}

static void they_are_listed_as_rest_wants_them(void **state)
{
    static const char *const expected[] = {
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "Ticks",
        "Ticks",
        "Ticks",
        "TicksConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "Ticks",
        "org.apache.kafka.connect.json.JsonConverter"};
    struct catalog *cat = read_ok(scan);

    (void)state;
    assert_int_equal(catalog_count(cat), 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(catalog_at(cat, i)->java_class, expected[i]);
    assert_string_equal(catalog_at(cat, 1)->version, "1.9");
    assert_string_equal(catalog_at(cat, 2)->version, "1.10-rc2");
    assert_string_equal(catalog_at(cat, 0)->doc, "What it does.");
    catalog_free(&cat);
}

static void keys_come_whole(void **state)
{
    struct catalog *cat = read_ok(
        "{\"library\":\"/p/"
        "k.so\",\"plugins\":[{\"name\":\"K\",\"version\":\"1\",\"kind\":2,\"aliases\":[],\"keys\":["
        "{\"name\":\"file\",\"type\":2,\"flags\":3,\"fallback\":\"5\",\"doc\":\"d\",\"choices\":"
        "\"a|b\",\"has_range\":true,"
        "\"min\":-9223372036854775808,\"max\":9223372036854775807,\"importance\":2,\"group\":\"g\","
        "\"order\":-3,\"width\":3,"
        "\"display_name\":\"File\"},{\"name\":\"plain\",\"fallback\":null}]}]}\n");
    const struct mr_config_key *key = catalog_at(cat, 0)->keys;

    (void)state;
    assert_string_equal(key->name, "file");
    assert_int_equal(key->type, MR_CFG_INT);
    assert_int_equal(key->flags, 3);
    assert_string_equal(key->fallback, "5");
    assert_string_equal(key->doc, "d");
    assert_string_equal(key->choices, "a|b");
    assert_true(key->has_range);
    assert_true(key->min == INT64_MIN && key->max == INT64_MAX);
    assert_int_equal(key->importance, 2);
    assert_string_equal(key->group, "g");
    assert_int_equal(key->order, -3);
    assert_int_equal(key->width, 3);
    assert_string_equal(key->display_name, "File");
    assert_string_equal(key[1].name, "plain");
    assert_null(key[1].fallback);
    assert_null(key[2].name);
    catalog_free(&cat);
}

static void expect_refused(const char *text, const char *why)
{
    struct catalog *cat = catalog_new();
    struct mr_error err = {0};

    assert_int_equal(read_lines(cat, text, &err), MR_ERR_PROTOCOL);
    if (strstr(err.text, why) == NULL)
        fail_msg("'%s' is not in '%s'", why, err.text);
    assert_int_equal(catalog_count(cat), 0);
    catalog_free(&cat);
}

#define ONE(members) "{\"library\":\"/p/a.so\",\"plugins\":[{" members "}]}\n"

static void wrong_lines_are_refused_with_a_reason(void **state)
{
    (void)state;
    expect_refused("hello\n", "line 1");
    expect_refused("[]\n", "names no library");
    expect_refused("{\"library\":7}\n", "names no library");
    expect_refused("{\"library\":\"/a\\u0000b\",\"plugins\":[]}\n", "names no library");
    expect_refused("{\"library\":\"/a\"}\n", "neither plugins nor an error");
    expect_refused("{\"library\":\"/a\",\"plugins\":[7]}\n", "plugin 0: its name");
    expect_refused(
        ONE("\"name\":\"A\\nB\",\"version\":\"1\",\"kind\":1,\"aliases\":[],\"keys\":[]"),
        "its name");
    expect_refused(ONE("\"name\":\"A\",\"kind\":1,\"aliases\":[],\"keys\":[]"), "its version");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":9,\"aliases\":[],\"keys\":[]"),
                   "its kind");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":1,\"keys\":[]"),
                   "list of at most 32 aliases");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":1,\"aliases\":[7],\"keys\":[]"),
                   "alias 0 is no name");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":1,\"aliases\":[],\"keys\":{}"),
                   "list of at most 1000 keys");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":1,\"aliases\":[],\"keys\":[{"
                       "\"name\":\"k\",\"type\":99}]"),
                   "key 0: its type is no number in range");
    expect_refused(ONE("\"name\":\"A\",\"version\":\"1\",\"kind\":1,\"aliases\":[],\"keys\":[{"
                       "\"name\":\"k\",\"doc\":1}]"),
                   "its doc is no text");
}

static void one_bad_plugin_takes_its_library_only(void **state)
{
    struct catalog *cat = catalog_new();
    struct catalog_line line;
    struct mr_error err = {0};
    static const char good[] = PLUGIN("A", "1", "1", "");
    static const char bad[] =
        "{\"library\":\"/p/b.so\",\"plugins\":[{\"name\":\"B\",\"version\":\"1\",\"kind\":1,"
        "\"aliases\":[],\"keys\":[]},{}]}";

    (void)state;
    assert_int_equal(catalog_read_line(cat, good, strlen(good), &line, &err), 0);
    assert_int_equal(catalog_read_line(cat, bad, strlen(bad), &line, &err), MR_ERR_PROTOCOL);
    assert_string_equal(line.library, "/p/b.so");
    assert_int_equal(catalog_count(cat), 1);
    catalog_free(&cat);
}

static void a_line_above_the_cap_is_refused(void **state)
{
    size_t len = SCAN_FORMAT_LINE_MAX + 1;
    char *text = malloc(len);
    struct catalog *cat = catalog_new();
    struct catalog_line line;

    (void)state;
    memset(text, ' ', len);
    assert_int_equal(catalog_read_line(cat, text, len, &line, NULL), MR_ERR_PROTOCOL);
    catalog_free(&cat);
    free(text);
}

/* --- scanning real folders -------------------------------------------------------------------- */

struct folder {
    char path[64];
    int saved; /* stderr, while the log goes to a file */
    int log;
};

static int make_folder(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    char sub[128];

    snprintf(f->path, sizeof(f->path), "/tmp/millrace-cat-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(sub, sizeof(sub), "%s/sub", f->path);
    assert_int_equal(mkdir(sub, 0700), 0);
    f->log = open(f->path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    f->saved = dup(STDERR_FILENO);
    dup2(f->log, STDERR_FILENO);
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char command[128];

    dup2(f->saved, STDERR_FILENO);
    close(f->saved);
    close(f->log);
    snprintf(command, sizeof(command), "rm -r %s", f->path);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void add(const struct folder *f, const char *name)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static struct catalog *scan_folder(const struct folder *f)
{
    const char *const folders[] = {f->path, NULL};
    struct mr_error err = {0};
    struct catalog *cat = catalog_scan("/proc/self/exe", folders, -1, &err);

    if (cat == NULL)
        fail_msg("%s", err.text);
    return cat;
}

static void expect_log(const struct folder *f, const char *name, const char *why)
{
    char text[8192] = "", line[256];

    assert_true(pread(f->log, text, sizeof(text) - 1, 0) >= 0);
    snprintf(line, sizeof(line), "plugin library %s/%s is left out: %s", f->path, name, why);
    if (strstr(text, line) == NULL)
        fail_msg("'%s' is not in '%s'", line, text);
}

static void libraries_are_found_in_folders_and_one_level_down(void **state)
{
    struct folder *f = *state;
    struct catalog *cat;
    char deep[128];

    add(f, "b.so");
    add(f, "a.so");
    add(f, "sub/c.so");
    add(f, "no-library.txt");
    add(f, ".so");
    add(f, ".hidden.so");
    snprintf(deep, sizeof(deep), "%s/sub/deep", f->path);
    mkdir(deep, 0700);
    add(f, "sub/deep/d.so");
    cat = scan_folder(f);
    assert_int_equal(catalog_count(cat), 3);
    assert_string_equal(catalog_at(cat, 0)->name, "a");
    assert_string_equal(catalog_at(cat, 1)->name, "b");
    assert_string_equal(catalog_at(cat, 2)->name, "c");
    assert_int_equal(catalog_at(cat, 2)->library[0], '/');
    catalog_free(&cat);
}

static void a_plugin_of_two_libraries_is_told(void **state)
{
    struct folder *f = *state;
    char text[8192] = "", line[512];
    struct catalog *cat;

    add(f, "a.so");
    add(f, "b.so");
    add(f, "sub/a.so");
    cat = scan_folder(f);
    assert_int_equal(catalog_count(cat), 3);
    assert_true(pread(f->log, text, sizeof(text) - 1, 0) >= 0);
    snprintf(line, sizeof(line), "is in %s/a.so and in %s/sub/a.so: that of %s/a.so is used",
             f->path, f->path, f->path);
    assert_non_null(strstr(text, line));
    assert_null(strstr(text, "plugin b"));
    catalog_free(&cat);
}

static void bad_libraries_cost_themselves_only(void **state)
{
    struct folder *f = *state;
    struct catalog *cat;

    add(f, "a.so");
    add(f, "crash.so");
    add(f, "d.so");
    add(f, "exit.so");
    add(f, "nonsense.so");
    add(f, "o.so");
    add(f, "refused.so");
    add(f, "swap.so");
    add(f, "z.so");
    cat = scan_folder(f);
    assert_int_equal(catalog_count(cat), 4);
    assert_string_equal(catalog_at(cat, 3)->name, "z");
    expect_log(f, "crash.so", "the scanner was killed by signal 11 (SIGSEGV) in it");
    expect_log(f, "exit.so", "the scanner exited with code 5 in it");
    expect_log(f, "nonsense.so", "line 1");
    expect_log(f, "refused.so", "built for another ABI");
    expect_log(f, "swap.so", "the scanner's answers are out of order");
    catalog_free(&cat);
}

static void a_library_that_hangs_costs_ten_seconds(void **state)
{
    struct folder *f = *state;
    struct catalog *cat;
    int64_t begin_ms = clock_ms();

    add(f, "a.so");
    add(f, "hang.so");
    add(f, "z.so");
    cat = scan_folder(f);
    assert_in_range(clock_ms() - begin_ms, 9900, 12000);
    assert_int_equal(catalog_count(cat), 2);
    expect_log(f, "hang.so", "it took longer than 10 s to open");
    catalog_free(&cat);
}

static void more_libraries_than_one_process_takes(void **state)
{
    struct folder *f = *state;
    struct catalog *cat;
    char name[32];

    for (int i = 0; i < 450; i++) {
        snprintf(name, sizeof(name), "p%03d.so", i);
        add(f, name);
    }
    cat = scan_folder(f);
    assert_int_equal(catalog_count(cat), 450);
    catalog_free(&cat);
}

static void a_missing_folder_is_left_out(void **state)
{
    const char *const folders[] = {"/no/such/folder", NULL};
    struct mr_error err = {0};
    struct catalog *cat = catalog_scan("/proc/self/exe", folders, -1, &err);

    (void)state;
    assert_non_null(cat);
    assert_int_equal(catalog_count(cat), 0);
    catalog_free(&cat);
}

static void a_binary_that_can_not_scan_is_an_error(void **state)
{
    struct folder *f = *state;
    const char *const folders[] = {f->path, NULL};
    struct mr_error err = {0};

    add(f, "a.so");
    assert_null(catalog_scan("/no/such/file", folders, -1, &err));
    assert_non_null(strstr(err.text, "/no/such/file"));
    err_clear(&err);
    assert_null(catalog_scan("/bin/false", folders, -1, &err));
    assert_non_null(
        strstr(err.text, "/bin/false does not scan plugins: the scanner exited with code 1"));
}

static void a_scan_that_is_called_off_leaves_no_scanner(void **state)
{
    struct folder *f = *state;
    const char *const folders[] = {f->path, NULL};
    struct mr_error err = {0};
    int64_t from_ms = clock_ms();
    int cancel_fd = eventfd(1, EFD_CLOEXEC);

    add(f, "hang.so");
    assert_null(catalog_scan("/proc/self/exe", folders, cancel_fd, &err));
    assert_int_equal(err.code, MR_ERR_CLOSED);
    assert_true(clock_ms() - from_ms < 2000);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    close(cancel_fd);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_are_found_by_all_their_names),
        cmocka_unit_test(other_names_are_not_found),
        cmocka_unit_test(the_highest_version_of_the_best_name_wins),
        cmocka_unit_test(they_are_listed_as_rest_wants_them),
        cmocka_unit_test(keys_come_whole),
        cmocka_unit_test(wrong_lines_are_refused_with_a_reason),
        cmocka_unit_test(one_bad_plugin_takes_its_library_only),
        cmocka_unit_test(a_line_above_the_cap_is_refused),
        IN_FOLDER(libraries_are_found_in_folders_and_one_level_down),
        IN_FOLDER(a_plugin_of_two_libraries_is_told),
        IN_FOLDER(bad_libraries_cost_themselves_only),
        IN_FOLDER(a_library_that_hangs_costs_ten_seconds),
        IN_FOLDER(more_libraries_than_one_process_takes),
        IN_FOLDER(a_missing_folder_is_left_out),
        IN_FOLDER(a_binary_that_can_not_scan_is_an_error),
        IN_FOLDER(a_scan_that_is_called_off_leaves_no_scanner),
    };

    fake_host_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
