/* SPDX-License-Identifier: Apache-2.0 */
/* Codec and leader's round with every allocation failing in turn: an ordinary error each time,
 * nothing half written, and the same round works afterwards. (malloc is interposed: not under a
 * sanitizer.) */
#include "worker/group/lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long left_to_go = -1; /* allocations until one fails; -1: none does */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INTERPOSED 1

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

static bool fails(void)
{
    return left_to_go >= 0 && left_to_go-- == 0;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}
#else
#define INTERPOSED 0
#endif

static void sample(struct buf *out)
{
    struct connect_assignment allocation = {.version = 2, .leader = (char *)"l"};
    struct connect_metadata metadata = {
        .version = 2, .url = (char *)"http://w:8083/", .offset = 1, .allocation = &allocation};

    for (int32_t task = -1; task < 6; task++)
        assert_int_equal(work_list_add(&allocation.assigned, task % 2 ? "a" : "b", task), 0);
    buf_init(out, CONNECT_PROTOCOL_MAX_BYTES);
    assert_int_equal(connect_protocol_write_metadata(out, &metadata), 0);
    work_list_deinit(&allocation.assigned);
}

/* Read, and write again. */
static int codec_once(const struct buf *bytes)
{
    struct connect_metadata metadata = {.offset = 77};
    struct buf out;
    int rc = connect_protocol_read_metadata(bytes->data, bytes->len, false, &metadata, NULL);

    if (rc != 0)
        assert_int_equal(metadata.offset, 77);
    buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
    if (rc == 0)
        rc = connect_protocol_write_metadata(&out, &metadata);
    connect_protocol_metadata_deinit(&metadata);
    buf_deinit(&out);
    return rc;
}

static void the_codec_says_so(void **state)
{
    struct buf bytes;
    int failures = 0;
    long n = 0;

    (void)state;
    sample(&bytes);
    for (bool reached = true; reached && INTERPOSED; n++) {
        int rc;

        left_to_go = n;
        rc = codec_once(&bytes);
        reached = left_to_go < 0;
        left_to_go = -1;
        assert_true(rc == 0 || rc == MR_ERR_NOMEM);
        failures += rc != 0;
    }
    assert_true(!INTERPOSED || failures > 8);
    assert_int_equal(codec_once(&bytes), 0);
    buf_deinit(&bytes);
}

static int round_once(struct assignor *assignor, const struct buf *bytes, bool java, int64_t last)
{
    struct lead_snapshot *snapshot = lead_snapshot_new(1);
    struct lead_terms terms = {.assignor = assignor,
                               .kind = CONNECT_SESSIONED,
                               .java = java,
                               .leader = "m0",
                               .leader_url = "u",
                               .snapshot = snapshot,
                               .last_completed = last,
                               .generation = last + 1};
    struct lead lead = {0};
    int rc = snapshot == NULL ? MR_ERR_NOMEM : 0;

    for (int i = 0; rc == 0 && i < 4; i++)
        rc = lead_snapshot_add(snapshot, i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", 3);
    if (rc == 0)
        rc = lead_add(&lead, "m0", bytes->data, bytes->len, false, NULL);
    if (rc == 0)
        rc = lead_add(&lead, "m1", "\0\2\0\0\0\0\0\0\0\0\0\1", 12, false, NULL);
    if (rc == 0)
        rc = lead_make(&lead, &terms);
    lead_deinit(&lead);
    lead_snapshot_free(&snapshot);
    return rc;
}

static void walk_rounds(bool java)
{
    struct assignor *assignor = assignor_new();
    struct buf bytes;
    int failures = 0;
    long n = 0;

    sample(&bytes);
    for (bool reached = true; reached && INTERPOSED; n++) {
        int rc;

        left_to_go = n;
        rc = round_once(assignor, &bytes, java, n);
        reached = left_to_go < 0;
        left_to_go = -1;
        assert_true(rc == 0 || rc == MR_ERR_NOMEM);
        failures += rc != 0;
        assert_int_equal(round_once(assignor, &bytes, java, n), 0);
    }
    assert_true(!INTERPOSED || failures > 30);
    buf_deinit(&bytes);
    assignor_free(&assignor);
}

static void a_round_says_so_and_works_the_next_time(void **state)
{
    (void)state;
    walk_rounds(true);
    walk_rounds(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_codec_says_so),
        cmocka_unit_test(a_round_says_so_and_works_the_next_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
