/* SPDX-License-Identifier: Apache-2.0 */
/* Records of internal topics as the Java worker wrote them: tests/data/store/. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct golden_record {
    int32_t partition;
    int64_t offset;
    const char *key;
    size_t key_len;
    const char *value; /* NULL: tombstone */
    size_t value_len;
    const char *name; /* of odd.jsonl */
};

struct golden {
    struct golden_record *records;
    size_t count;
    json_t *lines; /* private: the texts lead into it */
};

/* All records of one topic ("configs", "offsets", "status") of one mode ("disabled", "enabled",
 * "rotation"); mode NULL: of all. In the order of the file. Fails the test when there are none. */
struct golden golden_topic(const char *mode, const char *topic);
struct golden golden_odd(void);
void golden_free(struct golden *golden);

#endif
