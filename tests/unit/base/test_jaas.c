/* SPDX-License-Identifier: Apache-2.0 */
/* sasl.jaas.config: words, quoting, escapes, modules and their options; and that no word of it
 * shows up in an error. */
#include "base/jaas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PLAIN "org.apache.kafka.common.security.plain.PlainLoginModule required "

static struct props out;
static struct mr_error err;

static int parse(const char *text)
{
    props_deinit(&out);
    props_init(&out);
    memset(&err, 0, sizeof(err));
    return jaas_parse(text, &out, NULL, &err);
}

static void assert_option(const char *text, const char *key, const char *value)
{
    if (parse(text) != 0)
        fail_msg("%s: %s", text, err.text);
    assert_non_null(props_get(&out, key));
    assert_string_equal(props_get(&out, key), value);
}

static void assert_bad(const char *text, const char *why)
{
    assert_int_equal(parse(text), MR_ERR_CONFIG);
    assert_int_equal(out.count, 0);
    assert_int_equal(err.code, MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "sasl.jaas.config"));
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" is not in: %s", why, err.text);
}

static void user_and_password_are_found(void **state)
{
    assert_option(PLAIN "username=\"alice\" password=\"s3cret\";", "sasl.username", "alice");
    assert_string_equal(props_get(&out, "sasl.password"), "s3cret");
    assert_option("PlainLoginModule REQUIRED\n  username=alice\n  password=se.cret/x ;\n",
                  "sasl.password", "se.cret/x");
    assert_option("org.apache.kafka.common.security.scram.ScramLoginModule required username='bob' "
                  "password='x';",
                  "sasl.username", "bob");
    assert_option(PLAIN "username=\"\" password=\"\";", "sasl.username", "");
}

static void quotes_escapes_and_comments_are_javas(void **state)
{
    assert_option(PLAIN "username=\"a\" password=\"q\\\"uo\\\\te;=\";", "sasl.password",
                  "q\"uo\\te;=");
    assert_option(PLAIN "username=\"a\" password='it\"s';", "sasl.password", "it\"s");
    assert_option(PLAIN "username=\"a\" password=\"t\\tn\\n\\101\\x\";", "sasl.password",
                  "t\tn\nAx");
    assert_option(PLAIN "username=\"a\" password=\"\\0411\";", "sasl.password", "!1");
    assert_option(PLAIN "/* who */ username=\"a\" // and\n password = \"b\" ;", "sasl.password",
                  "b");
    assert_option(PLAIN "username=\"a//b\" password=\"/*c*/\";", "sasl.password", "/*c*/");
    assert_option(PLAIN "username=\"\xc3\xa4\" password=\"b\";", "sasl.username", "\xc3\xa4");
}

static void a_broken_entry_says_what_is_wrong(void **state)
{
    assert_bad("", "no login module");
    assert_bad(";", "no login module");
    assert_bad("PlainLoginModule", "control flag");
    assert_bad("PlainLoginModule username=\"a\";", "control flag");
    assert_bad(PLAIN "username=\"a\" password=\"b\"", "not terminated by semi-colon");
    assert_bad(PLAIN "username=\"a password=b;", "no closing quote");
    assert_bad(PLAIN "username=\"a\npassword=\"b\";", "no closing quote");
    assert_bad(PLAIN "username=\"a\\", "no closing quote");
    assert_bad(PLAIN "username=;", "no value");
    assert_bad(PLAIN "username;", "no value");
    assert_bad(PLAIN "=a;", "semi-colon");
    assert_bad(PLAIN "username=\"\\0\";", "NUL");
    assert_bad(PLAIN "/* ", "comment");
    assert_bad(PLAIN "username=\"a\" password=\"b\"; " PLAIN ";", "more than one login module");
    assert_bad(PLAIN "username=\"a\" passwrd=\"b\";",
               "PlainLoginModule has an option other than username, password");
    assert_bad("com.example.Login required;", "known are PlainLoginModule");
    assert_bad("software.amazon.msk.auth.iam.IAMLoginModule required;",
               "IAMLoginModule can't run here");
    assert_bad("com.example.PlainLoginModule required username=\"a\" password=\"b\";",
               "can't run here");
    assert_bad("ScramLoginModule required username=\"a\" password=\"b\" tokenauth=true;",
               "tokenauth");
}

static void no_secret_shows_in_an_error(void **state)
{
    static const char *const texts[] = {
        "hunter2",
        "hunter2;",
        "\"hunter2\" required;",
        PLAIN "username=a password=x hunter2;",
        PLAIN "username=a password=x hunter2=y;",
        PLAIN "username=a password=\"hunter2;",
        PLAIN "username=a password=hunter2",
        PLAIN "username=a password=hunter2=x;",
        "Krb5LoginModule required principal=\"hunter2 x\";",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_int_equal(parse(texts[i]), MR_ERR_CONFIG);
        assert_null(strstr(err.text, "hunter2"));
    }
}

static void kerberos_values_may_not_reach_a_shell(void **state)
{
    assert_option(
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        "keyTab=\"/etc/k.keytab\" principal=\"me/host@REALM.ORG\" serviceName=kafka;",
        "sasl.kerberos.keytab", "/etc/k.keytab");
    assert_string_equal(props_get(&out, "sasl.kerberos.principal"), "me/host@REALM.ORG");
    assert_string_equal(props_get(&out, "sasl.kerberos.service.name"), "kafka");
    assert_bad("Krb5LoginModule required principal=\"x; touch /tmp/x\";",
               "principal may hold only");
    assert_bad("Krb5LoginModule required principal=\"-k\";", "principal may hold only");
    assert_bad("Krb5LoginModule required keyTab=\"/x\\\" $(id)\";", "keyTab may hold only");
    assert_bad("Krb5LoginModule required keyTab=\"/x`id`\";", "keyTab may hold only");
}

static void tokens_map_to_the_two_ways_of_librdkafka(void **state)
{
    assert_option("OAuthBearerLoginModule required clientId=\"me\" clientSecret=\"s\" "
                  "scope=\"all\" extension_a=\"1\" "
                  "extension_b=\"2\";",
                  "sasl.oauthbearer.client.id", "me");
    assert_string_equal(props_get(&out, "sasl.oauthbearer.client.secret"), "s");
    assert_string_equal(props_get(&out, "sasl.oauthbearer.scope"), "all");
    assert_string_equal(props_get(&out, "sasl.oauthbearer.extensions"), "a=1,b=2");
    assert_option("org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                  "unsecuredLoginStringClaim_sub=\"alice\" unsecuredLoginLifetimeSeconds=\"60\";",
                  "sasl.oauthbearer.config", "principal=alice lifeSeconds=60");
    assert_string_equal(props_get(&out, "enable.sasl.oauthbearer.unsecure.jwt"), "true");
    assert_bad(
        "OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"alice scope=root\";",
        "no blanks");
    assert_bad("OAuthBearerLoginModule required extension_a=\"1,b=2\";", "no commas");
}

static int forget(void **state)
{
    (void)state;
    props_deinit(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_and_password_are_found),
        cmocka_unit_test(quotes_escapes_and_comments_are_javas),
        cmocka_unit_test(a_broken_entry_says_what_is_wrong),
        cmocka_unit_test(no_secret_shows_in_an_error),
        cmocka_unit_test(kerberos_values_may_not_reach_a_shell),
        cmocka_unit_test(tokens_map_to_the_two_ways_of_librdkafka),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
