/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/plugin_host.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A folder of its own, and the sink on a file in it. */
struct rig {
    struct plugin_host h;
    char folder[64];
    char file[96];
    char other[96];
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    snprintf(rig->folder, sizeof(rig->folder), "/tmp/millrace-sink-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->file, sizeof(rig->file), "%s/out.txt", rig->folder);
    snprintf(rig->other, sizeof(rig->other), "%s/out.txt.1", rig->folder);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    if (rig->h.pool != NULL)
        plugin_host_close(&rig->h);
    unlink(rig->file);
    rmdir(rig->file);
    unlink(rig->other);
    rmdir(rig->folder);
    free(rig);
    return 0;
}

static int open_sink(struct plugin_host *h, const char *file)
{
    const char *keys[] = {"file", file, NULL};

    return plugin_host_open(h, "FileStreamSink", file == NULL ? NULL : keys);
}

static void start(struct rig *rig)
{
    if (open_sink(&rig->h, rig->file) != 0)
        fail_msg("%s", rig->h.err.text);
}

static void expect_file(const char *path, const char *text)
{
    char made[1024] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, made, sizeof(made) - 1);

    close(fd);
    assert_true(n >= 0);
    assert_string_equal(made, text);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int put_text(struct plugin_host *h, const char *text)
{
    plugin_host_next(h);
    plugin_host_add(h, mr_str(text));
    return plugin_host_put(h);
}

static int64_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* --- lines ------------------------------------------------------------------------------------ */

static void values_become_lines_of_java_text(void **state)
{
    struct rig *rig = *state;
    struct mr_arena *arena;
    struct mr_value list;

    start(rig);
    arena = plugin_host_arena(&rig->h);
    plugin_host_add(&rig->h, mr_str("text"));
    plugin_host_add(&rig->h, mr_null());
    plugin_host_add(&rig->h, mr_double(1e7));
    plugin_host_add(&rig->h, mr_bytes("abc", 3));
    list = mr_list(arena, 2);
    mr_items(list)[0] = mr_int(1);
    mr_items(list)[1] = mr_str("x");
    plugin_host_add(&rig->h, list);
    plugin_host_add(&rig->h, mr_str(""));
    assert_int_equal(plugin_host_put(&rig->h), 0);
    expect_file(rig->file, "text\nnull\n1.0E7\nYWJj\n[1, x]\n\n");
    assert_int_equal(plugin_host_flush(&rig->h), 0);
    assert_int_equal(plugin_host_flush(&rig->h), 0);
}

/* As Java's encoder does. A record's own text is not touched: other stages may look at it again. */
static void halves_of_surrogate_pairs_become_question_marks(void **state)
{
    static char large[100000];
    static char made[sizeof(large)];
    struct rig *rig = *state;
    FILE *file;

    memset(large, 'x', sizeof(large) - 1);
    memcpy(large + 50000, "\xed\xbf\xbf", 3);
    start(rig);
    plugin_host_add(&rig->h, mr_str("\xed\xa0\x80\xed\x9f\xbf\xed\xb0\x80z"));
    plugin_host_add(&rig->h, mr_str("plain"));
    plugin_host_add(&rig->h, mr_str("\xed\x95\x9c\xea\xb5\xad"));
    plugin_host_add(&rig->h, mr_str("a\xed\xa0\x80"));
    plugin_host_add(&rig->h, mr_str("cut \xed\xa0")); /* a plugin's text that is none */
    plugin_host_add(&rig->h, mr_str("\xed"));
    assert_int_equal(plugin_host_put(&rig->h), 0);
    expect_file(rig->file, "?\xed\x9f\xbf?z\nplain\n\xed\x95\x9c\xea\xb5\xad\na?\n"
                           "cut \xed\xa0\n\xed\n");
    assert_int_equal(truncate(rig->file, 0), 0);
    plugin_host_next(&rig->h);
    plugin_host_add(&rig->h, mr_text(large, sizeof(large) - 1));
    assert_int_equal(plugin_host_put(&rig->h), 0);
    assert_memory_equal(large + 50000, "\xed\xbf\xbf", 3);
    file = fopen(rig->file, "re");
    assert_non_null(file);
    assert_int_equal(fread(made, 1, sizeof(made), file), sizeof(large) - 1 - 2 + 1);
    fclose(file);
    assert_memory_equal(made + 49999, "x?x", 3);
    assert_int_equal(made[sizeof(large) - 3], '\n');
}

static void it_appends(void **state)
{
    struct rig *rig = *state;

    write_file(rig->file, "before\n");
    start(rig);
    assert_int_equal(put_text(&rig->h, "one"), 0);
    assert_int_equal(put_text(&rig->h, "two"), 0);
    plugin_host_next(&rig->h);
    assert_int_equal(plugin_host_put(&rig->h), 0); /* an empty batch */
    expect_file(rig->file, "before\none\ntwo\n");
}

static void long_texts_are_written_whole(void **state)
{
    enum { LONG = 3 << 20, MIDDLE = 50000 };
    struct rig *rig = *state;
    char *text = malloc(LONG + 1);

    memset(text, 'x', LONG);
    text[LONG] = '\0';
    start(rig);
    for (int i = 0; i < 20; i++)
        plugin_host_add(&rig->h, mr_text(text, MIDDLE));
    plugin_host_add(&rig->h, mr_text(text, LONG));
    plugin_host_add(&rig->h, mr_str("end"));
    assert_int_equal(plugin_host_put(&rig->h), 0);
    assert_int_equal(size_of(rig->file), 20 * (MIDDLE + 1) + LONG + 1 + 4);
    free(text);
}

struct writer {
    const char *file;
    char letter;
};

static void *write_many(void *arg)
{
    const struct writer *w = arg;
    struct plugin_host h = {.stored = -1};
    char text[101];

    memset(text, w->letter, 100);
    text[100] = '\0';
    assert_int_equal(open_sink(&h, w->file), 0);
    for (int put = 0; put < 20; put++) {
        plugin_host_next(&h);
        for (int i = 0; i < 5000; i++)
            plugin_host_add(&h, mr_str(text));
        assert_int_equal(plugin_host_put(&h), 0);
    }
    plugin_host_close(&h);
    return NULL;
}

static void tasks_share_a_file_without_mixing_lines(void **state)
{
    struct rig *rig = *state;
    struct writer writers[] = {{rig->file, 'a'}, {rig->file, 'b'}};
    pthread_t threads[2];
    size_t lines = 0;
    char line[128];
    FILE *file;

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    file = fopen(rig->file, "re");
    while (fgets(line, sizeof(line), file) != NULL) {
        assert_int_equal(strlen(line), 101);
        assert_int_equal(strspn(line, line[0] == 'a' ? "a" : "b"), 100);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 200000);
}

/* --- no room ---------------------------------------------------------------------------------- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_put_that_fails_half_way_leaves_no_trace(void **state)
{
    struct rig *rig = *state;
    char text[1001];

    memset(text, 'x', 1000);
    text[1000] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    start(rig);
    assert_int_equal(put_text(&rig->h, "kept"), 0);
    assert_int_equal(plugin_host_flush(&rig->h), 0);
    limit_files(300500);
    plugin_host_next(&rig->h);
    for (int i = 0; i < 400;
         i++) /* more than the buffer: the first write fits, the second only in part */
        plugin_host_add(&rig->h, mr_str(text));
    assert_int_equal(plugin_host_put(&rig->h), MR_ERR_FATAL);
    limit_files(RLIM_INFINITY);
    assert_non_null(strstr(rig->h.err.text, "Can't write to "));
    assert_non_null(strstr(rig->h.err.text, "File too large"));
    expect_file(rig->file, "kept\n");
    assert_int_equal(plugin_host_put(&rig->h), 0); /* room again: the same batch goes through */
    assert_int_equal(size_of(rig->file), 5 + 400 * 1001);
}

static void a_full_device_fails_the_put(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(open_sink(&rig->h, "/dev/full"), 0);
    assert_int_equal(put_text(&rig->h, "lost"), MR_ERR_FATAL);
    assert_string_equal(rig->h.err.text, "Can't write to /dev/full: No space left on device");
}

/* --- the end of the file ---------------------------------------------------------------------- */

static void half_a_line_of_our_own_is_cut_off(void **state)
{
    struct rig *rig = *state;
    int fd;

    start(rig);
    assert_int_equal(put_text(&rig->h, "whole"), 0);
    plugin_host_close(&rig->h);
    if (getxattr(rig->file, "user.millrace.whole-lines", NULL, 0) < 0)
        skip(); /* a file system without extended attributes */
    fd = open(rig->file, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "hal", 3), 3); /* killed in the middle of a write */
    close(fd);
    start(rig);
    assert_int_equal(put_text(&rig->h, "half"), 0);
    expect_file(rig->file, "whole\nhalf\n");
}

static void half_a_line_of_others_is_ended(void **state)
{
    struct rig *rig = *state;

    write_file(rig->file, "a header");
    start(rig);
    assert_int_equal(put_text(&rig->h, "one"), 0);
    expect_file(rig->file, "a header\none\n");
}

/* --- names ------------------------------------------------------------------------------------ */

static void a_renamed_file_is_left_and_a_new_one_made(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(put_text(&rig->h, "one"), 0);
    assert_int_equal(rename(rig->file, rig->other), 0);
    assert_int_equal(put_text(&rig->h, "two"), 0);
    assert_int_equal(plugin_host_flush(&rig->h), 0);
    expect_file(rig->other, "one\n");
    expect_file(rig->file, "two\n");
    unlink(rig->file);
    assert_int_equal(put_text(&rig->h, "three"), 0);
    expect_file(rig->file, "three\n");
}

static void what_is_no_file_is_refused(void **state)
{
    struct rig *rig = *state;

    mkdir(rig->file, 0700);
    assert_int_equal(open_sink(&rig->h, rig->file), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "is a directory: `file` must name a file"));
}

static void a_missing_folder_is_named(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(open_sink(&rig->h, "/nonexistent/out.txt"), MR_ERR_FATAL);
    assert_string_equal(
        rig->h.err.text,
        "Couldn't find or create file '/nonexistent/out.txt' for FileStreamSinkTask: "
        "No such file or directory");
}

static void without_a_file_it_prints(void **state)
{
    struct rig *rig = *state;
    int ends[2], saved = dup(STDOUT_FILENO);
    char made[16] = "";

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    assert_int_equal(open_sink(&rig->h, NULL), 0);
    assert_int_equal(put_text(&rig->h, "hello"), 0);
    assert_int_equal(plugin_host_flush(&rig->h), 0);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    assert_int_equal(read(ends[0], made, sizeof(made)), 6);
    close(ends[0]);
    assert_string_equal(made, "hello\n");
}

/* A pipe that nobody reads, as stdout: put waits, and gives up when the task must stop, so that
 * nothing is committed. */
static void a_full_pipe_waits_until_the_task_stops(void **state)
{
    struct rig *rig = *state;
    int ends[2], saved = dup(STDOUT_FILENO), rc;
    char block[4096] = {0};

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], block, sizeof(block)) > 0)
        ;
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    rc = open_sink(&rig->h, NULL);
    if (rc == 0) {
        eventfd_write(rig->h.inst.stop_fd, 1);
        rc = put_text(&rig->h, "stuck");
    }
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[0]);
    assert_int_equal(rc, MR_ERR_RETRY);
    assert_string_equal(rig->h.err.text, "Stopped while stdout takes no more");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(values_become_lines_of_java_text),
        TEST(halves_of_surrogate_pairs_become_question_marks),
        TEST(it_appends),
        TEST(long_texts_are_written_whole),
        TEST(tasks_share_a_file_without_mixing_lines),
        TEST(a_put_that_fails_half_way_leaves_no_trace),
        TEST(a_full_device_fails_the_put),
        TEST(half_a_line_of_our_own_is_cut_off),
        TEST(half_a_line_of_others_is_ended),
        TEST(a_renamed_file_is_left_and_a_new_one_made),
        TEST(what_is_no_file_is_refused),
        TEST(a_missing_folder_is_named),
        TEST(without_a_file_it_prints),
        TEST(a_full_pipe_waits_until_the_task_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
