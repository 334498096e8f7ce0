/* SPDX-License-Identifier: Apache-2.0 */
#include "secure_kafka.h"

#include "certificates.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/worker_run.h"

#include <stdlib.h>

#define MODULES "org.apache.kafka.common.security."

static void forget_pair(void *arg)
{
    certificates_free(arg);
}

static const struct certificates_pair *keep_pair(struct certificates_pair made)
{
    struct certificates_pair *pair = scratch_keep(malloc(sizeof(*pair)));

    *pair = made;
    scratch_at_end(forget_pair, pair);
    return pair;
}

static const char *properties(int reauth_ms, const char *users, const char *extra, const char *pem)
{
    return scratch_text(
        "ssl.keystore.type=PEM\nssl.keystore.location=%s\n"
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER\n"
        "listener.name.secure.connections.max.reauth.ms=%d\n"
        "listener.name.secure.plain.sasl.jaas.config=" MODULES "plain.PlainLoginModule required "
        "%s;\n"
        "listener.name.secure.scram-sha-256.sasl.jaas.config=" MODULES
        "scram.ScramLoginModule required;\n"
        "listener.name.secure.scram-sha-512.sasl.jaas.config=" MODULES
        "scram.ScramLoginModule required;\n"
        "listener.name.secure.oauthbearer.sasl.jaas.config=" MODULES
        "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";\n%s",
        pem, reauth_ms, users, extra);
}

struct secure_kafka secure_kafka_start(int reauth_ms, const char *users, const char *extra)
{
    const struct certificates_pair *authority = keep_pair(certificates_authority("tests"));
    const struct certificates_pair *server =
        keep_pair(certificates_for(authority, "localhost", NULL));
    struct secure_kafka s = {.authority = authority->certificate,
                             .trust = scratch_path("authority.pem")};
    const char *pem = scratch_path("broker.pem");
    int port = worker_run_free_port();

    scratch_write_text(pem, scratch_text("%s%s", server->key, server->certificate));
    scratch_write_text(s.trust, s.authority);
    s.servers = scratch_text("localhost:%d", port);
    s.kafka =
        kafka_run_start(scratch_text("KAFKA_SECURE=%d KAFKA_AUTO_CREATE=false KAFKA_EXTRA='%s'",
                                     port, properties(reauth_ms, users, extra, pem)));
    s.open = kafka_run_servers_of(s.kafka);
    return s;
}
