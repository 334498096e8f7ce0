/* SPDX-License-Identifier: Apache-2.0 */
/* References to config providers in a configuration that is validated: it is judged by what they
 * stand for (judge.c has resolved them), and shown as it was posted. Pure. */
#include "worker/herder/validate/validation.h"

#include "base/config_ref.h"

/* --- which plugins there are ------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);

    return len >= n && strcmp(name + len - n, suffix) == 0;
}

/* The worker itself has to know these, and its loop reads no files. */
static bool names_plugins(const struct validate_key *key)
{
    static const char *const names[] = {"connector.class",  "key.converter", "value.converter",
                                        "header.converter", "transforms",    "predicates"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(key->name, names[i]) == 0)
            return true;
    return ends_with(key->name, ".plugin.version") ||
           (key->stage != NULL && strcmp(key->stage->own_name, "type") == 0);
}

void validate_references_check(struct validation *v)
{
    const struct validate_input *in = v->in;

    for (size_t i = 0; in->raw != NULL && i < v->out->key_count; i++) {
        struct validate_key *key = &v->out->keys[i];
        const char *raw = props_get(in->raw, key->name);

        if (raw != NULL && names_plugins(key) &&
            providers_refer(in->worker->providers, raw, false, true))
            validation_problem(
                v, key->name,
                "Invalid value %s for configuration %s: which plugins a connector has must be "
                "known without a look into files: write it out, or take it from the environment",
                raw, key->name);
    }
}

/* --- what stays ------------------------------------------------------------------------------- */

void validate_references_left(const struct validate_input *in, validate_remark fn, void *arg)
{
    const struct props *raw = in->raw != NULL ? in->raw : in->config;

    for (size_t i = 0; i < raw->count; i++) {
        const struct props_entry *entry = &raw->entries[i];
        const char *value = props_get(in->config, entry->key);
        char *left = providers_left(in->worker->providers, entry->value, value, in->why);

        if (left != NULL)
            fn(arg, entry->key, left);
        free(left);
    }
}

/* --- what is shown ---------------------------------------------------------------------------- */

const char *validate_references_raw(const struct validate_input *in, const char *name)
{
    const char *raw = in->raw != NULL ? props_get(in->raw, name) : NULL;
    const char *value = props_get(in->config, name);

    return raw != NULL && value != NULL && strcmp(raw, value) != 0 ? raw : NULL;
}

void validate_hide(struct validate_result *result, const struct secrets *secrets)
{
    for (size_t i = 0; i < result->key_count; i++)
        for (size_t e = 0; e < result->keys[i].error_count; e++) {
            char *hidden = secrets_hide(secrets, result->keys[i].errors[e]);

            if (hidden != NULL) {
                free(result->keys[i].errors[e]);
                result->keys[i].errors[e] = hidden;
            }
        }
}
