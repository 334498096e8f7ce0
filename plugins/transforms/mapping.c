/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs with a colon, for Cast and ReplaceField. Called when a configuration is checked and at
 * start. */
#include "mapping.h"

size_t mapping_split(const char *item, struct mapping *out)
{
    size_t len = strlen(item), parts = 1;
    const char *colon;

    memset(out, 0, sizeof(*out));
    out->left = item;
    out->left_len = len;
    if (len == 0)
        return 1;
    while (len > 0 && item[len - 1] == ':')
        len--;
    if (len == 0)
        return 0;
    out->left_len = len;
    colon = (const char *)memchr(item, ':', len);
    if (colon == NULL)
        return 1;
    out->left_len = (size_t)(colon - item);
    out->right = colon + 1;
    out->right_len = len - out->left_len - 1;
    for (const char *p = colon; p != NULL; parts++)
        p = (const char *)memchr(p + 1, ':', (size_t)(item + len - p - 1));
    return parts;
}

int mapping_fail(const struct mr_task *task, const char *option, const char *item,
                 struct mr_error *err)
{
    char list[400] = "";
    size_t len = 0, count = mr_config_count(task, option);

    for (size_t i = 0; i < count && len < sizeof(list); i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i > 0 ? ", " : "",
                                mr_config_item(task, option, i));
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value [%s] for configuration renames: Invalid rename mapping: %.400s",
                   list, item);
}
