/* SPDX-License-Identifier: Apache-2.0 */
/* Signed calls between workers: the verdicts of the Java worker on recorded requests, signatures
 * that it made, keys and when they are due. */
#include "base/base64.h"
#include "base/json.h"
#include "wire/mac.h"
#include "worker/herder/cluster/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

static char *macs[] = {(char *)(uintptr_t) "HmacSHA256", NULL};

static struct worker_cluster config_new(void)
{
    return (struct worker_cluster){.key_ttl_ms = 3600000,
                                   .key_algorithm = macs[0],
                                   .signature_algorithm = macs[0],
                                   .verification_algorithms = macs};
}

static struct config_session_key key_of(const char *text)
{
    struct config_session_key key = {.algorithm = "HmacSHA256"};

    assert_true(base64_decode(text, strlen(text), key.key, sizeof(key.key), &key.key_len));
    return key;
}

static const char *header_of(const json_t *line, const char *name)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(line, "headers"), key, value)
    {
        if (strcasecmp(key, name) == 0)
            return json_string_value(value);
    }
    return NULL;
}

static int verdict_on(const json_t *line, const struct config_session_key *key,
                      struct mr_error *err)
{
    const char *body = json_string_value(json_object_get(line, "body"));
    struct worker_cluster config = config_new();
    struct herder_claim claim = {.signature = header_of(line, "X-Connect-Authorization"),
                                 .algorithm =
                                     header_of(line, "X-Connect-Request-Signature-Algorithm"),
                                 .body = body != NULL ? body : "",
                                 .len = body != NULL ? strlen(body) : 0};

    return signature_check(&claim, key, &config, err);
}

/* What comes after the signature (404, a body that is none) is not this file's. */
static void check_line(const json_t *line, int *checked)
{
    const char *text = json_string_value(json_object_get(line, "key"));
    struct config_session_key key =
        key_of(text != NULL ? text : "/aUo+pIJJpD6S//AH+9r1oGvE393JaZ7qcR79vSoGf8=");
    int status = (int)json_integer_value(json_object_get(line, "status"));
    const char *name = json_string_value(json_object_get(line, "name"));
    const char *message =
        json_string_value(json_object_get(json_object_get(line, "answer"), "message"));
    struct mr_error err = {0};
    int verdict = verdict_on(line, &key, &err);
    bool refused = message != NULL &&
                   (strstr(message, "ignature") != NULL || strstr(message, "lgorithm") != NULL ||
                    strstr(message, "base64") != NULL);

    if (verdict != (refused ? status : 0))
        fail_msg("%s: %d and not %d: %s", name != NULL ? name : "sent", verdict, status, err.text);
    if (refused)
        assert_string_equal(err.text, message);
    ++*checked;
}

static void verdicts_are_those_of_the_java_worker(void **state)
{
    FILE *in = fopen("tests/data/request-signature.jsonl", "r");
    char *line = NULL;
    size_t cap = 0;
    int checked = 0;

    (void)state;
    assert_non_null(in);
    while (getline(&line, &cap, in) > 0) {
        json_t *object = json_parse(line, strlen(line), NULL);

        assert_non_null(object);
        check_line(object, &checked);
        json_decref(object);
    }
    free(line);
    fclose(in);
    assert_true(checked > 25);
}

static void a_worker_without_a_key_says_so(void **state)
{
    struct worker_cluster config = config_new();
    struct herder_claim claim = {"AAAA", "HmacSHA256", "", 0};
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(signature_check(&claim, NULL, &config, &err), 503);
}

/* The vector of Kafka's own unit test. */
static void signatures_are_those_of_the_java_worker(void **state)
{
    static const char hex[] = "6d749131a219992c9d8a35bb578405305997fe3aa457433183b1d982cdcbab39";
    static const char body[] = "[{\"config\":\"value\"},{\"config\":\"other_value\"}]";
    struct config_session_key key = {.key_len = 32, .algorithm = "HmacSHA256"};
    char *text;

    (void)state;
    for (size_t i = 0; i < 32; i++) {
        unsigned byte;

        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        key.key[i] = (unsigned char)byte;
    }
    text = signature_make(&key, "HmacSHA256", body, strlen(body), NULL);
    assert_string_equal(text, "Kv1/OSsxzdVIwvZ4e30avyRIVrngDfhzVUm/kAZEKc4=");
    free(text);
    text = signature_make(&key, "HmacSHA256", "", 0, NULL);
    assert_string_equal(text, "18AWfsWiIA0COKBD/hiJosl9NLVgU9JyycUck9oL118=");
    free(text);
}

static void keys_are_fresh_and_of_the_right_size(void **state)
{
    struct worker_cluster config = config_new();
    struct config_session_key a, b;

    (void)state;
    assert_int_equal(signature_new_key(&config, 5, &a, NULL), 0);
    assert_int_equal(signature_new_key(&config, 5, &b, NULL), 0);
    assert_int_equal(a.key_len, 32);
    assert_int_equal(a.created_wall_ms, 5);
    assert_memory_not_equal(a.key, b.key, 32);
    config.key_bits = 516;
    assert_int_equal(signature_new_key(&config, 5, &a, NULL), 0);
    assert_int_equal(a.key_len, 65);
}

static void keys_are_due_in_time(void **state)
{
    struct worker_cluster config = config_new();
    struct config_session_key key = {
        .key_len = 32, .algorithm = "HmacSHA256", .created_wall_ms = 1000};

    (void)state;
    assert_int_equal(signature_key_due_ms(NULL, &config, 1000), 0);
    assert_int_equal(signature_key_due_ms(&key, &config, 2000), 3599000);
    assert_int_equal(signature_key_due_ms(&key, &config, 3601000), 0);
    assert_int_equal(signature_key_due_ms(&key, &config, -9000000000), 3600000);
    config.key_bits = 512;
    assert_int_equal(signature_key_due_ms(&key, &config, 2000), 0);
    config.key_bits = 0;
    config.key_ttl_ms = 0;
    assert_int_equal(signature_key_due_ms(&key, &config, 3601000), -1);
    snprintf(key.algorithm, sizeof(key.algorithm), "HmacSHA1");
    assert_int_equal(signature_key_due_ms(&key, &config, 2000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_the_java_worker),
        cmocka_unit_test(a_worker_without_a_key_says_so),
        cmocka_unit_test(signatures_are_those_of_the_java_worker),
        cmocka_unit_test(keys_are_fresh_and_of_the_right_size),
        cmocka_unit_test(keys_are_due_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
