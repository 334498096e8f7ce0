/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of librdkafka that no step of the wall clock lengthens or ends. */
#ifndef KAFKA_STEADY_WAIT_H
#define KAFKA_STEADY_WAIT_H

/* Begin to count. Called before the first client is made; any thread, again does nothing. */
void steady_wait_begin(void);

#endif
