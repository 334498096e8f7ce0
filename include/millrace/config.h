/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration keys as data: validation, REST answers and documentation are made from them.
 * Spec: org.apache.kafka.common.config.ConfigDef. */
#ifndef MILLRACE_CONFIG_H
#define MILLRACE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mr_config_type {
    MR_CFG_STRING = 0,  /* text, trimmed */
    MR_CFG_BOOLEAN = 1, /* true or false, any case */
    MR_CFG_INT = 2,     /* 32 bit */
    MR_CFG_SHORT = 3,   /* 16 bit */
    MR_CFG_LONG = 4,    /* 64 bit */
    MR_CFG_DOUBLE = 5,
    MR_CFG_LIST = 6,    /* separated by commas, blanks around items dropped */
    MR_CFG_CLASS = 7,   /* a plugin's class name or alias */
    MR_CFG_PASSWORD = 8 /* never printed; read with mr_config_secret only */
};

/* Flags; combine with |. */
enum mr_config_flag {
    MR_CFG_REQUIRED = 1,  /* no default: absence is an error */
    MR_CFG_NON_EMPTY = 2, /* STRING, LIST: empty is an error */
    MR_CFG_INTERNAL = 4,  /* not shown */
    /* LIST: an item twice, or an empty one, is an error; NON_EMPTY says so too. */
    MR_CFG_DISTINCT = 8,
    /* Where the plugin has a `check`: it is asked also where the key has no value, and has a second
     * word about it. */
    MR_CFG_CHECK_NULL = 16
};

enum mr_config_importance { MR_CFG_LOW = 0, MR_CFG_MEDIUM = 1, MR_CFG_HIGH = 2 };
enum mr_config_width {
    MR_CFG_WIDTH_NONE = 0,
    MR_CFG_WIDTH_SHORT = 1,
    MR_CFG_WIDTH_MEDIUM = 2,
    MR_CFG_WIDTH_LONG = 3
};

/* One key. An array of them ends with a zeroed entry; all text is static UTF-8.
 *
 * name        as users write it, without the prefix under which a converter is configured
 * type        enum mr_config_type
 * flags       enum mr_config_flag
 * fallback    the default as users would write it; NULL = the default is null (or none, with
 *             MR_CFG_REQUIRED)
 * doc         one or two sentences
 * choices     "a|b|c": the only values allowed; NULL = any. Starts with '~' for any case ("~a|b")
 * min, max    INT, SHORT, LONG: allowed range, when has_range
 * importance, group, order, width, display_name   for user interfaces; zero where nothing is to be
 *                                                 said */
struct mr_config_key {
    const char *name;
    uint32_t type;
    uint32_t flags;
    const char *fallback;
    const char *doc;
    const char *choices;
    bool has_range;
    int64_t min;
    int64_t max;
    uint32_t importance;
    const char *group;
    int32_t order;
    uint32_t width;
    const char *display_name;
};

#ifdef __cplusplus
}
#endif

#endif
