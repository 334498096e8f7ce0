/* SPDX-License-Identifier: Apache-2.0 */
/* No allocation per record in steady state: malloc is interposed and counts what the runtime's own
 * code asks for while a source and a sink move records. What librdkafka allocates for itself is
 * told apart by the caller's address. */
#include "task_rig.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* --- the counter ------------------------------------------------------------------------------ */

static atomic_long own_mallocs;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTING 1

extern char __executable_start[];
extern char etext[];
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

static void count(const void *caller)
{
    if ((const char *)caller >= __executable_start && (const char *)caller < etext)
        atomic_fetch_add_explicit(&own_mallocs, 1, memory_order_relaxed);
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, size);
}
#else
#define COUNTING 0
#endif

/* --- plugins ---------------------------------------------------------------------------------- */

#define RECORDS 300000
#define LEFT 30000 /* what the mock cluster keeps of them at least: 5 MB */

static struct {
    long from; /* counting begins: pools are warm */
    long to;
    long at_from;
    long at_to;
    atomic_long records;
} seen;

static void note(long before, long after)
{
    if (before < seen.from && after >= seen.from)
        seen.at_from = atomic_load(&own_mallocs);
    if (before < seen.to && after >= seen.to)
        seen.at_to = atomic_load(&own_mallocs);
    atomic_store(&seen.records, after);
}

static int many_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    long *next = self;
    long before = *next;
    char text[100];

    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 500 && *next < RECORDS; i++) {
        struct mr_record *rec = mr_batch_add(out, "numbers");

        mr_record_key(rec, mr_text(text, 10));
        mr_record_value(rec, mr_text(text, sizeof(text)));
        mr_record_offset(rec, "numbers", "next", ++*next);
    }
    note(before, *next);
    return *next < RECORDS ? MR_OK : mr_again_in(out, 10000);
}

static int many_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    long before = atomic_load(&seen.records);

    note(before, before + (long)mr_batch_count(in));
    return MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static const struct plugin source = {.kind = MR_PLUGIN_SOURCE,
                                     .name = "Many",
                                     .version = "1",
                                     .library = "test",
                                     .aliases = aliases,
                                     .keys = keys,
                                     .state_size = sizeof(long),
                                     .source = {.poll = many_poll}};
static const struct plugin sink = {.kind = MR_PLUGIN_SINK,
                                   .name = "Drop",
                                   .version = "1",
                                   .library = "test",
                                   .aliases = aliases,
                                   .keys = keys,
                                   .sink = {.put = many_put}};

static bool records_are(struct rig *rig, int64_t n)
{
    return atomic_load(&seen.records) >= n;
}

static bool stored_is(struct rig *rig, int64_t n)
{
    return rig_stored(rig, "{\"name\":\"numbers\"}", "next") == n;
}

static void check(const char *what)
{
    print_message("%s: %ld allocations of ours for %ld records\n", what, seen.at_to - seen.at_from,
                  seen.to - seen.from);
    assert_true(seen.at_to - seen.at_from < (seen.to - seen.from) / 1000);
    assert_true(!COUNTING || seen.at_from > 0);
}

static void the_record_path_does_not_allocate_per_record(void **state)
{
    struct rig rig;

    rig_init(&rig, 1, "topics", "numbers", "producer.override.buffer.memory", "4000000",
             "worker:offset.flush.interval.ms", "60000", NULL);
    rd_kafka_mock_topic_create(rig.cluster, "numbers", 1, 1);
    seen.from = RECORDS / 3;
    seen.to = RECORDS / 6 * 5;
    rig_start(&rig, &source, TARGET_STARTED);
    rig_wait_true(&rig, records_are, RECORDS);
    rig_stop(&rig);
    assert_true(stored_is(&rig, RECORDS));
    check("source");

    memset(&seen, 0, sizeof(seen));
    seen.from = LEFT / 3;
    seen.to = LEFT;
    rig_start(&rig, &sink, TARGET_STARTED);
    rig_wait_true(&rig, records_are, LEFT);
    rig_stop(&rig);
    check("sink");
    rig_deinit(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_path_does_not_allocate_per_record)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
