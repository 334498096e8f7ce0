/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of a configuration only plugin code can judge, and what came of asking. Called by
 * judge.c between validate.c, which has judged by tables, and the answer; pure. */
#include "worker/herder/validate/validation.h"

/* --- the question ----------------------------------------------------------------------------- */

static size_t prefix_of(const struct validate_stage_key *of)
{
    return (size_t)(of->own_name - of->def.name);
}

static bool is_same_alias(const struct validate_stage_key *a, const struct validate_stage_key *b)
{
    return b != NULL && prefix_of(a) == prefix_of(b) &&
           strncmp(a->def.name, b->def.name, prefix_of(a)) == 0;
}

static bool has_value(const struct props *config, const char *name, const struct mr_config_key *def)
{
    const struct props_entry *entry = props_find(config, name);

    return entry != NULL ? entry->value != NULL : def->fallback != NULL;
}

/* A value that nothing is wrong with so far; or none, of which a class may have a second word. */
static bool is_asked(const struct props *config, const struct validate_key *key,
                     const struct mr_config_key *def)
{
    return has_value(config, key->name, def) ? key->error_count == 0
                                             : (def->flags & MR_CFG_CHECK_NULL) != 0;
}

/* What one alias's class is to be asked, from its first key on; NULL: nothing. */
static json_t *question_of(const struct props *config, const struct validate_result *result,
                           size_t first)
{
    const struct validate_stage_key *alias = result->keys[first].stage;
    json_t *values = json_object(), *keys = json_array();

    for (size_t i = first; i < result->key_count; i++) {
        const struct validate_key *key = &result->keys[i];

        if (!is_same_alias(alias, key->stage) || !key->stage->own ||
            !is_asked(config, key, &key->stage->def))
            continue;
        json_array_append_new(keys, json_string(key->stage->own_name));
        if (props_get(config, key->name) != NULL)
            json_object_set_new(values, key->stage->own_name,
                                json_string(props_get(config, key->name)));
    }
    if (json_array_size(keys) == 0) {
        json_decref(values);
        json_decref(keys);
        return NULL;
    }
    return json_pack("{s:s%, s:s, s:s, s:i, s:o, s:o}", "prefix", alias->def.name, prefix_of(alias),
                     "library", alias->plugin->library, "class", alias->plugin->name, "kind",
                     (int)alias->kind, "config", values, "keys", keys);
}

/* What the connector's class is to be asked; NULL: nothing. Across keys it sees all there is. */
static json_t *question_of_connector(const struct props *config,
                                     const struct validate_result *result)
{
    const struct catalog_plugin *plugin = result->plugin;
    struct validation v = {.out = (struct validate_result *)(uintptr_t)result};
    json_t *keys = json_array();

    for (const struct mr_config_key *def = plugin->keys; def->name != NULL; def++) {
        const struct validate_key *key = validation_find(&v, def->name);

        if (key != NULL && is_asked(config, key, def))
            json_array_append_new(keys, json_string(def->name));
    }
    if (json_array_size(keys) == 0) {
        json_decref(keys);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "prefix", "", "library", plugin->library,
                     "class", plugin->name, "kind", (int)plugin->kind, "config",
                     json_from_props(config), "keys", keys);
}

static void ask(json_t *questions, json_t *one)
{
    if (one != NULL)
        json_array_append_new(questions, one);
}

json_t *validate_questions(const struct validate_input *input, const struct validate_result *result)
{
    json_t *questions = json_array();
    bool any;

    if (!result->bare && result->plugin->checks)
        ask(questions, question_of_connector(input->config, result));
    for (size_t i = 0; i < result->key_count; i++) {
        const struct validate_stage_key *of = result->keys[i].stage;

        if (of == NULL || of->plugin == NULL || !of->plugin->checks ||
            strcmp(of->own_name, "type") != 0)
            continue;
        ask(questions, question_of(input->config, result, i));
    }
    any = json_array_size(questions) > 0;
    if (!any)
        json_decref(questions);
    return any ? questions : NULL;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void take_problem(struct validation *v, const json_t *questions, const json_t *problem)
{
    int64_t stage = 0;
    const char *prefix, *key, *text;
    char name[1024];

    if (!json_get_int(problem, "stage", 0, INT32_MAX, &stage) ||
        !json_get_text(json_array_get(questions, (size_t)stage), "prefix", &prefix) ||
        !json_get_text(problem, "key", &key))
        return;
    snprintf(name, sizeof(name), "%s%s", prefix, key);
    if (json_get_text(problem, "error", &text))
        validation_problem(v, name, "%s", text);
    else if (json_get_text(problem, "broken", &text))
        validation_problem(v, name, "Configuration %s could not be checked: %s", name, text);
}

void validate_answered(struct validate_result *result, const json_t *questions,
                       const json_t *problems)
{
    struct validation v = {.out = result};
    size_t i;
    const json_t *problem;

    json_array_foreach(problems, i, problem)
    {
        take_problem(&v, questions, problem);
    }
}
