/* SPDX-License-Identifier: Apache-2.0 */
/* Dates, times and timestamps as Connect's string form has them: 2019-08-23, 14:34:54.346Z,
 * 2019-08-23T14:34:54.346Z. Pure.
 * Spec: Values.parseAsTemporal, Values.dateFormatFor; java.text.SimpleDateFormat, lenient, in
 * UTC. */
#ifndef HOST_TEMPORAL_TEXT_H
#define HOST_TEMPORAL_TEXT_H

#include "base/err.h"

#include <millrace/value.h>

#define TEMPORAL_TEXT_UNITS 24 /* UTF-16 units of the longest */

/* What the two texts, one behind the other, say; rest may have no bytes. Only lengths of 10, 13 and
 * 24 UTF-16 units are looked at, after a backslash before a colon was taken away; within them
 * anything goes that a lenient SimpleDateFormat takes. *kind gets MR_KIND_DATE, _TIME or
 * _TIMESTAMP, *ms the moment. */
bool temporal_text_read(const char *text, size_t len, const char *rest, size_t rest_len,
                        uint8_t *kind, int64_t *ms);

/* The text of a moment: by its size a time (below one day), a date (a whole number of days) or
 * both. Gives the length. */
size_t temporal_text_write(int64_t ms, char out[48]);

/* A moment as a value of a kind of time; where that can't hold it (a date at noon), as a TIMESTAMP,
 * which Connect's checks take in its place. */
struct mr_value temporal_text_value(uint8_t kind, int64_t ms);
int64_t temporal_text_ms(struct mr_value v); /* of any of the three kinds */

#endif
