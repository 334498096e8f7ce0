/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace scan LIBRARY...` prints, and catalog_read_line reads: the contract between
 * host/scan.c and worker/supervisor/catalog.c.
 *
 * One JSON object a line (no newline inside), UTF-8, flushed line by line. For each library, in the
 * order of argv, first a line before it is opened (so that a crash can be laid at its door), then
 * one line with what came of it:
 *
 *   {"library": PATH, "begin": true}
 *   {"library": PATH, "plugins": [PLUGIN, ...]}
 *   {"library": PATH, "error": "one clear sentence"}
 *
 * PATH     as given in argv, byte for byte
 * PLUGIN   {"name": text, "version": text, "kind": enum mr_plugin_kind as a number,
 *           "aliases": [text, ...], "doc": text or null, "keys": [KEY, ...],
 *           "checks": bool, may be left out: it has a check (check_format.h);
 *           and what struct mr_source and struct mr_sink say by these names, each of which may be
 *           left out: "exactly_once": text, "boundaries": bool, "emits": bool (there is a function
 *           of that name), "stores_offsets": text}
 * KEY      the members of struct mr_config_key by their own names:
 *          {"name": text, "type": number, "flags": number, "fallback": text or null,
 *           "doc": text or null, "choices": text or null, "has_range": bool, "min": integer,
 *           "max": integer, "importance": number, "group": text or null, "order": integer,
 *           "width": number, "display_name": text or null}. A null or zero member may be left out.
 *
 * Before it opens the first library the scanner keeps a private copy of fd 1 for these lines
 * (close-on-exec) and makes fd 1 the same as fd 2, so that what a library prints is not taken for
 * an answer. fd 2 of the scanner is /dev/null. The scanner exits with 0 when it went through all of
 * argv, whatever came of each library.
 *
 * The reader takes every byte as untrusted: anything above the caps below, or of another shape,
 * makes that library bad. */
#ifndef LINK_SCAN_FORMAT_H
#define LINK_SCAN_FORMAT_H

#define SCAN_FORMAT_LINE_MAX (1024 * 1024) /* bytes of one line, without its newline */
#define SCAN_FORMAT_PLUGINS_MAX 256        /* plugins a library */
#define SCAN_FORMAT_KEYS_MAX 1000          /* keys a plugin */
#define SCAN_FORMAT_ALIASES_MAX 32         /* aliases a plugin */
#define SCAN_FORMAT_NAME_MAX 256           /* bytes of a name, version or alias */
#define SCAN_FORMAT_TEXT_MAX 16384         /* bytes of any other text */

#endif
