/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms between source and converters, and between converters and sink. Called by
 * pipeline.c for each record, on the task's thread.
 *
 *   record ─► [predicate? ─► transform] ─► [predicate? ─► transform] ─► …
 *                 each may change it, drop it, or fail
 *
 * A transform changes the record in place, and shares what it leaves alone; before it runs, the
 * record's plain members are kept, and put back when it fails. Each alias has instances of its own,
 * a predicate one for each transform that names it. */
#include "host/task/stages/transform_chain.h"

#include "host/plugin_places.h"
#include "model/conn_config.h"

#include <stdlib.h>
#include <strings.h>

struct chain_link {
    struct plugin_stage transform;
    struct plugin_stage predicate; /* plugin NULL: for all records */
    bool negate;
};

struct transform_chain {
    size_t count;
    struct chain_link links[];
};

static const char *get(const struct props *config, const char *list, const char *alias,
                       const char *key)
{
    const char *value;
    char *name = NULL;

    mr_assert(asprintf(&name, "%s.%s.%s", list, alias, key) > 0);
    value = props_get(config, name);
    free(name);
    return value;
}

/* The plugin <list>.<alias>.type by the settings below <list>.<alias>. */
static int start(struct plugin_stage *stage, const struct stage_owner *owner, uint32_t kind,
                 const char *list, const char *alias, const struct props *config,
                 const json_t *plugins, struct mr_error *err)
{
    const char *named = get(config, list, alias, "type");
    const struct plugin *plugin;
    struct props own;
    char *property = NULL, *prefix = NULL;
    int rc;

    mr_assert(asprintf(&property, "%s.%s.type", list, alias) > 0 &&
              asprintf(&prefix, "%s.%s.", list, alias) > 0);
    props_init(&own);
    plugin = plugin_places_load(plugins, property, kind, named == NULL ? "(none)" : named, err);
    rc = plugin == NULL ? err->code : props_subset(config, prefix, &own);
    if (plugin != NULL && rc == 0)
        rc = plugin_stage_start(stage, owner, plugin, &own, prefix, err);
    if (rc != 0 && plugin != NULL)
        err_prefix(err, "%s.%s", list, alias);
    props_deinit(&own);
    free(property);
    free(prefix);
    return rc;
}

static int start_predicate(struct chain_link *link, const struct stage_owner *owner,
                           const char *alias, const struct props *config, const json_t *plugins,
                           struct mr_error *err)
{
    const char *predicate = get(config, "transforms", alias, "predicate");
    const char *negate = get(config, "transforms", alias, "negate");

    if (predicate == NULL)
        return MR_OK;
    link->negate = negate != NULL && strcasecmp(negate, "true") == 0;
    if (get(config, "predicates", predicate, "type") == NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "transforms.%s.predicate names %s, and there is no predicates.%s.type",
                       alias, predicate, predicate);
    return start(&link->predicate, owner, MR_PLUGIN_PREDICATE, "predicates", predicate, config,
                 plugins, err);
}

struct transform_chain *transform_chain_new(const struct stage_owner *owner,
                                            const struct props *config, const json_t *plugins,
                                            struct mr_error *err)
{
    struct transform_chain *chain = NULL;
    struct config_value aliases;
    int rc = conn_config_get("transforms", config, &aliases, err);

    if (rc == 0) {
        chain = calloc(1, sizeof(*chain) + aliases.item_count * sizeof(chain->links[0]));
        mr_assert(chain != NULL);
    }
    for (size_t i = 0; rc == 0 && i < aliases.item_count; i++) {
        struct chain_link *link = &chain->links[chain->count++];

        rc = start(&link->transform, owner, MR_PLUGIN_TRANSFORM, "transforms", aliases.items[i],
                   config, plugins, err);
        if (rc == 0)
            rc = start_predicate(link, owner, aliases.items[i], config, plugins, err);
    }
    config_value_deinit(&aliases);
    if (rc != 0 && chain != NULL)
        transform_chain_free(&chain);
    return chain;
}

void transform_chain_free(struct transform_chain **chain)
{
    if (*chain == NULL)
        return;
    for (size_t i = 0; i < (*chain)->count; i++) {
        plugin_stage_stop(&(*chain)->links[i].predicate);
        plugin_stage_stop(&(*chain)->links[i].transform);
    }
    free(*chain);
    *chain = NULL;
}

size_t transform_chain_length(const struct transform_chain *chain)
{
    return chain->count;
}

const char *transform_chain_class(const struct transform_chain *chain, size_t at)
{
    return plugin_load_class(chain->links[at].transform.plugin);
}

int transform_chain_check(const struct transform_chain *chain, struct mr_error *err)
{
    int rc = MR_OK;

    for (size_t i = 0; rc == MR_OK && i < chain->count; i++) {
        rc = plugin_stage_check(&chain->links[i].transform, err);
        if (rc == MR_OK)
            rc = plugin_stage_check(&chain->links[i].predicate, err);
    }
    return rc;
}

/* 1: the transform is for this record, 0: it is not; or what the predicate failed with. */
static int applies(struct chain_link *link, const struct record *rec, struct mr_error *err)
{
    struct plugin_stage *predicate = &link->predicate;
    int rc;

    if (predicate->plugin == NULL)
        return 1;
    rc = predicate->plugin->predicate.test(predicate->inst.self, &rec->pub, err);
    return rc < 0 ? rc : (rc > 0) != link->negate;
}

static int apply_one(struct chain_link *link, struct record *rec, struct mr_error *err)
{
    const struct mr_transform *transform = &link->transform.plugin->transform;
    struct mr_record before = rec->pub;
    uint32_t header_cap = rec->header_cap;
    int rc = applies(link, rec, err);

    if (rc <= 0)
        return rc;
    rc = transform->apply(link->transform.inst.self, rec->batch->pub.arena, &rec->pub, err);
    if (rc >= 0)
        return rc == MR_DROP ? MR_DROP : MR_OK;
    rec->pub = before;
    rec->header_cap = header_cap;
    return rc;
}

int transform_chain_apply(struct transform_chain *chain, struct record *rec, size_t *at,
                          struct mr_error *err)
{
    for (; *at < chain->count; ++*at) {
        int rc = apply_one(&chain->links[*at], rec, err);

        if (rc != MR_OK)
            return rc;
    }
    return MR_OK;
}
