/* SPDX-License-Identifier: Apache-2.0 */
/* elf_check, peek and trace: what is looked at before a library is trusted with anything. */
#include "host/elf_check.h"
#include "host/peek.h"
#include "host/trace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct image {
    Elf64_Ehdr head;
    Elf64_Phdr segments[2];
    char rest[1000];
};

static const struct elf_check_machine ours = {
    .bits = ELFCLASS64, .order = ELFDATA2LSB, .machine = EM_X86_64};

static struct image good_image(void)
{
    struct image image = {
        .head = {.e_type = ET_DYN,
                 .e_machine = EM_X86_64,
                 .e_phoff = sizeof(Elf64_Ehdr),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 2},
        .segments = {{.p_type = PT_LOAD, .p_offset = 0, .p_filesz = sizeof(struct image)},
                     {.p_type = PT_DYNAMIC, .p_offset = 500, .p_filesz = 100}}};

    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_ident[EI_DATA] = ELFDATA2LSB;
    return image;
}

static void assert_refused(const struct image *image, size_t len, uint64_t size, const char *words)
{
    struct mr_error err = {0};
    /* exactly len bytes of heap: a read past them is a sanitizer's business */
    unsigned char *copy = malloc(len + 1);

    memcpy(copy, image, len);
    assert_int_not_equal(elf_check_head(copy, len, size, &ours, &err), 0);
    free(copy);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void complete_image_is_taken(void **state)
{
    struct image image = good_image();
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(
        elf_check_head((unsigned char *)&image, sizeof(image), sizeof(image), &ours, &err), 0);
}

static void wrong_images_are_named(void **state)
{
    struct image image = good_image();

    (void)state;
    assert_refused(&image, 0, 0, "not an ELF file");
    assert_refused(&image, 10, 10, "not an ELF file");
    assert_refused(&image, 40, 40, "truncated ELF file: its header");
    image.head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_refused(&image, sizeof(image), sizeof(image), "built for 32 bits, this Millrace has 64");
    image = good_image();
    image.head.e_ident[EI_DATA] = ELFDATA2MSB;
    assert_refused(&image, sizeof(image), sizeof(image), "other byte order");
    image = good_image();
    image.head.e_machine = EM_AARCH64;
    assert_refused(&image, sizeof(image), sizeof(image),
                   "built for aarch64, this Millrace is for x86-64");
    image = good_image();
    image.head.e_type = ET_REL;
    assert_refused(&image, sizeof(image), sizeof(image), "link it with -shared");
    image = good_image();
    image.segments[1].p_type = PT_NOTE;
    assert_refused(&image, sizeof(image), sizeof(image), "no shared object");
}

static void truncated_images_are_refused_before_they_are_mapped(void **state)
{
    struct image image = good_image();

    (void)state;
    assert_refused(&image, sizeof(Elf64_Ehdr) + 10, sizeof(Elf64_Ehdr) + 10,
                   "program headers end at byte");
    assert_refused(&image, sizeof(image) - 1, sizeof(image) - 1, "segment 0 ends at byte");
    image.segments[0].p_offset = UINT64_MAX - 10;
    assert_refused(&image, sizeof(image), sizeof(image), "truncated ELF file: segment 0");
    image = good_image();
    image.head.e_phoff = UINT64_MAX - 4;
    assert_refused(&image, sizeof(image), sizeof(image), "program headers end");
    image = good_image();
    image.head.e_phnum = 0;
    assert_refused(&image, sizeof(image), sizeof(image), "no usable program headers");
    image = good_image();
    image.head.e_phentsize = 1;
    assert_refused(&image, sizeof(image), sizeof(image), "no usable program headers");
}

static void files_that_are_none_are_refused(void **state)
{
    struct mr_error err = {0};
    char path[] = "/tmp/test-elf-check-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    close(fd);
    assert_int_not_equal(elf_check_file(path, &err), 0);
    assert_string_equal(err.text, "not an ELF file");
    unlink(path);
    err = (struct mr_error){0};
    assert_int_equal(elf_check_file(path, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "No such file"));
    err = (struct mr_error){0};
    assert_int_equal(elf_check_file("/tmp", &err), MR_ERR_IO);
    assert_string_equal(err.text, "not a file");
    /* a pipe nobody writes to must not hold up the loader */
    assert_int_equal(mkfifo(path, 0600), 0);
    err = (struct mr_error){0};
    assert_int_equal(elf_check_file(path, &err), MR_ERR_IO);
    assert_string_equal(err.text, "not a file");
    unlink(path);
}

static void own_libraries_are_taken(void **state)
{
    struct mr_error err = {0};

    (void)state;
    if (elf_check_file(TEST_BUILD "/tests/plugins/odd_descriptors.so", &err) != 0)
        fail_msg("%s", err.text);
}

static void peek_copies_what_is_there_and_refuses_what_is_not(void **state)
{
    struct peek peek;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *to = malloc(2 * page);
    char *text = NULL;

    (void)state;
    assert_int_equal(peek_init(&peek, NULL), 0);
    memset(two, 'a', 2 * page);
    assert_true(peek_copy(&peek, to, two + 1, 2 * page - 2));
    assert_memory_equal(to, two + 1, 2 * page - 2);
    assert_int_equal(munmap(two + page, page), 0);
    assert_true(peek_copy(&peek, to, two, page));
    assert_false(peek_copy(&peek, to, two + 1, page));
    assert_false(peek_copy(&peek, to, NULL, 1));
    assert_false(peek_copy(&peek, to, (void *)(uintptr_t)-8, 64));
    assert_true(peek_copy(&peek, to, two, 1));
    /* a text up to the last readable byte, and one that runs over it */
    assert_int_equal(peek_text(&peek, two, 10, &text), MR_ERR_TOO_LARGE);
    assert_int_equal(peek_text(&peek, two + page - 5, 10, &text), MR_ERR_PROTOCOL);
    two[page - 1] = '\0';
    assert_int_equal(peek_text(&peek, two + page - 5, 10, &text), 0);
    assert_string_equal(text, "aaaa");
    free(text);
    assert_int_equal(peek_text(&peek, two + page - 5, 3, &text), MR_ERR_TOO_LARGE);
    assert_int_equal(peek_text(&peek, two + page - 5, 4, &text), 0);
    free(text);
    munmap(two, page);
    free(to);
    peek_deinit(&peek);
}

static void trace_begins_with_the_class_and_the_message(void **state)
{
    struct mr_error err = {0};
    char out[200];

    (void)state;
    mr_fail(&err, MR_ERR_CONFIG, "no topic");
    assert_string_equal(trace_write(out, sizeof(out), &err, NULL),
                        "org.apache.kafka.common.config.ConfigException: no topic");
    assert_string_equal(
        trace_write(out, sizeof(out), &err, "start of Ticks"),
        "org.apache.kafka.common.config.ConfigException: no topic\n\tin start of Ticks");
    assert_string_equal(trace_class(-999), "org.apache.kafka.connect.errors.ConnectException");
    assert_string_equal(trace_write(out, 10, &err, NULL), "org.apach");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_image_is_taken),
        cmocka_unit_test(wrong_images_are_named),
        cmocka_unit_test(truncated_images_are_refused_before_they_are_mapped),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(own_libraries_are_taken),
        cmocka_unit_test(peek_copies_what_is_there_and_refuses_what_is_not),
        cmocka_unit_test(trace_begins_with_the_class_and_the_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
