/* SPDX-License-Identifier: Apache-2.0 */
/* One run of client_conf_map for a test, and what can be said about it. The result lives until the
 * next run. */
#ifndef TESTS_MAPPED_H
#define TESTS_MAPPED_H

#include "base/buf.h"
#include "mock_kafka.h"

struct mapped {
    struct props out;
    struct buf remarks; /* "key: text\n" each */
    struct mr_error err;
    int rc;
};

/* bootstrap.servers=b:9092 and these pairs, ended by NULL. */
struct mapped *mapped_run(enum client_kind kind, ...);
#define MAP(kind, ...) mapped_run(kind, __VA_ARGS__, NULL)
int mapped_end(void **state); /* a group's teardown */

void mapped_value(const struct mapped *m, const char *rdkafka, const char *value);
void mapped_unset(const struct mapped *m, const char *rdkafka);
/* MR_ERR_CONFIG with all of these in its text; ended by NULL. */
void mapped_refused(const struct mapped *m, ...);
void mapped_remark(const struct mapped *m, const char *part);
void mapped_silent(const struct mapped *m); /* mapped, and nothing remarked on */

#endif
