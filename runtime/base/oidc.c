/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a token endpoint, and its answers taken apart.
 *
 * wire/wire_token.c and kafka/client_token.c read the settings of their client here, ask by
 * oidc_fetch.c, and give the token to their logins. An answer comes from outside: it may be
 * anything, and may repeat what was sent, the secret with it. So no error holds a word of it. How
 * long a token lives is told by expires_in, which needs no clock that agrees with the issuer's, and
 * is held against the token's own iat and exp where it is a JWT; a token of another kind serves
 * when expires_in comes with it. Pure, any thread. */
#include "base/oidc.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LIFE_MAX_MS (INT64_C(366) * 86400 * 1000)

/* --- settings --------------------------------------------------------------------------------- */

struct number {
    const char *key;
    size_t at; /* of the field */
    double unset;
    double min;
    double max;
    double scale; /* 0: the field is a double */
};

static const struct number numbers[] = {
    {"sasl.login.connect.timeout.ms", offsetof(struct oidc, connect_ms), 10000, 1, INT32_MAX, 1},
    {"sasl.login.read.timeout.ms", offsetof(struct oidc, read_ms), 10000, 1, INT32_MAX, 1},
    {"sasl.login.retry.backoff.ms", offsetof(struct oidc, backoff_ms), 100, 0, INT32_MAX, 1},
    {"sasl.login.retry.backoff.max.ms", offsetof(struct oidc, backoff_max_ms), 10000, 0, INT32_MAX,
     1},
    {"sasl.login.refresh.window.factor", offsetof(struct oidc, window_factor), 0.8, 0.5, 1, 0},
    {"sasl.login.refresh.window.jitter", offsetof(struct oidc, window_jitter), 0.05, 0, 0.25, 0},
    {"sasl.login.refresh.min.period.seconds", offsetof(struct oidc, min_period_ms), 60, 0, 900,
     1000},
    {"sasl.login.refresh.buffer.seconds", offsetof(struct oidc, buffer_ms), 300, 0, 3600, 1000},
};

static int read_number(struct oidc *o, const struct number *n, const char *text,
                       struct mr_error *err)
{
    void *field = (char *)o + n->at;
    double value = n->unset;
    char *end = NULL;

    if (text != NULL) {
        errno = 0;
        value = strtod(text, &end);
        if (errno != 0 || end == text || *end != '\0' || !(value >= n->min && value <= n->max) ||
            (n->scale > 0 && value != floor(value)))
            return mr_fail(err, MR_ERR_CONFIG,
                           "Invalid value %.100s for configuration %s: use a %snumber from %g to "
                           "%.0f",
                           text, n->key, n->scale > 0 ? "whole " : "", n->min, n->max);
    }
    if (n->scale > 0)
        *(int64_t *)field = (int64_t)(value * n->scale);
    else
        *(double *)field = value;
    return 0;
}

static int bad_url(const char *why, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value for configuration sasl.oauthbearer.token.endpoint.url: %s", why);
}

static int read_url(struct oidc *o, const char *url, struct mr_error *err)
{
    const char *host = strstr(url, "://");
    size_t len;

    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return bad_url("only http and https can be asked for a token", err);
    host += 3;
    len = strcspn(host, "/?#");
    for (const char *p = url; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~')
            return bad_url("it holds a blank or a character that no URL has", err);
    if (len == 0)
        return bad_url("it names no host", err);
    if (memchr(host, '@', len) != NULL)
        return bad_url("no user may stand in it; set sasl.oauthbearer.client.credentials.client.id "
                       "and .client.secret",
                       err);
    o->url = text_dup(url);
    o->shown_url = text_dup_len(url, strcspn(url, "?#"));
    return 0;
}

/* The setting wins over the option in sasl.jaas.config, as in Java. */
static int read_text(char **out, const char *setting, const char *option, const char *needed,
                     struct mr_error *err)
{
    const char *value = setting != NULL && setting[0] != '\0' ? setting : option;

    if ((value == NULL || value[0] == '\0') && needed != NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "sasl.mechanism OAUTHBEARER with a token endpoint needs %s, or the same in "
                       "sasl.jaas.config",
                       needed);
    *out = value != NULL && value[0] != '\0' ? text_dup(value) : NULL;
    return 0;
}

static int read_bool(bool *out, const char *value, const char *key, struct mr_error *err)
{
    *out = value != NULL && strcasecmp(value, "true") == 0;
    if (value != NULL && !*out && strcasecmp(value, "false") != 0)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.100s for configuration %s: use true or false", value, key);
    return 0;
}

static int read_all(struct oidc *o, const struct props *settings, const struct props *jaas,
                    struct mr_error *err)
{
#define CREDENTIALS "sasl.oauthbearer.client.credentials."
#define URLENCODE "sasl.oauthbearer.header.urlencode"
    const char *url = props_get(settings, "sasl.oauthbearer.token.endpoint.url");
    int rc = url != NULL
                 ? read_url(o, url, err)
                 : mr_fail(err, MR_ERR_CONFIG,
                           "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url");

    if (rc == 0)
        rc = read_text(&o->client_id, props_get(settings, CREDENTIALS "client.id"),
                       props_get(jaas, "sasl.oauthbearer.client.id"), CREDENTIALS "client.id", err);
    if (rc == 0)
        rc = read_text(&o->secret, props_get(settings, CREDENTIALS "client.secret"),
                       props_get(jaas, "sasl.oauthbearer.client.secret"),
                       CREDENTIALS "client.secret", err);
    if (rc == 0)
        rc = read_text(&o->scope, props_get(settings, "sasl.oauthbearer.scope"),
                       props_get(jaas, "sasl.oauthbearer.scope"), NULL, err);
    if (rc == 0)
        rc = read_bool(&o->encoded, props_get(settings, URLENCODE), URLENCODE, err);
    for (size_t i = 0; rc == 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
        rc = read_number(o, &numbers[i], props_get(settings, numbers[i].key), err);
    return rc;
}

struct oidc *oidc_new(const struct props *settings, const struct props *jaas, struct mr_error *err)
{
    struct oidc *o = calloc(1, sizeof(*o));

    mr_assert(o != NULL);
    if (read_all(o, settings, jaas, err) != 0)
        oidc_free(&o);
    return o;
}

static void wipe(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

void oidc_free(struct oidc **op)
{
    struct oidc *o = *op;

    *op = NULL;
    if (o == NULL)
        return;
    free(o->url);
    free(o->shown_url);
    free(o->client_id);
    wipe(o->secret);
    free(o->scope);
    free(o);
}

void oidc_token_deinit(struct oidc_token *token)
{
    wipe(token->text);
    free(token->principal);
    *token = (struct oidc_token){0};
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The claims of a JWT; NULL: it is none. */
static json_t *claims_of(const char *token)
{
    const char *at = strchr(token, '.');
    size_t len = at != NULL ? strcspn(at + 1, ".") : 0;
    char *text = len > 0 && at[1 + len] == '.' ? strndup(at + 1, len) : NULL;
    json_t *claims = NULL;
    size_t out_len;

    for (char *p = text; p != NULL && *p != '\0'; p++)
        *p = (char)(*p == '-' ? '+' : *p == '_' ? '/' : *p);
    if (text != NULL && base64_decode(text, len, (unsigned char *)text, len, &out_len))
        claims = json_parse(text, out_len, NULL);
    if (text != NULL)
        explicit_bzero(text, len);
    free(text);
    if (claims != NULL && !json_is_object(claims)) {
        json_decref(claims);
        claims = NULL;
    }
    return claims;
}

/* Seconds of a member as milliseconds; 0: absent, or nothing that a time can be. */
static int64_t seconds_of(const json_t *object, const char *key)
{
    double s = json_number_value(json_object_get(object, key));

    return s > 0 && s < 1e12 ? (int64_t)(s * 1000) : 0;
}

static int64_t life_of(const json_t *answer, const json_t *claims, int64_t wall_ms)
{
    int64_t told = seconds_of(answer, "expires_in");
    int64_t from = seconds_of(claims, "iat");
    int64_t until = seconds_of(claims, "exp");
    int64_t life = told > 0 ? told : until > 0 ? until - wall_ms : 0;

    if (until > 0 && from > 0 && until - from < life)
        life = until - from;
    return life < LIFE_MAX_MS ? life : LIFE_MAX_MS;
}

static bool token_text(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return text[0] != '\0';
}

static int judge(const struct oidc *o, const json_t *answer, int64_t wall_ms,
                 struct oidc_token *out, struct mr_error *err)
{
    const char *text = json_string_value(json_object_get(answer, "access_token"));
    const char *who = NULL;
    json_t *claims;
    int64_t life_ms;

    if (text == NULL)
        return mr_fail(err, MR_ERR_FATAL,
                       "the token endpoint %.300s answered without a text access_token: is it the "
                       "endpoint for client credentials?",
                       o->shown_url);
    if (!token_text(text))
        return mr_fail(err, MR_ERR_FATAL,
                       "the token endpoint %.300s gave a token that is empty, or holds blanks or "
                       "characters that no token has",
                       o->shown_url);
    claims = claims_of(text);
    life_ms = life_of(answer, claims, wall_ms);
    json_get_text(claims, "sub", &who);
    if (life_ms > 0) {
        *out = (struct oidc_token){.text = text_dup(text),
                                   .principal =
                                       text_dup(who != NULL && who[0] != '\0' ? who : o->client_id),
                                   .life_ms = life_ms};
    }
    json_decref(claims);
    return life_ms > 0 ? 0
                       : mr_fail(err, MR_ERR_FATAL,
                                 "the token endpoint %.300s gave a token that has expired, or does "
                                 "not say when it does: does this machine's clock go right?",
                                 o->shown_url);
}

int oidc_read(const struct oidc *o, const char *body, size_t len, int64_t wall_ms,
              struct oidc_token *out, struct mr_error *err)
{
    json_t *answer = json_parse(body, len, NULL);
    int rc;

    if (json_is_object(answer))
        rc = judge(o, answer, wall_ms, out, err);
    else
        rc = mr_fail(err, MR_ERR_FATAL,
                     "the token endpoint %.300s did not answer with a JSON object: is the URL that "
                     "of a token endpoint?",
                     o->shown_url);
    json_decref(answer);
    return rc;
}

/* --- the next one ----------------------------------------------------------------------------- */

/* Within the window, but the buffer before the end and the least period after the beginning, unless
 * the token lives too short for both. */
int64_t oidc_refresh_ms(const struct oidc *o, int64_t life_ms, double random)
{
    int64_t at = (int64_t)((double)life_ms * (o->window_factor + o->window_jitter * random));

    if (o->min_period_ms + o->buffer_ms <= life_ms) {
        if (at > life_ms - o->buffer_ms)
            at = life_ms - o->buffer_ms;
        if (at < o->min_period_ms)
            at = o->min_period_ms;
    }
    return at < life_ms ? at : life_ms;
}
