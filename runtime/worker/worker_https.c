/* SPDX-License-Identifier: Apache-2.0 */
/* TLS settings of the worker's own HTTP, server and client. All keys of a listener stand below
 * one prefix, or none does: then those without a prefix count, which Kafka's own clients use
 * too. Called at start, by rest/server.c for listeners and by herder/cluster for calls to
 * other workers. */
#include "worker/worker_https.h"

#include <string.h>
#include <strings.h>

static int take_auth(const struct props *settings, enum worker_client_auth *out,
                     struct mr_error *err)
{
    static const char *const names[] = {[WORKER_CLIENT_NONE] = "none",
                                        [WORKER_CLIENT_REQUESTED] = "requested",
                                        [WORKER_CLIENT_REQUIRED] = "required"};
    const char *value = props_get(settings, "ssl.client.auth");

    *out = WORKER_CLIENT_NONE;
    if (value == NULL)
        return 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (enum worker_client_auth)i;
            return 0;
        }
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %s for configuration ssl.client.auth: String must be one of: "
                   "required, requested, none",
                   value);
}

static int read_settings(const struct props *settings, struct worker_https *out,
                         struct mr_error *err)
{
    const char *naming = props_get(settings, "ssl.endpoint.identification.algorithm");
    int rc = take_auth(settings, &out->client_auth, err);

    out->check_host = naming == NULL || naming[0] != '\0';
    return rc != 0 ? rc : tls_material_load(settings, &out->material, err);
}

int worker_https_load(const struct worker_config *config, const char *prefix,
                      struct worker_https *out, struct mr_error *err)
{
    struct worker_https found = {0};
    struct props settings;
    bool prefixed;
    int rc;

    props_init(&settings);
    mr_assert(props_subset(&config->props, prefix, &settings) == 0);
    prefixed = settings.count > 0;
    rc = read_settings(prefixed ? &settings : &config->props, &found, err);
    props_deinit(&settings);
    if (rc == 0)
        *out = found;
    else if (prefixed)
        err_prefix(err, "%s*", prefix);
    return rc;
}

int worker_https_load_server(const struct worker_config *config, const char *prefix,
                             struct worker_https *out, struct mr_error *err)
{
    struct worker_https found = {0};
    int rc = worker_https_load(config, prefix, &found, err);

    if (rc == 0 && found.material.key == NULL)
        rc =
            mr_fail(err, MR_ERR_CONFIG,
                    "an https listener needs a certificate and its key: set "
                    "%sssl.keystore.type=PEM and %sssl.keystore.location to a file that holds both",
                    prefix, prefix);
    else if (rc == 0 && found.client_auth != WORKER_CLIENT_NONE && found.material.trust == NULL)
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "ssl.client.auth asks clients for certificates: name the authorities that "
                     "may sign them, by %sssl.truststore.type=PEM and %sssl.truststore.location",
                     prefix, prefix);
    if (rc == 0)
        *out = found;
    else
        worker_https_deinit(&found);
    return rc;
}

void worker_https_deinit(struct worker_https *https)
{
    tls_material_deinit(&https->material);
    *https = (struct worker_https){0};
}
