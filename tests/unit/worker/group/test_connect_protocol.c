/* SPDX-License-Identifier: Apache-2.0 */
/* connect_protocol: the Java worker's bytes, both ways, and what its reader refuses. */
#include "worker/group/connect_protocol.h"

#include "group_golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- fields to bytes -------------------------------------------------------------------------- */

static char *dup_text(const json_t *object, const char *key)
{
    const char *text = golden_text(object, key);

    return text == NULL ? NULL : strdup(text);
}

static void assert_bytes(const json_t *line, const struct buf *got)
{
    struct buf wanted;

    buf_init(&wanted, 1 << 20);
    golden_hex(line, "hex", &wanted);
    assert_int_equal(got->len, wanted.len);
    assert_memory_equal(got->data, wanted.data, wanted.len);
    buf_deinit(&wanted);
}

static struct connect_assignment assignment_of(const json_t *line)
{
    struct connect_assignment assignment = {
        .version = (int16_t)golden_int(line, "version", 0),
        .error = (int16_t)golden_int(line, "error", 0),
        .leader = dup_text(line, "leader"),
        .leader_url = dup_text(line, "url"),
        .offset = golden_int(line, "offset", 0),
        .delay_ms = (int32_t)golden_int(line, "delay", 0),
    };

    golden_list(json_object_get(line, "assigned"), &assignment.assigned);
    golden_list(json_object_get(line, "revoked"), &assignment.revoked);
    return assignment;
}

static void encode_assignment(const json_t *line, void *count)
{
    struct connect_assignment assignment;
    struct buf out;

    if (strcmp(golden_text(line, "test"), "encode") != 0)
        return;
    assignment = assignment_of(line);
    buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
    assert_int_equal(connect_protocol_write_assignment(&out, &assignment), 0);
    assert_bytes(line, &out);
    buf_deinit(&out);
    connect_protocol_assignment_deinit(&assignment);
    ++*(int *)count;
}

static void encode_metadata(const json_t *line, void *count)
{
    struct connect_assignment allocation = {0};
    struct connect_metadata metadata = {
        .version = (int16_t)golden_int(line, "version", 0),
        .url = dup_text(line, "url"),
        .offset = golden_int(line, "offset", 0),
    };
    struct buf out;

    if (strcmp(golden_text(line, "test"), "encode") == 0) {
        if (json_is_object(json_object_get(line, "allocation"))) {
            allocation =
                (struct connect_assignment){.version = metadata.version,
                                            .leader = dup_text(line, "last_leader"),
                                            .leader_url = dup_text(line, "last_leader_url"),
                                            .offset = golden_int(line, "last_offset", 0)};
            golden_list(json_object_get(line, "allocation"), &allocation.assigned);
            metadata.allocation = &allocation;
        }
        buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
        assert_int_equal(connect_protocol_write_metadata(&out, &metadata), 0);
        assert_bytes(line, &out);
        buf_deinit(&out);
        ++*(int *)count;
    }
    metadata.allocation = NULL;
    connect_protocol_metadata_deinit(&metadata);
    connect_protocol_assignment_deinit(&allocation);
}

static void bytes_are_those_of_the_java_worker(void **state)
{
    int assignments = 0;
    int metadata = 0;

    (void)state;
    golden_each("assignment.jsonl", encode_assignment, &assignments);
    golden_each("subscription.jsonl", encode_metadata, &metadata);
    assert_true(assignments >= 20 && metadata >= 15);
}

/* --- bytes to fields -------------------------------------------------------------------------- */

static void check_assignment(const json_t *wanted, const struct connect_assignment *got)
{
    assert_int_equal(got->error, golden_int(wanted, "error", 0));
    assert_string_equal(got->leader, golden_text(wanted, "leader"));
    assert_string_equal(got->leader_url, golden_text(wanted, "url"));
    assert_int_equal(got->offset, golden_int(wanted, "offset", 0));
    assert_int_equal(got->delay_ms, golden_int(wanted, "delay", 0));
    golden_assert_same("assigned", json_object_get(wanted, "assigned"), &got->assigned);
    golden_assert_same("revoked", json_object_get(wanted, "revoked"), &got->revoked);
}

static void check_metadata(const json_t *wanted, const struct connect_metadata *got)
{
    const json_t *allocation = json_object_get(wanted, "allocation");

    assert_string_equal(got->url, golden_text(wanted, "url"));
    assert_int_equal(got->offset, golden_int(wanted, "offset", 0));
    if (got->allocation == NULL)
        assert_true(json_object_size(allocation) == 0);
    else if (json_object_get(allocation, "leader") != NULL)
        check_assignment(allocation, got->allocation);
    else
        golden_assert_same("allocation", allocation, &got->allocation->assigned);
}

static bool refused(const json_t *line, int rc, const struct mr_error *err)
{
    if (golden_text(line, "error_class") == NULL) {
        assert_int_equal(rc, 0);
        return false;
    }
    assert_int_equal(rc, MR_ERR_PROTOCOL);
    assert_int_equal(err->code, MR_ERR_PROTOCOL);
    assert_true(err->text[0] != '\0');
    return true;
}

static bool is_eager(const json_t *line)
{
    const char *reader = golden_text(line, "reader");
    const char *protocol = golden_text(line, "protocol");

    return (reader != NULL && strcmp(reader, "eager") == 0) ||
           (protocol != NULL && strcmp(protocol, "default") == 0);
}

static void decode(const json_t *line, struct buf *bytes)
{
    if (strcmp(golden_text(line, "test"), "encode") != 0)
        golden_hex(line, "hex", bytes);
}

static void decode_assignment(const json_t *line, void *count)
{
    struct connect_assignment got = {0};
    struct mr_error err = {0};
    struct buf bytes;

    buf_init(&bytes, 1 << 20);
    decode(line, &bytes);
    if (strcmp(golden_text(line, "test"), "encode") != 0 &&
        !refused(
            line,
            connect_protocol_read_assignment(bytes.data, bytes.len, is_eager(line), &got, &err),
            &err))
        check_assignment(json_object_get(line, "decoded"), &got);
    connect_protocol_assignment_deinit(&got);
    buf_deinit(&bytes);
    ++*(int *)count;
}

static void decode_metadata(const json_t *line, void *count)
{
    struct connect_metadata got = {0};
    struct mr_error err = {0};
    struct buf bytes;

    buf_init(&bytes, 1 << 20);
    decode(line, &bytes);
    if (strcmp(golden_text(line, "test"), "encode") != 0 &&
        !refused(line,
                 connect_protocol_read_metadata(bytes.data, bytes.len, is_eager(line), &got, &err),
                 &err))
        check_metadata(json_object_get(line, "decoded"), &got);
    connect_protocol_metadata_deinit(&got);
    buf_deinit(&bytes);
    ++*(int *)count;
}

static void bytes_are_read_as_the_java_worker_reads_them(void **state)
{
    int count = 0;

    (void)state;
    golden_each("assignment.jsonl", decode_assignment, &count);
    golden_each("subscription.jsonl", decode_metadata, &count);
    assert_true(count > 60);
}

/* --- what the recordings do not have ---------------------------------------------------------- */

static void sample(struct buf *out)
{
    struct connect_assignment allocation = {.version = 2, .leader = (char *)"c-1"};
    struct connect_metadata metadata = {
        .version = 2, .url = (char *)"http://w1:8083/", .offset = 7};

    assert_int_equal(work_list_add(&allocation.assigned, "foo", -1), 0);
    assert_int_equal(work_list_add(&allocation.assigned, "bar", 3), 0);
    assert_int_equal(work_list_add(&allocation.revoked, "gone", 0), 0);
    metadata.allocation = &allocation;
    assert_int_equal(connect_protocol_write_metadata(out, &metadata), 0);
    work_list_deinit(&allocation.assigned);
    work_list_deinit(&allocation.revoked);
}

/* Each prefix is refused but the one that ends where optional fields begin. The bytes lie at the
 * end of an allocation of their own, for the sanitizer. */
static void no_prefix_is_read_beyond_its_end(void **state)
{
    struct buf all;
    int accepted = 0;

    (void)state;
    buf_init(&all, 1 << 20);
    sample(&all);
    for (size_t len = 0; len <= all.len; len++) {
        struct connect_metadata got = {0};
        char *copy = malloc(len + 1);

        memcpy(copy, all.data, len);
        copy = realloc(copy, len > 0 ? len : 1);
        if (connect_protocol_read_metadata(copy, len, false, &got, NULL) == 0)
            accepted++;
        connect_protocol_metadata_deinit(&got);
        free(copy);
    }
    assert_int_equal(accepted, 2); /* without allocation, and whole */
    buf_deinit(&all);
}

/* Missing fields at the end are null or 0, one after another. */
static void missing_fields_at_the_end_are_empty(void **state)
{
    struct connect_assignment assignment = {.version = 2, .offset = 9, .delay_ms = 5};
    static const size_t cut[] = {4, 8, 12};
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    assert_int_equal(connect_protocol_write_assignment(&out, &assignment), 0);
    for (int i = 0; i < 3; i++) {
        struct connect_assignment got = {.delay_ms = 1};

        assert_int_equal(
            connect_protocol_read_assignment(out.data, out.len - cut[i], false, &got, NULL), 0);
        assert_int_equal(got.delay_ms, 0);
        assert_int_equal(got.offset, 9);
        connect_protocol_assignment_deinit(&got);
    }
    buf_deinit(&out);
}

static void counts_beyond_the_bytes_are_refused_before_memory_is_taken(void **state)
{
    /* version 2, error 0, leader "", url "", offset 0, then an assigned list of 0x7fffffff
     * connectors. */
    unsigned char bytes[2 + 2 + 2 + 2 + 8 + 4] = {0, 2};
    struct connect_assignment got = {.delay_ms = 77};
    struct mr_error err = {0};

    (void)state;
    memcpy(bytes + 16, "\x7f\xff\xff\xff", 4);
    assert_int_equal(connect_protocol_read_assignment(bytes, sizeof(bytes), false, &got, &err),
                     MR_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "more elements than bytes"));
    assert_int_equal(got.delay_ms, 77); /* never written on failure */
}

static void a_name_with_nul_is_refused(void **state)
{
    static const char bytes[] = "\0\2\0\3a\0b\0\0\0\0\0\0\0\7\xff\xff\xff\xff";
    struct connect_metadata got = {0};

    (void)state;
    assert_int_equal(connect_protocol_read_metadata(bytes, sizeof(bytes) - 1, false, &got, NULL),
                     MR_ERR_PROTOCOL);
}

static void texts_too_long_for_the_wire_are_refused(void **state)
{
    struct connect_metadata metadata = {.version = 2};
    struct buf out;

    (void)state;
    metadata.url = malloc(40000);
    memset(metadata.url, 'u', 39999);
    metadata.url[39999] = '\0';
    buf_init(&out, CONNECT_PROTOCOL_MAX_BYTES);
    assert_int_equal(connect_protocol_write_metadata(&out, &metadata), MR_ERR_TOO_LARGE);
    buf_deinit(&out);
    buf_init(&out, 100);
    metadata.url[90] = '\0';
    assert_int_equal(connect_protocol_write_metadata(&out, &metadata), MR_ERR_FULL);
    buf_deinit(&out);
    free(metadata.url);
}

static void protocol_names_are_kafkas(void **state)
{
    enum connect_kind kind;

    (void)state;
    for (int i = 0; i < CONNECT_KINDS; i++) {
        assert_true(connect_protocol_kind(connect_protocol_name((enum connect_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_string_equal(connect_protocol_name(CONNECT_EAGER), "default");
    assert_false(connect_protocol_kind("range", &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_java_worker),
        cmocka_unit_test(bytes_are_read_as_the_java_worker_reads_them),
        cmocka_unit_test(no_prefix_is_read_beyond_its_end),
        cmocka_unit_test(missing_fields_at_the_end_are_empty),
        cmocka_unit_test(counts_beyond_the_bytes_are_refused_before_memory_is_taken),
        cmocka_unit_test(a_name_with_nul_is_refused),
        cmocka_unit_test(texts_too_long_for_the_wire_are_refused),
        cmocka_unit_test(protocol_names_are_kafkas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
