/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a client, by Java's names: addresses, times, and what protects the connection.
 *
 * A table has the numbers with Java's defaults. Everything is checked here, once, at start; what is
 * made from the result (wire_client.c, broker_conn.c) only reads it. ssl.* go to wire_tls.c, sasl.*
 * to sasl.c. Settings that mean nothing to these few requests are not looked at:
 * kafka/client_conf.c has told the user about them. */
#include "wire_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#define ADDRESSES_MAX 1000
#define HOST_MAX 255

/* --- numbers ---------------------------------------------------------------------------------- */

static const struct number {
    const char *key;
    size_t at; /* of the field */
    int64_t unset;
    int64_t min;
} numbers[] = {
    {"request.timeout.ms", offsetof(struct wire_conf, request_timeout_ms), 40000, 1},
    {"socket.connection.setup.timeout.ms", offsetof(struct wire_conf, setup_timeout_ms), 10000, 1},
    {"retry.backoff.ms", offsetof(struct wire_conf, retry_backoff_ms), 100, 0},
    {"reconnect.backoff.ms", offsetof(struct wire_conf, reconnect_backoff_ms), 50, 0},
    {"reconnect.backoff.max.ms", offsetof(struct wire_conf, reconnect_backoff_max_ms), 1000, 0},
};

static int read_number(struct wire_conf *conf, const struct number *n, const char *text,
                       struct mr_error *err)
{
    int64_t *field = (int64_t *)(void *)((char *)conf + n->at);
    char *end;

    *field = n->unset;
    if (text == NULL)
        return 0;
    errno = 0;
    *field = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    if (errno != 0 || end == text || *end != '\0' || *field < n->min || *field > INT32_MAX)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.100s for configuration %s: use a number from %lld to %d",
                       text, n->key, (long long)n->min, INT32_MAX);
    return 0;
}

/* --- addresses -------------------------------------------------------------------------------- */

static int bad_address(const char *item, size_t len, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %.*s for configuration bootstrap.servers: use host:port, or "
                   "[address]:port for IPv6, and commas between them",
                   len < 200 ? (int)len : 200, item);
}

/* "host:port", "[::1]:port", and as Java has it "PROTOCOL://host:port". */
static int read_address(const char *item, size_t len, struct broker_conn_to *out,
                        struct mr_error *err)
{
    const char *end = item + len;
    const char *scheme = memmem(item, len, "://", 3);
    const char *host = scheme != NULL ? scheme + 3 : item;
    const char *colon = memrchr(host, ':', (size_t)(end - host));
    size_t host_len = colon != NULL ? (size_t)(colon - host) : 0;
    char port[6] = "";
    long number;

    if (colon == NULL || end - colon - 1 < 1 || end - colon - 1 > 5)
        return bad_address(item, len, err);
    memcpy(port, colon + 1, (size_t)(end - colon - 1));
    number = strspn(port, "0123456789") == strlen(port) ? strtol(port, NULL, 10) : 0;
    if (host_len > 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    } else if (memchr(host, ':', host_len) != NULL || memchr(host, '[', host_len) != NULL) {
        host_len = 0;
    }
    if (host_len == 0 || host_len > HOST_MAX || number < 1 || number > 65535)
        return bad_address(item, len, err);
    *out = (struct broker_conn_to){.host = strndup(host, host_len), .port = (uint16_t)number};
    return out->host != NULL ? 0 : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

static int read_addresses(struct wire_conf *conf, const char *list, struct mr_error *err)
{
    int rc = 0;

    conf->bootstrap = calloc(ADDRESSES_MAX, sizeof(*conf->bootstrap));
    if (conf->bootstrap == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    for (const char *p = list; rc == 0 && p != NULL && *p != '\0';) {
        size_t len;

        p += strspn(p, ", \t\r\n");
        len = strcspn(p, ", \t\r\n");
        if (len > 0 && conf->bootstrap_count == ADDRESSES_MAX)
            return mr_fail(err, MR_ERR_CONFIG, "bootstrap.servers names more than %d brokers",
                           ADDRESSES_MAX);
        if (len > 0)
            rc = read_address(p, len, &conf->bootstrap[conf->bootstrap_count], err);
        if (len > 0 && rc == 0)
            conf->bootstrap_count++;
        p += len;
    }
    if (rc == 0 && conf->bootstrap_count == 0)
        rc = mr_fail(err, MR_ERR_CONFIG, "bootstrap.servers names no broker: set host:port");
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int read_host_check(struct wire_conf *conf, const struct props *settings,
                           struct mr_error *err)
{
    const char *value = props_get(settings, "ssl.endpoint.identification.algorithm");

    conf->check_host = value == NULL || strcasecmp(value, "https") == 0;
    if (!conf->check_host && value[0] != '\0')
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.100s for configuration "
                       "ssl.endpoint.identification.algorithm: use https, or nothing to switch it "
                       "off",
                       value);
    return 0;
}

static int read_security(struct wire_conf *conf, const struct props *settings, struct mr_error *err)
{
    static const struct {
        const char *name;
        bool tls;
        bool login;
    } protocols[] = {{"PLAINTEXT", false, false},
                     {"SSL", true, false},
                     {"SASL_PLAINTEXT", false, true},
                     {"SASL_SSL", true, true}};
    const char *value = props_get(settings, "security.protocol");
    size_t i = 0;
    int rc = 0;

    while (i < 4 && strcasecmp(protocols[i].name, value != NULL ? value : "PLAINTEXT") != 0)
        i++;
    if (i == 4)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %.100s for configuration security.protocol: use one of "
                       "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
                       value);
    conf->login = protocols[i].login;
    if (conf->login)
        rc = sasl_conf_read(&conf->sasl, settings, err);
    if (rc == 0 && conf->login && conf->sasl.mechanism == SASL_OAUTHBEARER &&
        conf->sasl.claims == NULL && (conf->token = wire_token_new(settings, err)) == NULL)
        rc = MR_ERR_CONFIG;
    if (rc == 0)
        rc = read_host_check(conf, settings, err);
    if (rc == 0 && protocols[i].tls && (conf->tls = wire_tls_context(settings, err)) == NULL)
        rc = MR_ERR_CONFIG;
    return rc;
}

static int read_all(struct wire_conf *conf, const struct props *settings, struct mr_error *err)
{
    const char *client_id = props_get(settings, "client.id");
    int rc = read_addresses(conf, props_get(settings, "bootstrap.servers"), err);

    for (size_t i = 0; rc == 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
        rc = read_number(conf, &numbers[i], props_get(settings, numbers[i].key), err);
    if (rc == 0 && client_id != NULL && strlen(client_id) > INT16_MAX)
        rc = mr_fail(err, MR_ERR_CONFIG, "client.id is longer than %d bytes", INT16_MAX);
    if (rc != 0)
        return rc;
    conf->client_id = strdup(client_id != NULL ? client_id : "");
    return conf->client_id != NULL ? read_security(conf, settings, err)
                                   : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

struct wire_conf *wire_conf_new(const struct props *settings, struct mr_error *err)
{
    struct wire_conf *conf = calloc(1, sizeof(*conf));

    if (conf == NULL)
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
    else if (read_all(conf, settings, err) != 0)
        wire_conf_free(&conf);
    return conf;
}

void wire_conf_free(struct wire_conf **cp)
{
    struct wire_conf *conf = *cp;

    *cp = NULL;
    if (conf == NULL)
        return;
    for (size_t i = 0; i < conf->bootstrap_count; i++)
        free((char *)(uintptr_t)conf->bootstrap[i].host);
    free(conf->bootstrap);
    free(conf->client_id);
    SSL_CTX_free(conf->tls);
    wire_token_free(&conf->token);
    sasl_conf_deinit(&conf->sasl);
    free(conf);
}

const char *wire_conf_client_id(const struct wire_conf *conf)
{
    return conf->client_id;
}

int64_t wire_conf_request_timeout_ms(const struct wire_conf *conf)
{
    return conf->request_timeout_ms;
}

int64_t wire_conf_retry_backoff_ms(const struct wire_conf *conf)
{
    return conf->retry_backoff_ms;
}
