/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a config provider that a plugin brings, for provider.c. The answer comes from a process that
 * the plugin may have done anything to, so what is taken of it is what was asked for, in range.
 * Buffers that held values are wiped. */
#include "base/provider_service.h"

#include "base/service_link.h"

#include <string.h>

#define WAIT_MS 60000 /* the worker keeps a deadline for each call; this one is for its queue too */
#define VALUE_MAX ((size_t)1 << 20)
#define TTL_MAX ((int64_t)INT32_MAX * 1000)

static void wipe(struct buf *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->len);
    buf_deinit(b);
}

/* The texts of an array as the members of an object. */
static json_t *members_of(const json_t *keys)
{
    json_t *members = json_object();
    size_t i;
    const json_t *key;

    mr_assert(members != NULL);
    json_array_foreach(keys, i, key)
    {
        json_object_set_new(members, json_string_value(key), json_true());
    }
    return members;
}

/* Texts of plugins stand in logs and traces. */
static int take_error(const char *text, struct mr_error *err)
{
    int rc = mr_fail(err, MR_ERR_IO, "%.900s", text);

    for (char *c = err != NULL ? err->text : NULL; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return rc;
}

/* asked: its members are the keys. */
static int take_values(const json_t *object, const json_t *asked, struct props *values,
                       struct mr_error *err)
{
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!json_is_string(value) || json_string_length(value) > VALUE_MAX ||
            strlen(json_string_value(value)) != json_string_length(value) ||
            json_object_get(asked, key) == NULL)
            return mr_fail(err, MR_ERR_PROTOCOL, "its process gave what was not asked for");
        mr_assert(props_set(values, key, json_string_value(value)) == 0);
    }
    return 0;
}

static int take_answer(const json_t *object, const json_t *keys, struct props *values,
                       int64_t *ttl_ms, struct mr_error *err)
{
    const char *text;
    const json_t *ttl = json_object_get(object, "ttl");
    int64_t ms = PROVIDER_SERVICE_NO_TTL;
    json_t *asked;
    int rc;

    if (json_get_text(object, "error", &text))
        return take_error(text, err);
    if (!json_is_object(json_object_get(object, "values")) ||
        (ttl != NULL && !json_get_int(object, "ttl", 1, TTL_MAX, &ms)))
        return mr_fail(err, MR_ERR_PROTOCOL, "its process gave an answer that is none");
    asked = members_of(keys);
    rc = take_values(json_object_get(object, "values"), asked, values, err);
    json_decref(asked);
    if (rc == 0)
        *ttl_ms = ms;
    return rc;
}

int provider_service_read(const char *answer, size_t len, const json_t *keys, struct props *values,
                          int64_t *ttl_ms, struct mr_error *err)
{
    json_t *object = json_parse(answer, len, NULL);
    int rc = json_is_object(object)
                 ? take_answer(object, keys, values, ttl_ms, err)
                 : mr_fail(err, MR_ERR_PROTOCOL, "its process gave an answer that is no JSON");

    json_decref(object);
    return rc;
}

static int ask(const struct provider_service *service, const struct buf *question,
               struct buf *answer, struct mr_error *err)
{
    const struct service_link_question q = {.socket = service->socket,
                                            .body = question->data,
                                            .len = question->len,
                                            .wait_ms = WAIT_MS};

    return service_link_ask(&q, answer, err);
}

int provider_service_get(const struct provider_service *service, const char *path,
                         const json_t *keys, struct props *values, int64_t *ttl_ms,
                         struct mr_error *err)
{
    json_t *object =
        json_pack("{s:s, s:s, s:O}", "service", service->name, "path", path, "keys", keys);
    struct mr_error why = {0};
    struct buf question, answer;
    int rc;

    buf_init(&question, SERVICE_LINK_QUESTION_MAX);
    buf_init(&answer, SERVICE_LINK_ANSWER_MAX);
    if (object == NULL || json_write(&question, object) != 0)
        rc = mr_fail(&why, MR_ERR_TOO_LARGE, "the keys that are asked for are too many");
    else
        rc = ask(service, &question, &answer, &why);
    if (rc == 0)
        rc = provider_service_read(answer.data, answer.len, keys, values, ttl_ms, &why);
    if (rc != 0 && json_array_size(keys) == 0)
        rc = mr_fail(err, MR_ERR_IO, "config provider %.100s did not start: %.900s", service->name,
                     why.text);
    else if (rc != 0)
        rc = mr_fail(err, MR_ERR_IO, "Could not read from config provider %.100s%s%.300s: %.500s",
                     service->name, path[0] != '\0' ? ", path " : "", path, why.text);
    wipe(&answer);
    buf_deinit(&question);
    json_decref(object);
    return rc;
}
