/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of transforms and predicates: each alias of the two lists becomes keys of its own,
 * with a definition that is made here, in a group of its own. Called by validate.c; pure: what
 * plugin code alone can judge is asked for afterwards (validate_questions.c).
 *
 * Connect embeds the plugin's definition below the alias: what can't be read is told by the whole
 * name, what a validator refuses by the plugin's own name for it. Keys come in the order of
 * ConfigDef: type, version, then by group, order, need, importance and name. Spec:
 * ConnectorConfig.enrich; reference connector-config 3. */
#include "base/buf.h"
#include "worker/herder/validate/validation.h"
#include "worker/supervisor/plugin_pick.h"

struct stage {
    uint32_t kind;
    const char *list, *group, *type_label, *version_label, *interface;
    const struct mr_config_key *implicit;
    /* Own keys of a plugin that have no effect: the framework's stand there. */
    const char *masked[4];
};

static const struct mr_config_key of_transforms[] = {
    {.name = "predicate",
     .doc = "The alias of a predicate that decides whether to apply this transformation.",
     .importance = MR_CFG_MEDIUM},
    {.name = "negate",
     .type = MR_CFG_BOOLEAN,
     .fallback = "false",
     .doc = "Whether to apply it to the records that the predicate does not match.",
     .importance = MR_CFG_MEDIUM},
    {0}};
static const struct mr_config_key of_predicates[] = {{0}};

static const struct stage stages[] = {
    {MR_PLUGIN_TRANSFORM,
     "transforms",
     "Transforms: ",
     "Transformation type for ",
     "Transformation version for ",
     "Transformation",
     of_transforms,
     {"type", "plugin.version", "predicate", "negate"}},
    {MR_PLUGIN_PREDICATE,
     "predicates",
     "Predicates: ",
     "Predicate type for ",
     "Predicate version for ",
     "Predicate",
     of_predicates,
     {"type", "plugin.version"}},
};

/* One alias at work. */
struct alias {
    struct validation *v;
    const struct stage *stage;
    const char *name;
    char *prefix;                        /* "transforms.<name>." */
    const struct catalog_plugin *usual;  /* what runs where no version is asked for; NULL: there is
                                            none of this kind */
    const struct catalog_plugin *plugin; /* what is asked for; usual, where that is not there */
    int32_t order;                       /* of the next key */
};

static MR_PRINTF(1, 2)
char *text_of(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    mr_assert(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    return text;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* label: owned from here. NULL: the name is taken, as the aliases "a.b" and "a" with a key "b.type"
 * may do; the first one stays. */
static struct validate_key *add_key(struct alias *a, const struct mr_config_key *def, char *label)
{
    char *name = text_of("%s%s", a->prefix, def->name);
    struct validate_key *key =
        validation_find(a->v, name) == NULL ? validation_add(a->v, name, false) : NULL;
    struct validate_stage_key *of = key != NULL ? calloc(1, sizeof(*of)) : NULL;

    free(name);
    if (key == NULL) {
        free(label);
        return NULL;
    }
    mr_assert(of != NULL);
    of->def = *def;
    of->def.name = key->name;
    of->own_name = key->name + strlen(a->prefix);
    of->kind = a->stage->kind;
    of->plugin = a->plugin;
    of->group = text_of("%s%s%s%s", a->stage->group, a->name, def->group != NULL ? ": " : "",
                        def->group != NULL ? def->group : "");
    of->label = label;
    of->def.group = of->group;
    of->def.order = a->order++;
    of->def.display_name = label ? label : def->display_name ? def->display_name : of->own_name;
    key->stage = of;
    return key;
}

void validate_stages_free(struct validate_stage_key **ofp)
{
    struct validate_stage_key *of = *ofp;

    *ofp = NULL;
    if (of == NULL)
        return;
    free(of->group);
    free(of->label);
    free(of);
}

static bool is_masked(const struct stage *stage, const char *name)
{
    for (size_t i = 0; i < 4 && stage->masked[i] != NULL; i++)
        if (strcmp(stage->masked[i], name) == 0)
            return true;
    return false;
}

/* --- the order of keys ------------------------------------------------------------------------ */

struct ranked {
    const struct mr_config_key *def;
    int group; /* 0: none; then as they first appear */
    int order;
    bool own; /* the plugin's, not the framework's */
};

static int rank_group(const struct mr_config_key *keys, const char *group)
{
    int rank = 1;

    if (group == NULL)
        return 0;
    for (; keys->name != NULL; keys++, rank++)
        if (keys->group != NULL && strcmp(keys->group, group) == 0)
            break;
    return rank;
}

static int compare_ranked(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    bool a_required = (a->def->flags & MR_CFG_REQUIRED) != 0,
         b_required = (b->def->flags & MR_CFG_REQUIRED) != 0;

    if (a->group != b->group)
        return a->group - b->group;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    if (a_required != b_required)
        return a_required ? -1 : 1;
    if (a->def->importance != b->def->importance)
        return a->def->importance > b->def->importance ? -1 : 1;
    return strcmp(a->def->name, b->def->name);
}

static size_t rank_keys(const struct alias *a, struct ranked *out)
{
    const struct mr_config_key *keys = a->plugin->keys;
    size_t count = 0;

    for (const struct mr_config_key *k = a->stage->implicit; k->name != NULL; k++)
        out[count++] = (struct ranked){.def = k, .order = -1};
    for (const struct mr_config_key *k = keys; k->name != NULL; k++)
        if (!is_masked(a->stage, k->name))
            out[count++] = (struct ranked){.def = k,
                                           .group = rank_group(keys, k->group),
                                           .order = k->group != NULL ? k->order : -1,
                                           .own = true};
    qsort(out, count, sizeof(*out), compare_ranked);
    return count;
}

static void add_own_keys(struct alias *a)
{
    size_t room = 8, count;
    struct ranked *ranked;

    while (a->plugin->keys[room - 8].name != NULL)
        room++;
    ranked = calloc(room, sizeof(*ranked));
    mr_assert(ranked != NULL);
    count = rank_keys(a, ranked);
    for (size_t i = 0; i < count; i++) {
        struct validate_key *key = add_key(a, ranked[i].def, NULL);

        if (key == NULL)
            continue;
        key->stage->own = ranked[i].own;
        config_def_check_as(ranked[i].def, key->name, a->v->in->config, NULL, validation_bad, key);
    }
    free(ranked);
}

/* --- the class -------------------------------------------------------------------------------- */

/* Cast stands for Cast$Key and Cast$Value, of which one must be meant. */
static char *nested_in(const struct catalog *catalog, uint32_t kind, const char *name, bool whole)
{
    size_t len = strlen(name);
    struct buf out;
    char *text = NULL;

    buf_init(&out, 4096);
    for (size_t i = 0; i < catalog_count(catalog); i++) {
        const struct catalog_plugin *plugin = catalog_at(catalog, i);
        const char *dot = whole ? NULL : strrchr(plugin->java_class, '.');
        const char *class_name = dot != NULL ? dot + 1 : plugin->java_class;

        if (plugin->kind == kind && strncmp(class_name, name, len) == 0 && class_name[len] == '$' &&
            plugin_pick_first_of_class(catalog, i))
            buf_printf(&out, "%s%s", out.len > 0 ? ", " : "", plugin->java_class);
    }
    if (out.len > 0 && !out.failed)
        text = buf_take(&out);
    buf_deinit(&out);
    return text;
}

char *validate_stages_nested(const struct catalog *catalog, uint32_t kind, const char *name)
{
    return strchr(name, '.') != NULL ? nested_in(catalog, kind, name, true) : NULL;
}

/* Java's sentence, and behind it what may be meant. */
static void tell_no_class(struct alias *a, const char *type, const char *value, const char *name)
{
    char *nested = nested_in(a->v->in->catalog, a->stage->kind, name, false);

    validation_problem(a->v, type,
                       "Invalid value %s for configuration %s: Class %s could not be found.%s%s%s",
                       value, type, name, nested != NULL ? " Did you mean " : "",
                       nested != NULL ? nested : "", nested != NULL ? "?" : "");
    free(nested);
}

static void tell_wrong_class(struct alias *a, const char *type, const char *value, const char *name)
{
    const struct catalog_plugin *other = validate_plugins_any(a->v->in->catalog, name);
    char *nested = validate_stages_nested(a->v->in->catalog, a->stage->kind, name);

    if (other != NULL)
        validation_problem(a->v, type, "Class class %s does not implement the %s interface",
                           other->java_class, a->stage->interface);
    else if (nested != NULL)
        validation_problem(
            a->v, type, "This class is abstract and cannot be created. Did you mean %s?", nested);
    else
        tell_no_class(a, type, value, name);
    free(nested);
}

/* negate says something about a predicate, so there must be one. */
static bool negates_nothing(const struct alias *a, const char *type)
{
    char *negate = text_of("%snegate", a->prefix), *predicate = text_of("%spredicate", a->prefix);
    bool wrong = a->stage->implicit->name != NULL && props_find(a->v->in->config, negate) != NULL &&
                 props_find(a->v->in->config, predicate) == NULL;

    if (wrong)
        validation_problem(a->v, type,
                           "Config '%s' was provided but there is no config '%s' defining a "
                           "predicate to be negated.",
                           negate, predicate);
    free(negate);
    free(predicate);
    return wrong;
}

/* What is wrong with the class is told of its key, what is wrong with the version of both; a
 * predicate that is missing keeps Connect from looking any further. version: what was found out
 * about it. */
static void check_class(struct alias *a, const char *type, const struct mr_error *version)
{
    const char *value = validation_get(a->v, type);
    char *name = validation_trimmed(value != NULL ? value : "");
    bool found = value != NULL && validate_plugins_any(a->v->in->catalog, name) != NULL;

    if (value == NULL)
        validation_problem(
            a->v, type, "Missing required configuration \"%s\" which has no default value.", type);
    else if (!found)
        tell_wrong_class(a, type, value, name);
    if (!negates_nothing(a, type) && found) {
        if (version->code != 0)
            validation_problem(a->v, type, "%s", version->text);
        else if (a->usual == NULL)
            tell_wrong_class(a, type, value, name);
    }
    free(name);
}

/* --- aliases ---------------------------------------------------------------------------------- */

static const struct mr_config_key type_key = {.name = "type",
                                              .type = MR_CFG_CLASS,
                                              .flags = MR_CFG_REQUIRED,
                                              .doc = "Class of the alias.",
                                              .importance = MR_CFG_HIGH,
                                              .width = MR_CFG_WIDTH_LONG};

static void add_first_keys(struct alias *a)
{
    struct mr_config_key version_key = {.name = "plugin.version",
                                        .doc = "Version of the class.",
                                        .importance = MR_CFG_HIGH,
                                        .width = MR_CFG_WIDTH_LONG,
                                        .fallback = a->usual != NULL ? a->usual->version : NULL};

    add_key(a, &type_key, text_of("%s%s", a->stage->type_label, a->name));
    add_key(a, &version_key, text_of("%s%s", a->stage->version_label, a->name));
}

static void check_alias(struct alias *a, const char *type, const char *version, const char *name)
{
    const struct catalog_plugin *wanted = NULL;
    struct mr_error err = {0};

    a->usual = validate_plugins_pick(a->v, a->stage->kind, name, NULL, NULL);
    if (validate_plugins_is_range(a->v, version, &err) && a->usual != NULL)
        wanted = validate_plugins_pick(a->v, a->stage->kind, name, version, &err);
    a->plugin = wanted != NULL ? wanted : a->usual;
    add_first_keys(a);
    check_class(a, type, &err);
    if (err.code != 0 && validation_get(a->v, type) != NULL)
        validation_problem(a->v, version, "%s", err.text);
    if (wanted != NULL)
        add_own_keys(a);
}

static void expand(struct validation *v, const struct stage *stage, const char *name)
{
    struct alias a = {.v = v, .stage = stage, .name = name};
    char *type, *version, *class_name;

    a.prefix = text_of("%s.%s.", stage->list, name);
    type = text_of("%stype", a.prefix);
    version = text_of("%splugin.version", a.prefix);
    class_name = validation_trimmed(validation_get(v, type) != NULL ? validation_get(v, type) : "");
    check_alias(&a, type, version, class_name);
    free(a.prefix);
    free(type);
    free(version);
    free(class_name);
}

static void check_list(struct validation *v, const struct stage *stage,
                       const struct config_value *aliases)
{
    if (props_find(v->in->config, stage->list) != NULL && validation_get(v, stage->list) == NULL)
        validation_problem(v, stage->list,
                           "Invalid value null for configuration %s: entry must be non null",
                           stage->list);
    if (config_def_has_duplicate(aliases)) {
        char *all = validation_joined(aliases);

        validation_problem(v, stage->list,
                           "Invalid value [%s] for configuration %s: Duplicate alias provided.",
                           all, stage->list);
        free(all);
    }
    if (aliases->item_count > VALIDATION_NAMED_MAX)
        validation_problem(v, stage->list, "%s: %zu aliases are more than %d", stage->list,
                           aliases->item_count, VALIDATION_NAMED_MAX);
}

void validate_stages(struct validation *v)
{
    for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
        struct config_value aliases = validation_list(v, stages[s].list);

        check_list(v, &stages[s], &aliases);
        for (size_t i = 0; !v->out->bare && i < aliases.item_count && i < VALIDATION_NAMED_MAX; i++)
            if (!validation_contains(&aliases, i, aliases.items[i]))
                expand(v, &stages[s], aliases.items[i]);
        config_value_deinit(&aliases);
    }
}
