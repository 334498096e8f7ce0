/* SPDX-License-Identifier: Apache-2.0 */
/* Reads topic.creation.* into groups and tells which one a topic belongs to. A source connector's
 * start checks them and fails with Connect's text, its tasks create topics by them
 * (host/task/send/topic_create.c). Pure.
 *
 * Problems are found in Connect's order: the default group's, then the others' in the order of
 * their list, each by include, exclude, replication factor, partitions. Patterns of one list are
 * joined by "|" before they are compiled, as there: a flag such as (?i) covers those behind it. */
#include "model/topic_groups.h"

#include "base/buf.h"
#include "base/text.h"
#include "model/config_def.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "topic.creation."
#define GROUPS PREFIX "groups"
#define DEFAULT "default"
#define NAME_MAX_BYTES 1000
#define JOINED_MAX 65536

/* --- one key ---------------------------------------------------------------------------------- */

struct lookup {
    const struct props *config;
    const char *group;
    char name[NAME_MAX_BYTES]; /* of the key that is looked at */
    struct mr_error *err;
};

static void note(void *arg, const char *key, const char *text)
{
    (void)key;
    mr_fail(arg, MR_ERR_CONFIG, "%s", text);
}

/* The value of topic.creation.<group>.<key>. */
static int look(struct lookup *l, const char *key, uint32_t type, struct config_value *out)
{
    const struct mr_config_key def = {.name = l->name, .type = type};

    snprintf(l->name, sizeof(l->name), PREFIX "%s.%s", l->group, key);
    return config_def_check(&def, l->config, out, note, l->err) == 0 ? 0 : MR_ERR_CONFIG;
}

/* required: there is no fallback. */
static int look_number(struct lookup *l, const char *key, uint32_t type, const char *limits,
                       bool required, int *out)
{
    struct config_value v = {0};
    int rc = look(l, key, type, &v);

    if (rc == 0 && v.present && v.i < 1 && v.i != -1)
        rc = mr_fail(l->err, MR_ERR_CONFIG, "Invalid value %lld for configuration %s: %s",
                     (long long)v.i, l->name, limits);
    if (rc == 0 && !v.present && required)
        rc = mr_fail(l->err, MR_ERR_CONFIG,
                     "Missing required configuration \"%s\" which has no default value.", l->name);
    if (rc == 0 && v.present)
        *out = (int)v.i;
    config_value_deinit(&v);
    return rc;
}

static int look_numbers(struct lookup *l, struct topic_group *group, bool required)
{
    int rc = look_number(l, "replication.factor", MR_CFG_SHORT,
                         "Replication factor must be positive and not larger than the number of "
                         "brokers in the Kafka cluster, or -1 to use the broker's default",
                         required, &group->replication);

    return rc != 0 ? rc
                   : look_number(l, "partitions", MR_CFG_INT,
                                 "Number of partitions must be positive, or -1 to use the broker's "
                                 "default",
                                 required, &group->partitions);
}

/* --- patterns --------------------------------------------------------------------------------- */

static int bad_pattern(struct lookup *l, const struct config_value *list, const char *why)
{
    struct buf all;
    int rc;

    buf_init(&all, JOINED_MAX);
    for (size_t i = 0; i < list->item_count; i++)
        buf_printf(&all, "%s%s", i > 0 ? ", " : "", list->items[i]);
    rc = mr_fail(l->err, MR_ERR_CONFIG,
                 "Invalid value [%.300s] for configuration %s: Syntax error in regular expression: "
                 "%s",
                 all.data != NULL ? all.data : "", l->name, why);
    buf_deinit(&all);
    return rc;
}

/* Each alone must be an expression. */
static int check_each(struct lookup *l, const struct config_value *list)
{
    for (size_t i = 0; i < list->item_count; i++) {
        struct mr_error why = {0};
        struct java_pattern *p = java_pattern_make(list->items[i], &why);

        if (p == NULL)
            return bad_pattern(l, list, why.text);
        java_pattern_free(&p);
    }
    return 0;
}

static int join(struct lookup *l, const struct config_value *list, struct java_pattern **out)
{
    struct buf joined;

    buf_init(&joined, JOINED_MAX);
    for (size_t i = 0; i < list->item_count; i++)
        buf_printf(&joined, "%s%s", i > 0 ? "|" : "", list->items[i]);
    if (joined.failed)
        mr_fail(l->err, MR_ERR_CONFIG, "%s is longer than %d bytes", l->name, JOINED_MAX);
    else
        *out = java_pattern_make(joined.data != NULL ? joined.data : "", l->err);
    buf_deinit(&joined);
    return *out != NULL ? 0 : MR_ERR_CONFIG;
}

static int look_pattern(struct lookup *l, const char *key, struct java_pattern **out)
{
    struct config_value list = {0};
    int rc = look(l, key, MR_CFG_LIST, &list);

    if (rc == 0)
        rc = check_each(l, &list);
    if (rc == 0)
        rc = join(l, &list, out);
    config_value_deinit(&list);
    return rc;
}

/* --- groups ----------------------------------------------------------------------------------- */

static int read_settings(const struct props *config, struct topic_group *group)
{
    static const char *const own[] = {"include", "exclude", "replication.factor", "partitions"};
    char prefix[NAME_MAX_BYTES];
    int rc;

    snprintf(prefix, sizeof(prefix), PREFIX "%s.", group->name);
    rc = props_subset(config, prefix, &group->settings);
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        props_remove(&group->settings, own[i]);
    return rc;
}

/* fallback: the default group; NULL while that is read. */
static int read_group(const struct props *config, const char *name,
                      const struct topic_group *fallback, struct topic_group *group,
                      struct mr_error *err)
{
    struct lookup l = {.config = config, .group = name, .err = err};
    int rc = 0;

    props_init(&group->settings);
    group->name = text_dup(name);
    if (strlen(name) > NAME_MAX_BYTES / 2)
        return mr_fail(err, MR_ERR_CONFIG, "%s: a name is longer than %d bytes", GROUPS,
                       NAME_MAX_BYTES / 2);
    if (fallback != NULL) {
        group->partitions = fallback->partitions;
        group->replication = fallback->replication;
        rc = look_pattern(&l, "include", &group->include);
        rc = rc != 0 ? rc : look_pattern(&l, "exclude", &group->exclude);
    }
    rc = rc != 0 ? rc : look_numbers(&l, group, fallback == NULL);
    return rc != 0 || read_settings(config, group) == 0
               ? rc
               : mr_fail(err, MR_ERR_NOMEM, "out of memory for topic creation groups");
}

static bool is_listed(const struct topic_groups *groups, const char *name)
{
    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->groups[i].name, name) == 0)
            return true;
    return false;
}

/* The default group stands last, and whether it is listed too makes no difference. */
static int read_listed(const struct props *config, const struct config_value *list,
                       struct topic_groups *out, struct mr_error *err)
{
    struct topic_group fallback = {0};
    int rc = read_group(config, DEFAULT, NULL, &fallback, err);

    for (size_t i = 0; rc == 0 && i < list->item_count; i++)
        if (strcmp(list->items[i], DEFAULT) != 0 && !is_listed(out, list->items[i]))
            rc = read_group(config, list->items[i], &fallback, &out->groups[out->count++], err);
    out->groups[out->count++] = fallback;
    return rc;
}

int topic_groups_read(const struct props *config, struct topic_groups *out, struct mr_error *err)
{
    const struct mr_config_key key = {.name = GROUPS, .type = MR_CFG_LIST, .fallback = ""};
    struct config_value list = {0};
    struct mr_error own = {0};
    int rc;

    *out = (struct topic_groups){0};
    err = err != NULL ? err : &own;
    if (config_def_check(&key, config, &list, note, err) != 0)
        return MR_ERR_CONFIG;
    out->groups = calloc(list.item_count + 1, sizeof(*out->groups));
    mr_assert(out->groups != NULL);
    rc = read_listed(config, &list, out, err);
    config_value_deinit(&list);
    return rc;
}

void topic_groups_deinit(struct topic_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct topic_group *group = &groups->groups[i];

        free(group->name);
        props_deinit(&group->settings);
        java_pattern_free(&group->include);
        java_pattern_free(&group->exclude);
    }
    free(groups->groups);
    *groups = (struct topic_groups){0};
}

/* --- use -------------------------------------------------------------------------------------- */

bool topic_groups_wanted(const struct props *worker, const struct props *config)
{
    const struct mr_config_key key = {
        .name = PREFIX "enable", .type = MR_CFG_BOOLEAN, .fallback = "true"};
    struct config_value enabled = {0};
    struct mr_error ignored = {0}; /* the worker has refused to start with it */

    if (config_def_check(&key, worker, &enabled, note, &ignored) != 0 || enabled.i == 0)
        return false;
    for (size_t i = 0; i < config->count; i++)
        if (strncmp(config->entries[i].key, PREFIX, strlen(PREFIX)) == 0)
            return true;
    return false;
}

const struct topic_group *topic_groups_find(const struct topic_groups *groups, const char *topic,
                                            struct mr_error *err)
{
    for (size_t i = 0; i + 1 < groups->count; i++) {
        const struct topic_group *group = &groups->groups[i];
        int out = java_pattern_matches(group->exclude, topic, err);
        int in = out == 0 ? java_pattern_matches(group->include, topic, err) : 0;

        if (out < 0 || in < 0) {
            err_prefix(err, "topic creation group %.100s", group->name);
            return NULL;
        }
        if (in == 1)
            return group;
    }
    return &groups->groups[groups->count - 1];
}
