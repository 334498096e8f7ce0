/* SPDX-License-Identifier: Apache-2.0 */
/* A host process for tests of the supervisor: the test binary run again as `… host <name>`,
 * behaving as its name says, or forked from itself run as `… nest`, which is the real one with this
 * host_main in it. */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

#include <sys/types.h>

/* First thing in main: never returns when this process was started as a host, nest or scanner. */
void fake_host_main(int argc, char **argv);

/* The nest of this process, waited for while it is about to begin; 0: there is none. */
pid_t fake_host_nest(void);

#endif
