/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tests/data/store/ by jansson alone, so that no reader of the runtime judges its own
 * work. */
#include "support/unit/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *read_lines(const char *name)
{
    char path[512], *line = NULL;
    size_t cap = 0;
    ssize_t len;
    json_t *lines = json_array();
    FILE *in;

    snprintf(path, sizeof(path), "%s/tests/data/store/%s", TEST_SOURCE, name);
    in = fopen(path, "r");
    if (in == NULL)
        fail_msg("no file %s", path);
    while ((len = getline(&line, &cap, in)) > 0) {
        json_t *object = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, NULL);

        assert_non_null(object);
        json_array_append_new(lines, object);
    }
    free(line);
    fclose(in);
    return lines;
}

static void unhex(char *text, size_t *len)
{
    *len /= 2;
    for (size_t i = 0; i < *len; i++) {
        unsigned byte;

        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        text[i] = (char)byte;
    }
}

static struct golden_record record_of(json_t *line)
{
    json_t *key = json_object_get(line, "key"), *value = json_object_get(line, "value");
    struct golden_record rec = {
        .partition = (int32_t)json_integer_value(json_object_get(line, "partition")),
        .offset = json_integer_value(json_object_get(line, "offset")),
        .key = json_string_value(key),
        .key_len = json_string_length(key),
        .value = json_string_value(value),
        .value_len = json_string_length(value),
        .name = json_string_value(json_object_get(line, "name")),
    };

    if (json_is_true(json_object_get(line, "key_is_hex")))
        unhex((char *)(uintptr_t)rec.key, &rec.key_len);
    return rec;
}

static int is(json_t *line, const char *member, const char *text)
{
    return text == NULL || strcmp(json_string_value(json_object_get(line, member)), text) == 0;
}

static struct golden collect(json_t *lines, const char *mode, const char *topic)
{
    struct golden golden = {calloc(json_array_size(lines), sizeof(*golden.records)), 0, lines};
    json_t *line;
    size_t i;

    assert_non_null(golden.records);
    json_array_foreach(lines, i, line)
    {
        if (topic == NULL || (is(line, "mode", mode) && is(line, "topic", topic)))
            golden.records[golden.count++] = record_of(line);
    }
    assert_true(golden.count > 0);
    return golden;
}

struct golden golden_topic(const char *mode, const char *topic)
{
    return collect(read_lines("topics.jsonl"), mode, topic);
}

struct golden golden_odd(void)
{
    return collect(read_lines("odd.jsonl"), NULL, NULL);
}

void golden_free(struct golden *golden)
{
    free(golden->records);
    json_decref(golden->lines);
}
