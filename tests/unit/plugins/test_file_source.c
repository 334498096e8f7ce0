/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/plugin_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 5000

/* A folder of its own, a file in it, and the source on that file. */
struct rig {
    struct plugin_host h;
    char folder[64];
    char file[96];
    char other[96];
    char text[65536]; /* what poll handed over: lines joined by '|' */
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    snprintf(rig->folder, sizeof(rig->folder), "/tmp/millrace-source-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->file, sizeof(rig->file), "%s/in.txt", rig->folder);
    snprintf(rig->other, sizeof(rig->other), "%s/in.txt.1", rig->folder);
    rig->h.stored = -1;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    if (rig->h.pool != NULL)
        plugin_host_close(&rig->h);
    chmod(rig->file, 0600);
    unlink(rig->file);
    rmdir(rig->file);
    unlink(rig->other);
    rmdir(rig->folder);
    free(rig);
    return 0;
}

static void put_bytes(const char *path, const char *data, size_t len, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static void append(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text), O_APPEND);
}

static void start_with(struct rig *rig, const char *key, const char *value)
{
    const char *keys[] = {"topic", "t", "file", rig->file, key, value, NULL};

    assert_int_equal(plugin_host_open(&rig->h, "FileStreamSource", keys), 0);
}

static void start(struct rig *rig)
{
    start_with(rig, NULL, NULL);
}

static void collect(struct rig *rig)
{
    size_t at = 0;

    rig->text[0] = '\0';
    for (size_t i = 0; i < rig->h.batch->pub.count; i++) {
        struct mr_value v = batch_at(rig->h.batch, i)->pub.value;
        int n = snprintf(rig->text + at, sizeof(rig->text) - at, "%.*s|", (int)v.len,
                         (const char *)v.u.p);

        at += (size_t)n < sizeof(rig->text) - at ? (size_t)n : 0;
    }
}

/* One poll into a new batch; gives its code. */
static int poll_once(struct rig *rig)
{
    int rc;

    plugin_host_next(&rig->h);
    rc = plugin_host_poll(&rig->h);
    collect(rig);
    return rc;
}

static int64_t position(struct rig *rig)
{
    return batch_at(rig->h.batch, rig->h.batch->pub.count - 1)->offset_next;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Poll as the task does: again at once, or when what the source waits for happens; until records or
 * an error come. */
static int poll_until(struct rig *rig)
{
    int64_t end = now_ms() + WAIT_MS;

    while (now_ms() < end) {
        struct pollfd fd;
        int rc = poll_once(rig);

        if (rc < 0 || rig->h.batch->pub.count > 0)
            return rc;
        fd = (struct pollfd){.fd = rig->h.batch->again_fd, .events = POLLIN};
        if (rig->h.batch->again)
            poll(&fd, fd.fd >= 0, (int)rig->h.batch->again_ms);
    }
    fail_msg("nothing came");
    return -1;
}

/* --- lines and offsets ------------------------------------------------------------------------ */

static void lines_become_records_with_byte_offsets(void **state)
{
    struct rig *rig = *state;
    struct record *rec;

    append(rig->file, "one\nzw\xc3\xb6lf\r\n\nrest");
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_string_equal(rig->text, "one|zw\xc3\xb6lf||");
    rec = batch_at(rig->h.batch, 1);
    assert_string_equal(rec->pub.topic, "t");
    assert_int_equal(rec->pub.value_schema->kind, MR_KIND_STRING);
    assert_false(rec->pub.value_schema->optional);
    assert_null(rec->pub.key_schema);
    assert_string_equal(rec->partition->key, "filename");
    assert_string_equal(rec->partition->value, rig->file);
    assert_string_equal(rec->offset_key, "position");
    assert_int_equal(rec->offset_next, 12);
    assert_int_equal(position(rig), 13);
    assert_false(rig->h.batch->over);
}

static void nothing_is_copied(void **state)
{
    struct rig *rig = *state;
    const char *a, *b;

    append(rig->file, "aaaa\nbbbb\n");
    start(rig);
    poll_once(rig);
    a = batch_at(rig->h.batch, 0)->pub.value.u.p;
    b = batch_at(rig->h.batch, 1)->pub.value.u.p;
    assert_int_equal(b - a, 5);
}

static void a_line_without_an_end_is_held_back(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "half");
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(rig->h.batch->pub.count, 0);
    append(rig->file, " and half\r");
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(rig->h.batch->pub.count, 0); /* a '\n' may follow */
    append(rig->file, "\n");
    poll_until(rig);
    assert_string_equal(rig->text, "half and half|");
    assert_int_equal(position(rig), 15);
    assert_true(llabs(batch_at(rig->h.batch, 0)->pub.timestamp - (int64_t)time(NULL) * 1000) <
                60000);
}

/* Such a poll must wait: not MR_OK, which asks to be called again at once, and not before something
 * happens. */
static void a_lone_carriage_return_at_the_end_is_waited_on(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "abc\n\r");
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_string_equal(rig->text, "abc|");
    assert_true(batch_pool_bytes(rig->h.pool) < 65536); /* it was read once */
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(rig->h.batch->pub.count, 0);
    assert_true(rig->h.batch->again_fd >= 0);
    assert_true(batch_pool_bytes(rig->h.pool) < 65536);
    append(rig->file, "\nd\n");
    poll_until(rig);
    assert_string_equal(rig->text, "|d|");
    assert_int_equal(position(rig), 8);
}

/* The block that holds the line must hold the byte behind its '\r' too. */
static void a_line_longer_than_a_block_may_end_in_a_carriage_return(void **state)
{
    static const size_t lengths[] = {65534, 65535, 65536, 65537, 100000};
    struct rig *rig = *state;
    char *line = malloc(100001);
    int64_t expected = 0;

    append(rig->file, "");
    start(rig);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memset(line, 'x', lengths[i]);
        line[lengths[i]] = '\r';
        put_bytes(rig->file, line, lengths[i] + 1, O_APPEND);
        append(rig->file, "y\n");
        poll_until(rig);
        assert_int_equal(rig->h.batch->pub.count, 2);
        assert_int_equal(batch_at(rig->h.batch, 0)->pub.value.len, lengths[i]);
        expected += (int64_t)lengths[i] + 3;
        assert_int_equal(position(rig), expected);
    }
    free(line);
}

static void it_resumes_in_bytes(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "\xc3\xa4\xc3\xb6\xc3\xbc\nnext\n");
    rig->h.stored = 7;
    start(rig);
    poll_once(rig);
    assert_string_equal(rig->text, "next|");
}

static void odd_bytes_are_kept_or_replaced(void **state)
{
    static const char data[] = "a\0b\n\xff\xfe\n\xef\xbb\xbf"
                               "bom\n\xe2\x82\n";
    struct rig *rig = *state;

    put_bytes(rig->file, data, sizeof(data) - 1, 0);
    start(rig);
    poll_once(rig);
    assert_int_equal(rig->h.batch->pub.count, 4);
    assert_int_equal(batch_at(rig->h.batch, 0)->pub.value.len, 3);
    assert_memory_equal(batch_at(rig->h.batch, 0)->pub.value.u.p, "a\0b", 3);
    assert_memory_equal(batch_at(rig->h.batch, 1)->pub.value.u.p, "\xef\xbf\xbd\xef\xbf\xbd", 6);
    assert_memory_equal(batch_at(rig->h.batch, 2)->pub.value.u.p,
                        "\xef\xbb\xbf"
                        "bom",
                        6);
    assert_int_equal(batch_at(rig->h.batch, 3)->pub.value.len, 3);
    assert_int_equal(position(rig), (int64_t)sizeof(data) - 1);
}

static void batch_size_splits_and_nothing_stalls(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "1\n2\n3\n4\n5\n");
    start_with(rig, "batch.size", "2");
    assert_int_equal(poll_once(rig), MR_OK);
    assert_string_equal(rig->text, "1|2|");
    assert_int_equal(poll_once(rig), MR_OK);
    assert_string_equal(rig->text, "3|4|");
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_string_equal(rig->text, "5|");
}

static void many_lines_arrive_whole_and_in_order(void **state)
{
    enum { LINES = 300000 };
    struct rig *rig = *state;
    FILE *file = fopen(rig->file, "we");
    int expected = 0, rc;

    for (int i = 0; i < LINES; i++)
        fprintf(file, "%d%s\n", i,
                i % 7 == 0 ? "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                           : "");
    fclose(file);
    start(rig);
    do {
        plugin_host_next(&rig->h);
        rc = plugin_host_poll(&rig->h);
        assert_true(rc >= 0 && !rig->h.batch->over);
        for (size_t i = 0; i < rig->h.batch->pub.count; i++, expected++)
            assert_int_equal(strtol(batch_at(rig->h.batch, i)->pub.value.u.p, NULL, 10), expected);
    } while (rc == MR_OK);
    assert_int_equal(expected, LINES);
}

static void a_line_of_100_mib_arrives(void **state)
{
    enum { MIB = 1 << 20 };
    struct rig *rig = *state;
    char *block = malloc(MIB);

    memset(block, 'x', MIB);
    start(rig);
    for (int i = 0; i < 100; i++) {
        put_bytes(rig->file, block, MIB, O_APPEND);
        if (i % 20 == 0) {
            assert_int_equal(poll_once(rig), MR_AGAIN);
            assert_true(batch_pool_bytes(rig->h.pool) < 2 * MIB); /* looked through, not held */
        }
    }
    append(rig->file, "\nafter\n");
    poll_until(rig);
    assert_false(rig->h.batch->over);
    assert_int_equal(batch_at(rig->h.batch, 0)->pub.value.len, 100 * MIB);
    if (rig->h.batch->pub.count < 2)
        poll_until(rig);
    assert_int_equal(position(rig), 100 * (int64_t)MIB + 7);
    free(block);
}

static void a_line_beyond_the_limit_fails_clearly(void **state)
{
    struct rig *rig = *state;
    char *block = malloc(200000);

    memset(block, 'x', 200000);
    put_bytes(rig->file, block, 200000, 0);
    free(block);
    start_with(rig, "millrace.file.line.max.bytes", "100000");
    for (int i = 0; i < 3 && rig->h.err.code == 0; i++)
        poll_once(rig);
    assert_int_equal(rig->h.err.code, MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "The line at byte 0 of /tmp/millrace-source-"));
    assert_non_null(strstr(rig->h.err.text, "longer than 100000 bytes"));
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void an_appended_line_is_seen_at_once(void **state)
{
    struct rig *rig = *state;
    struct pollfd fd;
    int64_t before;

    append(rig->file, "");
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    fd = (struct pollfd){.fd = rig->h.batch->again_fd, .events = POLLIN};
    assert_true(fd.fd >= 0);
    assert_int_equal(poll(&fd, 1, 0), 0);
    append(rig->file, "line\n");
    before = now_ms();
    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    assert_true(now_ms() - before < 500);
    poll_once(rig);
    assert_string_equal(rig->text, "line|");
}

static void a_missing_file_is_waited_for(void **state)
{
    struct rig *rig = *state;
    struct pollfd fd;

    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    fd = (struct pollfd){.fd = rig->h.batch->again_fd, .events = POLLIN};
    append(rig->file, "there\n");
    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    poll_once(rig);
    assert_string_equal(rig->text, "there|");
}

static void a_missing_folder_is_waited_for(void **state)
{
    struct rig *rig = *state;

    rmdir(rig->folder);
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    mkdir(rig->folder, 0700);
    append(rig->file, "there\n");
    poll_until(rig);
    assert_string_equal(rig->text, "there|");
}

/* --- what can happen to a file ---------------------------------------------------------------- */

static void truncation_fails_and_says_so(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "one\ntwo\n");
    start(rig);
    poll_once(rig);
    assert_int_equal(truncate(rig->file, 2), 0);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "has 2 bytes, but 8 of it were read before"));
}

static void a_stored_position_behind_the_end_fails_and_says_so(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "one\n");
    rig->h.stored = 1000;
    start(rig);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "has 4 bytes, but 1000 of it were read before"));
    assert_non_null(strstr(rig->h.err.text, "millrace.file.truncated=restart"));
}

/* Rotated while nobody looked, and as long as the old one by now. */
static void another_file_under_the_name_fails_and_says_so(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "a new line, and more\n");
    rig->h.stored = 8;
    start(rig);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "was read up to byte 8, but no line ends there now"));
    assert_non_null(strstr(rig->h.err.text, "millrace.file.truncated=restart"));
}

static void another_file_under_the_name_is_read_from_its_start_if_asked_to(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "a new line, and more\n");
    rig->h.stored = 8;
    start_with(rig, "millrace.file.truncated", "restart");
    poll_once(rig);
    assert_string_equal(rig->text, "a new line, and more|");
}

/* A lone carriage return ends a line too, and so may the end of the file. */
static void every_end_of_a_line_is_a_place_to_go_on(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "a\rb\r\nc\n");
    rig->h.stored = 2;
    start(rig);
    poll_once(rig);
    assert_string_equal(rig->text, "b|c|");
}

static void truncation_begins_again_if_asked_to(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "one\ntwo\n");
    start_with(rig, "millrace.file.truncated", "restart");
    poll_once(rig);
    put_bytes(rig->file, "new\n", 4, O_TRUNC);
    poll_until(rig);
    assert_string_equal(rig->text, "new|");
    assert_int_equal(position(rig), 4);
}

static void rotation_loses_nothing(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "one\n");
    start(rig);
    poll_once(rig);
    append(rig->file, "two\n");
    assert_int_equal(rename(rig->file, rig->other), 0);
    append(rig->other, "three\nunended");
    append(rig->file, "four\n");
    poll_until(rig);
    assert_string_equal(rig->text, "two|three|");
    poll_until(rig);
    assert_string_equal(rig->text, "unended|");
    assert_int_equal(position(rig), 0); /* what comes next is the new file's first line */
    poll_until(rig);
    assert_string_equal(rig->text, "four|");
    assert_int_equal(position(rig), 5);
}

static void a_removed_file_is_read_on_and_its_successor_from_the_start(void **state)
{
    struct rig *rig = *state;
    int writer;

    append(rig->file, "one\n");
    start(rig);
    poll_once(rig);
    writer = open(rig->file, O_WRONLY | O_APPEND | O_CLOEXEC);
    unlink(rig->file);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(write(writer, "two\n", 4), 4);
    close(writer);
    poll_until(rig);
    assert_string_equal(rig->text, "two|");
    append(rig->file, "three\n");
    poll_until(rig);
    assert_string_equal(rig->text, "three|");
    assert_int_equal(position(rig), 6);
}

static void a_directory_is_refused(void **state)
{
    struct rig *rig = *state;

    mkdir(rig->file, 0700);
    start(rig);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "is a directory: `file` must name a file"));
}

static void replacement_by_a_directory_is_refused(void **state)
{
    struct rig *rig = *state;
    int rc = 0;

    append(rig->file, "one\n");
    start(rig);
    poll_once(rig);
    unlink(rig->file);
    mkdir(rig->file, 0700);
    for (int i = 0; i < 3 && rc >= 0; i++)
        rc = poll_once(rig);
    assert_int_equal(rc, MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "is a directory"));
}

static void no_right_to_read_is_named(void **state)
{
    struct rig *rig = *state;

    append(rig->file, "one\n");
    chmod(rig->file, 0);
    chmod(rig->folder, 0755);
    start(rig);
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0); /* root may read everything */
    plugin_host_next(&rig->h);
    assert_int_equal(plugin_host_poll(&rig->h), MR_ERR_FATAL);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_non_null(strstr(rig->h.err.text, "Permission denied"));
}

/* --- streams ---------------------------------------------------------------------------------- */

static void a_pipe_is_read_as_it_comes(void **state)
{
    struct rig *rig = *state;
    int writer;

    assert_int_equal(mkfifo(rig->file, 0600), 0);
    start(rig);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    writer = open(rig->file, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(writer, "one\nha", 6), 6);
    poll_until(rig);
    assert_string_equal(rig->text, "one|");
    assert_int_equal(position(rig), 4);
    assert_int_equal(write(writer, "lf\rx", 4), 4);
    poll_until(rig);
    assert_string_equal(rig->text, "half|");
    close(writer);
    assert_int_equal(poll_once(rig), MR_AGAIN); /* another writer may come */
}

static void a_streams_lines_go_out_before_a_line_that_is_too_long(void **state)
{
    enum { LONG = 300000 };
    struct rig *rig = *state;
    char *block = malloc(LONG);
    int writer;

    assert_int_equal(mkfifo(rig->file, 0600), 0);
    start_with(rig, "millrace.file.line.max.bytes", "100000");
    assert_int_equal(poll_once(rig), MR_AGAIN);
    writer = open(rig->file, O_WRONLY | O_CLOEXEC);
    assert_true(fcntl(writer, F_SETPIPE_SZ, 2 * LONG) >= LONG);
    memset(block, 'x', LONG);
    memcpy(block, "one\n", 4);
    assert_int_equal(write(writer, block, LONG), LONG);
    free(block);
    assert_int_equal(poll_once(rig), MR_OK);
    assert_string_equal(rig->text, "one|");
    assert_int_equal(rig->h.err.code, 0);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "longer than 100000 bytes"));
    close(writer);
}

/* A terminal whose other end is gone gives what was typed, then EIO. */
static void a_streams_lines_go_out_before_a_failure_to_read(void **state)
{
    const char *keys[] = {"topic", "t", NULL};
    struct rig *rig = *state;
    int saved = dup(STDIN_FILENO), terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int typist;

    if (terminal < 0) {
        print_message("no terminals here: %s\n", strerror(errno)); /* a chroot without /dev/pts */
        close(saved);
        skip();
    }
    assert_true(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    typist = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(typist >= 0);
    dup2(terminal, STDIN_FILENO);
    close(terminal);
    assert_int_equal(plugin_host_open(&rig->h, "FileStreamSource", keys), 0);
    assert_int_equal(write(typist, "one\ntwo\n", 8), 8);
    close(typist);
    assert_int_equal(poll_once(rig), MR_OK);
    assert_string_equal(rig->text, "one|two|");
    assert_int_equal(rig->h.err.code, 0);
    assert_int_equal(poll_once(rig), MR_ERR_FATAL);
    assert_non_null(strstr(rig->h.err.text, "Can't read stdin: Input/output error"));
    plugin_host_close(&rig->h);
    rig->h.pool = NULL;
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void stdin_is_read_to_its_end(void **state)
{
    const char *keys[] = {"topic", "t", NULL};
    struct rig *rig = *state;
    int ends[2], saved = dup(STDIN_FILENO);

    assert_int_equal(pipe(ends), 0);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    assert_int_equal(
        plugin_host_open(&rig->h, "org.apache.kafka.connect.file.FileStreamSourceConnector", keys),
        0);
    assert_int_equal(poll_once(rig), MR_AGAIN);
    assert_int_equal(rig->h.batch->again_fd, STDIN_FILENO);
    assert_int_equal(write(ends[1], "one\ntwo", 7), 7);
    poll_until(rig);
    assert_string_equal(rig->text, "one|");
    assert_null(batch_at(rig->h.batch, 0)->partition->value);
    close(ends[1]);
    poll_until(rig);
    assert_string_equal(rig->text, "two|");
    assert_int_equal(poll_once(rig), MR_AGAIN);
    plugin_host_close(&rig->h);
    rig->h.pool = NULL;
    dup2(saved, STDIN_FILENO);
    close(saved);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines_become_records_with_byte_offsets),
        TEST(nothing_is_copied),
        TEST(a_line_without_an_end_is_held_back),
        TEST(a_lone_carriage_return_at_the_end_is_waited_on),
        TEST(a_line_longer_than_a_block_may_end_in_a_carriage_return),
        TEST(it_resumes_in_bytes),
        TEST(odd_bytes_are_kept_or_replaced),
        TEST(batch_size_splits_and_nothing_stalls),
        TEST(many_lines_arrive_whole_and_in_order),
        TEST(a_line_of_100_mib_arrives),
        TEST(a_line_beyond_the_limit_fails_clearly),
        TEST(an_appended_line_is_seen_at_once),
        TEST(a_missing_file_is_waited_for),
        TEST(a_missing_folder_is_waited_for),
        TEST(truncation_fails_and_says_so),
        TEST(a_stored_position_behind_the_end_fails_and_says_so),
        TEST(another_file_under_the_name_fails_and_says_so),
        TEST(another_file_under_the_name_is_read_from_its_start_if_asked_to),
        TEST(every_end_of_a_line_is_a_place_to_go_on),
        TEST(truncation_begins_again_if_asked_to),
        TEST(rotation_loses_nothing),
        TEST(a_removed_file_is_read_on_and_its_successor_from_the_start),
        TEST(a_directory_is_refused),
        TEST(replacement_by_a_directory_is_refused),
        TEST(no_right_to_read_is_named),
        TEST(a_pipe_is_read_as_it_comes),
        TEST(a_streams_lines_go_out_before_a_line_that_is_too_long),
        TEST(a_streams_lines_go_out_before_a_failure_to_read),
        TEST(stdin_is_read_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
