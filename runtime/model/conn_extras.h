/* SPDX-License-Identifier: Apache-2.0 */
/* What Millrace itself reads of a connector's configuration and Kafka Connect does not know: no
 * part of what its validation shows. Hosts read these keys, and the worker remarks upon one that
 * nobody reads; so each stands here, and nowhere else as text. Pure. */
#ifndef MODEL_CONN_EXTRAS_H
#define MODEL_CONN_EXTRAS_H

#define CONN_EXTRAS_DEAD_LETTERS "millrace.errors.deadletterqueue.topic.name"
#define CONN_EXTRAS_COMMIT_INTERVAL "millrace.commit.interval.ms"
#define CONN_EXTRAS_STATE_MAX "millrace.state.max.bytes"
#define CONN_EXTRAS_OUT_OF_RANGE "millrace.offsets.out.of.range"

enum conn_extras_reader {
    CONN_EXTRAS_SOURCE, /* sources */
    CONN_EXTRAS_EMITS,  /* sinks that emit */
    CONN_EXTRAS_STORES, /* sinks whose plugin stores their offsets */
    CONN_EXTRAS_READERS
};

struct conn_extra {
    const char *name;
    enum conn_extras_reader reader;
};

extern const struct conn_extra conn_extras[]; /* ended by a zeroed entry */

/* NULL: it is none. */
const struct conn_extra *conn_extras_find(const char *name);

#endif
