/* SPDX-License-Identifier: Apache-2.0 */
/* A broker of a test's own with a second listener: TLS, and logins by PLAIN, SCRAM and OAUTHBEARER
 * (unsecured tokens). */
#ifndef TESTS_SECURE_KAFKA_H
#define TESTS_SECURE_KAFKA_H

struct secure_kafka {
    struct kafka_run *kafka;
    const char *open;      /* bootstrap.servers without TLS and login */
    const char *servers;   /* with both */
    const char *authority; /* PEM text of who vouches for the broker */
    const char *trust;     /* a file of it */
};

/* reauth_ms: connections.max.reauth.ms of the secure listener. users: "user_alice=\"secret\" …", of
 * PLAIN. extra: more broker properties, a line each. All lives until the test ends. */
struct secure_kafka secure_kafka_start(int reauth_ms, const char *users, const char *extra);

#endif
