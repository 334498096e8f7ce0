/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded, closable queue of pointers between threads. Full means pressure upstream, never a
 * drop. */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

struct queue *queue_new(size_t capacity);
/* what is left is freed by free_item */
void queue_free(struct queue **q, void (*free_item)(void *));
int queue_push(struct queue *q, void *item); /* 0, MR_ERR_FULL, MR_ERR_CLOSED; never blocks */
/* The next item, or NULL: after timeout_ms (monotonic; < 0 = for ever), or when closed and
 * drained. */
void *queue_pop(struct queue *q, int64_t timeout_ms);
void queue_close(struct queue *q);

#endif
