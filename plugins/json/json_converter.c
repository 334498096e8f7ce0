/* SPDX-License-Identifier: Apache-2.0 */
/* JsonConverter, the plugin: configuration, the envelope, and the slots that the host calls on the
 * task's thread.
 *
 *   in:  bytes ─encoding─► reader ─tree─► json_to_connect ─► value
 *        (its schema: from the envelope cache, or json_schema)
 *   out: value ─► json_from_connect ─► bytes
 *        (its schema: the plan's prefix, or json_schema)
 *
 * Stands in for org.apache.kafka.connect.json.JsonConverter of Kafka 4.3.1 and gives its texts. In
 * steady state neither way calls malloc: values stand in the batch's arena, scratch memory is
 * kept. */
#include "json_private.h"

#include <stdlib.h>
#include <strings.h>

static const char need_envelope[] = "JsonConverter with schemas.enable requires \"schema\" and "
                                    "\"payload\" fields and may not contain additional fields. "
                                    "If you are trying to deserialize plain JSON data, set "
                                    "schemas.enable=false in your converter configuration.";

static const struct mr_config_key json_keys[] = {
    {.name = "converter.type",
     .flags = MR_CFG_REQUIRED,
     .doc = "How this converter will be used.",
     .choices = "key|value|header"},
    {.name = "schemas.enable",
     .type = MR_CFG_BOOLEAN,
     .fallback = "true",
     .doc = "Include schemas within each of the serialized values and keys.",
     .importance = MR_CFG_HIGH,
     .group = "Schemas",
     .order = 0,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Enable Schemas"},
    {.name = "schemas.cache.size",
     .type = MR_CFG_INT,
     .fallback = "1000",
     .doc = "The maximum number of schemas that can be cached in this converter instance.",
     .importance = MR_CFG_HIGH,
     .group = "Schemas",
     .order = 1,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Schema Cache Size"},
    {.name = "schema.content",
     .doc = "When set, this is the schema of all messages that are read, which then hold the "
            "payload alone. "
            "Otherwise the schema is expected in the content of each message.",
     .importance = MR_CFG_HIGH,
     .group = "Schemas",
     .order = 2,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Schema Content"},
    {.name = "decimal.format",
     .fallback = "BASE64",
     .doc = "How decimals are written: BASE64, the base64 of the unscaled bytes, or NUMERIC, a "
            "JSON number. Both are read.",
     .choices = "~NUMERIC|BASE64",
     .group = "Serialization",
     .order = 0,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Decimal Format"},
    {.name = "replace.null.with.default",
     .type = MR_CFG_BOOLEAN,
     .fallback = "true",
     .doc = "Whether a null is replaced by the default of its schema, where there is one.",
     .group = "Serialization",
     .order = 1,
     .width = MR_CFG_WIDTH_MEDIUM,
     .display_name = "Replace null with default"},
    {0},
};

/* --- the way in ------------------------------------------------------------------------------- */

static int syntax_error(const struct record_json *r, const char *words, struct mr_error *err)
{
    return mr_caused_by(
        err, mr_fail(err, MR_ERR_DATA, "%s failed due to serialization error: ", words),
        "org.apache.kafka.common.errors.SerializationException: %s at byte %td of %td", r->problem,
        r->problem_at - r->start, r->end - r->start);
}

static int bad_document(const struct json_converter *c, struct mr_error *err)
{
    return syntax_error(&c->reader, "Converting byte[] to Kafka Connect data", err);
}

/* An envelope's members, read in any order; the last of equal names counts. */
struct envelope {
    struct mr_value schema;
    struct mr_value payload;
    bool has_schema;
    bool has_payload;
    bool other; /* a member of another name */
    /* Where it begins, while members came once and in Java's order; else NULL. */
    const char *payload_at;
};

static bool is_name(const struct mr_value *name, const char *z)
{
    return name->len == strlen(z) && memcmp(name->u.p, z, name->len) == 0;
}

static bool envelope_member(struct record_json *r, struct envelope *e)
{
    struct mr_value name = {0}, value = {0};
    bool schema, payload;

    if (!record_json_name(r, &name))
        return false;
    schema = is_name(&name, "schema");
    payload = is_name(&name, "payload");
    record_json_peek(r);
    e->payload_at = payload && e->has_schema && !e->has_payload && !e->other ? r->p : NULL;
    if (!record_json_value(r, &value))
        return false;
    if (schema)
        e->schema = value;
    else if (payload)
        e->payload = value;
    e->has_schema = e->has_schema || schema;
    e->has_payload = e->has_payload || payload;
    e->other = e->other || !(schema || payload);
    return true;
}

static bool envelope_read(struct record_json *r, struct envelope *e)
{
    int c;

    record_json_peek(r);
    if (!record_json_enter(r))
        return false;
    if (record_json_peek(r) == '}')
        return true;
    for (;;) {
        if (!envelope_member(r, e))
            return false;
        c = record_json_peek(r);
        if (c == '}')
            return true;
        if (c != ',')
            return record_json_fail(r, r->p,
                                    c < 0 ? "the document ends in an object"
                                          : "expected a comma or } after a member");
        r->p++;
    }
}

/* A document whose beginning is known: only the payload is read. false: it goes on in some other
 * way, read all of it. */
static bool read_known(struct json_converter *c, struct mr_arena *arena, const char *data,
                       size_t len, const struct json_envelope **known, struct mr_value *payload)
{
    struct record_json *r = &c->reader;

    *known = json_envelopes_match(&c->envelopes, data, len);
    if (*known == NULL)
        return false;
    record_json_open(r, arena, data, len, (*known)->schema == NULL);
    r->p = data + (*known)->len;
    r->depth = 1;
    return record_json_value(r, payload) && record_json_peek(r) == '}';
}

/* Without a schema the reader has made the value itself, unless the document was empty; it stays
 * where it was written (record_json.c has_room says why). */
static int finish(struct json_converter *c, struct mr_arena *arena, const struct mr_schema *schema,
                  struct mr_value *value, struct mr_error *err)
{
    if (schema != NULL)
        return json_to_connect(c, arena, schema, *value, value, err);
    if (value->kind == JSON_MISSING)
        *value = mr_null();
    return MR_OK;
}

static int read_enveloped(struct json_converter *c, struct mr_arena *arena, const char *data,
                          size_t len, const struct mr_schema **schema, struct mr_value *value,
                          struct mr_error *err)
{
    struct record_json *r = &c->reader;
    const struct json_envelope *known;
    const struct mr_schema *read = NULL;
    struct mr_value payload = {0};
    struct envelope e = {0};
    int rc;

    if (read_known(c, arena, data, len, &known, value)) {
        *schema = known->schema;
        return finish(c, arena, *schema, value, err);
    }
    record_json_open(r, arena, data, len, false);
    if (record_json_peek(r) != '{') {
        if (!record_json_read(r, arena, data, len, false, &payload))
            return bad_document(c, err);
        return mr_fail(err, MR_ERR_DATA, "%s", need_envelope);
    }
    if (!envelope_read(r, &e))
        return bad_document(c, err);
    if (!e.has_schema || !e.has_payload || e.other)
        return mr_fail(err, MR_ERR_DATA, "%s", need_envelope);
    rc = json_schema_read(c, arena, e.schema, &read, err);
    if (rc != MR_OK)
        return rc;
    if (e.payload_at != NULL)
        json_envelopes_add(&c->envelopes, data, (size_t)(e.payload_at - data), read);
    *schema = read;
    return json_to_connect(c, arena, read, e.payload, value, err);
}

static int read_bare(struct json_converter *c, struct mr_arena *arena, const char *data, size_t len,
                     const struct mr_schema *schema, struct mr_value *value, struct mr_error *err)
{
    if (!record_json_read(&c->reader, arena, data, len, schema == NULL, value))
        return bad_document(c, err);
    return finish(c, arena, schema, value, err);
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    struct json_converter *c = (struct json_converter *)self;
    const char *text = (const char *)data;
    int rc = MR_OK;

    *schema = NULL;
    *value = mr_null();
    if (text != NULL) {
        rc = json_encoding_detect(arena, &text, &len, &c->reader.wide, err);
        if (rc == MR_OK && c->schemas && c->content == NULL)
            rc = read_enveloped(c, arena, text, len, schema, value, err);
        else if (rc == MR_OK) {
            *schema = c->schemas ? c->content : NULL;
            rc = read_bare(c, arena, text, len, *schema, value, err);
        }
    }
    if (rc != MR_OK) {
        *schema = NULL;
        *value = mr_null();
    }
    return rc;
}

/* --- the way out ------------------------------------------------------------------------------ */

/* {"schema":…,"payload": into the plan, when a schema is written for the first time. */
static int plan_prefix(struct json_converter *c, struct mr_arena *arena, struct json_plan *plan,
                       struct mr_error *err)
{
    struct json_out out = {0};
    int rc;

    json_out_puts(&out, "{\"schema\":");
    rc = json_schema_write(c, arena, &out, plan->schema, NULL, err);
    json_out_puts(&out, ",\"payload\":");
    if (rc == MR_OK && !out.failed) {
        plan->prefix = malloc(out.len);
        if (plan->prefix != NULL)
            memcpy(plan->prefix, out.p, out.len);
        plan->prefix_len = out.len;
    }
    json_out_free(&out);
    return rc != MR_OK || plan->prefix != NULL
               ? rc
               : mr_fail(err, MR_ERR_NOMEM, "out of memory for a schema's JSON");
}

static int write_envelope(struct json_converter *c, struct mr_arena *arena,
                          const struct mr_schema *schema, struct mr_error *err)
{
    struct json_plan *plan;
    int rc = MR_OK;

    if (schema == NULL) {
        json_out_puts(&c->out, "{\"schema\":null,\"payload\":");
        return MR_OK;
    }
    plan = json_plan_get(&c->plans, schema);
    if (plan == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for a schema of %u fields",
                       schema->field_count);
    if (plan->prefix == NULL)
        rc = plan_prefix(c, arena, plan, err);
    if (rc == MR_OK)
        json_out_add(&c->out, plan->prefix, plan->prefix_len);
    return rc;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    struct json_converter *c = (struct json_converter *)self;
    int rc = MR_OK;
    void *copy;

    if (schema == NULL && value.kind == MR_KIND_NULL) {
        *data = NULL;
        *len = 0;
        return MR_OK;
    }
    json_out_reset(&c->out);
    json_plans_trim(&c->plans);
    if (c->schemas)
        rc = write_envelope(c, arena, schema, err);
    if (rc == MR_OK)
        rc = json_from_connect(c, arena, &c->out, schema, value, err);
    if (rc == MR_OK && c->schemas)
        json_out_putc(&c->out, '}');
    if (rc != MR_OK)
        return rc;
    if (c->out.failed)
        return mr_fail(err, MR_ERR_DATA,
                       "the value's JSON is larger than %zu bytes, or memory is short",
                       JSON_OUT_MAX);
    copy = mr_alloc(arena, c->out.len);
    memcpy(copy, c->out.p, c->out.len);
    *data = copy;
    *len = c->out.len;
    return MR_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

static bool is_blank(const char *z)
{
    return z == NULL || z[strspn(z, " \t\r\n")] == '\0';
}

/* schema.content is read before the first batch, so its tree stands in an arena of its own for a
 * moment. */
struct scratch {
    struct mr_host table;  /* only arena_more */
    struct mr_arena arena; /* arena.host points to table */
    void *blocks[64];
    size_t count;
};

static void *scratch_more(struct mr_arena *arena, size_t size)
{
    struct scratch *s = (struct scratch *)(void *)((char *)arena - offsetof(struct scratch, arena));
    size_t rounded = (size + 7) & ~(size_t)7,
           block = (size_t)65536 << (s->count < 16 ? s->count : 16);
    char *p = malloc(rounded > block ? rounded : block);

    if (p == NULL || s->count == sizeof(s->blocks) / sizeof(s->blocks[0]))
        abort(); /* out of memory at the start of a task */
    s->blocks[s->count++] = p;
    arena->next = p + rounded;
    arena->end = p + (rounded > block ? rounded : block);
    return p;
}

static int read_content(struct json_converter *c, const char *text, struct mr_error *err)
{
    struct scratch *s = calloc(1, sizeof(*s));
    struct mr_value tree = {0};
    int rc;

    if (s == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    s->table.arena_more = scratch_more;
    s->arena.host = &s->table;
    s->arena.next = (char *)scratch_more(&s->arena, 0);
    if (record_json_read(&c->reader, &s->arena, text, strlen(text), false, &tree))
        rc = json_schema_read(c, &s->arena, tree, &c->content, err);
    else
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "Failed to parse schema in converter config due to serialization error: %s at "
                     "byte %td of schema.content",
                     c->reader.problem, c->reader.problem_at - c->reader.start);
    while (s->count > 0)
        free(s->blocks[--s->count]);
    free(s);
    return rc;
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct json_converter *c = (struct json_converter *)self;
    int64_t cache = mr_config_long(task, "schemas.cache.size");
    const char *content = mr_config_str(task, "schema.content");
    const char *format = mr_config_str(task, "decimal.format");

    c->task = task;
    c->schemas = mr_config_bool(task, "schemas.enable");
    c->defaults = mr_config_bool(task, "replace.null.with.default");
    c->numeric = format != NULL && strcasecmp(format, "NUMERIC") == 0;
    c->plans.max = c->envelopes.max = cache < 1 ? 1 : cache > 100000 ? 100000 : (size_t)cache;
    return is_blank(content) ? MR_OK : read_content(c, content, err);
}

static void stop(void *self)
{
    struct json_converter *c = (struct json_converter *)self;

    record_json_deinit(&c->reader);
    json_out_free(&c->out);
    json_plans_free(&c->plans);
    json_envelopes_free(&c->envelopes);
}

static const char *const json_aliases[] = {"org.apache.kafka.connect.json.JsonConverter", NULL};

MR_CONVERTER(JsonConverter, "4.3.1", .aliases = json_aliases, .keys = json_keys,
             .doc = "Values as JSON, with their schema in an envelope or without",
             .state_size = sizeof(struct json_converter), .start = start,
             .from_connect = from_connect, .to_connect = to_connect, .stop = stop)
