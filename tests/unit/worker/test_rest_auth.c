/* SPDX-License-Identifier: Apache-2.0 */
/* rest_auth: who is let in, and what of a file or a list of classes ends the start. */
#include "base/base64.h"
#include "worker/rest/rest_auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BASIC "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"

struct fixture {
    char path[64];
    struct worker_config config;
    struct rest_auth *auth;
    struct mr_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/millrace-users-XXXXXX");
    close(mkstemp(f->path));
    f->config.path = "w.properties";
    props_init(&f->config.props);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    rest_auth_free(&f->auth);
    props_deinit(&f->config.props);
    unlink(f->path);
    free(f);
    return 0;
}

static int start(struct fixture *f, const char *classes, const char *users)
{
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    fputs(users, file);
    fclose(file);
    props_set(&f->config.props, "rest.extension.classes", classes);
    props_set(&f->config.props, REST_AUTH_USERS, f->path);
    return rest_auth_new(&f->config, &f->auth, &f->err);
}

static bool admits(const struct fixture *f, const char *scheme, const char *credentials)
{
    char header[512];
    struct buf code;
    bool is;

    buf_init(&code, sizeof(header));
    base64_encode(&code, credentials, strlen(credentials));
    snprintf(header, sizeof(header), "%s%s", scheme, code.data);
    is = rest_auth_admits(f->auth, header);
    buf_deinit(&code);
    return is;
}

static void users_of_the_file_are_let_in_and_nobody_else(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f, BASIC, "alice=secret\nbob=a:b\nempty=\njos\\u00e9=p\\u00e4ss\n"), 0);
    assert_true(admits(f, "Basic ", "alice:secret"));
    assert_true(admits(f, "bASIC ", "alice:secret"));
    assert_true(admits(f, "Basic ", "bob:a:b"));
    assert_true(admits(f, "Basic ", "empty:"));
    assert_true(admits(f, "Basic ", "jos\xc3\xa9:p\xc3\xa4ss"));
    assert_false(admits(f, "Basic ", "alice:Secret"));
    assert_false(admits(f, "Basic ", "alice:secre"));
    assert_false(admits(f, "Basic ", "alice:secretx"));
    assert_false(admits(f, "Basic ", "alice:"));
    assert_false(admits(f, "Basic ", "alice"));
    assert_false(admits(f, "Basic ", "carol:"));
    assert_false(admits(f, "Basic ", ":secret"));
    assert_false(admits(f, "Basic", "alice:secret"));
    assert_false(admits(f, "Bearer ", "alice:secret"));
    assert_false(rest_auth_admits(f->auth, NULL));
    assert_false(rest_auth_admits(f->auth, ""));
    assert_false(rest_auth_admits(f->auth, "Basic "));
    assert_false(rest_auth_admits(f->auth, "Basic !!!"));
}

static void an_empty_file_admits_nobody(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f, "BasicAuthSecurityRestExtension", "# none\n"), 0);
    assert_non_null(f->auth);
    assert_false(admits(f, "Basic ", ":"));
    assert_false(admits(f, "Basic ", "a:"));
    assert_false(rest_auth_admits(f->auth, NULL));
}

static void without_an_extension_nobody_is_asked(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f, " , ", ""), 0);
    assert_null(f->auth);
}

static void what_is_not_built_in_ends_the_start(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f, BASIC ",org.x.Filter", "a=b\n"), MR_ERR_CONFIG);
    assert_non_null(
        strstr(f->err.text, "Invalid value org.x.Filter for configuration rest.extension.classes"));
    assert_null(f->auth);
}

static void a_missing_file_ends_the_start(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    props_set(&f->config.props, "rest.extension.classes", BASIC);
    assert_int_equal(rest_auth_new(&f->config, &f->auth, &f->err), MR_ERR_CONFIG);
    assert_non_null(strstr(f->err.text, "set millrace.rest.users.file to a file"));
    props_set(&f->config.props, REST_AUTH_USERS, "/nowhere/users");
    assert_int_equal(rest_auth_new(&f->config, &f->auth, &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "millrace.rest.users.file: "));
    assert_non_null(strstr(err.text, "/nowhere/users"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(users_of_the_file_are_let_in_and_nobody_else),
        test(an_empty_file_admits_nobody),
        test(without_an_extension_nobody_is_asked),
        test(what_is_not_built_in_ends_the_start),
        test(a_missing_file_ends_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
