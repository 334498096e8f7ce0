/* SPDX-License-Identifier: Apache-2.0 */
/* The host process: `millrace host NAME`, born from the worker with the descriptors of
 * link/inherit.h; `millrace nest`, which hosts are forked from; `millrace scan LIBRARY...` and
 * `millrace check`, which are gone after their answer; `millrace service NAME`, a plugin that is no
 * connector's. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

/* argv[0] is the verb. Exit code: 0 drained, 1 usage or broken link, 70 internal error. */
int host_main(int argc, char **argv);
/* exit code: 0 the worker is gone, 1 usage, 70 internal error */
int nest_main(int argc, char **argv);
int scan_main(int argc, char **argv);  /* 0; lines of link/scan_format.h on stdout */
int check_main(int argc, char **argv); /* 0; question and answer of link/check_format.h */
/* exit code: 0 the worker needs it no more, 1 usage, 70 internal error */
int service_main(int argc, char **argv);

#endif
