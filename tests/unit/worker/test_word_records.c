/* SPDX-License-Identifier: Apache-2.0 */
/* word_records and word_state: the words among workers, as bytes and back; who said goodbye. */
#include "worker/store/word_state.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *key, const char *value, struct word *word, struct mr_error *err)
{
    return word_records_parse(key, key != NULL ? strlen(key) : 0, value,
                              value != NULL ? strlen(value) : 0, word, err);
}

static char *text(const char *of)
{
    char *copy = strdup(of);

    assert_non_null(copy);
    return copy;
}

static void assert_written(const struct word *word, const char *want_key, const char *want_value)
{
    struct word back;
    struct buf key, value;

    buf_init(&key, 4096);
    buf_init(&value, 4096);
    assert_int_equal(word_records_render(word, &key, &value), 0);
    assert_string_equal(key.data, want_key);
    if (want_value != NULL)
        assert_string_equal(value.data, want_value);
    assert_int_equal(parse(key.data, want_value, &back, NULL), 0);
    assert_int_equal(back.kind, word->kind);
    assert_int_equal(back.tombstone, word->tombstone);
    assert_int_equal(back.stopped, word->stopped);
    assert_int_equal(back.generation, word->generation);
    if (word->member != NULL)
        assert_string_equal(back.member, word->member);
    if (word->other != NULL)
        assert_string_equal(back.other, word->other);
    if (word->url != NULL)
        assert_string_equal(back.url, word->url);
    word_deinit(&back);
    buf_deinit(&key);
    buf_deinit(&value);
}

static void words_are_written_and_read_back(void **state)
{
    char member[] = "connect-a:8083-1", other[] = "b", url[] = "http://a:8083/";

    (void)state;
    assert_written(
        &(struct word){
            .kind = WORD_LEAVING, .member = member, .url = url, .generation = 12, .stopped = true},
        "leaving-connect-a:8083-1",
        "{\"member\":\"connect-a:8083-1\",\"url\":\"http://a:8083/\",\"generation\":12,"
        "\"work\":\"stopped\"}");
    assert_written(&(struct word){.kind = WORD_LEAVING, .member = other, .tombstone = true},
                   "leaving-b", NULL);
    assert_written(&(struct word){.kind = WORD_ROUND, .member = member, .generation = 7},
                   "round-wanted", "{\"member\":\"connect-a:8083-1\",\"generation\":7}");
    assert_written(&(struct word){.kind = WORD_TWINS, .member = member, .other = other, .url = url},
                   "twins",
                   "{\"members\":[\"connect-a:8083-1\",\"b\"],\"url\":\"http://a:8083/\"}");
}

static void the_newest_consumer_of_a_task_is_known(void **state)
{
    static const char *const records[][2] = {{"consumer-my-sink-0", "{\"member\":\"m-1\"}"},
                                             {"consumer-my-sink-1", "{\"member\":\"m-2\"}"},
                                             {"consumer-my-sink-0", "{\"member\":\"m-3\"}"},
                                             {"consumer-my-sink-1", NULL}};
    struct word_state *words = word_state_new();
    char member[] = "m-1", task[] = "my-sink-0";
    size_t cursor = 0;

    (void)state;
    assert_written(&(struct word){.kind = WORD_CONSUMER, .member = member, .other = task},
                   records[0][0], records[0][1]);
    for (size_t i = 0; i < 4; i++) {
        struct word word;

        assert_int_equal(parse(records[i][0], records[i][1], &word, NULL), 0);
        word_state_apply(words, &word);
        word_deinit(&word);
    }
    assert_string_equal(word_state_consumer(words, "my-sink-0"), "m-3");
    assert_null(word_state_consumer(words, "my-sink-1"));
    assert_null(word_state_consumer(words, "my-sink"));
    assert_string_equal(word_state_next_consumer(words, &cursor)->other, "my-sink-0");
    assert_null(word_state_next_consumer(words, &cursor));
    assert_null(word_state_next(words, &(size_t){0}));
    word_state_free(&words);
}

static void a_newer_worker_may_say_more(void **state)
{
    struct word word;

    (void)state;
    assert_int_equal(parse("leaving-a",
                           "{\"member\":\"a\",\"url\":\"u\",\"generation\":1,\"work\":\"draining\","
                           "\"since\":{\"x\":[1]}}",
                           &word, NULL),
                     0);
    assert_false(word.stopped);
    word_deinit(&word);
}

static void what_is_no_word_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *key;
        const char *value;
        const char *why;
    } odd[] = {
        {NULL, "{}", "no key"},
        {"", "{}", "no known kind"},
        {"other", NULL, "no known kind"},
        {"round-wanted-2", "{}", "no known kind"},
        {"twin", "{}", "no known kind"},
        {"leaving", NULL, "no known kind"},
        {"leaving-", NULL, "a name"},
        {"consumer-", NULL, "a name"},
        {"consumer-c-0", "{\"member\":7}", "'member'"},
        {"leaving-\xff", NULL, "not text"},
        {"leaving-a", "nonsense", "line 1"},
        {"leaving-a", "[]", "no object"},
        {"leaving-a", "{\"member\":\"b\",\"url\":\"u\",\"generation\":1,\"work\":\"stopped\"}",
         "'member'"},
        {"leaving-a", "{\"member\":\"a\",\"url\":7,\"generation\":1,\"work\":\"stopped\"}",
         "'url'"},
        {"leaving-a", "{\"member\":\"a\",\"url\":\"u\",\"generation\":1}", "'work'"},
        {"leaving-a", "{\"member\":\"a\",\"url\":\"u\",\"generation\":-1,\"work\":\"stopped\"}",
         "'generation'"},
        {"round-wanted", "{\"member\":\"\",\"generation\":1}", "'member'"},
        {"round-wanted", "{\"member\":\"a\",\"generation\":4294967296}", "'generation'"},
        {"round-wanted", "{\"member\":\"a\",\"generation\":\"1\"}", "'generation'"},
        {"twins", "{\"members\":[\"a\"],\"url\":\"u\"}", "'members'"},
        {"twins", "{\"members\":[\"a\",{}],\"url\":\"u\"}", "'members'"},
        {"twins", "{\"members\":{\"a\":1,\"b\":2},\"url\":\"u\"}", "'members'"},
        {"twins", "{\"members\":[\"a\",\"b\"],\"url\":\"\"}", "'url'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct mr_error err = {0};
        struct word word;

        assert_int_equal(parse(odd[i].key, odd[i].value, &word, &err), MR_ERR_DATA);
        assert_int_equal(err.code, MR_ERR_DATA);
        if (strstr(err.text, odd[i].why) == NULL)
            fail_msg("%s => %s: %s", odd[i].key, odd[i].value, err.text);
        assert_null(word.member);
        assert_null(word.url);
    }
}

static void no_word_is_too_long_to_keep(void **state)
{
    static char key[8 + WORD_MEMBER_MAX + 2] = "leaving-", huge[70000];
    struct word word;
    struct mr_error err = {0};

    (void)state;
    memset(key + 8, 'm', WORD_MEMBER_MAX);
    assert_int_equal(parse(key, NULL, &word, NULL), 0);
    word_deinit(&word);
    key[8 + WORD_MEMBER_MAX] = 'm';
    assert_int_equal(parse(key, NULL, &word, NULL), MR_ERR_DATA);
    memset(huge, ' ', sizeof(huge) - 1);
    assert_int_equal(parse("twins", huge, &word, &err), MR_ERR_DATA);
    assert_non_null(strstr(err.text, "too long"));
}

/* --- who said goodbye ------------------------------------------------------------------------- */

static void say(struct word_state *state, const char *member, bool tombstone)
{
    struct word word = {.kind = WORD_LEAVING, .member = text(member), .tombstone = tombstone};

    word_state_apply(state, &word);
    word_deinit(&word);
}

static void assert_leavers(const struct word_state *words, const char *want)
{
    const struct word *word;
    char got[256] = "";

    for (size_t i = 0; (word = word_state_next(words, &i)) != NULL;)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", word->member);
    assert_string_equal(got, want);
}

static void goodbyes_last_until_they_are_taken_back(void **state)
{
    struct word_state *words = word_state_new();
    struct word round = {.kind = WORD_ROUND, .member = text("d")};

    (void)state;
    say(words, "a", false);
    say(words, "b", false);
    say(words, "c", true);
    say(words, "a", false);
    word_state_apply(words, &round);
    assert_leavers(words, "b a ");
    say(words, "b", true);
    say(words, "b", true);
    assert_leavers(words, "a ");
    word_deinit(&round);
    word_state_free(&words);
}

static void a_flood_of_goodbyes_is_bounded(void **state)
{
    struct word_state *words = word_state_new();
    const struct word *word;
    char name[32];
    size_t count = 0;

    (void)state;
    for (int i = 0; i < WORD_STATE_MAX + 10; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        say(words, name, false);
    }
    for (size_t i = 0; (word = word_state_next(words, &i)) != NULL; count++)
        if (count == 0)
            assert_string_equal(word->member, "m10");
    assert_int_equal(count, WORD_STATE_MAX);
    word_state_free(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_written_and_read_back),
        cmocka_unit_test(the_newest_consumer_of_a_task_is_known),
        cmocka_unit_test(a_newer_worker_may_say_more),
        cmocka_unit_test(what_is_no_word_is_refused_with_a_reason),
        cmocka_unit_test(no_word_is_too_long_to_keep),
        cmocka_unit_test(goodbyes_last_until_they_are_taken_back),
        cmocka_unit_test(a_flood_of_goodbyes_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
