/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka_run_group_tests for tests that mostly wait, for a broker's timers above all: each runs in
 * a process of its own, SIDE_BY_SIDE of them at a time. Their output comes whole, test by test, in
 * the order in which they end. */
#ifndef TESTS_SIDE_BY_SIDE_H
#define TESTS_SIDE_BY_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SIDE_BY_SIDE 6

/* filter: a pattern of names with * and ?; NULL = all. group_setup and group_teardown (may be NULL)
 * run for each test. Call it from main, before any thread exists. Gives how many failed. */
int side_by_side_run(const struct CMUnitTest *tests, size_t count, const char *filter,
                     CMFixtureFunction group_setup, CMFixtureFunction group_teardown);

#endif
