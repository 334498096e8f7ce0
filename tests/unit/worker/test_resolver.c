/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: a configuration with references comes back with values, or with what stood against
 * it. */
#include "worker/herder/validate/resolver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int __wrap_props_copy(struct props *to, const struct props *from);
int __real_props_copy(struct props *to, const struct props *from);

static atomic_int copies_left = -1; /* until one finds no memory; -1: none does */

int __wrap_props_copy(struct props *to, const struct props *from)
{
    int rc = __real_props_copy(to, from);

    return atomic_fetch_sub(&copies_left, 1) == 0 ? MR_ERR_NOMEM : rc;
}

struct asking {
    struct loop *loop;
    char got[1024];
};

static void on_resolved(void *arg, struct props *config, struct secrets **secrets, struct map **why,
                        const struct mr_error *err)
{
    struct asking *asking = arg;
    const char *value = props_get(config, "key");

    assert_true((err == NULL) == (secrets != NULL));
    assert_true((err == NULL) == (why != NULL && *why != NULL));
    snprintf(asking->got, sizeof(asking->got), "%s", err != NULL ? err->text : value);
    props_deinit(config);
    loop_stop(asking->loop);
}

/* What `${env:RESOLVED}` becomes when so many copies of the configuration can be made. */
static const char *resolved(struct asking *asking, int copies)
{
    struct props worker = {0}, config = {0};
    struct providers *providers;
    struct resolver *resolver;

    props_set(&worker, "config.providers", "env");
    props_set(&worker, "config.providers.env.class", "EnvVarConfigProvider");
    props_set(&config, "key", "${env:RESOLVED}");
    setenv("RESOLVED", "the value", 1);
    providers = providers_new(&worker, false, NULL, NULL);
    assert_non_null(providers);
    asking->loop = loop_new(NULL);
    resolver = resolver_new(asking->loop, providers);
    atomic_store(&copies_left, copies);
    resolver_ask(resolver, &config, on_resolved, asking);
    loop_run(asking->loop);
    atomic_store(&copies_left, -1);
    resolver_free(&resolver);
    loop_free(&asking->loop);
    providers_free(&providers);
    props_deinit(&worker);
    props_deinit(&config);
    return asking->got;
}

static void a_reference_becomes_its_value(void **state)
{
    (void)state;
    assert_string_equal(resolved(&(struct asking){0}, -1), "the value");
}

static void no_memory_is_an_answer_like_others(void **state)
{
    (void)state;
    for (int copies = 0; copies < 2; copies++)
        assert_string_equal(resolved(&(struct asking){0}, copies), "out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_becomes_its_value),
        cmocka_unit_test(no_memory_is_an_answer_like_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
