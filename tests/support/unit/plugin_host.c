/* SPDX-License-Identifier: Apache-2.0 */
/* What a task does with a plugin, without the task: see the header. Tests of plugins and of the
 * host's data files use it. */
#include "support/unit/plugin_host.h"

#include "model/config_def.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUDGET ((size_t)256 * 1024 * 1024)

/* The plugin's one exported function; weak, since tests without a plugin link this file too. */
extern const struct mr_module *millrace_module(void) __attribute__((weak));

static int read_offset(void *arg, const struct mr_source_partition *part, const char *key,
                       bool *found, int64_t *out, struct mr_error *err)
{
    const struct plugin_host *h = arg;

    (void)part;
    (void)key;
    (void)err;
    *found = h->stored >= 0;
    *out = h->stored;
    return 0;
}

static const struct plugin *find(const struct descriptor_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct plugin *plugin = &set->plugins[i];

        if (strcmp(plugin->name, name) == 0)
            return plugin;
        for (size_t n = 0; plugin->aliases[n] != NULL; n++)
            if (strcmp(plugin->aliases[n], name) == 0)
                return plugin;
    }
    return NULL;
}

typedef int (*start_fn)(void *self, struct mr_task *task, struct mr_error *err);
typedef void (*stop_fn)(void *self);

static int start(struct plugin_host *h)
{
    const start_fn slots[] = {
        [MR_PLUGIN_SOURCE] = h->plugin->source.start,
        [MR_PLUGIN_SINK] = h->plugin->sink.start,
        [MR_PLUGIN_CONVERTER] = h->plugin->converter.start,
        [MR_PLUGIN_TRANSFORM] = h->plugin->transform.start,
        [MR_PLUGIN_PREDICATE] = h->plugin->predicate.start,
        [MR_PLUGIN_HEADER_CONVERTER] = h->plugin->converter.start,
    };
    start_fn slot = slots[h->plugin->kind];

    h->started = true;
    return slot == NULL ? 0 : slot(h->inst.self, &h->inst.pub, &h->err);
}

/* The plugin's own checks, as before a start; the first that fails. */
static int check(struct plugin_host *h)
{
    int (*slot)(const struct mr_task *config, const char *key, const char *shown,
                struct mr_error *err) =
        h->plugin->kind == MR_PLUGIN_TRANSFORM   ? h->plugin->transform.check
        : h->plugin->kind == MR_PLUGIN_PREDICATE ? h->plugin->predicate.check
                                                 : NULL;
    int rc = 0;

    for (size_t i = 0; slot != NULL && rc == 0 && i < h->plugin->key_count; i++)
        if (h->inst.values[i].present)
            rc = slot(&h->inst.pub, h->plugin->keys[i].name, h->plugin->keys[i].name, &h->err);
    return rc;
}

static void stop(struct plugin_host *h)
{
    const stop_fn slots[] = {
        [MR_PLUGIN_SOURCE] = h->plugin->source.stop,
        [MR_PLUGIN_SINK] = h->plugin->sink.stop,
        [MR_PLUGIN_CONVERTER] = h->plugin->converter.stop,
        [MR_PLUGIN_TRANSFORM] = h->plugin->transform.stop,
        [MR_PLUGIN_PREDICATE] = h->plugin->predicate.stop,
        [MR_PLUGIN_HEADER_CONVERTER] = h->plugin->converter.stop,
    };

    if (slots[h->plugin->kind] != NULL)
        slots[h->plugin->kind](h->inst.self);
}

void plugin_host_bare(struct plugin_host *h)
{
    h->pool = batch_pool_new(&host_api_table, BUDGET, 100000);
    h->batch = batch_pool_take(h->pool);
}

int plugin_host_open(struct plugin_host *h, const char *name, const char *const *keys)
{
    int64_t stored = h->stored;
    struct props props;
    int rc;

    memset(h, 0, sizeof(*h));
    h->stored = stored;
    plugin_host_bare(h);
    rc = descriptor_read(millrace_module(), "test", &h->set, &h->err);
    if (rc != 0)
        return rc;
    h->plugin = find(&h->set, name);
    if (h->plugin == NULL)
        return mr_fail(&h->err, MR_ERR_NOT_FOUND, "no plugin %s", name);
    props_init(&props);
    for (; keys != NULL && keys[0] != NULL; keys += 2)
        props_set(&props, keys[0], keys[1]);
    rc = instance_init(&h->inst, h->plugin, &props, &h->err);
    props_deinit(&props);
    if (rc != 0)
        return rc;
    h->inst.stop_fd = eventfd(0, EFD_CLOEXEC);
    h->inst.wake_fd = -1;
    h->inst.task = 0;
    h->inst.connector = "test";
    h->inst.offset_read = read_offset;
    h->inst.offset_arg = h;
    rc = check(h);
    return rc != 0 ? rc : start(h);
}

void plugin_host_close(struct plugin_host *h)
{
    if (h->started)
        stop(h);
    if (h->inst.magic == INSTANCE_MAGIC) {
        close(h->inst.stop_fd);
        instance_deinit(&h->inst);
    }
    batch_pool_give(h->pool, h->batch);
    batch_pool_free(&h->pool);
    descriptor_set_deinit(&h->set);
    h->started = false;
}

void plugin_host_next(struct plugin_host *h)
{
    batch_pool_give(h->pool, h->batch);
    h->batch = batch_pool_take(h->pool);
}

int plugin_host_poll(struct plugin_host *h)
{
    err_clear(&h->err);
    return h->plugin->source.poll(h->inst.self, &h->batch->pub, &h->err);
}

int plugin_host_put(struct plugin_host *h)
{
    err_clear(&h->err);
    return h->plugin->sink.put(h->inst.self, &h->batch->pub, &h->err);
}

int plugin_host_flush(struct plugin_host *h)
{
    err_clear(&h->err);
    return h->plugin->sink.flush(h->inst.self, &h->err);
}

void plugin_host_add(struct plugin_host *h, struct mr_value value)
{
    struct record *rec = batch_add(h->batch, "t");

    rec->pub.value = batch_own(h->batch, value);
}

int plugin_host_to_connect(struct plugin_host *h, const void *data, size_t len,
                           const struct mr_schema **schema, struct mr_value *value)
{
    err_clear(&h->err);
    return h->plugin->converter.to_connect(h->inst.self, &h->batch->arena, "t", data, len, schema,
                                           value, &h->err);
}

int plugin_host_from_connect(struct plugin_host *h, const struct mr_schema *schema,
                             struct mr_value value, const void **data, size_t *len)
{
    err_clear(&h->err);
    return h->plugin->converter.from_connect(h->inst.self, &h->batch->arena, "t", schema, value,
                                             data, len, &h->err);
}

int plugin_host_apply(struct plugin_host *h, struct record *rec)
{
    err_clear(&h->err);
    return h->plugin->transform.apply(h->inst.self, &h->batch->arena, &rec->pub, &h->err);
}

int plugin_host_test(struct plugin_host *h, const struct record *rec)
{
    err_clear(&h->err);
    return h->plugin->predicate.test(h->inst.self, &rec->pub, &h->err);
}

int plugin_host_set_up(void **state)
{
    struct plugin_host *h = calloc(1, sizeof(*h));

    plugin_host_bare(h);
    *state = h;
    return 0;
}

int plugin_host_tear_down(void **state)
{
    struct plugin_host *h = *state;

    plugin_host_close(h);
    free(h);
    return 0;
}
