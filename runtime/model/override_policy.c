/* SPDX-License-Identifier: Apache-2.0 */
/* The four policies, by name. Read from the worker's properties each time, since both worker and
 * host have those and a policy is asked a few times a connector. Pure; any thread. */
#include "model/override_policy.h"

#include "model/config_def.h"

#include <ctype.h>
#include <string.h>

static const char *const names[] = {"All", "None", "Principal", "Allowlist"};

static bool is_blank(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return *text == '\0';
}

const char *override_policy_known(const char *text)
{
    const char *dot = strrchr(text, '.'), *name = dot != NULL ? dot + 1 : text;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);

        if (strncmp(name, names[i], len) == 0 &&
            (is_blank(name + len) ||
             strcmp(name + len, "ConnectorClientConfigOverridePolicy") == 0))
            return names[i];
    }
    return NULL;
}

const char *override_policy_of(const struct props *worker)
{
    const char *given = props_get(worker, "connector.client.config.override.policy");
    const char *known = given != NULL ? override_policy_known(given) : names[0];

    return known != NULL ? known : names[1];
}

static bool is_listed(const struct props *worker, const char *key)
{
    static const struct mr_config_key list = {"connector.client.config.override.allowlist",
                                              MR_CFG_LIST, .fallback = ""};
    struct config_value value = {0};
    bool found = false;

    config_def_check(&list, worker, &value, NULL, NULL);
    for (size_t i = 0; i < value.item_count && !found; i++)
        found = strcmp(value.items[i], key) == 0;
    config_value_deinit(&value);
    return found;
}

bool override_policy_allows(const struct props *worker, const char *key)
{
    const char *policy = override_policy_of(worker);

    if (strcmp(policy, "Principal") == 0)
        return strcmp(key, "sasl.jaas.config") == 0 || strcmp(key, "sasl.mechanism") == 0 ||
               strcmp(key, "security.protocol") == 0;
    return strcmp(policy, "All") == 0 ||
           (strcmp(policy, "Allowlist") == 0 && is_listed(worker, key));
}
