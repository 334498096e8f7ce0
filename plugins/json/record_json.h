/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of record JSON: bytes to a tree of values in an arena, with Jackson's leniencies and
 * limits.
 *
 * Not jansson: numbers must keep their digits (big integers wrap, decimals are exact), leading
 * zeros and trailing content are accepted as Java accepts them, and text without escapes is
 * borrowed from the input. */
#ifndef JSON_RECORD_JSON_H
#define JSON_RECORD_JSON_H

#include <millrace/record.h>

/* Jackson's StreamReadConstraints. */
#define RECORD_JSON_MAX_DEPTH 1000
#define RECORD_JSON_MAX_NUMBER 1000       /* digits, without leading zeros */
#define RECORD_JSON_MAX_STRING 20000000   /* UTF-16 units */
#define RECORD_JSON_MAX_NAME 50000        /* bytes of UTF-8 */
#define RECORD_JSON_MAX_VALUES (1u << 26) /* open at a time: our own cap */

/* Kinds that only a tree has, beside NULL, BOOL, INT64 (up to 18 digits), STRING, LIST and MAP with
 * STRING keys. They point to the number's characters, which may lack a NUL. */
#define JSON_BIGINT 64   /* an integer of more digits */
#define JSON_FRACTION 65 /* with a point or an exponent, whose scale fits 32 bits */
#define JSON_MISSING 66  /* of an empty document */

struct record_json {
    /* Settings and scratch, kept from one document to the next. */
    struct mr_value *stack; /* values of containers that are still open */
    size_t cap;
    /* Of the present document. */
    const char *start;
    const char *p;
    const char *end;
    struct mr_arena *arena;
    size_t used; /* of the stack */
    int depth;
    bool wide;  /* set by the owner: was UTF-16 or UTF-32, where names may hold halves of pairs */
    bool plain; /* integers as INT64 (low 64 bits) and fractions as FLOAT64 at once */
    char problem[160]; /* after a failure: what is wrong */
    const char *problem_at;
};

/* Zeroed is initialised. */
void record_json_deinit(struct record_json *r);

/* Read one value at the start of the len bytes; what follows it is judged as Jackson does: after a
 * number white space or the end must come, after anything else whatever likes. Blank input gives
 * JSON_MISSING. false with problem and problem_at filled. *out borrows from data and stands in the
 * arena. */
bool record_json_read(struct record_json *r, struct mr_arena *arena, const char *data, size_t len,
                      bool plain, struct mr_value *out);

/* Piece by piece, for the envelope: open a document, then read values and punctuation one after the
 * other. */
void record_json_open(struct record_json *r, struct mr_arena *arena, const char *data, size_t len,
                      bool plain);
/* The next value, white space before it skipped. */
bool record_json_value(struct record_json *r, struct mr_value *out);
/* A member's name and its colon. */
bool record_json_name(struct record_json *r, struct mr_value *out);
/* The next byte that is no white space, not taken; -1 at the end. */
int record_json_peek(struct record_json *r);
bool record_json_enter(struct record_json *r); /* '{' was taken: one level deeper */
bool record_json_fail(struct record_json *r, const char *at, const char *problem); /* false */

/* The members of an object by name. */
struct record_json_members {
    const struct mr_pair *pairs;
    uint32_t count;
    uint32_t *slots; /* a table of 1-based numbers; NULL: few, compared one by one */
    size_t size;
};

/* tree: a MAP of the reader's; the table, if it pays, stands in the arena. Borrowed for as long as
 * both live. */
void record_json_members(struct record_json_members *members, struct mr_arena *arena,
                         struct mr_value tree);
/* NULL: none. hint: the member's probable number, free when members come in the order of the
 * questions. */
const struct mr_pair *record_json_member(const struct record_json_members *members,
                                         const char *name, uint32_t hint);

/* A number's slice as numbers. */
double record_json_double(const char *p, size_t len);
float record_json_float(const char *p, size_t len);
int64_t record_json_long(const char *p, size_t len); /* truncated towards zero, low 64 bits */
/* A DECIMAL in the arena: exact, scale as written. */
struct mr_value record_json_decimal(struct mr_arena *arena, const char *p, size_t len);
struct mr_value record_json_decimal_long(struct mr_arena *arena, int64_t i);

#endif
