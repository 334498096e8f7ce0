/* SPDX-License-Identifier: Apache-2.0 */
/* References to config providers: where they stand, what they stand for, and that it is hidden
 * again. */
#include "base/config_ref.h"
#include "base/log.h"
#include "base/log_hide.h"
#include "base/provider.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PACKAGE "org.apache.kafka.common.config.provider."

/* A folder with files, and the providers f (files), d (folders) and e (environment). */
struct fixture {
    char folder[64];
    struct props worker;
    struct providers *providers;
    char remarks[1024];
};

static const char *at(const struct fixture *f, const char *name)
{
    static char paths[4][256];
    static size_t next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", f->folder, name);
    return paths[next];
}

static void write_file(const struct fixture *f, const char *name, const void *data, size_t len)
{
    int fd = open(at(f, name), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, data, len) == (ssize_t)len);
    close(fd);
}

static void put(const struct fixture *f, const char *name, const char *text)
{
    write_file(f, name, text, strlen(text));
}

static void setting(struct fixture *f, const char *key, const char *value)
{
    assert_int_equal(props_set(&f->worker, key, value), 0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/test-provider-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    props_init(&f->worker);
    setting(f, "config.providers", " f,d , e");
    setting(f, "config.providers.f.class", PACKAGE "FileConfigProvider");
    setting(f, "config.providers.d.class", PACKAGE "DirectoryConfigProvider");
    setting(f, "config.providers.e.class", "EnvVarConfigProvider");
    setenv("TEST_PROVIDER_A", "value of a", 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    assert_int_equal(system(command), 0);
    providers_free(&f->providers);
    props_deinit(&f->worker);
    free(f);
    return 0;
}

static void open_providers(struct fixture *f)
{
    struct mr_error err = {0};

    f->providers = providers_new(&f->worker, true, NULL, &err);
    if (f->providers == NULL)
        fail_msg("%s", err.text);
}

static void note_reasons(struct fixture *f, const struct map *why)
{
    const char *reference;
    void *text;

    f->remarks[0] = '\0';
    for (size_t i = 0; map_next(why, &i, &reference, &text);) {
        size_t len = strlen(f->remarks);
        char *left = providers_left(f->providers, reference, reference, why);

        assert_non_null(strstr(left, text));
        snprintf(f->remarks + len, sizeof(f->remarks) - len, "%s\n", left);
        free(left);
    }
}

/* What a value becomes; an error is its text, behind "! ". */
static const char *resolved(struct fixture *f, const char *fmt, ...)
{
    static char out[2048];
    struct props in, done;
    struct provider_job job = {.in = &in, .why = map_new()};
    struct mr_error err = {0};
    char text[1024];
    va_list args;
    int rc;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    props_init(&in);
    assert_int_equal(props_set(&in, "other", "as it is"), 0);
    assert_int_equal(props_set(&in, "none", NULL), 0);
    assert_int_equal(props_set(&in, "key", text), 0);
    rc = providers_resolve(f->providers, &job, &done, &err);
    note_reasons(f, job.why);
    map_free(&job.why, free);
    snprintf(out, sizeof(out), "%s%s", rc != 0 ? "! " : "",
             rc != 0 ? err.text : props_get(&done, "key"));
    if (rc == 0) {
        assert_string_equal(props_get(&done, "other"), "as it is");
        assert_true(props_find(&done, "none") != NULL && props_get(&done, "none") == NULL);
        props_deinit(&done);
    }
    props_deinit(&in);
    return out;
}

/* --- the syntax ------------------------------------------------------------------------------- */

/* As Java's pattern cuts it: "provider|path|key" of each reference. */
static void left(const struct fixture *f, const char *raw, const char *value, const char *want)
{
    char *told = providers_left(f->providers, raw, value, NULL);

    assert_non_null(told);
    assert_string_equal(told, want);
    free(told);
}

static void references_are_found_where_java_finds_them(void **state)
{
    static const char *const cases[][2] = {
        {"${p:k}", "p||k;"},
        {"${p:a:k}", "p|a|k;"},
        {"${p: a : k }", "p|a|k;"},
        {"${ p :k}", " p ||k;"},
        {"${p:a:b:c}", "p|a|b:c;"},
        {"${p::k}", "p||k;"},
        {"${p:a:}", "p|a|;"},
        {"${p:}", "p||;"},
        {"${:k}", "||k;"},
        {"a${p:k}b${q:l:m}c", "p||k;q|l|m;"},
        {"${p:k", ""},
        {"${p}", ""},
        {"$ {p:k}", ""},
        {"{p:k}", ""},
        {"${}${p:k}", "p||k;"},
        {"${${p:k}}", "${p||k;"},
        {"${a}:${p:k}", "p||k;"},
        {"$${p:k}", "p||k;"},
        {"${p:\nk\n}", "p||k;"},
        {"", ""},
    };
    char got[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i][0];
        struct config_ref ref;
        size_t n = 0;

        got[0] = '\0';
        while (config_ref_next(text, &ref)) {
            n += (size_t)snprintf(got + n, sizeof(got) - n, "%.*s|%.*s|%.*s;",
                                  (int)ref.provider.len, ref.provider.at, (int)ref.path.len,
                                  ref.path.at, (int)ref.key.len, ref.key.at);
            text = ref.whole.at + ref.whole.len;
        }
        assert_string_equal(got, cases[i][1]);
        assert_int_equal(config_ref_any(cases[i][0]), cases[i][1][0] != '\0');
    }
    assert_false(config_ref_any(NULL));
}

static char *repeat(const char *part, size_t count)
{
    size_t len = strlen(part);
    char *text = malloc(len * count + 2);

    for (size_t i = 0; i < count; i++)
        memcpy(text + i * len, part, len);
    text[len * count] = '\0';
    return text;
}

/* In one walk: looking anew from each "${" takes hours for the first, and the second does where all
 * is searched for each. */
static void long_texts_are_looked_through_once(void **state)
{
    struct fixture *f = *state;
    char *text = repeat("${", (size_t)2 << 20), *refs = repeat("${e:A}", (size_t)1 << 20),
         *values = repeat("$", (size_t)1 << 20);

    strcat(text, "}");
    assert_false(config_ref_any(text));
    assert_null(providers_left(f->providers, refs, values, NULL));
    strcpy(refs + strlen(refs) - 6, "${e:B}");
    strcpy(values + strlen(values) - 6, "${e:B}");
    left(f, refs, values,
         "has a reference ${e:...} that stays as it is: the worker's config.providers have no such "
         "name");
    free(text), free(refs), free(values);
}

/* --- the three kinds -------------------------------------------------------------------------- */

static void files_directories_and_the_environment_give_values(void **state)
{
    struct fixture *f = *state;

    open_providers(f);
    put(f, "p.properties", "a = one\nb.c=two \\\n  lines\nu=\\u00e4\nref=${e:TEST_PROVIDER_A}\n");
    put(f, "whole", "text\nof two lines\n");
    put(f, ".hidden", "h");
    put(f, "empty", "");
    assert_string_equal(resolved(f, "${f:%s:a}", at(f, "p.properties")), "one");
    assert_string_equal(resolved(f, "<${f: %s : b.c }>", at(f, "p.properties")), "<two lines>");
    assert_string_equal(resolved(f, "${f:%s:u}", at(f, "p.properties")), "\xc3\xa4");
    assert_string_equal(resolved(f, "${d:%s:whole}", f->folder), "text\nof two lines\n");
    assert_string_equal(resolved(f, "${d:%s/:.hidden}", f->folder), "h");
    assert_string_equal(resolved(f, "${d:%s:empty}", f->folder), "");
    assert_string_equal(resolved(f, "${e:TEST_PROVIDER_A} ${e::TEST_PROVIDER_A}"),
                        "value of a value of a");
    /* Once only. */
    assert_string_equal(resolved(f, "${f:%s:ref}", at(f, "p.properties")), "${e:TEST_PROVIDER_A}");
}

static void what_is_not_there_stays_as_it_is(void **state)
{
    static const char *const texts[] = {
        "${x:a:b}", "${f::k}", "${d::k}", "${e:TEST_PROVIDER_NONE}", "${f}", "${F:/x:y}"};
    struct fixture *f = *state;
    char text[512];

    open_providers(f);
    put(f, "p.properties", "a=1\n");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_string_equal(resolved(f, "%s", texts[i]), texts[i]);
    snprintf(text, sizeof(text), "${f:%s:b}", at(f, "p.properties"));
    assert_string_equal(resolved(f, "%s", text), text);
    snprintf(text, sizeof(text), "${d:%s:none} ${d:%s:.} ${d:%s:x/../p.properties}", f->folder,
             f->folder, f->folder);
    assert_string_equal(resolved(f, "%s", text), text);
    assert_string_equal(f->remarks, "");
    assert_string_equal(resolved(f, "${d:/nowhere/at/all:k}"), "${d:/nowhere/at/all:k}");
    assert_string_equal(f->remarks,
                        "has a reference ${d:/nowhere/at/all:k} that stays as it is: The path "
                        "/nowhere/at/all is not a directory\n");
}

static void what_stays_is_told_by_its_reference_and_why(void **state)
{
    struct fixture *f = *state;

    setting(f, "config.providers", "f,d,e,unset");
    open_providers(f);
    left(f, "a ${e:NONE}", "a ${e:NONE}",
         "has a reference ${e:NONE} that stays as it is: its config provider has no such value");
    left(f, "${e:A} ${x:secret}${e::B}${e::B}", "a ${x:secret}${e::B}${e::B}",
         "has a reference ${x:...} that stays as it is: the worker's config.providers have no such "
         "name; and ${e::B} that stays as it is: its config provider has no such value");
    left(f, "${unset:a}", "${unset:a}",
         "has a reference ${unset:a} that stays as it is: config.providers.unset.class is not set");
    left(f, "${f:/etc/x}", "${f:/etc/x}",
         "has a reference ${f:/etc/x} that stays as it is: not both a path and a key are given, as "
         "in ${f:PATH:KEY}");
    left(
        f, "${d:/etc/x:}", "${d:/etc/x:}",
        "has a reference ${d:/etc/x:} that stays as it is: not both a path and a key are given, as "
        "in ${d:PATH:KEY}");
    assert_string_equal(resolved(f, "${unset:a}"), "${unset:a}");
    providers_free(&f->providers);
    left(f, "${e:NONE}", "${e:NONE}",
         "has a reference ${e:...} that stays as it is: the worker's config.providers have no such "
         "name");
    open_providers(f);
    assert_null(providers_left(f->providers, "${e:A}", "value of a", NULL));
    assert_null(providers_left(f->providers, "${topic}", "${topic}", NULL));
    assert_null(providers_left(f->providers, NULL, "x", NULL));
    assert_null(providers_left(f->providers, "${e:A}", NULL, NULL));
}

static void what_cannot_be_read_is_an_error(void **state)
{
    struct fixture *f = *state;
    char want[512];

    open_providers(f);
    assert_string_equal(resolved(f, "${f:/no/such:k}"),
                        "! Could not read properties from file /no/such: /no/such does not exist");
    snprintf(want, sizeof(want),
             "! Could not read properties from file %s: %s is not a regular file", f->folder,
             f->folder);
    assert_string_equal(resolved(f, "${f:%s:k}", f->folder), want);
    assert_string_equal(resolved(f, "${e:/p:k}"),
                        "! Path is not supported for EnvVarConfigProvider, invalid value '/p'");
    put(f, "bad.properties", "a=\\u00\n");
    assert_non_null(strstr(resolved(f, "${f:%s:a}", at(f, "bad.properties")), "malformed \\uxxxx"));
    write_file(f, "nul", "a\0b", 3);
    snprintf(want, sizeof(want), "! Could not read file %s for property nul: it is no UTF-8 text",
             at(f, "nul"));
    assert_string_equal(resolved(f, "${d:%s:nul}", f->folder), want);
}

/* --- limits that the user sets ---------------------------------------------------------------- */

/* Of a configuration with as many references as this, to values of size bytes each. */
static void expect_too_much(struct fixture *f, int count, size_t size, const char *want)
{
    struct secrets *s = secrets_new();
    struct props in, out;
    struct mr_error err = {0};
    FILE *file = fopen(at(f, "many.properties"), "w");

    assert_non_null(file);
    props_init(&in);
    for (int i = 0; i < count; i++) {
        char key[32], text[512];

        fprintf(file, "k%d=%0*d\n", i, (int)size, i);
        snprintf(key, sizeof(key), "%d", i);
        snprintf(text, sizeof(text), "${f:%s:k%d}", at(f, "many.properties"), i);
        props_set(&in, key, text);
    }
    fclose(file);
    assert_int_equal(providers_resolve(f->providers,
                                       &(struct provider_job){.in = &in, .secrets = s}, &out, &err),
                     want != NULL ? MR_ERR_IO : 0);
    if (want != NULL)
        assert_string_equal(err.text, want);
    else
        props_deinit(&out);
    props_deinit(&in);
    secrets_free(&s);
}

static void more_than_can_be_hidden_or_held_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct props in, out;
    struct mr_error err = {0};

    open_providers(f);
    expect_too_much(f, SECRETS_MAX, 10, NULL);
    expect_too_much(f, SECRETS_MAX + 1, 10,
                    "A configuration refers to more than 8192 values of config providers");
    /* 1 MB, of which there is one; but each reference to it becomes as much. */
    expect_too_much(f, 1, 1000000, NULL);
    props_init(&in);
    for (int i = 0; i < 5; i++) {
        char key[32], text[512];

        snprintf(key, sizeof(key), "%d", i);
        snprintf(text, sizeof(text), "${f:%s:k0}", at(f, "many.properties"));
        props_set(&in, key, text);
    }
    assert_int_equal(providers_resolve(f->providers, &(struct provider_job){.in = &in}, &out, &err),
                     MR_ERR_IO);
    assert_string_equal(err.text, "A configuration is larger than 4194304 bytes when resolved");
    props_deinit(&in);
}

static void only_allowed_paths_are_read(void **state)
{
    struct fixture *f = *state;
    char paths[256], text[256], both[600], told[1024];

    assert_int_equal(mkdir(at(f, "in"), 0700), 0);
    assert_int_equal(mkdir(at(f, "in-not"), 0700), 0);
    put(f, "in/p", "a=1\n");
    put(f, "in-not/p", "a=2\n");
    assert_int_equal(symlink(at(f, "in-not/p"), at(f, "in/link")), 0);
    assert_int_equal(symlink(at(f, "in/p"), at(f, "in/inner")), 0);
    snprintf(paths, sizeof(paths), "%s,/usr", at(f, "in/./"));
    setting(f, "config.providers.f.param.allowed.paths", paths);
    setting(f, "config.providers.d.param.allowed.paths", at(f, "in"));
    open_providers(f);
    assert_string_equal(resolved(f, "${f:%s:a}", at(f, "in/p")), "1");
    assert_string_equal(resolved(f, "${f:%s:a}", at(f, "in/../in//p")), "1");
    assert_string_equal(resolved(f, "${f:%s:a}", at(f, "in/inner")), "1");
    assert_string_equal(resolved(f, "${d:%s:p}", at(f, "in")), "a=1\n");
    assert_string_equal(f->remarks, "");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"in-not/p", "in/../in-not/p", "in/link"};

        snprintf(text, sizeof(text), "${f:%s:a}", at(f, names[i]));
        snprintf(told, sizeof(told),
                 "has a reference %s that stays as it is: The path %s is not allowed to be "
                 "accessed\n",
                 text, at(f, names[i]));
        snprintf(both, sizeof(both), "%s %s", text, text);
        assert_string_equal(resolved(f, "%s", both), both);
        assert_string_equal(f->remarks, told); /* once, however often it stands there */
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "${d:%s:%s}", at(f, i == 0 ? "in-not" : "in"),
                 i == 0 ? "p" : "link");
        assert_string_equal(resolved(f, "%s", text), text);
    }
}

static void variables_may_be_limited_to_a_pattern(void **state)
{
    struct fixture *f = *state;

    setenv("TEST_PROVIDER_AB", "no", 1);
    setting(f, "config.providers.e.param.allowlist.pattern", "TEST_[A-Z]*_A");
    open_providers(f);
    assert_string_equal(resolved(f, "${e:TEST_PROVIDER_A} ${e:TEST_PROVIDER_AB}"),
                        "value of a ${e:TEST_PROVIDER_AB}");
    unsetenv("TEST_PROVIDER_AB");
}

static void wrong_settings_name_their_key(void **state)
{
    static const struct {
        const char *key, *value, *named, *text;
    } cases[] = {
        {"config.providers.f.class", "org.example.Vault", "config.providers.f.class",
         "Invalid value org.example.Vault for configuration config.providers.f.class: Could not "
         "load config provider class or one of its dependencies"},
        {"config.providers.f.param.allowed.paths", "relative/x", "config.providers.f.class",
         "Path relative/x is not absolute"},
        {"config.providers.d.param.allowed.paths", "/usr,/no/such/folder",
         "config.providers.d.class", "Path /no/such/folder does not exist"},
        {"config.providers.e.param.allowlist.pattern", "[", "config.providers.e.class",
         "allowlist.pattern [: "},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mr_error err = {0};
        char *key = NULL, *before = NULL;

        if (props_get(&f->worker, cases[i].key) != NULL)
            before = strdup(props_get(&f->worker, cases[i].key));
        setting(f, cases[i].key, cases[i].value);
        assert_null(providers_new(&f->worker, true, &key, &err));
        assert_string_equal(key, cases[i].named);
        assert_int_equal(err.code, MR_ERR_CONFIG);
        if (strstr(err.text, cases[i].text) == NULL)
            fail_msg("expected %s\n     got %s", cases[i].text, err.text);
        if (before != NULL)
            setting(f, cases[i].key, before);
        else
            props_remove(&f->worker, cases[i].key);
        free(before);
        free(key);
    }
    setting(f, "config.providers.d.param.allowed.paths", "/no/such/folder");
    f->providers = providers_new(&f->worker, false, NULL, NULL); /* a host's */
    assert_non_null(f->providers);
}

static void a_name_without_a_class_is_no_provider(void **state)
{
    struct fixture *f = *state;

    setting(f, "config.providers", "e,,none,e");
    open_providers(f);
    assert_string_equal(resolved(f, "${none:k} ${e:TEST_PROVIDER_A}"), "${none:k} value of a");
    assert_string_equal(resolved(f, "${f:/no/such:k}"), "${f:/no/such:k}");
}

static void a_glance_reads_no_files(void **state)
{
    struct fixture *f = *state;
    char *seen;
    struct props in, out;

    open_providers(f);
    seen = providers_glance(f->providers, "${e:TEST_PROVIDER_A} ${f:/no/such:k}");
    assert_string_equal(seen, "value of a ${f:/no/such:k}");
    free(seen);
    seen = providers_glance(f->providers, "${e:/p:k}");
    assert_string_equal(seen, "${e:/p:k}");
    free(seen);
    seen = providers_glance(NULL, "${e:k}");
    assert_string_equal(seen, "${e:k}");
    free(seen);
    props_init(&in);
    props_set(&in, "a", "${e:TEST_PROVIDER_A}");
    props_set(&in, "b", NULL);
    providers_glance_all(f->providers, &in, &out);
    assert_string_equal(props_get(&out, "a"), "value of a");
    assert_int_equal(out.count, 2);
    assert_true(providers_refer(f->providers, "${e:k}", true, false));
    assert_false(providers_refer(f->providers, "${e:k}", false, true));
    assert_true(providers_refer(f->providers, "${f:k}", false, true));
    assert_false(providers_refer(f->providers, "${x:k}", true, true));
    assert_true(providers_refer_any(f->providers, &in));
    assert_false(providers_refer_any(NULL, &in));
    props_deinit(&in);
    props_deinit(&out);
}

/* --- hiding ----------------------------------------------------------------------------------- */

static void expect_hidden(const struct secrets *s, const char *text, const char *want)
{
    char *got = secrets_hide(s, text);

    if (want == NULL)
        assert_null(got);
    else
        assert_string_equal(got != NULL ? got : "(not hidden)", want);
    free(got);
}

static void values_become_their_references_again(void **state)
{
    struct secrets *s = secrets_new();
    const char *reference, *value;

    (void)state;
    expect_hidden(s, "anything", NULL);
    assert_true(secrets_add(s, "${p:a}", "hunter2"));
    assert_true(secrets_add(s, "${p:b}", "hunter2 and more"));
    assert_true(secrets_add(s, "${p:c}", "hunter2"));
    assert_true(secrets_add(s, "${p:d}", "abc"));
    assert_true(secrets_add(s, "${p:d}", "True"));
    assert_true(secrets_add(s, "${p:d}", ""));
    expect_hidden(s, "hunter", NULL);
    expect_hidden(s, "h", NULL);
    expect_hidden(s, "", NULL);
    expect_hidden(s, "abc True", NULL);
    expect_hidden(s, "hunter2", "${p:a}");
    expect_hidden(s, "a hunter2, hunter2hunter2; hunter2 and more!",
                  "a ${p:a}, ${p:a}${p:a}; ${p:b}!");
    /* Cut off by the end of a buffer. */
    expect_hidden(s, "jdbc:hunter2 and mo", "jdbc:${p:b}");
    assert_true(secrets_at(s, 0, &reference, &value));
    assert_string_equal(value, "hunter2 and more");
    assert_false(secrets_at(s, 2, &reference, &value));
    secrets_free(&s);
}

static void what_was_resolved_is_known_with_its_reference(void **state)
{
    struct fixture *f = *state;
    struct secrets *s = secrets_new();
    struct props in, out;

    open_providers(f);
    put(f, "whole", "one secret");
    props_init(&in);
    props_set(&in, "a", "user=x;password=${e: TEST_PROVIDER_A}");
    assert_int_equal(providers_resolve(f->providers,
                                       &(struct provider_job){.in = &in, .secrets = s}, &out, NULL),
                     0);
    expect_hidden(s, props_get(&out, "a"), "user=x;password=${e: TEST_PROVIDER_A}");
    secrets_free(&s);
    props_deinit(&in);
    props_deinit(&out);
}

/* "a-value-NUMBER" of "${p:NUMBER}". */
static void number(char *reference, char *value, int i)
{
    snprintf(reference, 32, "${p:%d}", i);
    snprintf(value, 32, "a-value-%06d", i);
}

static void what_there_is_no_room_to_hide_is_told_or_displaces_the_oldest(void **state)
{
    struct secrets *s = secrets_new();
    char reference[32], value[32];

    (void)state;
    for (int i = 0; i < SECRETS_MAX; i++) {
        number(reference, value, i);
        assert_true(secrets_add(s, reference, value));
    }
    assert_false(secrets_add(s, "${p:more}", "one-more"));
    assert_true(secrets_add(s, "${p:again}", "a-value-000000"));
    secrets_keep(s, "${p:more}", "one-more");
    secrets_keep(s, "${p:last}", "the-last");
    expect_hidden(s, "one-more, the-last", "${p:more}, ${p:last}");
    expect_hidden(s, "a-value-000000 a-value-000001 a-value-000002 a-value-000003.",
                  "${p:0} a-value-000001 a-value-000002 ${p:3}.");
    secrets_free(&s);
}

/* Large values, too. */
static void values_that_change_for_ever_take_bounded_memory(void **state)
{
    struct secrets *s = secrets_new();
    char *value = malloc(1000001);
    const char *reference, *kept;
    size_t count = 0;

    (void)state;
    memset(value, 'x', 1000000);
    value[1000000] = '\0';
    for (int i = 0; i < 100; i++) {
        snprintf(value, 32, "%06d", i);
        value[6] = 'x';
        secrets_keep(s, "${p:k}", value);
    }
    while (secrets_at(s, count, &reference, &kept))
        count++;
    assert_int_equal(count, SECRETS_BYTES_MAX / 1000000);
    expect_hidden(s, value, "${p:k}");
    secrets_free(&s);
    free(value);
}

static void the_log_shows_references(void **state)
{
    struct secrets *s = secrets_new();
    int fds[2];
    char line[500];
    ssize_t n;

    (void)state;
    secrets_add(s, "${f:/x:pw}", "t0p\nsecret");
    log_hide(s);
    secrets_free(&s);
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    log_relay_to(fds[1]);
    log_write_for(LOG_WARN, "t", "c", 3, "login with t0p\nsecret failed");
    log_relay_to(-1);
    n = read(fds[0], line, sizeof(line) - 1);
    assert_true(n > 0);
    line[n] = '\0';
    assert_non_null(strstr(line, "login with ${f:/x:pw} failed"));
    close(fds[0]), close(fds[1]);
}

/* What a provider gives anew all the time does not make the log show what came last. */
static void the_log_hides_the_newest_of_many_values(void **state)
{
    char reference[32], value[32], *hidden;

    (void)state;
    for (int i = 0; i < SECRETS_MAX + 100; i++) {
        struct secrets *s = secrets_new();

        number(reference, value, i);
        secrets_add(s, reference, value);
        log_hide(s);
        secrets_free(&s);
    }
    hidden = log_hidden(value);
    assert_string_equal(hidden, reference);
    free(hidden);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_found_where_java_finds_them),
        TEST(long_texts_are_looked_through_once),
        TEST(files_directories_and_the_environment_give_values),
        TEST(what_is_not_there_stays_as_it_is),
        TEST(what_stays_is_told_by_its_reference_and_why),
        TEST(what_cannot_be_read_is_an_error),
        TEST(more_than_can_be_hidden_or_held_is_an_error),
        TEST(only_allowed_paths_are_read),
        TEST(variables_may_be_limited_to_a_pattern),
        TEST(wrong_settings_name_their_key),
        TEST(a_name_without_a_class_is_no_provider),
        TEST(a_glance_reads_no_files),
        cmocka_unit_test(values_become_their_references_again),
        TEST(what_was_resolved_is_known_with_its_reference),
        cmocka_unit_test(what_there_is_no_room_to_hide_is_told_or_displaces_the_oldest),
        cmocka_unit_test(values_that_change_for_ever_take_bounded_memory),
        cmocka_unit_test(the_log_shows_references),
        cmocka_unit_test(the_log_hides_the_newest_of_many_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
