/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and judges the patterns of RegexRouter and TopicNameMatches, with Connect's texts. Called
 * when they start, and when their configuration is checked. */
#include "pattern_key.h"

struct mr_pattern *pattern_key_make(const struct mr_task *task, const char *key, const char *shown,
                                    struct mr_error *err)
{
    const char *regex = mr_config_str(task, key);
    struct mr_error own = {0};
    struct mr_pattern *pattern = NULL;

    if (regex != NULL)
        pattern = mr_pattern_make(task->host, regex, &own);
    if (pattern == NULL)
        mr_fail(err, own.code == MR_ERR_NOMEM ? MR_ERR_NOMEM : MR_ERR_CONFIG,
                "Invalid value %.300s for configuration %s: Invalid regex: %.600s",
                regex != NULL ? regex : "null", shown, regex != NULL ? own.text : "there is none");
    return pattern;
}

int pattern_key_check(const struct mr_task *task, const char *key, const char *shown,
                      struct mr_error *err)
{
    struct mr_pattern *pattern = pattern_key_make(task, key, shown, err);

    if (pattern == NULL)
        return err->code;
    mr_pattern_free(pattern);
    return MR_OK;
}
