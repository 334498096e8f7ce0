/* SPDX-License-Identifier: Apache-2.0 */
/* The black box: a small shared file into which a host writes what each of its threads is doing,
 * and which the worker reads after its death. Writers: host threads, each its own slot, plain
 * stores. Reader: the worker, by pread, as untrusted bytes. */
#ifndef LINK_BLACK_BOX_H
#define LINK_BLACK_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The connector thread, and up to 128 tasks. Fixed, so that the worker can judge the file's size
 * before it reads what a plugin may have written over. Further tasks of a host run all the same,
 * and lose only this: an obituary does not name the call that they were in. The members that they
 * leave in a group are known by MSG_TASK_MEMBER. */
#define BLACK_BOX_SLOTS 129
#define BLACK_BOX_WORDS 4096 /* bytes of last words */

struct black_box_slot {
    int32_t task; /* -1: the connector; valid when call[0] != 0 */
    uint32_t reserved;
    int64_t since_boot_ms; /* CLOCK_BOOTTIME when the call began */
    char connector[256];   /* cut */
    char call[32];         /* "poll", "put", …; empty: not in plugin code */
    char member_id
        [512]; /* the consumer's, for leaving its group: it holds the connector's whole name */
    char transactional_id[256];
};

struct black_box {
    uint32_t magic;        /* BLACK_BOX_MAGIC */
    uint32_t version;      /* 1 */
    int64_t culprit;       /* slot index + 1 of the thread that got a deadly signal, 0 unknown */
    int64_t deadly_signal; /* its number, 0 none */
    struct black_box_slot slots[BLACK_BOX_SLOTS];
    uint32_t words_at; /* bytes ever written: its place in the ring is words_at % BLACK_BOX_WORDS */
    uint32_t reserved;
    char words[BLACK_BOX_WORDS]; /* ring of the last log lines */
};

#define BLACK_BOX_MAGIC 0x4d524242u

/* Worker: a sealed memfd of the right size, or -1 with errno. */
int black_box_create(void);
/* Host: mapped for writing, initialised; NULL with errno. */
struct black_box *black_box_map(int fd);

/* Host, owner thread of the slot. */
void black_box_enter(struct black_box *box, size_t slot, const char *connector, int task,
                     const char *call);
void black_box_leave(struct black_box *box, size_t slot);
/* Any thread; async-signal-safe. */
void black_box_say(struct black_box *box, const char *line, size_t len);

/* Worker: a clean copy of what the file holds: every text ended, every number in range. false: not
 * readable as one. */
bool black_box_read(int fd, struct black_box *out);
/* The last words as text, newest last, printable, at most size - 1 bytes. */
void black_box_words(const struct black_box *box, char *out, size_t size);
/* The slot that was in a call: the culprit's, else the one longest in its call; NULL none. */
const struct black_box_slot *black_box_last_call(const struct black_box *box);

#endif
