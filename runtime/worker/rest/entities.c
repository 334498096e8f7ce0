/* SPDX-License-Identifier: Apache-2.0 */
/* Makes answers: the error body in its two members, the table from our error codes to HTTP
 * statuses, and the few bodies that do not come from the herder. Called by the HTTP threads and
 * by the loop; every answer belongs to one exchange. Messages may hold a client's bytes cut
 * anywhere, so they are made UTF-8 before they become JSON. Pure. */
#include "worker/rest/entities.h"

#include "base/utf8.h"
#include "worker/rest/rest_text.h"

#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)64 << 20)
#define LOCATION_MAX 65536

void entities_deinit(struct answer *answer)
{
    free(answer->body);
    free(answer->location);
    *answer = (struct answer){0};
}

static const struct {
    int code;
    int status;
} statuses[] = {
    {MR_ERR_CONFIG, 400}, {MR_ERR_PROTOCOL, 400},  {MR_ERR_NOT_FOUND, 404}, {MR_ERR_EXISTS, 409},
    {MR_ERR_STATE, 409},  {MR_ERR_TOO_LARGE, 413}, {MR_ERR_CLOSED, 503},    {MR_ERR_FULL, 503},
};

int entities_status(int code)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return 500;
}

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "Bad Request"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {413, "Request Entity Too Large"},
        {414, "Request-URI Too Long"},
        {415, "Unsupported Media Type"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Internal Server Error";
}

void entities_empty(struct answer *out, int status)
{
    *out = (struct answer){.status = status};
}

void entities_json_text(struct answer *out, int status, struct buf *text)
{
    *out = (struct answer){.status = status, .len = text->len, .type = ENTITIES_JSON};
    out->body = buf_take(text);
}

void entities_json(struct answer *out, int status, const json_t *body)
{
    struct buf text;

    buf_init(&text, BODY_MAX);
    if (body == NULL || json_write(&text, body) != 0) {
        buf_deinit(&text);
        entities_empty(out, 500);
        return;
    }
    entities_json_text(out, status, &text);
}

static json_t *text_of(const char *message)
{
    size_t len = strlen(message);
    struct buf clean;
    json_t *text;

    if (utf8_valid(message, len))
        return json_stringn_nocheck(message, len);
    buf_init(&clean, len);
    while (len > 0) {
        int n = utf8_char(message, len);
        size_t taken = n > 0 ? (size_t)n : 1;

        if (n > 0)
            buf_append(&clean, message, taken);
        else
            buf_putc(&clean, '?');
        message += taken;
        len -= taken;
    }
    text = clean.failed ? NULL : json_stringn_nocheck(clean.data, clean.len);
    buf_deinit(&clean);
    return text;
}

void entities_error(struct answer *out, int status, const char *message)
{
    json_t *body = json_pack("{s:i, s:o}", "error_code", status, "message", text_of(message));

    entities_json(out, body != NULL ? status : 500, body);
    json_decref(body);
}

void entities_failed(struct answer *out, const struct mr_error *err)
{
    entities_error(out, entities_status(err->code), err->text);
}

void entities_http_error(struct answer *out, int status)
{
    char message[64];

    snprintf(message, sizeof(message), "HTTP %d %s", status, reason(status));
    entities_error(out, status, message);
}

void entities_health(struct answer *out, int status, const char *health, const char *message)
{
    json_t *body = json_pack("{s:s, s:o}", "status", health, "message", text_of(message));

    entities_json(out, status, body);
    json_decref(body);
}

void entities_text(struct answer *out, int status, const char *text, const char *type)
{
    *out = (struct answer){.status = status, .body = strdup(text)};
    out->len = out->body != NULL ? strlen(out->body) : 0;
    out->type = out->body != NULL ? type : NULL;
}

void entities_options(struct answer *out, const char *allow, bool text)
{
    if (text)
        entities_text(out, 200, allow, "text/plain");
    else
        entities_empty(out, 200);
    out->allow = true;
}

char *entities_location(const char *base, const char *conn)
{
    struct buf url;

    buf_init(&url, LOCATION_MAX);
    buf_printf(&url, "%s/connectors/", base);
    if (rest_text_encode_path(&url, conn) == 0)
        return buf_take(&url);
    buf_deinit(&url);
    return NULL;
}
