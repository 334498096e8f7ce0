/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace check` is asked and answers: values of connectors, transforms and predicates, and
 * changed offsets of connectors, that only their own code can judge. Written by
 * worker/supervisor/plugin_check.c and host/check.c.
 *
 * The question stands in a file that is its descriptor 0, as one JSON array:
 *
 *   [{"library": PATH, "class": TEXT, "kind": enum mr_plugin_kind, "config": {OWN KEY: TEXT, …},
 *   "keys": [OWN KEY, …]}, …]
 *
 * config is all of it for a connector. Asked of offsets, that has one key, which is only a name,
 * and "offsets": [[partition, offset or null], …] of a source (objects, a partition may be null),
 * [[topic, partition, offset or -1], …] of a sink, where "all": true says that its offsets are
 * forgotten altogether. "worker": {KEY: TEXT, …} has the settings of config providers, which config
 * is resolved by.
 *
 * About the offsets topic that a source has for itself no class is asked, and "own" stands in place
 * of library, class and kind: {"own": "read" or "write", "conn": NAME, "worker": {KEY: TEXT, …},
 * "config": {the connector's}, "keys": ["offsets"], "offsets": [[partition, offset or null], …] to
 * write}.
 *
 * class is the descriptor's own name, config has no prefix and may have members that are wrong,
 * which count as not set. Other members are left alone. The answer goes to descriptor 1, a line of
 * JSON each:
 *
 *   {"stage": N, "key": KEY}                  before the class N of the array is asked of KEY: what
 *                                             crashes or hangs is in there
 *   {"stage": N, "key": KEY, "error": TEXT}   it said no; of a connector also "code": enum mr_code,
 *                                             MR_ERR_NOT_FOUND: it has no say
 *   {"stage": N, "key": KEY, "found": [partition, offset]}
 *                                             one that stands in the own topic; of a connector
 *                                             that has none, none
 *   {"end": true}                             all were asked
 *
 * Descriptor 2 is /dev/null; 1 becomes that too before the first library is opened, the answers go
 * by a private copy. */
#ifndef LINK_CHECK_FORMAT_H
#define LINK_CHECK_FORMAT_H

/* Bytes of a question: it may hold all offsets of a connector, of which the worker's store takes no
 * more at once. */
#define CHECK_FORMAT_QUESTION_MAX ((size_t)64 << 20)
#define CHECK_FORMAT_ANSWERS_MAX ((size_t)1 << 20) /* of all lines, or of one with "found" */
#define CHECK_FORMAT_FOUND_MAX ((size_t)64 << 20)  /* of all lines where an own topic is read */

#endif
