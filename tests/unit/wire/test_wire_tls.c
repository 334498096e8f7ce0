/* SPDX-License-Identifier: Apache-2.0 */
/* wire_tls, wire_stream: TLS with certificates made here. The right name passes; a wrong name, an
 * unknown authority and a missing client certificate are fatal and say so. PEM from files, from
 * settings, on one line; PKCS12; passwords. */
#include "wire_rig.h"

#include "support/unit/certificates.h"
#include "wire/broker_conn.h"

#include <unistd.h>

#include <openssl/pkcs12.h>

static struct certificates_pair authority;
static struct certificates_pair stranger;
static struct certificates_pair server; /* for localhost */
static struct certificates_pair by_address;
static struct certificates_pair elsewhere;
static struct certificates_pair client;
static struct certificates_pair locked; /* its key has a password */
static char folder[] = "/tmp/millrace-tls-XXXXXX";

static struct broker_conn *conn;
static int ready_count;
static int closed_count;
static struct mr_error closed_err;

static void on_ready(void *arg)
{
    ready_count++;
}

static void on_closed(void *arg, const struct mr_error *err)
{
    closed_count++;
    closed_err = *err;
}

static bool is_up(void *arg)
{
    return ready_count + closed_count > 0;
}

static void open_to(const struct wire_conf *conf, const char *host)
{
    static const struct broker_conn_events events = {.ready = on_ready, .closed = on_closed};

    ready_count = 0;
    closed_count = 0;
    broker_conn_free(&conn);
    conn = broker_conn_new(
        rig_loop, conf, &(struct broker_conn_to){.host = host, .port = stub_broker_port(rig_stub)},
        &events, NULL, NULL);
    rig_run_until(is_up, NULL, "ready or closed");
}

static void serve(const struct certificates_pair *pair, const struct certificates_pair *clients)
{
    stub_broker_stop(&rig_stub);
    rig_stub = stub_broker_start(&(struct stub_options){.pair = pair, .clients = clients});
}

/* Trusts the authority, by text. */
static struct wire_conf *trusting(const char *key, const char *value)
{
    return rig_conf("security.protocol", "SSL", "ssl.truststore.type", "PEM",
                    "ssl.truststore.certificates", authority.certificate, key, value, NULL);
}

static const char *file(const char *name, const char *a, const char *b)
{
    static char path[256];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s%s", a, b);
    fclose(out);
    return path;
}

static int bad_conf(const char *word, const char *key, ...)
{
    struct mr_error err = {0};
    struct wire_conf *conf;
    struct props p;
    va_list args;

    props_init(&p);
    props_set(&p, "bootstrap.servers", "a:1");
    props_set(&p, "security.protocol", "SSL");
    va_start(args, key);
    while (key != NULL) {
        props_set(&p, key, va_arg(args, const char *));
        key = va_arg(args, const char *);
    }
    va_end(args);
    conf = wire_conf_new(&p, &err);
    props_deinit(&p);
    if (conf != NULL)
        fail_msg("taken, though: %s", word);
    assert_int_equal(err.code, MR_ERR_CONFIG);
    rig_has(err.text, word);
    assert_null(strstr(err.text, "PRIVATE KEY"));
    assert_null(strstr(err.text, "sesame"));
    return 0;
}

static int teardown(void **state)
{
    broker_conn_free(&conn);
    return rig_teardown(state);
}

#define test(f) cmocka_unit_test_setup_teardown(f, rig_setup, teardown)

/* --- the broker ------------------------------------------------------------------------------- */

static void the_right_name_passes_and_calls_are_answered(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c = {0};

    serve(&server, NULL);
    open_to(trusting(NULL, NULL), "localhost");
    assert_int_equal(ready_count, 1);
    assert_int_equal(broker_conn_call(conn, &request, 5000, rig_note, &c, NULL), 0);
    rig_await(&c);
    assert_int_equal(c.error, 0);
    serve(&by_address, NULL);
    open_to(trusting(NULL, NULL), "127.0.0.1");
    assert_int_equal(ready_count, 1);
}

static void a_wrong_name_is_fatal(void **state)
{
    serve(&elsewhere, NULL);
    open_to(trusting(NULL, NULL), "localhost");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "is for another host");
    rig_has(closed_err.text, "localhost:");
    open_to(trusting(NULL, NULL), "127.0.0.1");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "is for another host");
    open_to(trusting("ssl.endpoint.identification.algorithm", ""), "localhost");
    assert_int_equal(ready_count, 1);
}

static void an_unknown_authority_is_fatal(void **state)
{
    serve(&server, NULL);
    open_to(rig_conf("security.protocol", "SSL", "ssl.truststore.type", "PEM",
                     "ssl.truststore.certificates", stranger.certificate, NULL),
            "localhost");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "is not trusted");
    open_to(rig_conf("security.protocol", "SSL", NULL), "localhost"); /* the system's */
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    /* Names need not be right then, authorities still. */
    open_to(rig_conf("security.protocol", "SSL", "ssl.endpoint.identification.algorithm", "", NULL),
            "localhost");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
}

static void a_listener_without_tls_is_told(void **state)
{
    rig_stub = stub_broker_start(&(struct stub_options){0});
    open_to(trusting("socket.connection.setup.timeout.ms", "3000"), "localhost");
    assert_int_equal(ready_count, 0);
    rig_has(closed_err.text, "TLS");
}

static void versions_and_suites_are_kept_to(void **state)
{
    serve(&server, NULL);
    open_to(trusting("ssl.enabled.protocols", "TLSv1.2"), "localhost");
    assert_int_equal(ready_count, 1);
    open_to(trusting("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"), "localhost");
    assert_int_equal(ready_count, 1);
    open_to(trusting("ssl.cipher.suites", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), "localhost");
    assert_int_equal(ready_count, 1);
    open_to(trusting("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "localhost");
    assert_int_equal(closed_err.code, MR_ERR_FATAL); /* the server's key is no RSA key */
    bad_conf("TLS_NOT_A_SUITE", "ssl.cipher.suites", "TLS_AES_128_GCM_SHA256, TLS_NOT_A_SUITE",
             NULL);
    bad_conf("ssl.enabled.protocols", "ssl.enabled.protocols", "SSLv3", NULL);
}

/* --- us --------------------------------------------------------------------------------------- */

static const char *one_line(const char *pem)
{
    static char text[8192];

    snprintf(text, sizeof(text), "%s", pem);
    for (char *p = text; *p != '\0'; p++)
        *p = (char)(*p == '\n' ? ' ' : *p);
    return text;
}

#define TRUST "ssl.truststore.type", "PEM", "ssl.truststore.certificates", authority.certificate

static void we_show_a_certificate_by_text_file_or_pkcs12(void **state)
{
    PKCS12 *store =
        PKCS12_create("sesame", "me", client.handles[1], client.handles[0], NULL, 0, 0, 0, 0, 0);
    char path[300];
    FILE *out;

    serve(&server, &authority);
    open_to(rig_conf("security.protocol", "SSL", TRUST, "ssl.keystore.type", "PEM",
                     "ssl.keystore.certificate.chain", one_line(client.certificate),
                     "ssl.keystore.key", client.key, NULL),
            "localhost");
    assert_int_equal(ready_count, 1);
    open_to(rig_conf("security.protocol", "SSL", "ssl.truststore.type", "PEM",
                     "ssl.truststore.location", file("ca.pem", authority.certificate, ""), NULL),
            "localhost"); /* none to show: refused after the handshake, as TLS 1.3 has it */
    assert_int_equal(ready_count, 0);
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "refused the TLS connection");
    open_to(rig_conf("security.protocol", "SSL", TRUST, "ssl.keystore.type", "PEM",
                     "ssl.keystore.location", file("locked.pem", locked.key, locked.certificate),
                     "ssl.key.password", "sesame", NULL),
            "localhost");
    assert_int_equal(ready_count, 1);
    snprintf(path, sizeof(path), "%s/key.p12", folder);
    out = fopen(path, "w");
    assert_true(store != NULL && out != NULL && i2d_PKCS12_fp(out, store) == 1);
    fclose(out);
    PKCS12_free(store);
    open_to(rig_conf("security.protocol", "SSL", TRUST, "ssl.keystore.type", "PKCS12",
                     "ssl.keystore.location", path, "ssl.keystore.password", "sesame", NULL),
            "localhost");
    assert_int_equal(ready_count, 1);
    bad_conf("ssl.keystore.password is wrong", TRUST, "ssl.keystore.type", "PKCS12",
             "ssl.keystore.location", path, "ssl.keystore.password", "sesame2", NULL);
}

static void stores_that_can_not_work_are_named(void **state)
{
    const char *p = file("garbage.pem", "hello", "");

    bad_conf("is not a PEM file", "ssl.truststore.type", "PEM", "ssl.truststore.location", p, NULL);
    bad_conf("no-such-file", "ssl.truststore.type", "PEM", "ssl.truststore.location",
             "/tmp/no-such-file", NULL);
    bad_conf("only trust stores of ssl.truststore.type=PEM", "ssl.truststore.location", p, NULL);
    bad_conf("Both", "ssl.truststore.type", "PEM", "ssl.truststore.location", p,
             "ssl.truststore.certificates", authority.certificate, NULL);
    bad_conf("it is not PEM", "ssl.truststore.type", "PEM", "ssl.truststore.certificates", "x",
             NULL);
    bad_conf("no certificate", "ssl.truststore.type", "PEM", "ssl.truststore.certificates",
             client.key, NULL);
    bad_conf("must be specified together", "ssl.keystore.type", "PEM", "ssl.keystore.key",
             client.key, NULL);
    bad_conf("goes with ssl.keystore.type=PEM", "ssl.keystore.key", client.key, NULL);
    bad_conf("set ssl.key.password", "ssl.keystore.type", "PEM", "ssl.keystore.key", locked.key,
             "ssl.keystore.certificate.chain", locked.certificate, NULL);
    bad_conf("is ssl.key.password right", "ssl.keystore.type", "PEM", "ssl.keystore.key",
             locked.key, "ssl.keystore.certificate.chain", locked.certificate, "ssl.key.password",
             "open", NULL);
    bad_conf("does not belong", "ssl.keystore.type", "PEM", "ssl.keystore.key", client.key,
             "ssl.keystore.certificate.chain", server.certificate, NULL);
    bad_conf("no private key is found", "ssl.keystore.type", "PEM", "ssl.keystore.key",
             client.certificate, "ssl.keystore.certificate.chain", client.certificate, NULL);
    bad_conf("ssl.keystore.type PEM and PKCS12", "ssl.keystore.location", p, NULL);
    bad_conf("is not PKCS12", "ssl.keystore.type", "PKCS12", "ssl.keystore.location", p, NULL);
}

static int make_all(void **state)
{
    authority = certificates_authority("test authority");
    stranger = certificates_authority("another authority");
    server = certificates_for(&authority, "localhost", NULL);
    by_address = certificates_for(&authority, "127.0.0.1", NULL);
    elsewhere = certificates_for(&authority, "elsewhere.example.org", NULL);
    client = certificates_for(&authority, "client", NULL);
    locked = certificates_for(&authority, "locked", "sesame");
    return mkdtemp(folder) == NULL;
}

static int free_all(void **state)
{
    struct certificates_pair *const all[] = {&authority, &stranger, &server, &by_address,
                                             &elsewhere, &client,   &locked};
    static const char *const names[] = {"ca.pem", "locked.pem", "key.p12", "garbage.pem"};
    char path[300];

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        certificates_free(all[i]);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_right_name_passes_and_calls_are_answered),
        test(a_wrong_name_is_fatal),
        test(an_unknown_authority_is_fatal),
        test(a_listener_without_tls_is_told),
        test(versions_and_suites_are_kept_to),
        test(we_show_a_certificate_by_text_file_or_pkcs12),
        test(stores_that_can_not_work_are_named),
    };

    return cmocka_run_group_tests(tests, make_all, free_all);
}
