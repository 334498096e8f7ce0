/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all schemas of the process. Plugins and converters make schemas through the host's
 * schema_make slot, on any thread; whoever holds a schema compares pointers instead of structures.
 *
 * A hash table of chains that only grow: readers walk a chain without a lock (heads are atomic,
 * nodes never change after they are published, nothing is ever removed), writers add under the
 * mutex after looking once more. So a known schema costs a hash and a comparison. Inner schemas are
 * interned already and compare by pointer.
 *
 * One of the few mutable globals: pointers handed out must stay valid, and be the same for every
 * task, until the process ends, so there is no owner that could free them. The caps bound what a
 * plugin can make it hold, and a smaller one what the texts of headers can, which anyone writes;
 * what is plain (a few hundred) is beyond them, and always there.
 *
 * Equality is ConnectSchema's: every attribute counts, doc and default too; the order of parameters
 * doesn't, so the order that came first is the one all see. */
#include "host/data/schema_tree.h"

#include "host/data/values.h"

#include <millrace/hash.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#define BUCKETS 16384u
#define FEW_PARAMS 16u /* compared one by one up to here */

/* In front of what Java's SchemaBuilder says; and between that and its reason. */
#define SCHEMA_BUILDER "org.apache.kafka.connect.errors.SchemaBuilderException: "
#define DATA_CAUSE "org.apache.kafka.connect.errors.DataException: "

struct node {
    struct node *next;
    uint64_t hash;
    struct mr_schema schema;
};

struct tree {
    _Atomic(struct node *) buckets[BUCKETS];
    pthread_mutex_t lock; /* for writers */
    atomic_size_t count;
    atomic_bool spent;
    size_t texts; /* of these, made for what a text says */
    size_t bytes;
    _Atomic(const struct mr_schema *) plain[MR_KIND_TIMESTAMP + 1]; /* by kind of values */
};

static struct tree tree = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- hash and equality ------------------------------------------------------------------------ */

static uint64_t hash_text(uint64_t seed, const char *z)
{
    return z == NULL ? mr_hash_word(seed, 1) : mr_hash(seed, z, strlen(z));
}

static uint64_t hash_pointer(uint64_t seed, const void *p)
{
    return mr_hash_word(seed, (uint64_t)(uintptr_t)p);
}

static uint64_t hash_spec(const struct mr_schema_spec *s)
{
    const uint64_t seed = mr_hash_seed(&tree);
    uint64_t flags =
        (uint64_t)s->optional << 2 | (uint64_t)s->has_version << 1 | (uint64_t)s->has_default;
    uint64_t hash = mr_hash_word(mr_hash_word(seed, s->kind), flags), params = 0;

    hash = mr_hash_word(hash, (uint32_t)s->version);
    hash = hash_text(hash_text(hash, s->name), s->doc);
    for (uint32_t i = 0; i < s->param_count; i++)
        params += hash_text(hash_text(seed, s->params[i].name), s->params[i].value);
    hash = mr_hash_word(hash, params);
    for (uint32_t i = 0; i < s->field_count; i++)
        hash = hash_pointer(hash_text(hash, s->fields[i].name), s->fields[i].schema);
    hash = hash_pointer(hash_pointer(hash, s->key), s->value);
    return s->has_default ? mr_hash_value(hash, s->default_value) : hash;
}

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const struct mr_param *param_find(const struct mr_param *params, uint32_t count,
                                         const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (texts_equal(params[i].name, name))
            return &params[i];
    return NULL;
}

static bool params_equal_by_name(const struct mr_param *a, const struct mr_param *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_param *other = param_find(b, count, a[i].name);

        if (other == NULL || !texts_equal(other->value, a[i].value))
            return false;
    }
    return true;
}

static int compare_params(const void *a, const void *b)
{
    const struct mr_param *x = a, *y = b;
    int names = strcmp(x->name, y->name);

    return names != 0 ? names : strcmp(x->value, y->value);
}

static bool params_equal_in_order(const struct mr_param *a, const struct mr_param *b,
                                  uint32_t count)
{
    uint32_t i = 0;

    while (i < count && compare_params(&a[i], &b[i]) == 0)
        i++;
    return i == count;
}

/* Their order does not count; many are put into one. */
static bool params_equal(const struct mr_param *a, const struct mr_param *b, uint32_t count)
{
    struct mr_param *sorted;
    bool equal;

    if (params_equal_in_order(a, b, count))
        return true;
    sorted = count > FEW_PARAMS ? malloc(2 * (size_t)count * sizeof(*sorted)) : NULL;
    if (sorted == NULL)
        return params_equal_by_name(a, b, count);
    memcpy(sorted, a, count * sizeof(*sorted));
    memcpy(sorted + count, b, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_params);
    qsort(sorted + count, count, sizeof(*sorted), compare_params);
    equal = params_equal_in_order(sorted, sorted + count, count);
    free(sorted);
    return equal;
}

static bool fields_equal(const struct mr_schema_field *a, const struct mr_schema_field *b,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].schema != b[i].schema || strcmp(a[i].name, b[i].name) != 0)
            return false;
    return true;
}

static bool is_schema(const struct mr_schema *schema, const struct mr_schema_spec *spec)
{
    return schema->kind == spec->kind && schema->optional == spec->optional &&
           schema->has_version == spec->has_version && schema->version == spec->version &&
           schema->has_default == spec->has_default && schema->key == spec->key &&
           schema->value == spec->value && schema->param_count == spec->param_count &&
           schema->field_count == spec->field_count && texts_equal(schema->name, spec->name) &&
           texts_equal(schema->doc, spec->doc) &&
           fields_equal(schema->fields, spec->fields, spec->field_count) &&
           params_equal(spec->params, schema->params, spec->param_count) &&
           (!spec->has_default || values_equal(schema->default_value, spec->default_value));
}

static const struct mr_schema *find(const struct mr_schema_spec *spec, uint64_t hash)
{
    const struct node *node =
        atomic_load_explicit(&tree.buckets[hash % BUCKETS], memory_order_acquire);

    for (; node != NULL; node = node->next)
        if (node->hash == hash && is_schema(&node->schema, spec))
            return &node->schema;
    return NULL;
}

/* --- the rules of SchemaBuilder --------------------------------------------------------------- */

static uint8_t logical_of(const char *name, uint8_t kind)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } logical[] = {
        {MR_LOGICAL_DECIMAL, MR_KIND_DECIMAL},
        {MR_LOGICAL_DATE, MR_KIND_DATE},
        {MR_LOGICAL_TIME, MR_KIND_TIME},
        {MR_LOGICAL_TIMESTAMP, MR_KIND_TIMESTAMP},
    };

    for (size_t i = 0; name != NULL && i < sizeof(logical) / sizeof(logical[0]); i++)
        if (strcmp(name, logical[i].name) == 0)
            return logical[i].kind;
    return kind;
}

/* Does a name stand twice? Names are put into an open-addressed table of 1-based indexes. */
static int check_duplicates(const struct mr_schema_spec *spec, struct mr_error *err)
{
    uint32_t small[64], *slots = small;
    size_t size = sizeof(small) / sizeof(small[0]);
    int rc = MR_OK;

    while (size < 2 * (size_t)spec->field_count)
        size *= 2;
    if (size > sizeof(small) / sizeof(small[0]))
        slots = malloc(size * sizeof(*slots));
    if (slots == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for a schema of %u fields",
                       spec->field_count);
    memset(slots, 0, size * sizeof(*slots));
    for (uint32_t i = 0; i < spec->field_count && rc == MR_OK; i++) {
        const char *name = spec->fields[i].name;
        size_t at = (size_t)hash_text(mr_hash_seed(slots), name) & (size - 1);

        for (; slots[at] != 0 && rc == MR_OK; at = (at + 1) & (size - 1))
            if (strcmp(spec->fields[slots[at] - 1].name, name) == 0)
                rc = mr_fail(err, MR_ERR_DATA,
                             SCHEMA_BUILDER
                             "Cannot create field because of field name duplication %.200s",
                             name);
        slots[at] = i + 1;
    }
    if (slots != small)
        free(slots);
    return rc;
}

static int check_fields(const struct mr_schema_spec *spec, struct mr_error *err)
{
    if (spec->field_count == 0)
        return MR_OK;
    if (spec->kind != MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA, SCHEMA_BUILDER "Cannot create fields on type %s",
                       mr_java_type(spec->kind));
    if (spec->fields == NULL)
        return mr_fail(err, MR_ERR_DATA, "a schema of %u fields gives none of them",
                       spec->field_count);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        if (spec->fields[i].name == NULL || spec->fields[i].name[0] == '\0')
            return mr_fail(err, MR_ERR_DATA, SCHEMA_BUILDER "fieldName cannot be null.");
        if (spec->fields[i].schema == NULL)
            return mr_fail(err, MR_ERR_DATA,
                           SCHEMA_BUILDER "fieldSchema for field %.200s cannot be null.",
                           spec->fields[i].name);
    }
    return MR_OK;
}

static int check_members(const struct mr_schema_spec *spec, struct mr_error *err)
{
    bool list = spec->kind == MR_KIND_LIST, map = spec->kind == MR_KIND_MAP;

    if (map && spec->key == NULL)
        return mr_fail(err, MR_ERR_DATA, SCHEMA_BUILDER "keySchema cannot be null.");
    if ((list || map) && spec->value == NULL)
        return mr_fail(err, MR_ERR_DATA, SCHEMA_BUILDER "valueSchema cannot be null.");
    if ((!map && spec->key != NULL) || (!list && !map && spec->value != NULL))
        return mr_fail(err, MR_ERR_DATA, "a schema of type %s has no key or value schema",
                       mr_java_type(spec->kind));
    return MR_OK;
}

static int check_params(const struct mr_schema_spec *spec, struct mr_error *err)
{
    if (spec->param_count > 0 && spec->params == NULL)
        return mr_fail(err, MR_ERR_DATA, "a schema of %u parameters gives none of them",
                       spec->param_count);
    for (uint32_t i = 0; i < spec->param_count; i++)
        if (spec->params[i].name == NULL || spec->params[i].value == NULL)
            return mr_fail(err, MR_ERR_DATA, "Schema parameters must have string values.");
    return MR_OK;
}

/* Does the default fit the schema as it will be? A struct's own schema can't have that default yet:
 * it must have the same fields. */
static int fit_default(const struct mr_schema_spec *spec, struct mr_error *err)
{
    const struct mr_schema schema = {
        .kind = spec->kind,
        .logical = logical_of(spec->name, spec->kind),
        .optional = spec->optional,
        .name = spec->name,
        .key = spec->key,
        .value = spec->value,
    };
    const struct mr_schema *inner;

    if (spec->default_value.kind != MR_KIND_STRUCT || spec->kind != MR_KIND_STRUCT)
        return values_validate(&schema, spec->default_value, err);
    inner = ((const struct mr_struct *)spec->default_value.u.p)->schema;
    if (inner->field_count != spec->field_count ||
        !fields_equal(inner->fields, spec->fields, spec->field_count))
        return mr_fail(err, MR_ERR_DATA, "Struct schemas do not match.");
    return values_validate(inner, spec->default_value, err);
}

static int default_error(int rc, const struct mr_error *cause, struct mr_error *err)
{
    return rc == MR_OK ? MR_OK
                       : mr_caused_by(err, mr_fail(err, rc, SCHEMA_BUILDER "Invalid default value"),
                                      DATA_CAUSE "%s", cause->text);
}

/* What must hold before the spec can be hashed and compared; cheap. */
static int check_shape(const struct mr_schema_spec *spec, struct mr_error *err)
{
    struct mr_error cause = {0};
    int rc;

    if (spec->kind < MR_KIND_BOOL || spec->kind > MR_KIND_STRUCT)
        return mr_fail(err, MR_ERR_DATA, "a schema has the unknown kind %u", spec->kind);
    rc = check_fields(spec, err);
    if (rc == MR_OK)
        rc = check_members(spec, err);
    if (rc == MR_OK)
        rc = check_params(spec, err);
    if (rc != MR_OK || !spec->has_default)
        return rc;
    return default_error(values_check(spec->default_value, &cause), &cause, err);
}

/* What a schema that is known has passed before. */
static int check_rules(const struct mr_schema_spec *spec, struct mr_error *err)
{
    struct mr_error cause = {0};
    int rc = check_duplicates(spec, err);

    if (rc != MR_OK || !spec->has_default)
        return rc;
    return default_error(fit_default(spec, &cause), &cause, err);
}

/* --- making one ------------------------------------------------------------------------------- */

static size_t text_size(const char *z)
{
    return z == NULL ? 0 : strlen(z) + 1;
}

static size_t spec_bytes(const struct mr_schema_spec *s)
{
    size_t size = sizeof(struct node) + text_size(s->name) + text_size(s->doc);

    for (uint32_t i = 0; i < s->param_count; i++)
        size += sizeof(*s->params) + text_size(s->params[i].name) + text_size(s->params[i].value);
    for (uint32_t i = 0; i < s->field_count; i++)
        size += sizeof(*s->fields) + text_size(s->fields[i].name);
    return size + (s->has_default ? values_size(s->default_value) : 0);
}

static const char *copy_text(const char *z, char **to)
{
    size_t size = text_size(z);
    const char *copy = *to;

    if (z == NULL)
        return NULL;
    memcpy(*to, z, size);
    *to += size;
    return copy;
}

/* One piece of memory a schema: the node, arrays, the default's values, and texts last since they
 * need no alignment. */
static struct node *node_new(const struct mr_schema_spec *spec, uint64_t hash, size_t bytes)
{
    struct node *node = calloc(1, bytes);
    struct mr_schema_field *fields;
    struct mr_param *params;
    char *to;

    if (node == NULL)
        return NULL;
    fields = (struct mr_schema_field *)(void *)(node + 1);
    params = (struct mr_param *)(void *)(fields + spec->field_count);
    to = (char *)(params + spec->param_count);
    node->hash = hash;
    node->schema = (struct mr_schema){
        .kind = spec->kind,
        .logical = logical_of(spec->name, spec->kind),
        .optional = spec->optional,
        .has_version = spec->has_version,
        .has_default = spec->has_default,
        .version = spec->version,
        .params = spec->param_count > 0 ? params : NULL,
        .param_count = spec->param_count,
        .fields = spec->field_count > 0 ? fields : NULL,
        .field_count = spec->field_count,
        .key = spec->key,
        .value = spec->value,
    };
    if (spec->has_default)
        node->schema.default_value = values_copy(spec->default_value, &to);
    node->schema.name = copy_text(spec->name, &to);
    node->schema.doc = copy_text(spec->doc, &to);
    for (uint32_t i = 0; i < spec->field_count; i++)
        fields[i] =
            (struct mr_schema_field){copy_text(spec->fields[i].name, &to), spec->fields[i].schema};
    for (uint32_t i = 0; i < spec->param_count; i++) {
        params[i].name = copy_text(spec->params[i].name, &to);
        params[i].value = copy_text(spec->params[i].value, &to);
    }
    return node;
}

enum maker { BY_SPEC, BY_TEXT };

static bool is_plain_member(const struct mr_schema *schema)
{
    return schema == NULL || schema == atomic_load(&tree.plain[schema->logical]);
}

/* Of a scalar kind or one of time, without attributes of its own; a container of such. */
static bool is_plain(const struct mr_schema_spec *s)
{
    bool bare = s->name == NULL ? !s->has_version
                                : logical_of(s->name, s->kind) >= MR_KIND_DATE && s->has_version &&
                                      s->version == 1;

    return bare && s->kind <= MR_KIND_MAP && s->doc == NULL && s->param_count == 0 &&
           !s->has_default && is_plain_member(s->key) && is_plain_member(s->value);
}

static bool is_full(size_t bytes, enum maker maker)
{
    return atomic_load(&tree.count) >= SCHEMA_TREE_MAX ||
           tree.bytes + bytes > SCHEMA_TREE_MAX_BYTES ||
           (maker == BY_TEXT && tree.texts >= SCHEMA_TREE_TEXTS);
}

static const struct mr_schema *add_locked(const struct mr_schema_spec *spec, uint64_t hash,
                                          enum maker maker, struct mr_error *err)
{
    const struct mr_schema *known = find(spec, hash);
    size_t bytes = spec_bytes(spec);
    bool plain = is_plain(spec);
    struct node *node;

    if (known != NULL)
        return known;
    if (!plain && is_full(bytes, maker)) {
        if (maker != BY_TEXT) /* a text has another reading then */
            atomic_store(&tree.spent, true);
        mr_fail(err, MR_ERR_FULL,
                "%zu different schemas were made %s, no more are allowed: does a "
                "plugin or a topic make "
                "a new one for each record?",
                maker == BY_TEXT ? tree.texts : atomic_load(&tree.count),
                maker == BY_TEXT ? "for texts" : "in this process");
        return NULL;
    }
    node = node_new(spec, hash, bytes);
    mr_assert(node != NULL || !plain);
    if (node == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a schema of %zu bytes", bytes);
        return NULL;
    }
    node->next = atomic_load_explicit(&tree.buckets[hash % BUCKETS], memory_order_relaxed);
    atomic_store_explicit(&tree.buckets[hash % BUCKETS], node, memory_order_release);
    atomic_fetch_add(&tree.count, 1);
    tree.texts += !plain && maker == BY_TEXT;
    tree.bytes += bytes;
    return &node->schema;
}

/* The plugin's spec in our size, with what means the same made the same. */
static struct mr_schema_spec spec_normal(const struct mr_schema_spec *from, size_t size)
{
    struct mr_schema_spec spec;

    memset(&spec, 0, sizeof(spec));
    memcpy(&spec, from, size < sizeof(spec) ? size : sizeof(spec));
    if (!spec.has_version)
        spec.version = 0;
    if (spec.has_default && spec.optional && spec.default_value.kind == MR_KIND_NULL)
        spec.has_default = false;
    return spec;
}

/* The schema of a spec that is sound but for rules that only new ones must pass. */
static const struct mr_schema *intern(const struct mr_schema_spec *spec, enum maker maker,
                                      struct mr_error *err)
{
    uint64_t hash = hash_spec(spec);
    const struct mr_schema *schema = find(spec, hash);

    if (schema != NULL)
        return schema;
    if (check_rules(spec, err) != MR_OK)
        return NULL;
    pthread_mutex_lock(&tree.lock);
    schema = add_locked(spec, hash, maker, err);
    pthread_mutex_unlock(&tree.lock);
    return schema;
}

const struct mr_schema *schema_tree_make(const struct mr_schema_spec *from, size_t spec_size,
                                         struct mr_error *err)
{
    struct mr_schema_spec spec = spec_normal(from, spec_size);

    return check_shape(&spec, err) != MR_OK ? NULL : intern(&spec, BY_SPEC, err);
}

static const struct mr_schema *make_plain(uint8_t kind)
{
    struct mr_schema_spec spec = {.kind = kind};

    if (kind >= MR_KIND_DATE) {
        spec.kind = kind == MR_KIND_TIMESTAMP ? MR_KIND_INT64 : MR_KIND_INT32;
        spec.name = kind == MR_KIND_DATE   ? MR_LOGICAL_DATE
                    : kind == MR_KIND_TIME ? MR_LOGICAL_TIME
                                           : MR_LOGICAL_TIMESTAMP;
        spec.has_version = true;
        spec.version = 1;
    }
    return schema_tree_make(&spec, sizeof(spec), NULL);
}

const struct mr_schema *schema_tree_plain(uint8_t kind)
{
    const struct mr_schema *schema = atomic_load_explicit(&tree.plain[kind], memory_order_acquire);

    if (schema == NULL) {
        schema = make_plain(kind);
        atomic_store_explicit(&tree.plain[kind], schema, memory_order_release);
    }
    return schema;
}

const struct mr_schema *schema_tree_decimal(int32_t scale, struct mr_error *err)
{
    char text[16];
    struct mr_param param = {"scale", text};
    struct mr_schema_spec spec = {.kind = MR_KIND_BYTES,
                                  .name = MR_LOGICAL_DECIMAL,
                                  .has_version = true,
                                  .version = 1,
                                  .params = &param,
                                  .param_count = 1};

    snprintf(text, sizeof(text), "%" PRId32, scale);
    return intern(&spec, BY_TEXT, err);
}

const struct mr_schema *schema_tree_container(uint8_t kind, const struct mr_schema *key,
                                              const struct mr_schema *value, struct mr_error *err)
{
    struct mr_schema_spec spec = {.kind = kind, .key = key, .value = value};

    return intern(&spec, BY_TEXT, err);
}

const struct mr_schema *schema_tree_bare(const struct mr_schema_spec *spec, struct mr_error *err)
{
    return intern(spec, BY_SPEC, err);
}

bool schema_tree_spent(void)
{
    return atomic_load(&tree.spent);
}

size_t schema_tree_count(void)
{
    return atomic_load(&tree.count);
}
