/* SPDX-License-Identifier: Apache-2.0 */
/* The host process: `millrace host NAME`, born from the worker with the descriptors of link/inherit.h, and
 * `millrace scan LIBRARY...`. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

int host_main(int argc, char **argv);   /* exit code: 0 drained, 1 usage or broken link, 70 internal error */
int scan_main(int argc, char **argv);   /* 0; one JSON object a line on stdout for each library */

#endif
