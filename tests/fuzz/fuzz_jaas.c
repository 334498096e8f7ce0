/* SPDX-License-Identifier: Apache-2.0 */
/* sasl.jaas.config: any text gives settings or an error; with an error nothing was set; what may
 * reach a shell is plain. */
#include "base/jaas.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plain(const struct props *p, const char *key)
{
    const char *value = props_get(p, key);

    if (value != NULL && (value[0] == '-' || strpbrk(value, " \t\n;|&$`\"'\\<>()*?#~%") != NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct props p;
    struct mr_error err = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    props_init(&p);
    if (jaas_parse(text, &p, NULL, &err) != 0 && (err.code == 0 || p.count > 0))
        abort();
    check_plain(&p, "sasl.kerberos.principal");
    check_plain(&p, "sasl.kerberos.keytab");
    check_plain(&p, "sasl.kerberos.service.name");
    props_deinit(&p);
    free(text);
    return 0;
}
