/* SPDX-License-Identifier: Apache-2.0 */
/* sasl, scram: the RFCs' own examples, brokers that lie, settings, and that no password shows in an
 * error. */
#include "wire/sasl.h"

#include "base/json.h"
#include "wire/scram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

static struct sasl_conf conf;
static struct mr_error err;
static struct buf out;

static struct codec_bytes text(const char *z)
{
    return (struct codec_bytes){(const uint8_t *)z, strlen(z)};
}

static int read_conf(const char *mechanism, const char *jaas)
{
    struct props p;
    int rc;

    sasl_conf_deinit(&conf);
    memset(&conf, 0, sizeof(conf));
    memset(&err, 0, sizeof(err));
    props_init(&p);
    if (mechanism != NULL)
        props_set(&p, "sasl.mechanism", mechanism);
    if (jaas != NULL)
        props_set(&p, "sasl.jaas.config", jaas);
    rc = sasl_conf_read(&conf, &p, &err);
    props_deinit(&p);
    return rc;
}

static int scram(struct scram *s, const char *in)
{
    memset(&err, 0, sizeof(err));
    buf_reset(&out);
    return scram_step(s, text(in), &out, &err);
}

/* --- SCRAM ------------------------------------------------------------------------------------ */

#define USER_256 \
    { \
        .name = "user", .password = "pencil", .nonce = "rOprNGfwEbeRWgbNEkqO" \
    }
#define FIRST_256 \
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
#define VERIFIER_256 "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

/* RFC 7677, section 3 */
static void scram_has_the_rfcs_bytes(void **state)
{
    struct scram *s = scram_new(&(struct scram_user)USER_256);

    assert_int_equal(scram(s, ""), 0);
    assert_string_equal(out.data, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    assert_int_equal(scram(s, FIRST_256), 0);
    assert_string_equal(out.data, "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                                  "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    assert_int_equal(scram(s, VERIFIER_256), MR_AGAIN);
    assert_int_equal(scram(s, "x"), MR_ERR_PROTOCOL);
    scram_free(&s);
}

static struct scram *at_second_step(void)
{
    struct scram *s = scram_new(&(struct scram_user)USER_256);

    assert_int_equal(scram(s, ""), 0);
    return s;
}

static void a_broker_that_does_not_know_the_password_is_found_out(void **state)
{
    static const char *const finals[] = {
        "v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", /* another signature */
        "v=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4",
        "v=AAAA",
        "",
        "ok",
        "e=invalid-proof",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=6rriTRBi23WpRR/wtup+mMhUZUn/"
        "dB5nLTJRsjl95G4="};

    for (size_t i = 0; i < sizeof(finals) / sizeof(*finals); i++) {
        struct scram *s = at_second_step();

        assert_int_equal(scram(s, FIRST_256), 0);
        assert_true(scram(s, finals[i]) < 0);
        assert_null(strstr(err.text, "pencil"));
        scram_free(&s);
    }
}

static void a_first_message_that_lies_is_refused(void **state)
{
    static const char *const firsts[] = {
        "",
        "r=",
        "x=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",      /* nothing added */
        "r=ROprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", /* not ours */
        "r=rOprNGfwEbeRWgbNEkqO%more",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=,i=4096",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6g==,i=4096",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22=aJ0SNY7soEsUEjb6gQ==,i=4096",
        "r=rOprNGfwEbeRWgbNEkqO%more,s= 22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999999999",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096x",
        "r=rOprNGfwEbeRWgbNEkqO%more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-4096",
    };
    char *big = malloc(10000);

    for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
        struct scram *s = at_second_step();

        if (scram(s, firsts[i]) >= 0)
            fail_msg("taken: %s", firsts[i]);
        scram_free(&s);
    }
    memset(big, 'A', 9999);
    big[9999] = '\0';
    for (int i = 0; i < 2; i++) {
        struct scram *s = at_second_step();

        buf_reset(&out);
        assert_int_equal(
            scram_step(s, i == 0 ? text(big) : (struct codec_bytes){(const uint8_t *)"r\0", 2},
                       &out, &err),
            MR_ERR_PROTOCOL);
        scram_free(&s);
    }
    free(big);
}

static void names_are_escaped_and_nonces_differ(void **state)
{
    struct scram_user user = {.name = "a=b,c", .password = "p", .sha512 = true};
    struct scram *s = scram_new(&user);
    char *first;

    assert_int_equal(scram(s, ""), 0);
    assert_memory_equal(out.data, "n,,n=a=3Db=2Cc,r=", 17);
    first = strdup(out.data);
    scram_free(&s);
    s = scram_new(&user);
    assert_int_equal(scram(s, ""), 0);
    assert_string_not_equal(first, out.data);
    free(first);
    scram_free(&s);
}

/* --- the others ------------------------------------------------------------------------------- */

static void plain_sends_user_and_password_once(void **state)
{
    struct sasl *s;

    assert_int_equal(
        read_conf("PLAIN", "PlainLoginModule required username=\"u\" password=\"pw\";"), 0);
    s = sasl_new(&conf);
    buf_reset(&out);
    assert_int_equal(sasl_step(s, text(""), &out, &err), 0);
    assert_int_equal(out.len, 5);
    assert_memory_equal(out.data, "\0u\0pw", 5);
    assert_int_equal(sasl_step(s, text("anything"), &out, &err), MR_AGAIN);
    sasl_free(&s);
}

static void a_given_token_is_sent_and_its_refusal_is_told(void **state)
{
    struct sasl *s;

    assert_int_equal(read_conf("OAUTHBEARER",
                               "OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=a "
                               "extension_x=\"1\" extension_y=\"2\";"),
                     0);
    s = sasl_new(&conf);
    sasl_give_token(s, strdup("TOKEN"));
    buf_reset(&out);
    assert_int_equal(sasl_step(s, text(""), &out, &err), 0);
    assert_string_equal(out.data, "n,,\1auth=Bearer TOKEN\1x=1\1y=2\1\1");
    buf_reset(&out);
    assert_int_equal(sasl_step(s, text("{\"status\":\"invalid_token\"}"), &out, &err), 0);
    assert_string_equal(out.data, "\1");
    assert_int_equal(sasl_step(s, text("more"), &out, &err), MR_ERR_FATAL);
    assert_non_null(strstr(err.text, "invalid_token"));
    sasl_free(&s);
    s = sasl_new(&conf);
    sasl_give_token(s, strdup("TOKEN"));
    assert_int_equal(sasl_step(s, text(""), &out, &err), 0);
    assert_int_equal(sasl_step(s, text(""), &out, &err), MR_AGAIN);
    sasl_free(&s);
}

static void unsecured_tokens_say_who_and_how_long(void **state)
{
    char base64[600];
    unsigned char json[600] = {0};
    struct sasl *s;
    json_t *claims;
    const char *at;
    size_t len;
    int64_t iat;
    int64_t exp;
    const char *who;

    assert_int_equal(
        read_conf("OAUTHBEARER",
                  "OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=alice "
                  "unsecuredLoginLifetimeSeconds=60;"),
        0);
    s = sasl_new(&conf);
    buf_reset(&out);
    assert_int_equal(sasl_step(s, text(""), &out, &err), 0);
    at = strchr(out.data, '.') + 1;
    len = strcspn(at, ".");
    assert_true(len < 500);
    snprintf(base64, sizeof(base64), "%.*s%s", (int)len, at, &"===="[len % 4 == 0 ? 4 : len % 4]);
    for (char *p = base64; *p != '\0'; p++)
        *p = (char)(*p == '-' ? '+' : *p == '_' ? '/' : *p);
    assert_true(EVP_DecodeBlock(json, (unsigned char *)base64, (int)strlen(base64)) > 0);
    claims = json_parse((char *)json, strlen((char *)json), &err);
    assert_non_null(claims);
    assert_true(json_get_text(claims, "sub", &who) && strcmp(who, "alice") == 0);
    assert_true(json_get_int(claims, "iat", 0, INT64_MAX, &iat));
    assert_true(json_get_int(claims, "exp", 0, INT64_MAX, &exp));
    assert_int_equal(exp - iat, 60);
    json_decref(claims);
    sasl_free(&s);
}

static void settings_that_can_not_work_are_named(void **state)
{
    static const struct {
        const char *mechanism;
        const char *jaas;
        const char *why;
    } cases[] = {
        {NULL, NULL, "GSSAPI"},
        {"GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required;", "GSSAPI"},
        {"CRAM", NULL, "sasl.mechanism"},
        {"PLAIN", NULL, "needs sasl.jaas.config"},
        {"PLAIN", "PlainLoginModule required username=hunter2;", "username and password"},
        {"SCRAM-SHA-256", "OAuthBearerLoginModule required;", "does not go with"},
        {"OAUTHBEARER", "PlainLoginModule required username=a password=hunter2;",
         "does not go with"},
        {"OAUTHBEARER", "OAuthBearerLoginModule required clientId=\"a\" clientSecret=\"hunter2\";",
         "token.endpoint.url"},
        {"PLAIN", "PlainLoginModule required password=hunter2", "semi-colon"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(read_conf(cases[i].mechanism, cases[i].jaas), MR_ERR_CONFIG);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("\"%s\" is not in: %s", cases[i].why, err.text);
        assert_null(strstr(err.text, "hunter2"));
    }
}

static int setup(void **state)
{
    buf_init(&out, 100000);
    return 0;
}

static int forget(void **state)
{
    sasl_conf_deinit(&conf);
    buf_deinit(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scram_has_the_rfcs_bytes),
        cmocka_unit_test(a_broker_that_does_not_know_the_password_is_found_out),
        cmocka_unit_test(a_first_message_that_lies_is_refused),
        cmocka_unit_test(names_are_escaped_and_nonces_differ),
        cmocka_unit_test(plain_sends_user_and_password_once),
        cmocka_unit_test(a_given_token_is_sent_and_its_refusal_is_told),
        cmocka_unit_test(unsecured_tokens_say_who_and_how_long),
        cmocka_unit_test(settings_that_can_not_work_are_named),
    };

    return cmocka_run_group_tests(tests, setup, forget);
}
