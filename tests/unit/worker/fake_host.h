/* SPDX-License-Identifier: Apache-2.0 */
/* A host process for tests of the supervisor: the test binary run again as `… host <name>`, behaving as its name says. */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

/* First thing in main: never returns when this process was started as a host or scanner. */
void fake_host_main(int argc, char **argv);

#endif
