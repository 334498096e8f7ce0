/* SPDX-License-Identifier: Apache-2.0 */
/* local_store: what is answered as stored is in the file; a damaged file is refused with its byte,
 * whatever byte it is. */
#include "base/file.h"
#include "worker/store/local_store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char folder[64];
    char path[96];
    struct loop *loop;
    struct local_store *store;
    int answers; /* so far */
    int wanted;  /* the loop stops at this many */
    json_t *entries;
    char error[512];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/millrace-store-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/offsets", f->folder);
    f->loop = loop_new(NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char tmp[128];

    local_store_close(&f->store);
    loop_free(&f->loop);
    json_decref(f->entries);
    snprintf(tmp, sizeof(tmp), "%s.tmp", f->path);
    chmod(f->folder, 0700);
    rmdir(tmp);
    unlink(tmp);
    unlink(f->path);
    snprintf(tmp, sizeof(tmp), "%s.lock", f->path);
    unlink(tmp);
    snprintf(tmp, sizeof(tmp), "%s.lock", f->folder);
    unlink(tmp);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

static void open_store(struct fixture *f)
{
    struct mr_error err = {0};

    f->store = local_store_open(f->path, f->loop, &err);
    if (f->store == NULL)
        fail_msg("%s", err.text);
}

static void on_answer(struct fixture *f, const char *error)
{
    snprintf(f->error, sizeof(f->error), "%s", error != NULL ? error : "");
    if (++f->answers == f->wanted)
        loop_stop(f->loop);
}

static void on_written(void *arg, const char *error)
{
    on_answer(arg, error);
}

static void on_read(void *arg, json_t *entries, const char *error)
{
    struct fixture *f = arg;

    json_decref(f->entries);
    f->entries = entries;
    on_answer(f, error);
}

static void wait_for(struct fixture *f, int answers)
{
    f->wanted = f->answers + answers;
    loop_run(f->loop);
}

static void put(struct fixture *f, const char *conn, const char *entries)
{
    json_t *value = json_loads(entries, JSON_DECODE_ANY, NULL);

    assert_non_null(value);
    local_store_put(f->store, conn, value, on_written, f);
}

static void get(struct fixture *f, const char *conn, const char *partitions)
{
    json_t *value = json_loads(partitions, JSON_DECODE_ANY, NULL);

    local_store_get(f->store, conn, value, on_read, f);
    json_decref(value);
}

static void assert_entries(struct fixture *f, const char *want)
{
    json_t *value = json_loads(want, 0, NULL);
    char *got = json_dumps(f->entries, JSON_ENCODE_ANY);

    if (!json_equal(f->entries, value))
        fail_msg("%s where %s belongs", got, want);
    free(got);
    json_decref(value);
}

static char *content(struct fixture *f)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    assert_int_equal(file_read(f->path, &text, NULL), 0);
    return buf_take(&text);
}

static void offsets_survive_a_new_start(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    put(f, "src",
        "[[{\"filename\":\"a\"},{\"position\":12}],[{\"filename\":\"b\"},{\"position\":"
        "9007199254740993}]]");
    wait_for(f, 1);
    assert_string_equal(f->error, "");
    local_store_close(&f->store);
    open_store(f);
    get(f, "src", "[{\"filename\":\"b\"},{\"filename\":\"nope\"},{\"filename\":\"a\"}]");
    wait_for(f, 1);
    assert_entries(f, "[[{\"filename\":\"b\"},{\"position\":9007199254740993}],[{\"filename\":"
                      "\"a\"},{\"position\":12}]]");
    get(f, "other", "[{\"filename\":\"a\"}]");
    wait_for(f, 1);
    assert_entries(f, "[]");
}

static void stored_means_that_it_is_in_the_file(void **state)
{
    struct fixture *f = *state;
    char *text;

    open_store(f);
    put(f, "src", "[[{\"p\":1},{\"at\":1}]]");
    wait_for(f, 1);
    text = content(f);
    assert_non_null(
        strstr(text, "{\"connector\":\"src\",\"partition\":{\"p\":1},\"offset\":{\"at\":1}}\n"));
    free(text);
}

static void a_read_sees_all_writes_before_it(void **state)
{
    struct fixture *f = *state;
    char entries[64];

    open_store(f);
    for (int i = 0; i < 1000; i++) {
        snprintf(entries, sizeof(entries), "[[{\"p\":1},{\"at\":%d}]]", i);
        put(f, "src", entries);
    }
    get(f, "src", "[{\"p\":1}]");
    put(f, "src", "[[{\"p\":1},{\"at\":5000}]]");
    wait_for(f, 1002);
    assert_entries(f, "[[{\"p\":1},{\"at\":999}]]");
}

static void partitions_match_by_value(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    put(f, "src", "[[{\"a\":1,\"b\":{\"x\":true,\"y\":null}},{\"at\":1}]]");
    put(f, "src", "[[{\"b\":{\"y\":null,\"x\":true},\"a\":1},{\"at\":2}]]");
    get(f, "src",
        "[{\"b\":{\"x\":true,\"y\":null},\"a\":1},{\"a\":1.0,\"b\":{\"x\":true,\"y\":null}}]");
    wait_for(f, 3);
    assert_entries(f, "[[{\"b\":{\"x\":true,\"y\":null},\"a\":1},{\"at\":2}]]");
}

static void null_removes_an_offset(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    put(f, "src", "[[{\"p\":1},{\"at\":1}],[{\"p\":2},{\"at\":1}]]");
    put(f, "src", "[[{\"p\":1},null],[{\"p\":3},null]]");
    get(f, "src", "[{\"p\":1},{\"p\":2}]");
    wait_for(f, 3);
    assert_entries(f, "[[{\"p\":2},{\"at\":1}]]");
}

static void a_failed_write_keeps_the_old_offsets_and_says_why(void **state)
{
    struct fixture *f = *state;
    char tmp[128];

    open_store(f);
    put(f, "src", "[[{\"p\":1},{\"at\":1}],[{\"p\":2},{\"at\":1}]]");
    wait_for(f, 1);
    snprintf(tmp, sizeof(tmp), "%s.tmp", f->path);
    assert_int_equal(mkdir(tmp, 0700), 0); /* now it can't be opened for writing, whoever we are */
    put(f, "src",
        "[[{\"p\":1},{\"at\":2}],[{\"p\":2},null],[{\"p\":3},{\"at\":1}],[{\"p\":1},{\"at\":3}]]");
    wait_for(f, 1);
    assert_non_null(strstr(f->error, f->path));
    get(f, "src", "[{\"p\":1},{\"p\":2},{\"p\":3}]");
    wait_for(f, 1);
    assert_entries(f, "[[{\"p\":1},{\"at\":1}],[{\"p\":2},{\"at\":1}]]");
    assert_int_equal(rmdir(tmp), 0);
    put(f, "src", "[[{\"p\":1},{\"at\":4}]]");
    wait_for(f, 1);
    assert_string_equal(f->error, "");
}

static void what_has_the_wrong_shape_is_answered_and_not_stored(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[] = {"{}",
                                        "[1]",
                                        "[[{}]]",
                                        "[[{},{},{}]]",
                                        "[[[],{}]]",
                                        "[[{\"p\":1},[]]]",
                                        "[[{\"p\":1},{}],[null,{}]]",
                                        "null"};
    char *text;

    open_store(f);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put(f, "src", wrong[i]);
        wait_for(f, 1);
        assert_string_not_equal(f->error, "");
    }
    get(f, "src", "[1]");
    wait_for(f, 1);
    assert_string_equal(f->error, "partition 0 is not an object");
    text = content(f);
    assert_non_null(strstr(text, "\n{\"end\":0,"));
    free(text);
}

static void closing_does_and_answers_what_is_queued(void **state)
{
    struct fixture *f = *state;
    char entries[64], *text;

    open_store(f);
    for (int i = 0; i < 500; i++) {
        snprintf(entries, sizeof(entries), "[[{\"p\":%d},{\"at\":1}]]", i);
        put(f, "src", entries);
    }
    local_store_close(&f->store);
    text = content(f);
    assert_non_null(strstr(text, "\n{\"end\":500,"));
    free(text);
    /* Each once: what was posted to the loop too finds nothing left to tell. */
    assert_int_equal(f->answers, 500);
    loop_free(&f->loop);
    assert_int_equal(f->answers, 500);
}

/* --- the text --------------------------------------------------------------------------------- */

#define ENTRY(n, at) \
    "{\"connector\":\"c\",\"partition\":{\"n\":" #n "},\"offset\":{\"at\":" #at "}}\n"

static char *sample(size_t *len)
{
    static const char *const lines =
        "{\"millrace\":\"x\",\"format\":1}\n" ENTRY(1, 10) ENTRY(2, 20) "{\"end\":2}\n";
    json_t *offsets = local_store_parse(lines, strlen(lines), "f", NULL);
    struct buf out;

    assert_non_null(offsets);
    buf_init(&out, 1 << 20);
    assert_int_equal(local_store_render(offsets, &out), 0);
    json_decref(offsets);
    *len = out.len;
    return buf_take(&out);
}

static void a_file_cut_anywhere_is_refused_or_whole(void **state)
{
    size_t len;
    char *text = sample(&len);

    for (size_t cut = 0; cut <= len; cut++) {
        struct mr_error err = {0};
        char *copy = malloc(cut + 1); /* exact, so that reading past it is seen */
        json_t *offsets;

        memcpy(copy, text, cut);
        offsets = local_store_parse(copy, cut, "f", &err);
        if (cut + 1 >= len) {
            assert_int_equal(json_object_size(offsets), 2);
        } else {
            assert_null(offsets);
            assert_int_equal(err.code, MR_ERR_PROTOCOL);
            assert_memory_equal(err.text, "f: byte ", 8);
        }
        json_decref(offsets);
        free(copy);
    }
    free(text);
}

static void no_changed_byte_goes_unnoticed(void **state)
{
    size_t len;
    char *text = sample(&len), *last = strstr(text, "{\"end\"");
    json_t *good = local_store_parse(text, len, "f", NULL);

    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct mr_error err = {0};
            json_t *offsets;

            text[i] = (char)(text[i] ^ 1 << bit);
            offsets = local_store_parse(text, len, "f", &err);
            /* In the last line itself a change may be harmless (the crc's name); then the offsets
             * are whole. */
            if (offsets != NULL && (text + i < last || !json_equal(offsets, good)))
                fail_msg("byte %zu, bit %d", i, bit);
            json_decref(offsets);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    json_decref(good);
    free(text);
}

static void refused(const char *text, int code, const char *want)
{
    struct mr_error err = {0};

    assert_null(local_store_parse(text, strlen(text), "f", &err));
    assert_int_equal(err.code, code);
    if (strncmp(err.text, want, strlen(want)) != 0)
        fail_msg("'%s' where '%s' belongs", err.text, want);
}

static void damage_is_named_by_its_byte(void **state)
{
    refused("", MR_ERR_PROTOCOL, "f: byte 0: the file is empty; ");
    refused("hello\n", MR_ERR_PROTOCOL, "f: byte 5: ");
    refused("{\"a\":1}\n", MR_ERR_PROTOCOL, "f: byte 0: not an offset file of Millrace; ");
    refused("{\"millrace\":\"x\",\"format\":2}\n", MR_ERR_PROTOCOL,
            "f: byte 0: format 2, of a newer Millrace; ");
    refused("{\"millrace\":\"x\",\"format\":1}\n\n", MR_ERR_PROTOCOL,
            "f: byte 28: an empty line; ");
    refused("{\"millrace\":\"x\",\"format\":1}\n", MR_ERR_PROTOCOL,
            "f: byte 28: the file ends here, before its last line; ");
    refused("{\"millrace\":\"x\",\"format\":1}\n" ENTRY(1, 1) ENTRY(1, 2), MR_ERR_PROTOCOL,
            "f: byte 84: the same partition");
    refused(
        "{\"millrace\":\"x\",\"format\":1}\n{\"connector\":\"c\",\"partition\":[],\"offset\":{}}\n",
        MR_ERR_PROTOCOL, "f: byte 28: not an offset: ");
    refused("{\"millrace\":\"x\",\"format\":1}\n" ENTRY(1, 1) "{\"end\":2}\n", MR_ERR_PROTOCOL,
            "f: byte 84: the last line counts 2 offsets, but there are 1; ");
    refused("{\"millrace\":\"x\",\"format\":1}\n{\"end\":0}\nx", MR_ERR_PROTOCOL,
            "f: byte 38: bytes behind the last line; ");
    refused("{\"millrace\":\"x\",\"format\":1}\n{\"end\":0,\"crc32\":\"00000000\"}\n",
            MR_ERR_PROTOCOL,
            "f: byte 28: the bytes before do not match their checksum: 00000000 was written, they "
            "give ");
    refused("{\"millrace\":\"x\",\"format\":1}\n{\"connector\":\"c\",\"partition\":{]\n",
            MR_ERR_PROTOCOL, "f: byte 59: ");
}

static void a_file_of_the_java_worker_is_refused_with_the_remedy(void **state)
{
    struct mr_error err = {0};
    static const char java[] = "\xac\xed\x00\x05sr\x00\x11java.util.HashMap";

    assert_null(local_store_parse(java, sizeof(java) - 1, "/tmp/connect.offsets", &err));
    assert_int_equal(err.code, MR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/tmp/connect.offsets: byte 0: "));
    assert_non_null(strstr(err.text, "set offset.storage.file.filename to a new file"));
}

static void an_unwritable_folder_is_noticed_at_the_start(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/absent/offsets", f->folder);
    assert_null(local_store_open(path, f->loop, &err));
    assert_non_null(strstr(err.text, path));
    err_clear(&err);
    assert_null(local_store_open(f->folder, f->loop, &err));
    assert_non_null(strstr(err.text, "is not a regular file"));
}

/* In a process of its own, as the record lock is the process's. 1: refused, naming file and
 * holder. */
static int open_elsewhere(struct fixture *f, const char *path)
{
    pid_t holder = getpid(), child = fork();
    int status = -1;

    if (child == 0) {
        struct mr_error err = {0};
        char pid[32];

        snprintf(pid, sizeof(pid), "(pid %d)", (int)holder);
        if (local_store_open(path, f->loop, &err) != NULL)
            _exit(0);
        _exit(err.code == MR_ERR_EXISTS && strstr(err.text, path) && strstr(err.text, pid) ? 1 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_file_that_another_worker_has_open_is_refused(void **state)
{
    struct fixture *f = *state;
    char path[128];

    open_store(f);
    assert_int_equal(open_elsewhere(f, f->path), 1);
    snprintf(path, sizeof(path), "%s/./offsets", f->folder);
    assert_int_equal(open_elsewhere(f, path), 1);
    local_store_close(&f->store);
    assert_int_equal(open_elsewhere(f, f->path), 0);
}

/* [[{"p":n},{"at":1,"x":"…"}]] */
static void put_large(struct fixture *f, int n, size_t len)
{
    char *fill = calloc(1, len + 1);
    json_t *value;

    memset(fill, 'x', len);
    value = json_pack("[[{s:i}, {s:i, s:s}]]", "p", n, "at", 1, "x", fill);
    local_store_put(f->store, "src", value, on_written, f);
    free(fill);
}

static void on_refused(void *arg, const char *error)
{
    struct fixture *f = arg;

    assert_non_null(strstr(error != NULL ? error : "", "more than"));
    on_answer(f, NULL);
}

static void of_joined_writes_only_the_one_that_makes_the_file_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    json_t *huge;
    char *fill = calloc(1, ((size_t)40 << 20) + 1);

    open_store(f);
    put_large(f, 1, (size_t)40 << 20); /* long under way: what follows is joined */
    memset(fill, 'y', (size_t)40 << 20);
    huge = json_pack("[[{s:i}, {s:s}]]", "p", 2, "x", fill);
    put(f, "src", "[[{\"p\":3},{\"at\":3}]]");
    local_store_put(f->store, "src", huge, on_refused, f);
    put(f, "src", "[[{\"p\":4},{\"at\":4}]]");
    wait_for(f, 4);
    assert_string_equal(f->error, "");
    get(f, "src", "[{\"p\":2},{\"p\":3},{\"p\":4}]");
    wait_for(f, 1);
    assert_entries(f, "[[{\"p\":3},{\"at\":3}],[{\"p\":4},{\"at\":4}]]");
    free(fill);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(offsets_survive_a_new_start),
        store_test(stored_means_that_it_is_in_the_file),
        store_test(a_read_sees_all_writes_before_it),
        store_test(partitions_match_by_value),
        store_test(null_removes_an_offset),
        store_test(a_failed_write_keeps_the_old_offsets_and_says_why),
        store_test(a_file_that_another_worker_has_open_is_refused),
        store_test(of_joined_writes_only_the_one_that_makes_the_file_too_large_is_refused),
        store_test(what_has_the_wrong_shape_is_answered_and_not_stored),
        store_test(closing_does_and_answers_what_is_queued),
        cmocka_unit_test(a_file_cut_anywhere_is_refused_or_whole),
        cmocka_unit_test(no_changed_byte_goes_unnoticed),
        cmocka_unit_test(damage_is_named_by_its_byte),
        cmocka_unit_test(a_file_of_the_java_worker_is_refused_with_the_remedy),
        store_test(an_unwritable_folder_is_noticed_at_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
