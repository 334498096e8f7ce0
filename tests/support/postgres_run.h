/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL server that the tests of a program share: started by the first call, through
 * tests/postgres/postgres.sh, ended with the program. */
#ifndef TESTS_POSTGRES_RUN_H
#define TESTS_POSTGRES_RUN_H

const char *postgres_run_url(void); /* without user and password: millrace, secret */
/* What psql gives, values only, without the last line's end; lives until the test ends. A failure
 * fails the test. */
const char *postgres_run_sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void postgres_run_kill(void);    /* as in a crash */
void postgres_run_restart(void); /* on the same port */

#endif
