/* SPDX-License-Identifier: Apache-2.0 */
/* No allocation per record in the stages of a task, the plugins' own included: malloc is
 * interposed and counts every call of this thread, over N and then 2N records. What loops and
 * client ask for besides is test_task_malloc's matter. */
#include "record_run.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static _Thread_local long mallocs;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTING 1

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    mallocs++;
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    mallocs++;
    return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
    mallocs++;
    return __libc_realloc(p, size);
}
#else
#define COUNTING 0
#endif

#define WARM 20 /* batches until pools and caches are full */
#define BATCHES 40

static long count(struct record_run *run, size_t batches)
{
    long before = mallocs;

    record_run_batches(run, batches);
    return mallocs - before;
}

static void stages_do_not_allocate_per_record(void **state)
{
    int guilty = 0;

    (void)state;
    for (size_t i = 0; record_run_name(i) != NULL; i++) {
        struct record_run *run = record_run_open(record_run_name(i), TEST_BUILD "/plugins");
        long warm = count(run, WARM), once = count(run, BATCHES), twice = count(run, 2 * BATCHES);

        print_message("%-16s %ld, then %ld for %d and %ld for %d records\n", record_run_name(i),
                      warm, once, BATCHES * RECORD_RUN_BATCH, twice,
                      2 * BATCHES * RECORD_RUN_BATCH);
        assert_true(!COUNTING || warm > 0);
        guilty += once + twice > 3 * BATCHES * RECORD_RUN_BATCH / 1000;
        record_run_close(&run);
    }
    assert_int_equal(guilty, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_do_not_allocate_per_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
