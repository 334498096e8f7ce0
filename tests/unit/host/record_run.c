/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines with shipped plugins on a fixed input: record_run.h. Needs no Kafka: messages are
 * structs of its own. */
#include "record_run.h"

#include "host/host_api.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT "org.apache.kafka.connect."
#define TRANSFORM CONNECT "transforms."
#define DOCUMENT \
    "{\"id\":%d,\"name\":\"a name of some " \
    "length\",\"amount\":12.5,\"active\":true,\"at\":1700000000123}"
#define SCHEMA \
    "{\"schema\":{\"type\":\"struct\",\"fields\":[" \
    "{\"type\":\"int64\",\"optional\":false,\"field\":\"id\"}," \
    "{\"type\":\"string\",\"optional\":true,\"field\":\"name\"}," \
    "{\"type\":\"double\",\"optional\":false,\"field\":\"amount\"}," \
    "{\"type\":\"boolean\",\"optional\":false,\"field\":\"active\"}," \
    "{\"type\":\"int64\",\"optional\":false,\"field\":\"at\"}]," \
    "\"optional\":false,\"name\":\"demo.Row\"},\"payload\":" DOCUMENT "}"

/* What a name's second word stands for. */
static const struct format {
    const char *word;
    const char *library;
    const char *converter;
    const char *schemas; /* schemas.enable */
    const char *text;    /* of a message, with its number */
} formats[] = {
    {"string", "basic", "StringConverter", NULL, "%0100d"},
    {"bytes", "basic", "ByteArrayConverter", NULL, "%0100d"},
    {"json", "json", "JsonConverter", "false", DOCUMENT},
    {"schema", "json", "JsonConverter", "true", SCHEMA},
};

static const char *const names[] = {
    "read-string-0",  "read-string-3",  "read-bytes-0",   "read-bytes-3",
    "read-json-0",    "read-json-3",    "read-schema-0",  "read-schema-3",
    "write-string-0", "write-string-3", "write-bytes-0",  "write-bytes-3",
    "write-json-0",   "write-json-3",   "write-schema-0", "write-schema-3",
};

/* Three of maps, and three that text and bytes take, too. */
static const char *const of_maps[][2] = {
    {"transforms", "a,b,c"},
    {"transforms.a.type", TRANSFORM "InsertField$Value"},
    {"transforms.a.static.field", "origin"},
    {"transforms.a.static.value", "here"},
    {"transforms.b.type", TRANSFORM "ReplaceField$Value"},
    {"transforms.b.renames", "name:title"},
    {"transforms.c.type", TRANSFORM "TimestampConverter$Value"},
    {"transforms.c.field", "at"},
    {"transforms.c.target.type", "string"},
    {"transforms.c.format", "yyyy-MM-dd HH:mm:ss.SSS"},
    {NULL, NULL},
};
static const char *const of_all[][2] = {
    {"transforms", "a,b,c"},
    {"transforms.a.type", TRANSFORM "HoistField$Value"},
    {"transforms.a.field", "line"},
    {"transforms.b.type", TRANSFORM "RegexRouter"},
    {"transforms.b.regex", "(.*)-in"},
    {"transforms.b.replacement", "$1-out"},
    {"transforms.c.type", TRANSFORM "ExtractField$Value"},
    {"transforms.c.field", "line"},
    {NULL, NULL},
};

struct record_run {
    bool read;
    struct props connector;
    struct props worker;
    json_t *places;
    struct pipeline *pipeline;
    struct batch_pool *pool;
    struct consumer_msg messages[RECORD_RUN_BATCH];
    char *texts;
    struct batch *values; /* writing: where they come from, over and over */
};

static void must(int rc, const struct mr_error *err)
{
    if (rc == MR_OK)
        return;
    fprintf(stderr, "record_run: %s\n", err->text);
    abort();
}

static void set(struct record_run *run, const char *key, const char *value)
{
    mr_assert(props_set(&run->connector, key, value) == 0);
}

static void place(struct record_run *run, const char *folder, const char *property,
                  const char *library, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s.so", folder, library);
    json_object_set_new(run->places, property,
                        json_pack("{s:s, s:s}", "library", path, "class", name));
}

static void converter(struct record_run *run, const char *folder, const struct format *format)
{
    set(run, "value.converter", format->converter);
    place(run, folder, "value.converter", format->library, format->converter);
    if (format->schemas != NULL)
        set(run, "value.converter.schemas.enable", format->schemas);
    set(run, "key.converter", "StringConverter");
    place(run, folder, "key.converter", "basic", "StringConverter");
    place(run, folder, "header.converter", "basic", "SimpleHeaderConverter");
    set(run, "header.converter", "SimpleHeaderConverter");
}

static void transforms(struct record_run *run, const char *folder, const char *const (*pairs)[2])
{
    for (; (*pairs)[0] != NULL; pairs++) {
        const char *end = (*pairs)[0] + strlen((*pairs)[0]);

        set(run, (*pairs)[0], (*pairs)[1]);
        if (strcmp(end - 5, ".type") == 0)
            place(run, folder, (*pairs)[0], "transforms", (*pairs)[1]);
    }
}

static struct pipeline *make(const struct record_run *run, bool source)
{
    struct mr_error err = {0};
    struct pipeline *pipeline = pipeline_new(&(struct pipeline_spec){.connector = &run->connector,
                                                                     .worker = &run->worker,
                                                                     .plugins = run->places,
                                                                     .source = source,
                                                                     .owner = {"run", 0, -1}},
                                             &err);

    must(pipeline == NULL ? err.code : MR_OK, &err);
    return pipeline;
}

static void write_messages(struct record_run *run, const struct format *format)
{
    size_t size = strlen(format->text) + 128;

    run->texts = calloc(RECORD_RUN_BATCH, size);
    mr_assert(run->texts != NULL);
    for (int i = 0; i < RECORD_RUN_BATCH; i++) {
        char *text = run->texts + (size_t)i * size;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, size, format->text, 1000000 + i);
#pragma GCC diagnostic pop
        run->messages[i] = (struct consumer_msg){.topic = "records-in",
                                                 .offset = i,
                                                 .timestamp_ms = 1700000000000,
                                                 .key = "key",
                                                 .key_len = 3,
                                                 .value = text,
                                                 .value_len = strlen(text)};
    }
}

static void read_into(struct record_run *run, struct pipeline *pipeline, struct batch *batch)
{
    struct mr_error err = {0};
    size_t done = 0;

    must(pipeline_from_kafka(pipeline, run->messages, RECORD_RUN_BATCH, batch, &done, &err), &err);
    mr_assert(done == RECORD_RUN_BATCH && batch->pub.count == RECORD_RUN_BATCH);
}

static const struct format *format_of(const char *name)
{
    const char *word = strchr(name, '-') + 1;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strncmp(word, formats[i].word, strlen(formats[i].word)) == 0)
            return &formats[i];
    abort();
}

const char *record_run_name(size_t i)
{
    return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

struct record_run *record_run_open(const char *name, const char *plugins)
{
    const struct format *format = format_of(name);
    struct record_run *run = calloc(1, sizeof(*run));
    struct pipeline *reader;

    mr_assert(run != NULL);
    run->read = strncmp(name, "read", 4) == 0;
    run->places = json_object();
    props_init(&run->connector);
    props_init(&run->worker);
    run->pool = batch_pool_new(&host_api_table, 1 << 24, RECORD_RUN_BATCH);
    converter(run, plugins, format);
    write_messages(run, format);
    if (!run->read) {
        run->values = batch_pool_take(run->pool);
        reader = make(run, false);
        read_into(run, reader, run->values);
        pipeline_free(&reader);
    }
    if (name[strlen(name) - 1] == '3')
        transforms(run, plugins, format->schemas != NULL ? of_maps : of_all);
    run->pipeline = make(run, !run->read);
    return run;
}

static void write_from(struct record_run *run, struct batch *batch)
{
    struct mr_error err = {0};
    size_t done = 0;

    for (size_t i = 0; i < run->values->pub.count; i++) {
        const struct mr_record *from = &batch_at(run->values, i)->pub;
        struct mr_record *rec = mr_batch_add(&batch->pub, "records-in");

        mr_record_schema(rec, from->key_schema, from->value_schema);
        mr_record_key(rec, from->key);
        mr_record_value(rec, from->value);
    }
    must(pipeline_to_kafka(run->pipeline, batch, &done, &err), &err);
    mr_assert(done == RECORD_RUN_BATCH && !batch->over);
}

void record_run_batches(struct record_run *run, size_t count)
{
    while (count-- > 0) {
        struct batch *batch = batch_pool_take(run->pool);

        mr_assert(batch != NULL);
        if (run->read)
            read_into(run, run->pipeline, batch);
        else
            write_from(run, batch);
        batch_pool_give(run->pool, batch);
    }
}

void record_run_close(struct record_run **run)
{
    struct record_run *dead = *run;

    pipeline_free(&dead->pipeline);
    if (dead->values != NULL)
        batch_pool_give(dead->pool, dead->values);
    batch_pool_free(&dead->pool);
    json_decref(dead->places);
    props_deinit(&dead->connector);
    props_deinit(&dead->worker);
    free(dead->texts);
    free(dead);
    *run = NULL;
}
