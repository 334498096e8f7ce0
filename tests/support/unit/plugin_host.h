/* SPDX-License-Identifier: Apache-2.0 */
/* Drives one plugin without Kafka: its descriptor is read, its configuration parsed and its slots
 * called as a task would do it, on the host's real table and batches. The plugin's objects are
 * linked into the test. */
#ifndef SUPPORT_PLUGIN_HOST_H
#define SUPPORT_PLUGIN_HOST_H

#include "host/data/record_arena.h"
#include "host/descriptor.h"
#include "host/host_api.h"

struct plugin_host {
    struct descriptor_set set;
    const struct plugin *plugin;
    struct instance inst;
    struct batch_pool *pool;
    struct batch *batch; /* an empty one after open and next */
    struct mr_error err; /* of the last call */
    int64_t stored;      /* what reading an offset gives; -1: nothing stored */
    bool started;
};

/* name: the plugin's, or an alias. keys: "key", "value", …, NULL. The code of the first failure
 * (err has its text), after which plugin_host_close is still due. */
int plugin_host_open(struct plugin_host *h, const char *name, const char *const *keys);
void plugin_host_close(struct plugin_host *h);

/* Give the batch back and take an empty one. */
void plugin_host_next(struct plugin_host *h);

/* Sources and sinks: one call, on the present batch; err is cleared before. */
int plugin_host_poll(struct plugin_host *h);
int plugin_host_put(struct plugin_host *h);
int plugin_host_flush(struct plugin_host *h);

/* Sinks: a record to put. */
void plugin_host_add(struct plugin_host *h, struct mr_value value);

/* Converters. */
int plugin_host_to_connect(struct plugin_host *h, const void *data, size_t len,
                           const struct mr_schema **schema, struct mr_value *value);
int plugin_host_from_connect(struct plugin_host *h, const struct mr_schema *schema,
                             struct mr_value value, const void **data, size_t *len);

/* Transforms and predicates: one record of the present batch. */
int plugin_host_apply(struct plugin_host *h, struct record *rec);
int plugin_host_test(struct plugin_host *h, const struct record *rec);

static inline struct mr_arena *plugin_host_arena(struct plugin_host *h)
{
    return &h->batch->arena;
}

/* A pool and batch alone, for tests that only need an arena. */
void plugin_host_bare(struct plugin_host *h);

/* The same as a cmocka fixture: *state is the struct plugin_host. */
int plugin_host_set_up(void **state);
int plugin_host_tear_down(void **state);

#endif
