/* SPDX-License-Identifier: Apache-2.0 */
/* jansson with limits on the way in and Jackson's spelling on the way out. Any thread; values are
 * not shared between threads. jansson's parser recurses up to 2048 levels deep; documents from
 * outside are scanned first, so that 512 is the cap whatever the library was built with. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 512
#define TEXT_MAX ((size_t)1 << 30)

/* Does any bracket nest deeper than DEPTH_MAX? Strings are skipped; what is malformed is left to
 * the parser. */
static bool too_deep(const char *data, size_t len)
{
    int depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = data[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

#define A_VALUE "a value (text in double quotes, a number, true, false or null) is expected"

/* jansson's "WHAT near 'TOKEN'" or "WHAT near end of file", as our reader of requests says it. */
static const struct sentence {
    const char *what;
    const char *ours;
    bool token; /* what stands there instead follows */
} sentences[] = {
    {"string or '}' expected", "a key in double quotes, or }, is expected", true},
    {"'}' expected", "a comma or } is expected", true},
    {"']' expected", "a comma or ] is expected", true},
    {"':' expected", "a : after a key is expected", true},
    {"end of file expected", "nothing more is expected", true},
    {"unexpected token", A_VALUE, true},
    {"invalid token", A_VALUE, true},
    {"unexpected newline", "a line break in a string: its closing \" is missing, or write \\n",
     false},
    {"premature end of input", "a string has no closing \"", false},
    {"invalid escape", "one of \" \\ / b f n r t u is expected behind \\", false},
};

static const struct sentence *sentence_of(const char *text)
{
    for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
        if (strncmp(text, sentences[i].what, strlen(sentences[i].what)) == 0)
            return &sentences[i];
    return NULL;
}

/* Characters of a token in quotes. jansson's column is that of its last one. */
static int width(const char *quoted)
{
    int count = -2;

    for (; *quoted != '\0'; quoted++)
        count += ((unsigned char)*quoted & 0xc0) != 0x80;
    return count;
}

/* What a string holds is not shown: it may be a secret. */
static void malformed(const json_error_t *at, struct mr_error *err)
{
    static const char mark[] = " near ";
    const struct sentence *sentence = sentence_of(at->text);
    const char *near = strstr(at->text, mark);
    int words = near != NULL ? (int)(near - at->text) : (int)strlen(at->text);
    int column = at->column;

    near = near != NULL ? near + sizeof(mark) - 1 : "";
    if (sentence == NULL || !sentence->token)
        mr_fail(err, MR_ERR_PROTOCOL, "line %d, column %d: %.*s", at->line, column,
                sentence != NULL ? (int)strlen(sentence->ours) : words,
                sentence != NULL ? sentence->ours : at->text);
    else if (near[0] == '\'')
        mr_fail(err, MR_ERR_PROTOCOL, "line %d, column %d: %s, not %s", at->line,
                column - width(near) + 1, sentence->ours, near[1] == '"' ? "a string" : near);
    else
        mr_fail(err, MR_ERR_PROTOCOL, "line %d, column %d: %s%s", at->line, column + 1,
                sentence->ours, near[0] != '\0' ? ", but the text ends" : "");
}

json_t *json_parse(const char *data, size_t len, struct mr_error *err)
{
    json_error_t at;
    json_t *value;

    if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        data += 3;
        len -= 3;
    }
    if (too_deep(data, len)) {
        mr_fail(err, MR_ERR_PROTOCOL, "JSON nested deeper than %d levels", DEPTH_MAX);
        return NULL;
    }
    value = json_loadb(data, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &at);
    if (value == NULL)
        malformed(&at, err);
    return value;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_string(struct buf *out, const char *text, size_t len)
{
    static const char shorts[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    size_t from = 0;

    buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_append(out, text + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < sizeof(shorts) && shorts[c] != 0)
            buf_printf(out, "\\%c", shorts[c]);
        else
            buf_printf(out, "\\u%04X", c);
    }
    buf_append(out, text + from, len - from);
    buf_putc(out, '"');
}

static void write_value(struct buf *out, const json_t *value);

static void write_object(struct buf *out, const json_t *object)
{
    bool first = true;

    /* The iterators take a non-const object but change nothing. */
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        const char *key = json_object_iter_key(it);

        if (!first)
            buf_putc(out, ',');
        first = false;
        write_string(out, key, strlen(key));
        buf_putc(out, ':');
        write_value(out, json_object_iter_value(it));
    }
}

static void write_array(struct buf *out, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            buf_putc(out, ',');
        write_value(out, json_array_get(array, i));
    }
}

static void write_real(struct buf *out, double d)
{
    char text[32];

    snprintf(text, sizeof(text), "%.15g", d);
    if (strtod(text, NULL) != d)
        snprintf(text, sizeof(text), "%.17g", d);
    buf_puts(out, text);
    if (strpbrk(text, ".eEn") == NULL)
        buf_puts(out, ".0");
}

static void write_value(struct buf *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        buf_putc(out, '{');
        write_object(out, value);
        buf_putc(out, '}');
        break;
    case JSON_ARRAY:
        buf_putc(out, '[');
        write_array(out, value);
        buf_putc(out, ']');
        break;
    case JSON_STRING:
        write_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
        buf_puts(out, "true");
        break;
    case JSON_FALSE:
        buf_puts(out, "false");
        break;
    case JSON_NULL:
        buf_puts(out, "null");
        break;
    }
}

int json_write(struct buf *out, const json_t *value)
{
    write_value(out, value);
    return out->failed ? MR_ERR_FULL : 0;
}

char *json_text(const json_t *value)
{
    struct buf out;

    buf_init(&out, TEXT_MAX);
    if (json_write(&out, value) == 0)
        return buf_take(&out);
    buf_deinit(&out);
    return NULL;
}

/* --- text maps -------------------------------------------------------------------------------- */

json_t *json_from_props(const struct props *p)
{
    json_t *object = json_object();

    for (size_t i = 0; object != NULL && i < p->count; i++) {
        const struct props_entry *e = &p->entries[i];
        json_t *value = e->value != NULL ? json_string(e->value) : json_null();

        if (value == NULL || json_object_set_new(object, e->key, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static int scalar_to_props(struct props *p, const char *key, const json_t *value,
                           struct mr_error *err)
{
    char *text;
    int rc;

    if (json_is_null(value))
        return props_set(p, key, NULL);
    if (json_is_string(value)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            return mr_fail(err, MR_ERR_PROTOCOL, "the value of \"%s\" holds a NUL character", key);
        return props_set(p, key, json_string_value(value));
    }
    if (json_is_object(value) || json_is_array(value))
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "the value of \"%s\" must be text, a number, a boolean or null, not an %s",
                       key, json_is_object(value) ? "object" : "array");
    text = json_text(value);
    rc = text == NULL ? MR_ERR_NOMEM : props_set(p, key, text);
    free(text);
    return rc;
}

int json_to_props(const json_t *object, struct props *p, struct mr_error *err)
{
    if (!json_is_object(object))
        return mr_fail(err, MR_ERR_PROTOCOL, "an object was expected");
    for (void *it = json_object_iter((json_t *)(uintptr_t)object); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)object, it)) {
        int rc = scalar_to_props(p, json_object_iter_key(it), json_object_iter_value(it), err);

        if (rc == MR_ERR_NOMEM)
            mr_fail(err, rc, "out of memory");
        if (rc != 0)
            return rc;
    }
    return 0;
}

bool json_get_text(const json_t *object, const char *key, const char **out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return false;
    *out = json_string_value(value);
    return true;
}

bool json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return false;
    *out = json_integer_value(value);
    return true;
}

bool json_get_bool(const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value))
        return false;
    *out = json_is_true(value);
    return true;
}
