/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/data/values.h"
#include "support/unit/converter_rows.h"
#include "support/unit/plugin_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char converter_name[] = "org.apache.kafka.connect.json.JsonConverter";

static void json_is_written_as_java_writes_it(void **state)
{
    static const char shorter[] =
        "JDK 17 prints a digit more than is needed, JDK 19 and later and this don't";
    static const char bigint[] = "a BigInteger has no kind here";
    static const struct oracle_except except[] = {
        {"json-from-011", shorter},
        {"json-from-020", shorter},
        {"json-from-076", bigint},
        {0},
    };

    (void)state;
    assert_int_equal(oracle_run("json-from.jsonl", except, converter_row, converter_name), 0);
}

static void json_is_read_as_java_reads_it(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("json-to.jsonl", NULL, converter_row, converter_name), 0);
}

/* The other converters' rows run in test_basic_tables.c. */
static bool json_header_row(const json_t *row, void *name)
{
    return strcmp(json_string_value(json_object_get(row, "class")), name) != 0 ||
           converter_row(row, name);
}

static void json_headers_are_those_of_java(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("header-from.jsonl", NULL, json_header_row, converter_name), 0);
    assert_int_equal(oracle_run("header-to.jsonl", NULL, json_header_row, converter_name), 0);
}

/* --- beyond the tables ------------------------------------------------------------------------ */

static void open_json(struct plugin_host *h, const char *key, const char *value, const char *key2,
                      const char *value2)
{
    const char *keys[] = {"converter.type", "value", key, value, key2, value2, NULL};

    h->stored = -1;
    if (plugin_host_open(h, converter_name, keys) != 0)
        fail_msg("%s", h->err.text);
}

static int read_text(struct plugin_host *h, const char *text, const struct mr_schema **schema,
                     struct mr_value *v)
{
    return plugin_host_to_connect(h, text, strlen(text), schema, v);
}

/* What a document reads as, written again; or its error. */
static const char *turn(struct plugin_host *h, const char *text)
{
    const struct mr_schema *schema;
    struct mr_value v;
    const void *data;
    size_t len;
    char *copy;

    if (read_text(h, text, &schema, &v) != 0 ||
        plugin_host_from_connect(h, schema, v, &data, &len) != 0)
        return h->err.text;
    if (data == NULL)
        return "(null)";
    copy = mr_alloc(plugin_host_arena(h), len + 1);
    memcpy(copy, data, len);
    copy[len] = '\0';
    return copy;
}

static void text_without_escapes_is_borrowed(void **state)
{
    static const char document[] = "{\"key\":\"caf\xc3\xa9\"}";
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    assert_int_equal(read_text(&h, document, &schema, &v), 0);
    assert_ptr_equal(mr_pairs(v)[0].key.u.p, document + 2);
    assert_ptr_equal(mr_pairs(v)[0].value.u.p, document + 8);
    plugin_host_close(&h);
}

static void half_of_a_pair_survives_both_ways(void **state)
{
    struct plugin_host h;

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    assert_string_equal(turn(&h, "[\"\\ud83d\",\"\\ud83d\\ude00\",\"\\udc00x\"]"),
                        "[\"\\uD83D\",\"\\uD83D\\uDE00\",\"\\uDC00x\"]");
    plugin_host_close(&h);
}

/* With room for one schema and without end: the schema is never another document's. */
static void known_envelopes_are_told_apart(void **state)
{
#define ENVELOPE(type, payload) \
    "{\"schema\":{\"type\":\"" type "\",\"optional\":false},\"payload\":" payload "}"
    static const char *const sizes[] = {"1", "1000", "-5"};
    struct plugin_host h;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        open_json(&h, "schemas.cache.size", sizes[i], NULL, NULL);
        for (int round = 0; round < 3; round++) {
            assert_string_equal(turn(&h, ENVELOPE("int8", "1")), ENVELOPE("int8", "1"));
            assert_string_equal(turn(&h, ENVELOPE("int8", "300")), ENVELOPE("int8", "44"));
            assert_string_equal(turn(&h, ENVELOPE("int64", "300")), ENVELOPE("int64", "300"));
            assert_string_equal(turn(&h, ENVELOPE("string", "\"x\"")), ENVELOPE("string", "\"x\""));
            assert_string_equal(turn(&h, "{\"schema\":null,\"payload\":[1]}"),
                                "{\"schema\":null,\"payload\":[1]}");
            /* Known beginnings that go on otherwise. */
            assert_string_equal(
                turn(&h, "{\"schema\":{\"type\":\"int8\",\"optional\":false},\"payload\":1,"
                         "\"payload\":2}"),
                ENVELOPE("int8", "2"));
            assert_string_equal(
                turn(&h, "{\"schema\":{\"type\":\"int8\",\"optional\":false},\"payload\":300,"
                         "\"schema\":{\"type\":\"int64\"}}"),
                ENVELOPE("int64", "300"));
            assert_memory_equal(
                turn(&h,
                     "{\"schema\":{\"type\":\"int8\",\"optional\":false},\"payload\":1,\"x\":2}"),
                "JsonConverter with schemas.enable requires", 42);
            assert_memory_equal(
                turn(&h, "{\"schema\":{\"type\":\"int8\",\"optional\":false},\"payload\":}"),
                "Converting byte[] to Kafka Connect data failed", 46);
        }
        plugin_host_close(&h);
    }
}

static void schema_content_is_the_schema_of_what_is_read(void **state)
{
    static const char content[] =
        "{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"field\":\"a\"}]}";
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;

    (void)state;
    open_json(&h, "schema.content", content, NULL, NULL);
    assert_string_equal(turn(&h, "{\"a\":5}"),
                        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\","
                        "\"optional\":false,\"field\":\"a\"}],"
                        "\"optional\":false},\"payload\":{\"a\":5}}");
    assert_string_equal(turn(&h, "{\"schema\":{\"type\":\"int32\"},\"payload\":5}"),
                        "Invalid null value for required INT32 field");
    assert_string_equal(turn(&h, ""),
                        "Structs should be encoded as JSON objects, but found MISSING");
    assert_string_equal(turn(&h, "null"), "Invalid null value for required STRUCT field");
    assert_int_equal(plugin_host_to_connect(&h, NULL, 0, &schema, &v), 0);
    assert_null(schema);
    plugin_host_close(&h);
    open_json(&h, "schema.content", content, "schemas.enable", "false");
    assert_string_equal(turn(&h, "{\"a\":5}"), "{\"a\":5}");
    plugin_host_close(&h);
    open_json(&h, "schema.content", "  ", NULL, NULL);
    assert_string_equal(turn(&h, ENVELOPE("int32", "5")), ENVELOPE("int32", "5"));
    plugin_host_close(&h);
}

static void broken_schema_content_ends_the_start(void **state)
{
    static const struct {
        const char *content, *text;
    } rows[] = {
        {"{", "Failed to parse schema in converter config due to serialization error: expected a "
              "member's name"},
        {"{}", "Schema must contain 'type' field"},
        {"5", "Schema must contain 'type' field"},
        {"{\"type\":\"x\"}", "Unknown schema type: x"},
    };
    struct plugin_host h = {.stored = -1};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *keys[] = {"converter.type", "value", "schema.content", rows[i].content, NULL};

        assert_true(plugin_host_open(&h, converter_name, keys) < 0);
        assert_memory_equal(h.err.text, rows[i].text, strlen(rows[i].text));
        plugin_host_close(&h);
    }
}

static void odd_documents_read_as_in_java(void **state)
{
#define NINES "9999999999999999999999999"
    static const struct {
        const char *document, *text;
    } rows[] = {
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"1e400", "\"Infinity\""},
        {"-1e400", "\"-Infinity\""},
        {NINES NINES NINES NINES, "-1"}, /* a hundred of them: the low 64 bits */
        {"\"\\ud800\"", "\"\\uD800\""},
    };
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    char *deep = malloc(100000);

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(turn(&h, rows[i].document), rows[i].text);
    assert_int_equal(read_text(&h, "NaN", &schema, &v), MR_ERR_DATA);
    assert_int_equal(read_text(&h, "[-Infinity]", &schema, &v), MR_ERR_DATA);
    memset(deep, '[', 100000);
    assert_int_equal(plugin_host_to_connect(&h, deep, 100000, &schema, &v), MR_ERR_DATA);
    free(deep);
    plugin_host_close(&h);
}

static void broken_envelopes_are_refused(void **state)
{
    static const char document[] =
        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"field\":\"a\"}]},"
        "\"payload\":{\"a\":1}}";
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;

    (void)state;
    open_json(&h, "schemas.enable", "true", NULL, NULL);
    for (size_t len = 0; len < strlen(document); len++)
        assert_int_equal(plugin_host_to_connect(&h, document, len, &schema, &v), MR_ERR_DATA);
    assert_int_equal(read_text(&h, document, &schema, &v), 0);
    assert_non_null(strstr(turn(&h, "{\"schema\":{\"type\":\"uint128\"},\"payload\":1}"),
                           "Unknown schema type: uint128"));
    assert_non_null(strstr(turn(&h, "{\"schema\":{\"type\":5},\"payload\":1}"),
                           "Schema must contain 'type' field"));
    assert_non_null(strstr(turn(&h, "{\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"map\"}},"
                                    "\"payload\":[]}"),
                           "Map schema did not specify the key type"));
    plugin_host_close(&h);
}

/* A struct with a field of its own name, and so on: JSON has no cycles, each level is a schema of its
 * own. */
static void a_schema_that_looks_like_a_cycle_is_a_tree(void **state)
{
    enum { LEVELS = 60 };
    static char text[LEVELS * 120];
    struct plugin_host h;
    char *to = text;

    (void)state;
    to += sprintf(to, "{\"schema\":");
    for (int i = 0; i < LEVELS; i++)
        to += sprintf(to, "{\"type\":\"struct\",\"fields\":[");
    for (int i = 0; i < LEVELS; i++)
        to += sprintf(to, "],\"optional\":true,\"name\":\"Node\"%s}",
                      i < LEVELS - 1 ? ",\"field\":\"next\"" : "");
    to += sprintf(to, ",\"payload\":");
    for (int i = 0; i < LEVELS - 1; i++)
        to += sprintf(to, "{\"next\":");
    to += sprintf(to, "{}");
    for (int i = 0; i < LEVELS; i++)
        *to++ = '}';
    *to = '\0';
    open_json(&h, "schemas.enable", "true", NULL, NULL);
    for (int again = 0; again < 2; again++)
        assert_string_equal(turn(&h, text), text);
    plugin_host_close(&h);
}

static void errors_say_where(void **state)
{
#define FAILED \
    "Converting byte[] to Kafka Connect data failed due to serialization error: \nCaused by: " \
    "org.apache.kafka.common.errors.SerializationException: "
    static const struct {
        const char *document, *text;
    } rows[] = {
        {"[1,]", FAILED "expected a value at byte 3 of 4"},
        {"{\"a\" 1}", FAILED "expected a colon after a member's name at byte 5 of 7"},
        {"[\"a", FAILED "the document ends in a string at byte 3 of 3"},
        {"[tru]", FAILED "unknown word: expected true, false or null at byte 1 of 5"},
        {"\"\xff\"", FAILED "invalid UTF-8 at byte 1 of 3"},
        {"\"\t\"", FAILED "a control character in a string must be escaped at byte 1 of 3"},
        {"5x", FAILED "expected white space after a number at byte 1 of 2"},
        {"1e99999999999", FAILED "the exponent of a number is out of range at byte 0 of 13"},
    };
    struct plugin_host h;

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(turn(&h, rows[i].document), rows[i].text);
    plugin_host_close(&h);
}

static void what_nests_too_deep_is_not_written(void **state)
{
    struct plugin_host h;
    struct mr_value v = mr_int(1);
    const void *data;
    size_t len;

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    for (int i = 0; i < 1001; i++) {
        struct mr_value outer = mr_list(plugin_host_arena(&h), 1);

        mr_items(outer)[0] = v;
        v = outer;
    }
    assert_int_equal(plugin_host_from_connect(&h, NULL, mr_items(v)[0], &data, &len), 0);
    assert_int_equal(plugin_host_from_connect(&h, NULL, v, &data, &len), MR_ERR_DATA);
    plugin_host_close(&h);
}

/* A million equal or different names in one object take no time by the square. */
static void hostile_names_take_no_time(void **state)
{
    enum { NAMES = 200000 };
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    char *text = malloc(NAMES * 16 + 16);
    size_t at;

    (void)state;
    open_json(&h, "schemas.enable", "false", NULL, NULL);
    for (int same = 0; same < 2; same++) {
        at = 0;
        for (int i = 0; i < NAMES; i++)
            at +=
                (size_t)sprintf(text + at, "%c\"%d\":%d", i == 0 ? '{' : ',', same ? 7 : i, i % 10);
        text[at++] = '}';
        text[at] = '\0';
        assert_int_equal(read_text(&h, text, &schema, &v), 0);
        assert_int_equal(v.len, same ? 1 : NAMES);
        assert_int_equal(mr_pairs(v)[v.len - 1].value.u.i, (NAMES - 1) % 10);
        plugin_host_next(&h);
    }
    free(text);
    plugin_host_close(&h);
}

/* Two blocks of four letters that lead an FNV-1a of 32 bits from a state to one other state. */
static void find_twins(uint32_t *state, uint32_t prime, char twins[2][4])
{
    static const char letters[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    enum { SLOTS = 1 << 20 };
    static struct {
        uint32_t state;
        char block[4];
    } seen[SLOTS];
    uint64_t random = 1;

    memset(seen, 0, sizeof(seen));
    for (;;) {
        uint32_t next = *state;
        size_t at;
        char block[4];

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        for (int i = 0; i < 4; i++) {
            block[i] = letters[random >> (40 + 6 * i) & 63];
            next = (next ^ (unsigned char)block[i]) * prime;
        }
        for (at = next % SLOTS; seen[at].block[0] != 0; at = (at + 1) % SLOTS)
            if (seen[at].state == next && memcmp(seen[at].block, block, 4) != 0) {
                memcpy(twins[0], seen[at].block, 4);
                memcpy(twins[1], block, 4);
                *state = next;
                return;
            }
        seen[at].state = next;
        memcpy(seen[at].block, block, 4);
    }
}

enum { STAGES = 16, CRAFTED = 1 << STAGES, CRAFTED_BYTES = 4 * STAGES };

static char *crafted_text(const char *front, const char *before, const char *after,
                          const char *back, uint32_t start, uint32_t prime)
{
    char twins[STAGES][2][4], name[CRAFTED_BYTES + 1] = "", *text = malloc(CRAFTED * 128),
                                                   *to = text;

    for (int i = 0; i < STAGES; i++)
        find_twins(&start, prime, twins[i]);
    for (int n = 0; n < CRAFTED; n++) {
        for (int i = 0; i < STAGES; i++)
            memcpy(name + 4 * i, twins[i][n >> i & 1], 4);
        to += sprintf(to, "%s%s\"%s\"%s", n == 0 ? front : ",", before, name, after);
    }
    strcpy(to, back);
    return text;
}

static void read_soon(const char *enable, char *text)
{
    struct plugin_host h;
    const struct mr_schema *schema;
    struct mr_value v;
    clock_t began;

    open_json(&h, "schemas.enable", enable, NULL, NULL);
    began = clock();
    if (plugin_host_to_connect(&h, text, strlen(text), &schema, &v) != 0)
        fail_msg("%s", h.err.text);
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC); /* of the processor */
    assert_true(v.len == CRAFTED);
    plugin_host_close(&h);
    free(text);
}

#define MAP_OF(type) \
    "{\"schema\":{\"type\":\"map\",\"keys\":{\"type\":\"" type \
    "\"},\"values\":{\"type\":\"boolean\"}},\"payload\":["

/* Names and keys that are all in one place of a table whose hash their author knows; and bytes, of
 * which each is a key by itself. */
static void crafted_names_take_no_time(void **state)
{
    char *text = malloc(CRAFTED * 64), *to = text;

    (void)state;
    read_soon("false", crafted_text("{", "", ":1", "}", 2166136261u, 16777619u));
    read_soon("true", crafted_text("{\"schema\":{\"type\":\"struct\",\"fields\":[",
                                   "{\"type\":\"int8\",\"optional\":true,\"field\":", "}",
                                   "]},\"payload\":{}}", 0x84222325, 0x1b3));
    for (uint64_t i = 0; i < CRAFTED; i++) /* all 0 in the lower half after a multiplication */
        to += sprintf(to, "%s[%lld,true]", i == 0 ? MAP_OF("int64") : ",",
                      (long long)((i << 32 | i) * UINT64_C(0xf1de83e19937733d)));
    strcpy(to, "]}");
    read_soon("true", text);
    to = text = malloc(CRAFTED * 64);
    for (int i = 0; i < CRAFTED; i++)
        to += sprintf(to, "%s[\"\",true]", i == 0 ? MAP_OF("bytes") : ",");
    strcpy(to, "]}");
    read_soon("true", text);
}

/* As Map.equals has it; the last entry of equal ones counts. */
static void keys_that_are_maps_are_the_same_in_any_order(void **state)
{
#define MAP(key, value) \
    "{\"type\":\"map\",\"keys\":" key ",\"values\":" value ",\"optional\":false}"
#define PLAIN(type) "{\"type\":\"" type "\",\"optional\":false}"
#define BY_NUMBERS "{\"schema\":" MAP(MAP(PLAIN("int32"), PLAIN("int32")), PLAIN("int32"))
#define BY_TEXTS "{\"schema\":" MAP(MAP(PLAIN("string"), PLAIN("int32")), PLAIN("int32"))
    static const struct {
        const char *document, *text;
    } rows[] = {
        {BY_NUMBERS ",\"payload\":[[[[1,1],[2,2]],5],[[[2,2],[1,1]],6]]}",
         BY_NUMBERS ",\"payload\":[[[[2,2],[1,1]],6]]}"},
        {BY_NUMBERS ",\"payload\":[[[[1,1],[2,2]],5],[[[2,1],[1,2]],6]]}",
         BY_NUMBERS ",\"payload\":[[[[1,1],[2,2]],5],[[[2,1],[1,2]],6]]}"},
        {BY_NUMBERS ",\"payload\":[[[[1,1],[2,2]],5],[[[3,3],[1,1]],6]]}",
         BY_NUMBERS ",\"payload\":[[[[1,1],[2,2]],5],[[[3,3],[1,1]],6]]}"},
        {BY_TEXTS ",\"payload\":[[{\"a\":1,\"b\":2},5],[{\"b\":2,\"a\":1},6]]}",
         BY_TEXTS ",\"payload\":[[{\"b\":2,\"a\":1},6]]}"},
    };
    struct plugin_host h;

    (void)state;
    open_json(&h, "schemas.enable", "true", NULL, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(turn(&h, rows[i].document), rows[i].text);
    plugin_host_close(&h);
}

/* What an empty object as a header's text is read as: no reader could use its schema. */
static void a_map_whose_schema_tells_no_key_is_refused(void **state)
{
    static const char *const texts[] = {"{}", "{\"x\":{}}"};
    static const char *const enable[] = {"true", "false"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct plugin_host h;
        const struct mr_schema *schema;
        struct mr_value v;
        const void *data;
        size_t len;

        open_json(&h, "schemas.enable", enable[i / 2], NULL, NULL);
        assert_int_equal(mr_value_parse(plugin_host_arena(&h), texts[i % 2], strlen(texts[i % 2]),
                                        &schema, &v, NULL),
                         0);
        assert_int_equal(plugin_host_from_connect(&h, schema, v, &data, &len), MR_ERR_DATA);
        assert_non_null(strstr(h.err.text, "keySchema()\" is null"));
        plugin_host_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_written_as_java_writes_it),
        cmocka_unit_test(json_is_read_as_java_reads_it),
        cmocka_unit_test(text_without_escapes_is_borrowed),
        cmocka_unit_test(half_of_a_pair_survives_both_ways),
        cmocka_unit_test(known_envelopes_are_told_apart),
        cmocka_unit_test(schema_content_is_the_schema_of_what_is_read),
        cmocka_unit_test(broken_schema_content_ends_the_start),
        cmocka_unit_test(json_headers_are_those_of_java),
        cmocka_unit_test(odd_documents_read_as_in_java),
        cmocka_unit_test(broken_envelopes_are_refused),
        cmocka_unit_test(a_schema_that_looks_like_a_cycle_is_a_tree),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(what_nests_too_deep_is_not_written),
        cmocka_unit_test(hostile_names_take_no_time),
        cmocka_unit_test(crafted_names_take_no_time),
        cmocka_unit_test(a_map_whose_schema_tells_no_key_is_refused),
        cmocka_unit_test(keys_that_are_maps_are_the_same_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
