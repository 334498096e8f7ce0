/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a token endpoint: any bytes give a token that a login can send and that lives, or an
 * error that names the endpoint and repeats nothing. */
#include "base/oidc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct oidc *settings(void)
{
    struct props java, jaas;
    struct oidc *o;

    props_init(&java);
    props_init(&jaas);
    props_set(&java, "sasl.oauthbearer.token.endpoint.url", "http://e/");
    props_set(&jaas, "sasl.oauthbearer.client.id", "me");
    props_set(&jaas, "sasl.oauthbearer.client.secret", "s");
    o = oidc_new(&java, &jaas, NULL);
    props_deinit(&java);
    props_deinit(&jaas);
    return o;
}

static void check_token(const struct oidc_token *token)
{
    if (token->life_ms <= 0 || token->text[0] == '\0' || token->principal[0] == '\0')
        abort();
    for (const char *p = token->text; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oidc *o = settings();
    struct oidc_token token = {0};
    struct mr_error err = {0};

    if (oidc_read(o, (const char *)data, size, INT64_C(1700000000000), &token, &err) == 0)
        check_token(&token);
    else if (err.code != MR_ERR_FATAL || strstr(err.text, "http://e/") == NULL)
        abort();
    oidc_token_deinit(&token);
    oidc_free(&o);
    return 0;
}
