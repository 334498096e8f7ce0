/* SPDX-License-Identifier: Apache-2.0 */
/* Keys with types, defaults and checks, and the texts of what is wrong. Pure.
 * Spec: org.apache.kafka.common.config.ConfigDef (parseType, validators);
 * tests/data/configdef.jsonl. */
#ifndef MODEL_CONFIG_DEF_H
#define MODEL_CONFIG_DEF_H

#include "base/err.h"
#include "base/props.h"

#include <millrace/config.h>

/* A parsed value. text: STRING, CLASS, PASSWORD (trimmed), NULL = null. items: LIST. i: integers
 * and BOOLEAN. */
struct config_value {
    bool present; /* false: null */
    int64_t i;
    double d;
    char *text;
    char **items;
    size_t item_count;
};

void config_value_deinit(struct config_value *v);

/* Parse raw text (NULL = null) by the key's type. MR_ERR_CONFIG with ConfigDef's text: "Invalid
 * value abc for configuration tasks.max: Not a number of type INT". out is written on success
 * only. */
int config_def_parse(const struct mr_config_key *key, const char *raw, struct config_value *out,
                     struct mr_error *err);

/* Parse and check one key of props: required, type, range, choices, non-empty. Each problem is
 * handed to `bad` as a whole sentence (a number that is none and has a range gives two, as in
 * Java). Gives the number of problems; out holds the value (or its default) when there is none, and
 * may be NULL. */
typedef void (*config_def_bad)(void *arg, const char *key, const char *text);
int config_def_check(const struct mr_config_key *key, const struct props *props,
                     struct config_value *out, config_def_bad bad, void *arg);
/* As what starts reads it: of a list whose items must differ the first of equal ones stay. Only who
 * validates hears of the others. */
int config_def_start(const struct mr_config_key *key, const struct props *props,
                     struct config_value *out, config_def_bad bad, void *arg);
/* config_def_check of a key that stands in props under a longer name, full, as the keys of transforms do.
 * What can't be read or is missing is told by that name, what a validator refuses by the key's own:
 * so does Connect. */
int config_def_check_as(const struct mr_config_key *key, const char *full,
                        const struct props *props, struct config_value *out, config_def_bad bad,
                        void *arg);

bool config_def_has_duplicate(const struct config_value *list);

const char *config_def_type_name(uint32_t type); /* "STRING", … */

/* One key as a ConfigKeyInfo / ConfigValueInfo of REST stands in worker/herder/validate. */

#endif
