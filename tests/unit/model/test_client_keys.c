/* SPDX-License-Identifier: Apache-2.0 */
/* client_keys: the settings of Kafka 4.3's Java clients, as their definitions have them. */
#include "model/client_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect(enum client_keys_kind kind, const char *name, enum mr_config_type type,
                   const char *fallback, enum mr_config_importance importance)
{
    const struct mr_config_key *key = client_keys_find(kind, name);

    if (key == NULL) {
        fail_msg("no %s", name);
        return;
    }
    assert_string_equal(key->name, name);
    assert_int_equal(key->type, type);
    assert_int_equal(key->importance, importance);
    if (fallback == NULL)
        assert_null(key->fallback);
    else
        assert_string_equal(key->fallback, fallback);
}

static void settings_have_their_types_and_defaults(void **state)
{
    (void)state;
    expect(CLIENT_KEYS_PRODUCER, "acks", MR_CFG_STRING, "all", MR_CFG_LOW);
    expect(CLIENT_KEYS_PRODUCER, "linger.ms", MR_CFG_LONG, "5", MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_PRODUCER, "transactional.id", MR_CFG_STRING, NULL, MR_CFG_LOW);
    expect(CLIENT_KEYS_CONSUMER, "max.poll.records", MR_CFG_INT, "500", MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_CONSUMER, "sasl.jaas.config", MR_CFG_PASSWORD, NULL, MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_ADMIN, "request.timeout.ms", MR_CFG_INT, "30000", MR_CFG_MEDIUM);
    assert_int_equal(client_keys_find(CLIENT_KEYS_PRODUCER, "bootstrap.servers")->flags,
                     MR_CFG_REQUIRED);
}

static void kinds_of_clients_differ(void **state)
{
    (void)state;
    expect(CLIENT_KEYS_PRODUCER, "receive.buffer.bytes", MR_CFG_INT, "32768", MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_CONSUMER, "receive.buffer.bytes", MR_CFG_INT, "65536", MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_ADMIN, "receive.buffer.bytes", MR_CFG_INT, "65536", MR_CFG_MEDIUM);
    expect(CLIENT_KEYS_ADMIN, "bootstrap.servers", MR_CFG_LIST, "", MR_CFG_HIGH);
    assert_null(client_keys_find(CLIENT_KEYS_CONSUMER, "acks"));
    assert_null(client_keys_find(CLIENT_KEYS_ADMIN, "linger.ms"));
    assert_null(client_keys_find(CLIENT_KEYS_PRODUCER, "a"));
    assert_null(client_keys_find(CLIENT_KEYS_PRODUCER, "zzz"));
    assert_null(client_keys_find(CLIENT_KEYS_PRODUCER, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_their_types_and_defaults),
        cmocka_unit_test(kinds_of_clients_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
