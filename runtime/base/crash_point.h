/* SPDX-License-Identifier: Apache-2.0 */
/* Places where a crash would hurt most: between an act and the note that it is done. A build for
 * tests (make chaos-build) can be made to die at one of them, as by kill -9; everywhere else they
 * are nothing. Who dies when: tests/support/crash_trigger.h. */
#ifndef BASE_CRASH_POINT_H
#define BASE_CRASH_POINT_H

/* What stands behind a name is what has been done when the point is met, and what has not. */
#define CRASH_POINTS(X) \
    /* a record of a source, or one that is emitted */ \
    X(SEND)      /* nothing of it */ \
    X(SENT)      /* the client has it; the brokers perhaps */ \
    X(DELIVERED) /* the brokers have it; its offset does not move yet */ \
    X(SETTLED)   /* its offset may be stored, and is not */ \
    /* a transaction */ \
    X(TXN_BEGIN)   /* the one before it is over, and its records are to be sent */ \
    X(TXN_BEGUN)   /* open, without records */ \
    X(TXN_FULL)    /* all its records are delivered; no offsets */ \
    X(TXN_OFFSETS) /* offsets of a source are about to be sent */ \
    X(TXN_OFFSETS_SENT) \
    X(TXN_OFFSETS_DELIVERED) \
    X(TXN_GROUP) /* the offsets of a group are about to be added */ \
    X(TXN_GROUP_ADDED) \
    X(TXN_END)   /* complete, and not ended */ \
    X(TXN_ENDED) /* committed; who made it does not know */ \
    X(TXN_TOLD)  /* the plugin knows; the copy in the worker's topic is under way */ \
    X(TXN_ABORT) \
    X(TXN_ABORTED) /* what it was about is still in memory */ \
    X(TXN_FENCED)  /* earlier tasks are fenced; the id is not taken */ \
    X(TXN_CLAIMED) /* it is; the worker has not said that the task is still ours */ \
    /* a sink */ \
    X(PUT)        /* the plugin is about to be given a batch */ \
    X(PUT_TAKEN)  /* it has taken it; the ledger does not know */ \
    X(STATE_SENT) /* what it keeps is handed to the producer, in front of its last records */ \
    X(COMMIT)     /* flushed; the group's offsets are about to be committed */ \
    X(COMMITTED)  /* they are; the ledger does not know */ \
    /* offsets of a source without transactions */ \
    X(OFFSETS)        /* about to go to the worker */ \
    X(OFFSETS_STORED) /* stored; the task knows, the plugin does not */ \
    /* records of internal topics */ \
    X(RECORD)         /* offset, status or configuration: not sent */ \
    X(RECORD_WRITTEN) /* delivered; who asked for it does not know */ \
    X(LEADER_BEGIN)   /* a leader's set under exactly-once: its transaction */ \
    X(LEADER_SEND)    /* each record of the set */ \
    X(LEADER_SENT)    /* the whole set is delivered */ \
    X(LEADER_ENDED)   /* and committed; who asked for it does not know */ \
    X(STEP_DONE)      /* the records of tasks are written; their commit record is not */ \
    X(STATUS)         /* a status is about to be written */ \
    X(STATUS_WRITTEN) \
    X(ROUND_FENCED) /* a fencing round is through; the number of tasks is not noted */ \
    X(ROUND_NOTED)  /* it is; nobody is told */ \
    /* the offset file of a standalone worker */ \
    X(FILE_WRITE)   /* the new one is empty */ \
    X(FILE_WRITTEN) /* synced, under another name */ \
    X(FILE_RENAMED) /* in place; the folder is not synced */ \
    X(FILE_STORED)  /* on disk; who asked for it does not know */

#define CRASH_POINT_ENUM(name) CRASH_POINT_##name,
enum crash_point { CRASH_POINTS(CRASH_POINT_ENUM) CRASH_POINT_COUNT };

/* Any thread. Does not return where this is the one. Not in the product. */
void crash_point_met(enum crash_point point);

#ifdef MILLRACE_CRASH_POINTS
#define CRASH_POINT(name) crash_point_met(CRASH_POINT_##name)
#else
#define CRASH_POINT(name) ((void)CRASH_POINT_##name)
#endif

#endif
