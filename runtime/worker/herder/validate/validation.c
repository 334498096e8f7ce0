/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the validation: the keys that were looked at, in the order in which Connect lists
 * them, and what is wrong with each; and small looks into the configuration. Written by validate.c
 * and the files beside it, each check to its key, so the order of the answer is that of the keys
 * and not that of the checks. Pure. */
#include "worker/herder/validate/validation.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"

/* The index holds places counted from the first key that was added at the end, which those at the
 * front move; and no NULL. */
#define PLACE_0 ((intptr_t)1 << 30)

/* --- keys and their problems ------------------------------------------------------------------ */

struct validate_key *validation_find(struct validation *v, const char *name)
{
    const struct validate_result *out = v->out;
    void *place = out->index != NULL ? map_get(out->index, name) : NULL;

    return place == NULL ? NULL
                         : &out->keys[(intptr_t)place + (intptr_t)out->front_count - PLACE_0];
}

/* A new key, at the end or at the front (keys without a definition come first). */
struct validate_key *validation_add(struct validation *v, const char *name, bool front)
{
    struct validate_result *out = v->out;
    struct validate_key *keys = realloc(out->keys, (out->key_count + 1) * sizeof(*keys)), *key;

    mr_assert(keys != NULL);
    out->keys = keys;
    key = front ? keys : &keys[out->key_count];
    memmove(key + 1, key, (size_t)(&keys[out->key_count] - key) * sizeof(*key));
    out->key_count++;
    out->front_count += front;
    *key = (struct validate_key){.name = text_dup(name)};
    if (out->index == NULL)
        out->index = map_new();
    map_set(out->index, name, (void *)(key - keys - (intptr_t)out->front_count + PLACE_0));
    return key;
}

struct validate_key *validation_key(struct validation *v, const char *name)
{
    struct validate_key *key = validation_find(v, name);

    return key != NULL ? key : validation_add(v, name, false);
}

void validation_clear(struct validate_key *key)
{
    for (size_t i = 0; i < key->error_count; i++)
        free(key->errors[i]);
    free(key->errors);
    key->errors = NULL;
    key->error_count = 0;
}

void validation_say(struct validate_key *key, const char *text)
{
    key->errors = realloc(key->errors, (key->error_count + 1) * sizeof(*key->errors));
    mr_assert(key->errors != NULL);
    key->errors[key->error_count++] = text_dup(text);
}

void validation_problem(struct validation *v, const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    mr_assert(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    validation_say(validation_key(v, name), text);
    free(text);
}

void validation_bad(void *arg, const char *key, const char *text)
{
    (void)key;
    validation_say(arg, text);
}

/* --- looking at the configuration ------------------------------------------------------------- */

const char *validation_get(const struct validation *v, const char *key)
{
    return props_get(v->in->config, key);
}

bool validation_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\r\n\f\v")] == '\0';
}

struct config_value validation_list(const struct validation *v, const char *name)
{
    struct mr_config_key key = {name, MR_CFG_LIST, .fallback = ""};
    struct config_value value = {0};

    config_def_check(&key, v->in->config, &value, NULL, NULL);
    return value;
}

bool validation_contains(const struct config_value *list, size_t count, const char *item)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list->items[i], item) == 0)
            return true;
    return false;
}

char *validation_joined(const struct config_value *list)
{
    struct buf out;
    char *text;

    buf_init(&out, (size_t)16 << 20);
    for (size_t i = 0; i < list->item_count; i++) {
        buf_puts(&out, i > 0 ? ", " : "");
        buf_puts(&out, list->items[i]);
    }
    text = text_dup(out.failed || out.len == 0 ? "" : out.data);
    buf_deinit(&out);
    return text;
}

bool validation_sink(const struct validation *v)
{
    return v->plugin->kind == MR_PLUGIN_SINK;
}

char *validation_trimmed(const char *text)
{
    size_t len;
    char *copy;

    while (*text != '\0' && (unsigned char)*text <= ' ')
        text++;
    for (len = strlen(text); len > 0 && (unsigned char)text[len - 1] <= ' '; len--)
        ;
    copy = text_dup_len(text, len);
    return copy;
}
