/* SPDX-License-Identifier: Apache-2.0 */
/* black_box: what a host noted is read back, whatever a plugin wrote over it can't hurt the
 * reader. */
#include "link/black_box.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    int fd;
    struct black_box *box;  /* the host's */
    struct black_box *read; /* the worker's */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->fd = black_box_create();
    assert_true(f->fd >= 0);
    f->box = black_box_map(f->fd);
    assert_non_null(f->box);
    f->read = malloc(sizeof(*f->read));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    munmap(f->box, sizeof(*f->box));
    close(f->fd);
    free(f->read);
    free(f);
    return 0;
}

static void its_size_is_sealed(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ftruncate(f->fd, 10), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(f->fd, 1 << 20), -1);
    assert_int_equal(fcntl(f->fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_not_equal(fcntl(f->fd, F_GETFD) & FD_CLOEXEC, 0);
}

static void a_call_is_there_between_enter_and_leave(void **state)
{
    struct fixture *f = *state;
    const struct black_box_slot *slot;

    black_box_enter(f->box, 3, "src", 2, "poll");
    assert_true(black_box_read(f->fd, f->read));
    slot = black_box_last_call(f->read);
    assert_ptr_equal(slot, &f->read->slots[3]);
    assert_string_equal(slot->call, "poll");
    assert_string_equal(slot->connector, "src");
    assert_int_equal(slot->task, 2);
    assert_true(slot->since_boot_ms > 0);
    black_box_leave(f->box, 3);
    assert_true(black_box_read(f->fd, f->read));
    assert_null(black_box_last_call(f->read));
}

static void long_names_are_cut(void **state)
{
    struct fixture *f = *state;
    char name[1000];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    black_box_enter(f->box, 0, name, -1, name);
    assert_true(black_box_read(f->fd, f->read));
    assert_int_equal(strlen(f->read->slots[0].connector), 255);
    assert_int_equal(strlen(f->read->slots[0].call), 31);
}

/* A member id is of use only when it is whole: "connector-consumer-<name>-<task>-<uuid>". */
static void the_member_id_of_a_long_name_is_kept_whole(void **state)
{
    struct fixture *f = *state;
    char *id = f->box->slots[1].member_id;
    char name[256], whole[512];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(whole, sizeof(whole), "connector-consumer-%s-127-0f2b8f3c-6e0f-4c57-9a3e-3f3f0d6f8c11",
             name);
    snprintf(id, sizeof(f->box->slots[1].member_id), "%s", whole);
    assert_true(black_box_read(f->fd, f->read));
    assert_string_equal(f->read->slots[1].member_id, whole);
}

static void a_slot_beyond_the_last_is_ignored(void **state)
{
    struct fixture *f = *state;

    black_box_enter(f->box, BLACK_BOX_SLOTS, "src", 2, "poll");
    black_box_leave(f->box, BLACK_BOX_SLOTS);
    assert_true(black_box_read(f->fd, f->read));
    assert_null(black_box_last_call(f->read));
}

static void the_culprit_goes_before_the_longest_call(void **state)
{
    struct fixture *f = *state;

    black_box_enter(f->box, 1, "src", 0, "poll");
    black_box_enter(f->box, 2, "src", 1, "put");
    f->box->slots[1].since_boot_ms = 5000;
    f->box->slots[2].since_boot_ms = 1000;
    assert_true(black_box_read(f->fd, f->read));
    assert_int_equal(black_box_last_call(f->read)->task, 1);
    f->box->culprit = 2;
    assert_true(black_box_read(f->fd, f->read));
    assert_int_equal(black_box_last_call(f->read)->task, 0);
}

static void last_words_are_the_newest_lines(void **state)
{
    struct fixture *f = *state;
    char words[BLACK_BOX_WORDS + 1];
    char line[64];

    black_box_say(f->box, "one", 3);
    black_box_say(f->box, "two\n", 4);
    assert_true(black_box_read(f->fd, f->read));
    black_box_words(f->read, words, sizeof(words));
    assert_string_equal(words, "one\ntwo");
    for (int i = 0; i < 1000; i++)
        black_box_say(f->box, line, (size_t)snprintf(line, sizeof(line), "line %d", i));
    assert_true(black_box_read(f->fd, f->read));
    black_box_words(f->read, words, sizeof(words));
    assert_memory_equal(words, "line ", 5);
    assert_string_equal(words + strlen(words) - 17, "line 998\nline 999");
    black_box_words(f->read, words, 20);
    assert_string_equal(words, "line 998\nline 999");
}

static void a_line_longer_than_the_ring_keeps_its_end(void **state)
{
    struct fixture *f = *state;
    static char line[3 * BLACK_BOX_WORDS];
    char words[BLACK_BOX_WORDS + 1];

    memset(line, 'a', sizeof(line));
    line[sizeof(line) - 1] = 'z';
    black_box_say(f->box, line, sizeof(line));
    assert_true(black_box_read(f->fd, f->read));
    black_box_words(f->read, words, 100);
    assert_int_equal(strlen(words), 99);
    assert_int_equal(words[98], 'z');
}

/* Whatever stands in the file: no text without an end, no number out of range. */
static void expect_clean(struct fixture *f)
{
    char words[BLACK_BOX_WORDS + 1];

    f->box->magic = BLACK_BOX_MAGIC;
    f->box->version = 1;
    assert_true(black_box_read(f->fd, f->read));
    assert_in_range(f->read->culprit, 0, BLACK_BOX_SLOTS);
    assert_in_range(f->read->deadly_signal, 0, 64);
    for (size_t i = 0; i < BLACK_BOX_SLOTS; i++) {
        const struct black_box_slot *slot = &f->read->slots[i];

        assert_true(slot->task >= -1);
        assert_true(slot->since_boot_ms >= 0);
        assert_non_null(memchr(slot->connector, '\0', sizeof(slot->connector)));
        assert_non_null(memchr(slot->call, '\0', sizeof(slot->call)));
        assert_non_null(memchr(slot->member_id, '\0', sizeof(slot->member_id)));
        assert_non_null(memchr(slot->transactional_id, '\0', sizeof(slot->transactional_id)));
        assert_null(strchr(slot->call, '\x1b'));
    }
    black_box_last_call(f->read);
    black_box_words(f->read, words, sizeof(words));
    assert_null(strchr(words, '\x1b'));
}

static void rubbish_is_made_safe(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = (unsigned char *)f->box;

    memset(f->box, 0xff, sizeof(*f->box));
    expect_clean(f);
    memset(f->box, 0x1b, sizeof(*f->box));
    expect_clean(f);
    srand(11);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(*f->box); i++)
            bytes[i] = (unsigned char)(rand() >> 7);
        expect_clean(f);
    }
}

static void what_is_no_black_box_is_not_read(void **state)
{
    struct fixture *f = *state;

    f->box->magic = 1;
    assert_false(black_box_read(f->fd, f->read));
    f->box->magic = BLACK_BOX_MAGIC;
    f->box->version = 99;
    assert_false(black_box_read(f->fd, f->read));
    assert_false(black_box_read(-1, f->read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_size_is_sealed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_is_there_between_enter_and_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_names_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_member_id_of_a_long_name_is_kept_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_slot_beyond_the_last_is_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_culprit_goes_before_the_longest_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(last_words_are_the_newest_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_longer_than_the_ring_keeps_its_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rubbish_is_made_safe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_black_box_is_not_read, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
