/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of an OIDC endpoint for librdkafka's clients.
 *
 * client_security.c puts what it takes to fetch one into sasl.oauthbearer.config, as JSON.
 * librdkafka hands that text back whenever it wants a token, first when the client is made and then
 * after four fifths of each token's life; the fetch blocks the library's background thread, which
 * does nothing else for us, and no longer than sasl.login.* allow. Not the library's own way
 * (sasl.oauthbearer.method=oidc): Debian builds it without, and both rooms that log in should ask,
 * retry and complain alike. Between two calls one thing is kept, in a character in front of that
 * text: whether a token came before. An endpoint that refuses is hopeless only until then. */
#include "kafka/kafka_private.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/oidc_fetch.h"

#include <stdlib.h>
#include <string.h>

#define EXTENSIONS_MAX 100

enum { NO_TOKEN_YET = '-', HAD_TOKEN = '+' };

/* --- the settings, there and back ------------------------------------------------------------- */

static const char *const keys[] = {
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.header.urlencode",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
};

/* JSON of the settings that count, behind a mark; malloc'ed. */
static char *pack(const struct client_map *m, const struct props *jaas)
{
    json_t *settings = json_object();
    json_t *all = json_object();
    char *text, *marked = NULL;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (client_map_get(m, keys[i]) != NULL)
            json_object_set_new(settings, keys[i], json_string(client_map_get(m, keys[i])));
    json_object_set_new(all, "settings", settings);
    json_object_set_new(all, "jaas", json_from_props(jaas));
    text = json_text(all);
    json_decref(all);
    mr_assert(text != NULL && asprintf(&marked, "%c%s", NO_TOKEN_YET, text) > 0);
    explicit_bzero(text, strlen(text));
    free(text);
    return marked;
}

int client_token_apply(struct client_map *m, const struct props *jaas)
{
    struct oidc *oidc = oidc_new(&m->java, jaas, m->err);
    char *text;
    int rc;

    if (oidc == NULL)
        return MR_ERR_CONFIG;
    oidc_free(&oidc);
    text = pack(m, jaas);
    rc = client_map_put(m, "sasl.jaas.config", "sasl.oauthbearer.config", text);
    explicit_bzero(text, strlen(text));
    free(text);
    return rc;
}

/* Whether the settings are those that client_token_apply put. */
static bool is_ours(const char *config)
{
    return config != NULL && config[0] == NO_TOKEN_YET && config[1] == '{';
}

static int unpack(const char *config, struct oidc **oidc, struct props *jaas, struct mr_error *err)
{
    json_t *all = json_parse(config, strlen(config), err);
    struct props settings;
    int rc = all != NULL ? 0 : MR_ERR_CONFIG;

    props_init(&settings);
    if (rc == 0)
        rc = json_to_props(json_object_get(all, "settings"), &settings, err);
    if (rc == 0)
        rc = json_to_props(json_object_get(all, "jaas"), jaas, err);
    if (rc == 0 && (*oidc = oidc_new(&settings, jaas, err)) == NULL)
        rc = MR_ERR_CONFIG;
    props_deinit(&settings);
    json_decref(all);
    return rc;
}

/* --- fetching --------------------------------------------------------------------------------- */

/* "a=1,b=2" cut in place into names and values, in turn. Gives how many. */
static size_t cut_extensions(char *text, const char **out)
{
    size_t count = 0;
    char *at = text;
    char *pair;

    while ((pair = strsep(&at, ",")) != NULL && count + 2 <= EXTENSIONS_MAX) {
        char *value = strchr(pair, '=');

        if (value == NULL)
            continue;
        *value = '\0';
        out[count++] = pair;
        out[count++] = value + 1;
    }
    return count;
}

static int give(rd_kafka_t *rk, const struct oidc_token *token, const struct props *jaas,
                struct mr_error *err)
{
    const char *extensions = props_get(jaas, "sasl.oauthbearer.extensions");
    char *copy = strdup(extensions != NULL ? extensions : "");
    const char *pairs[EXTENSIONS_MAX];
    char why[512] = "";
    size_t count;
    rd_kafka_resp_err_t code;

    mr_assert(copy != NULL);
    count = cut_extensions(copy, pairs);
    code = rd_kafka_oauthbearer_set_token(rk, token->text, clock_wall_ms() + token->life_ms,
                                          token->principal, pairs, count, why, sizeof(why));
    free(copy);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? 0
               : mr_fail(err, MR_ERR_IO, "librdkafka does not take the token: %s",
                         rd_kafka_err2str(code)); /* its own words may hold the token */
}

static int fetch(rd_kafka_t *rk, const struct oidc *oidc, const struct props *jaas,
                 struct mr_error *err)
{
    struct oidc_fetch *f = oidc_fetch_new(oidc, err);
    struct oidc_token token = {0};
    int rc = f != NULL ? oidc_fetch_run(f, &token, err) : MR_ERR_NOMEM;

    if (rc == 0)
        rc = give(rk, &token, jaas, err);
    oidc_token_deinit(&token);
    oidc_fetch_free(&f);
    return rc;
}

static void refresh(rd_kafka_t *rk, const char *config, void *opaque)
{
    struct mr_error err = {0};
    struct oidc *oidc = NULL;
    struct props jaas;
    /* The client's own copy, which only this thread looks at. */
    char *mark = (char *)(uintptr_t)config;

    (void)opaque;
    props_init(&jaas);
    if (unpack(config + 1, &oidc, &jaas, &err) == 0 && fetch(rk, oidc, &jaas, &err) == 0) {
        *mark = HAD_TOKEN;
    } else {
        if (err.code == MR_ERR_FATAL && *mark == NO_TOKEN_YET)
            err_prefix(&err, CLIENT_TOKEN_REFUSED);
        rd_kafka_oauthbearer_set_token_failure(rk, err.text);
    }
    oidc_free(&oidc);
    props_deinit(&jaas);
}

/* --- the client ------------------------------------------------------------------------------- */

void client_token_prepare(rd_kafka_conf_t *conf, const struct props *settings)
{
    if (!is_ours(props_get(settings, "sasl.oauthbearer.config")))
        return;
    rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, refresh);
    rd_kafka_conf_enable_sasl_queue(conf, 1);
}

bool client_token_wanted(const rd_kafka_conf_t *conf)
{
    char *config;
    size_t size = 0;
    bool ours;

    if (rd_kafka_conf_get(conf, "sasl.oauthbearer.config", NULL, &size) != RD_KAFKA_CONF_OK ||
        size < 2)
        return false;
    config = malloc(size);
    mr_assert(config != NULL);
    ours = rd_kafka_conf_get(conf, "sasl.oauthbearer.config", config, &size) == RD_KAFKA_CONF_OK &&
           is_ours(config);
    explicit_bzero(config, size);
    free(config);
    return ours;
}

int client_token_begin(rd_kafka_t *rk, struct mr_error *err)
{
    rd_kafka_error_t *failed = rd_kafka_sasl_background_callbacks_enable(rk);

    if (failed == NULL)
        return 0;
    mr_fail(err, MR_ERR_IO, "The Kafka client can't fetch tokens: %s",
            rd_kafka_error_string(failed));
    rd_kafka_error_destroy(failed);
    return MR_ERR_IO;
}
