/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker and its nest (`millrace nest`, the process that hosts are forked from) say to
 * each other: the contract between worker/supervisor/nest.c and host/nest_main.c. Both are the same
 * file on disk and share its build.
 *
 * A seqpacket socket pair whose end in the nest is descriptor NEST_FORMAT_FD; 2 is the worker's
 * own, 0 and 1 are /dev/null. The worker sends a request with NEST_FORMAT_FDS descriptors
 * (SCM_RIGHTS) that become 1 to 4 of the host, in the order of link/inherit.h. The nest answers
 * once the host is a child of the worker, with its pid. One request is open at a time; end of file
 * is the end of the nest. argv of the nest: `millrace nest <NEST_FORMAT_NAME_MAX blanks>`, room for
 * the name that a host shows to ps. */
#ifndef LINK_NEST_FORMAT_H
#define LINK_NEST_FORMAT_H

#include <stdint.h>

#define NEST_FORMAT_FD 3
#define NEST_FORMAT_FDS 4
#define NEST_FORMAT_NAME_MAX 200 /* bytes of the connector's name; the rest is cut */

struct nest_format_request {
    char name[NEST_FORMAT_NAME_MAX + 1]; /* NUL-terminated */
};

struct nest_format_answer {
    int32_t error; /* 0, or an errno: there is no host */
    int32_t pid;
};

#endif
