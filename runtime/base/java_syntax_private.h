/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the translation of Java's regular expressions share. */
#ifndef BASE_JAVA_SYNTAX_PRIVATE_H
#define BASE_JAVA_SYNTAX_PRIVATE_H

#include "base/java_syntax.h"

#define SYNTAX_DEPTH_MAX 100 /* groups and brackets in each other */

/* What is one letter with (?iu). The library leaves the one without a dot and the one with
 * alone. */
#define SYNTAX_EVERY_I "iI\\x{130}\\x{131}"

/* Flags of Java's (?idmsux). */
enum {
    SYNTAX_IGNORE_CASE = 1,
    SYNTAX_UNIX_LINES = 2,
    SYNTAX_MULTILINE = 4,
    SYNTAX_DOTALL = 8,
    SYNTAX_UNICODE_CASE = 16,
    SYNTAX_COMMENTS = 32
};

/* Where the reader stands. chars: len characters without \Q and \E, and three zeros behind. */
struct syntax {
    const char *regex; /* as given, for messages */
    uint32_t *chars;
    size_t len;
    size_t at;
    unsigned flags;
    int depth;
    uint32_t total; /* groups in the whole, known in the second pass */
    struct java_syntax *result;
    struct buf *out;
    struct mr_error *err;
};

/* What an escape sequence stands for. */
enum escaped_kind {
    ESCAPED_CHAR, /* ch */
    ESCAPED_SET,  /* text, as it stands between brackets */
    ESCAPED_TEXT  /* text, on its own; never in brackets */
};
struct escaped {
    enum escaped_kind kind;
    uint32_t ch;
    char text[200];
};

/* The next character that counts; 0 at the end. With (?x), blanks and comments don't count. */
uint32_t syntax_peek(struct syntax *s); /* look */
uint32_t syntax_next(struct syntax *s); /* go on, then look */
uint32_t syntax_read(struct syntax *s); /* look, then go on */
uint32_t syntax_skip(struct syntax *s); /* the one behind the present one, taken as it stands */

/* MR_ERR_CONFIG with Java's text and place; and with our own, for what Java takes and we don't. */
MR_PRINTF(2, 3)
int syntax_fail(struct syntax *s, const char *fmt, ...);
int syntax_refuse(struct syntax *s, const char *what);

/* A character as the library reads it anywhere, also in brackets. */
void syntax_char(struct buf *out, uint32_t ch);
/* The same outside, with its other case when flags say so. */
void syntax_literal(struct syntax *s, uint32_t ch);

/* At a backslash: what the sequence stands for. range: it may begin or end a range in brackets. */
int syntax_escape(struct syntax *s, bool in_class, bool range, struct escaped *e);
/* Behind \p or \P (at is on the letter): the property, as it stands between brackets. */
int syntax_property(struct syntax *s, struct buf *set);
/* At "[": the whole class, as an expression for one character. */
int syntax_class(struct syntax *s, struct buf *out);
/* A group's name, whose first character was read, and the ">" behind it. */
int syntax_name(struct syntax *s, uint32_t ch, char *name, size_t size);
/* \Z, and $ where lines don't count. */
const char *syntax_end(const struct syntax *s);

#endif
