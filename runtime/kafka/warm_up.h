/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's first use, done ahead. */
#ifndef KAFKA_WARM_UP_H
#define KAFKA_WARM_UP_H

/* Have librdkafka and the SASL library load and set up what is made once a process, so that those
 * forked from this one share it. Makes no thread, opens no connection, leaves no descriptor.
 * Thread: the only one of the process. */
void warm_up(void);

#endif
