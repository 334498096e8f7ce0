/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and signatures of internal calls, in the order of Java's checks and with its words. The
 * signature is over the exact bytes of the body, nothing else. Called by key_keeper.c (keys),
 * task_writer.c and cluster_fence.c (calls that we make) and cluster_changes.c (calls that come
 * in). */
#include "worker/herder/cluster/signature.h"

#include "base/base64.h"
#include "wire/mac.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int signature_new_key(const struct worker_cluster *config, int64_t wall_ms,
                      struct config_session_key *out, struct mr_error *err)
{
    struct config_session_key key = {.created_wall_ms = wall_ms};

    key.key_len = config->key_bits > 0 ? ((size_t)config->key_bits + 7) / 8
                                       : mac_key_bytes(config->key_algorithm);
    mr_assert(key.key_len > 0 && key.key_len <= sizeof(key.key)); /* worker_config checks both */
    snprintf(key.algorithm, sizeof(key.algorithm), "%s", config->key_algorithm);
    if (mac_random(key.key, key.key_len, err) != 0)
        return MR_ERR_FATAL;
    *out = key;
    return 0;
}

int64_t signature_key_due_ms(const struct config_session_key *key,
                             const struct worker_cluster *config, int64_t wall_ms)
{
    int64_t due;

    if (key == NULL || strcasecmp(key->algorithm, config->key_algorithm) != 0 ||
        (config->key_bits > 0 && key->key_len != ((size_t)config->key_bits + 7) / 8))
        return 0;
    if (config->key_ttl_ms == 0)
        return -1;
    due = key->created_wall_ms + config->key_ttl_ms - wall_ms;
    if (due > config->key_ttl_ms)
        return config->key_ttl_ms; /* made in the future, by some clock: not for ever */
    return due > 0 ? due : 0;
}

char *signature_make(const struct config_session_key *key, const char *algorithm, const void *body,
                     size_t len, struct mr_error *err)
{
    unsigned char code[MAC_MAX_BYTES];
    int n = mac_sign(algorithm, key->key, key->key_len, body, len, code, err);
    struct buf text;

    if (n < 0)
        return NULL;
    buf_init(&text, 256);
    mr_assert(base64_encode(&text, code, (size_t)n) == 0);
    return buf_take(&text);
}

static bool allowed(const struct worker_cluster *config, const char *algorithm)
{
    for (char **name = config->verification_algorithms; *name != NULL; name++)
        if (strcmp(*name, algorithm) == 0)
            return true;
    return false;
}

static int refuse_algorithm(const struct worker_cluster *config, const char *algorithm,
                            struct mr_error *err)
{
    struct buf list;

    buf_init(&list, 512);
    for (char **name = config->verification_algorithms; *name != NULL; name++)
        buf_printf(&list, "%s%s", list.len > 0 ? ", " : "", *name);
    mr_fail(err, MR_ERR_PROTOCOL,
            "This worker does not support the '%.60s' key signing algorithm used by other workers. "
            "This worker is currently configured to use: [%s]. Check that all workers' "
            "configuration files permit the same set of signature algorithms, and correct any "
            "misconfigured worker and restart it.",
            algorithm, list.len > 0 ? list.data : "");
    buf_deinit(&list);
    return 400;
}

static int refuse(struct mr_error *err, int status, const char *text)
{
    mr_fail(err, MR_ERR_PROTOCOL, "%s", text);
    return status;
}

static int refuse_text(const char *text, struct mr_error *err)
{
    size_t fine = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=");

    if (text[fine] == '\0')
        mr_fail(err, MR_ERR_PROTOCOL, "The signature of the internal request is no Base64");
    else
        mr_fail(err, MR_ERR_PROTOCOL, "Illegal base64 character %x", (unsigned char)text[fine]);
    return 400;
}

static bool matches(const struct herder_claim *claim, const struct config_session_key *key,
                    const unsigned char *given, size_t given_len)
{
    unsigned char code[MAC_MAX_BYTES];
    int n = mac_sign(claim->algorithm, key->key, key->key_len, claim->body, claim->len, code, NULL);

    return n > 0 && (size_t)n == given_len && mac_equal(code, given, given_len);
}

int signature_check(const struct herder_claim *claim, const struct config_session_key *key,
                    const struct worker_cluster *config, struct mr_error *err)
{
    unsigned char given[MAC_MAX_BYTES * 2];
    size_t len = 0;

    if (claim->signature == NULL || claim->algorithm == NULL)
        return refuse(err, 400, "Internal request missing required signature");
    if (mac_key_bytes(claim->algorithm) == 0) {
        mr_fail(err, MR_ERR_PROTOCOL, "Algorithm %.60s not available", claim->algorithm);
        return 400;
    }
    if (strlen(claim->signature) > 2 * sizeof(given) ||
        !base64_decode(claim->signature, strlen(claim->signature), given, sizeof(given), &len))
        return refuse_text(claim->signature, err);
    if (!allowed(config, claim->algorithm))
        return refuse_algorithm(config, claim->algorithm, err);
    if (key == NULL)
        return refuse(err, 503,
                      "This worker is still starting up and has not been able to read a session "
                      "key from the config topic yet");
    return matches(claim, key, given, len)
               ? 0
               : refuse(err, 403, "Internal request contained invalid signature.");
}
