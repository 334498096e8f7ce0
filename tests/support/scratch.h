/* SPDX-License-Identifier: Apache-2.0 */
/* What every integration test starts from: a folder of its own, files in it, waiting with a bound,
 * memory that lives until the test ends. One test at a time, one thread. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* cmocka setup and teardown. Setup makes an empty folder for this test below build/<variant>/logs,
 * which stays for looking at; teardown ends all processes that were started by the test, and frees
 * what scratch_keep got. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

const char *scratch_dir(void);              /* absolute */
const char *scratch_path(const char *name); /* of a file in it */
/* stem-<unique>: for topics and groups of a broker that tests share */
const char *scratch_name(const char *stem);

/* Memory until the end of the test. */
void *scratch_keep(void *from_malloc);
const char *scratch_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void scratch_at_end(void (*fn)(void *), void *arg); /* run in teardown, last first */

/* Whole files; a failure fails the test. Paths are taken as they are. */
void scratch_write(const char *path, const char *data, size_t len);
void scratch_append(const char *path, const char *data, size_t len);
void scratch_write_text(const char *path, const char *text);
void scratch_append_text(const char *path, const char *text);
/* NUL-terminated; NULL when there is no such file. */
char *scratch_read(const char *path, size_t *len);
/* false too when there is no such file */
bool scratch_contains(const char *path, const char *text);

int64_t scratch_now_ms(void); /* monotonic */
int64_t scratch_since(int64_t from_ms);
void scratch_pause(int ms); /* between two looks at a condition; nothing else */

/* Wait until the expression holds, for at most ms milliseconds; the test fails with its text
 * otherwise. Gives the time it took. */
#define wait_until(ms, expression) \
    ({ \
        int64_t wait_from = scratch_now_ms(); \
        while (!(expression)) { \
            if (scratch_since(wait_from) > (ms)) \
                fail_msg("not within %d ms: %s", (int)(ms), #expression); \
            scratch_pause(5); \
        } \
        scratch_since(wait_from); \
    })

/* The expression holds now and goes on to hold for ms milliseconds. */
#define holds_for(ms, expression) \
    do { \
        int64_t hold_from = scratch_now_ms(); \
        while (scratch_since(hold_from) < (ms)) { \
            if (!(expression)) \
                fail_msg("no longer after %d ms: %s", (int)scratch_since(hold_from), #expression); \
            scratch_pause(10); \
        } \
    } while (0)

#endif
