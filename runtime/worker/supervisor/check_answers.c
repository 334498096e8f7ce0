/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what `millrace check` (host/check.c) prints, for plugin_check.c. The process names each
 * key before it runs plugin code for it, so whatever happens then is that key's problem. The bytes
 * are untrusted: a plugin may have written them. Every line is judged by itself: one JSON object
 * that names a stage and key which were asked, in the order of the format; the first that is not
 * ends the reading. Loop thread. */
#include "worker/supervisor/check_answers.h"

#include "base/text.h"
#include "link/check_format.h"

#include <stdlib.h>
#include <string.h>

void check_answers_init(struct check_answers *a, const json_t *question)
{
    *a = (struct check_answers){.question = question, .problems = json_array(), .stage = -1};
    mr_assert(a->problems != NULL);
    buf_init(&a->out, CHECK_FORMAT_ANSWERS_MAX);
}

void check_answers_deinit(struct check_answers *a)
{
    json_decref(a->problems);
    buf_deinit(&a->out);
    free(a->key);
    a->problems = NULL;
    a->key = NULL;
}

/* code: 0 none. */
static void add_problem(struct check_answers *a, const char *member, const char *text, int64_t code)
{
    const json_t *first = json_object_get(json_array_get(a->question, 0), "keys");
    const char *key = a->key != NULL ? a->key : json_string_value(json_array_get(first, 0));

    json_t *problem =
        json_pack("{s:I, s:s, s:s}", "stage", (json_int_t)(a->stage >= 0 ? a->stage : 0), "key",
                  key, member, text);

    if (code != 0 && problem != NULL)
        json_object_set_new(problem, "code", json_integer(code));
    json_array_append_new(a->problems, problem);
}

static bool was_asked(const struct check_answers *a, int64_t stage, const char *key)
{
    const json_t *keys = json_object_get(json_array_get(a->question, (size_t)stage), "keys");
    size_t i;
    const json_t *item;

    json_array_foreach(keys, i, item)
    {
        if (strcmp(json_string_value(item), key) == 0)
            return true;
    }
    return false;
}

static bool reads_own_topic(const struct check_answers *a)
{
    return json_object_get(json_array_get(a->question, 0), "own") != NULL;
}

/* Of an own topic alone. false: nonsense. */
static bool take_found(struct check_answers *a, const json_t *line, const json_t *entry)
{
    const json_t *offset = json_array_get(entry, 1);

    if (!reads_own_topic(a) || json_array_size(entry) != 2 ||
        !json_is_object(json_array_get(entry, 0)) || !json_is_object(offset))
        return false;
    return json_array_append(a->problems, (json_t *)(uintptr_t)line) == 0;
}

/* false: nonsense. */
static bool take_object(struct check_answers *a, const json_t *line)
{
    const char *key, *error = NULL;
    int64_t stage, code = 0;

    if (a->ended)
        return false;
    if (json_get_bool(line, "end", &a->ended))
        return a->ended;
    if (!json_get_int(line, "stage", 0, (int64_t)json_array_size(a->question) - 1, &stage) ||
        !json_get_text(line, "key", &key) || !was_asked(a, stage, key))
        return false;
    if (json_get_text(line, "error", &error)) {
        if (stage != a->stage || a->key == NULL || strcmp(a->key, key) != 0)
            return false;
        (void)json_get_int(line, "code", INT32_MIN, -1, &code);
        add_problem(a, "error", error, code);
        return true;
    }
    if (json_object_get(line, "found") != NULL)
        return take_found(a, line, json_object_get(line, "found"));
    free(a->key);
    a->key = text_dup(key);
    a->stage = stage;
    return true;
}

static void take_lines(struct check_answers *a)
{
    char *end;

    while (!a->nonsense && a->out.len > 0 &&
           (end = memchr(a->out.data, '\n', a->out.len)) != NULL) {
        size_t len = (size_t)(end - a->out.data);
        json_t *line = json_parse(a->out.data, len, NULL);

        a->nonsense = !json_is_object(line) || !take_object(a, line);
        json_decref(line);
        buf_consume(&a->out, len + 1);
    }
}

void check_answers_broken(struct check_answers *a, const char *fmt, ...)
{
    char text[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add_problem(a, "broken", text, 0);
}

bool check_answers_take(struct check_answers *a, const void *bytes, size_t len)
{
    a->seen += len;
    if (a->seen > (reads_own_topic(a) ? CHECK_FORMAT_FOUND_MAX : CHECK_FORMAT_ANSWERS_MAX) ||
        buf_append(&a->out, bytes, len) != 0)
        a->nonsense = true;
    take_lines(a);
    return !a->nonsense;
}
