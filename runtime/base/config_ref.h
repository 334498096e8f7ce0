/* SPDX-License-Identifier: Apache-2.0 */
/* References to values that a config provider has: `${provider:[path:]key}` in the text of a
 * configuration. Pure. Spec: org.apache.kafka.common.config.ConfigTransformer, its pattern
 * \$\{([^}]*?):(([^}]*?):)?([^}]*?)\}. */
#ifndef BASE_CONFIG_REF_H
#define BASE_CONFIG_REF_H

#include <stdbool.h>
#include <stddef.h>

struct config_ref_part {
    const char *at;
    size_t len;
};

/* All lead into the text. path and key are without blanks around them; path is empty where there is
 * none. */
struct config_ref {
    struct config_ref_part whole; /* from $ to } */
    struct config_ref_part provider;
    struct config_ref_part path;
    struct config_ref_part key;
};

/* The first reference in a NUL-terminated text; false: none. The next one: from whole.at +
 * whole.len on. */
bool config_ref_next(const char *text, struct config_ref *out);

/* Does the text hold any? NULL: no. */
bool config_ref_any(const char *text);

#endif
