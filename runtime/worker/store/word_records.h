/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the topic <group.id>-millrace, in which workers of Millrace tell each other what
 * Connect's group protocol has no words for: from bytes and to bytes. Pure. A Java worker knows
 * nothing of the topic.
 *
 *   leaving-MEMBER  {"member":"MEMBER","url":"http://host:port/","generation":12,"work":"stopped"}
 *                                     it goes, and what it ran has stopped
 *   round-wanted    {"member":"MEMBER","generation":12}
 *                                     whoever is in that round joins again
 *   consumer-CONN-TASK  {"member":"MEMBER"}
 *                                     the id of that sink task in its consumer group: whoever runs
 *                                     it next may make it leave
 *   twins           {"members":["A","B"],"url":"http://host:port/"}
 *                                     both live, and advertise one URL */
#ifndef WORKER_WORD_RECORDS_H
#define WORKER_WORD_RECORDS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum word_kind { WORD_LEAVING, WORD_ROUND, WORD_TWINS, WORD_CONSUMER };

#define WORD_MEMBER_MAX 1024 /* bytes of a member id */
#define WORD_URL_MAX 2048

struct word {
    enum word_kind kind;
    bool tombstone; /* what was said before is over */
    /* Who goes, who wants the round, one of the twins, the consumer; in a tombstone that of LEAVING
     * alone. */
    char *member;
    char *other;        /* TWINS: the other one; CONSUMER: "CONN-TASK" */
    char *url;          /* LEAVING, TWINS */
    bool stopped;       /* LEAVING: its work has stopped */
    int64_t generation; /* LEAVING, ROUND: in which it was said */
    /* When the record was written, as its writer's clock has it; no part of the bytes. */
    int64_t said_wall_ms;
};

void word_deinit(struct word *word);

/* Read one record; value NULL or of no bytes: a tombstone. 0, or MR_ERR_DATA: to be skipped, err
 * says why, word is empty. */
int word_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                       struct word *word, struct mr_error *err);

/* Append key and value. 0, or MR_ERR_FULL beyond a buffer's cap, or for texts that are no UTF-8. A
 * tombstone gets no value: send NULL. */
int word_records_render(const struct word *word, struct buf *key, struct buf *value);

#endif
