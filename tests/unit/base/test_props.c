/* SPDX-License-Identifier: Apache-2.0 */
/* props: the map, and the reader of properties files against recordings of java.util.Properties
 * (tests/data). */
#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t from_base64(const char *text, unsigned char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned value = 0;
    int bits = 0;
    size_t n = 0;

    for (; *text != '\0' && *text != '='; text++) {
        value = value << 6 | (unsigned)(strchr(digits, *text) - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[n++] = (unsigned char)(value >> bits);
        }
    }
    return n;
}

/* Rows whose bytes are valid UTF-8 beyond ASCII: we read them as UTF-8, Java as ISO-8859-1 (see
 * props.c). */
static bool reads_as_utf8(const json_t *row)
{
    const char *text = json_string_value(json_object_get(json_object_get(row, "input"), "text"));

    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            return true;
    return false;
}

static bool has_lone_surrogate(const char *line)
{
    const char *out = strstr(line, "\"output\"");

    return out != NULL && strstr(out, "\\ud") != NULL;
}

static void check_row(const json_t *row, const char *line)
{
    const char *base64 =
        json_string_value(json_object_get(json_object_get(row, "input"), "base64"));
    unsigned char *bytes = malloc(strlen(base64) + 1);
    size_t len = from_base64(base64, bytes);
    struct props p;
    struct mr_error err = {0};
    int rc;

    props_init(&p);
    rc = props_parse(&p, (const char *)bytes, len, "t.properties", &err);
    if (json_object_get(row, "error") != NULL) {
        assert_int_equal(rc, MR_ERR_CONFIG);
    } else {
        json_t *got = json_from_props(&p);
        json_t *want = json_object_get(row, "output");

        if (rc != 0 || !json_equal(got, want))
            fail_msg("%s\ngot %s (%s)", line, json_dumps(got, 0), err.text);
        json_decref(got);
    }
    props_deinit(&p);
    free(bytes);
}

static void reads_as_java_does(void **state)
{
    struct buf file;
    size_t rows = 0;
    char *save = NULL;

    (void)state;
    buf_init(&file, 1 << 20);
    assert_int_equal(file_read("tests/data/properties.jsonl", &file, NULL), 0);
    for (char *line = strtok_r(file.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *row;

        if (strstr(line, "\\u0000") != NULL)
            continue; /* NUL: refused here, see a_nul_is_refused */
        if (has_lone_surrogate(line))
            /* a lone surrogate has no UTF-8: U+FFFD here, see
             * lone_surrogates_become_replacement_characters */
            continue;
        row = json_loads(line, 0, NULL);
        assert_non_null(row);
        if (!reads_as_utf8(row))
            check_row(row, line);
        rows++;
        json_decref(row);
    }
    assert_true(rows > 34);
    buf_deinit(&file);
}

static void parse(struct props *p, const char *text)
{
    struct mr_error err = {0};

    props_init(p);
    if (props_parse(p, text, strlen(text), "f", &err) != 0)
        fail_msg("%s", err.text);
}

static void bytes_beyond_ascii_are_utf8_or_latin1(void **state)
{
    struct props p;

    (void)state;
    parse(&p, "a=\xc3\xa9");
    assert_string_equal(props_get(&p, "a"), "\xc3\xa9");
    props_deinit(&p);
    parse(&p, "a=\xe9");
    assert_string_equal(props_get(&p, "a"), "\xc3\xa9");
    props_deinit(&p);
}

static void lone_surrogates_become_replacement_characters(void **state)
{
    struct props p;

    (void)state;
    parse(&p, "a=\\ud83d\\ude00\nb=\\ud83dx\nc=\\ude00");
    assert_string_equal(props_get(&p, "a"), "\xf0\x9f\x98\x80");
    assert_string_equal(props_get(&p, "b"), "\xef\xbf\xbdx");
    assert_string_equal(props_get(&p, "c"), "\xef\xbf\xbd");
    props_deinit(&p);
}

static void errors_name_file_and_line(void **state)
{
    struct props p;
    struct mr_error err = {0};
    const char *text = "a=1\n\nb=\\u12g4";

    (void)state;
    props_init(&p);
    assert_int_equal(props_parse(&p, text, strlen(text), "worker.properties", &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "worker.properties:3:"));
    props_deinit(&p);
}

static void a_nul_is_refused(void **state)
{
    struct props p;
    struct mr_error err = {0};

    (void)state;
    props_init(&p);
    assert_int_equal(props_parse(&p, "a=\0b", 4, "f", &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "NUL"));
    props_deinit(&p);
}

static void keeps_order_replaces_and_removes(void **state)
{
    struct props p;
    char key[16];

    (void)state;
    props_init(&p);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(props_set(&p, key, "v"), 0);
    }
    props_set(&p, "k100", "other");
    props_set(&p, "k101", NULL);
    props_remove(&p, "k50");
    assert_int_equal(p.count, 199);
    assert_null(props_find(&p, "k50"));
    assert_string_equal(p.entries[50].key, "k51");
    assert_string_equal(props_get(&p, "k100"), "other");
    assert_non_null(props_find(&p, "k101"));
    assert_null(props_get(&p, "k101"));
    for (size_t i = 0; i < p.count; i++)
        assert_ptr_equal(props_find(&p, p.entries[i].key), &p.entries[i]);
    props_deinit(&p);
}

static void subset_drops_the_prefix_and_not_the_rest(void **state)
{
    struct props p;
    struct props sub;

    (void)state;
    parse(&p, "producer.acks=all\nproducers=x\nproducer.=y\nz=1");
    props_init(&sub);
    assert_int_equal(props_subset(&p, "producer.", &sub), 0);
    assert_int_equal(sub.count, 1);
    assert_string_equal(props_get(&sub, "acks"), "all");
    props_deinit(&sub);
    props_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_as_java_does),
        cmocka_unit_test(bytes_beyond_ascii_are_utf8_or_latin1),
        cmocka_unit_test(lone_surrogates_become_replacement_characters),
        cmocka_unit_test(a_nul_is_refused),
        cmocka_unit_test(errors_name_file_and_line),
        cmocka_unit_test(keeps_order_replaces_and_removes),
        cmocka_unit_test(subset_drops_the_prefix_and_not_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
