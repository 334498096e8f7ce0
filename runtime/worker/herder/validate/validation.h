/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the validation share. */
#ifndef WORKER_VALIDATION_H
#define WORKER_VALIDATION_H

#include "worker/herder/validate/validate.h"

/* Aliases, overrides, nulls: beyond this they are counted and not looked at. */
#define VALIDATION_NAMED_MAX 200
#define VALIDATION_CONVERTERS 3

struct validation {
    const struct validate_input *in;
    struct validate_result *out;
    const struct catalog_plugin *plugin; /* the connector's; NULL: the worker's own */
    /* Of this configuration; NULL: not set, or not there. */
    const struct catalog_plugin *converters[VALIDATION_CONVERTERS];
};

/* --- validation.c: keys, in order ------------------------------------------------------------- */

/* NULL: not looked at yet. */
struct validate_key *validation_find(struct validation *v, const char *name);
struct validate_key *validation_add(struct validation *v, const char *name, bool front);
/* Found, or added at the end. */
struct validate_key *validation_key(struct validation *v, const char *name);
void validation_say(struct validate_key *key, const char *text); /* copied */
void validation_clear(struct validate_key *key);
MR_PRINTF(3, 4)
void validation_problem(struct validation *v, const char *name, const char *fmt, ...);
/* For config_def_check: arg is a struct validate_key, key its name. */
void validation_bad(void *arg, const char *key, const char *text);

/* --- validation.c: looks into the configuration ----------------------------------------------- */

const char *validation_get(const struct validation *v, const char *key);
bool validation_blank(const char *text); /* or NULL */
struct config_value validation_list(const struct validation *v, const char *name);
/* Among the first count. */
bool validation_contains(const struct config_value *list, size_t count, const char *item);
/* "a, b", as Java prints a list; malloc'ed. */
char *validation_joined(const struct config_value *list);
char *validation_trimmed(const char *text); /* malloc'ed */
bool validation_sink(const struct validation *v);

/* --- validate_plugins.c ----------------------------------------------------------------------- */

/* A class in the version that version_key asks for, or as it goes with the connector where that is
 * NULL or not set. NULL: it is not there, told in err. */
const struct catalog_plugin *validate_plugins_pick(const struct validation *v, uint32_t kind,
                                                   const char *name, const char *version_key,
                                                   struct mr_error *err);
/* Is what the key asks for a version or a range? false: it is none, told in err. */
bool validate_plugins_is_range(const struct validation *v, const char *version_key,
                               struct mr_error *err);
void validate_plugins_converters(struct validation *v); /* fills converters */
void validate_plugins_converter_keys(struct validation *v);
/* Of whatever kind; NULL: not there. */
const struct catalog_plugin *validate_plugins_any(const struct catalog *catalog, const char *name);

/* --- validate_stages.c ------------------------------------------------------------------------ */

/* A key of an alias: its definition, made for it. */
struct validate_stage_key {
    struct mr_config_key def; /* name, group, order and label are the alias's */
    const char *own_name;     /* behind the prefix, in def.name */
    uint32_t kind;            /* MR_PLUGIN_TRANSFORM or MR_PLUGIN_PREDICATE */
    const struct catalog_plugin
        *plugin;         /* NULL: there is none of this kind and name, in any version */
    bool own;            /* one that the plugin declares */
    char *group, *label; /* what def points to */
};

void validate_stages(struct validation *v);
void validate_stages_free(struct validate_stage_key **of);
/* The nested classes of an abstract one, by commas; malloc'ed. NULL: it has none. */
char *validate_stages_nested(const struct catalog *catalog, uint32_t kind, const char *name);

/* --- validate_references.c -------------------------------------------------------------------- */

void validate_references_check(struct validation *v);
/* The value as it was posted, where that is another than what was validated; NULL: it is the
 * same. */
const char *validate_references_raw(const struct validate_input *in, const char *name);

/* --- validate_clients.c ----------------------------------------------------------------------- */

/* MR_ERR_CONFIG: one is no value of its setting's type. */
int validate_clients_overrides(struct validation *v, struct mr_error *err);

#endif
