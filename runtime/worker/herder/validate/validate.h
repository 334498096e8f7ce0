/* SPDX-License-Identifier: Apache-2.0 */
/* Is this configuration one that a connector may have? The checks of Connect in Connect's order,
 * every problem found in one go. Pure; no plugin code runs, no file is read: what plugins must be
 * asked is a list of questions, answered by judge.c.
 * Spec: org.apache.kafka.connect.runtime.AbstractHerder.validateConnectorConfig; reference
 * connector-config 1 to 7. */
#ifndef WORKER_VALIDATE_H
#define WORKER_VALIDATE_H

#include "base/json.h"
#include "worker/supervisor/catalog.h"
#include "worker/worker_config.h"

/* One key and what is wrong with it, in the order in which Connect lists keys. */
struct validate_stage_key;
struct validate_key {
    char *name;                         /* with prefix where it has one */
    struct validate_stage_key *stage;   /* of a transform or predicate; NULL: others */
    const struct mr_config_key *client; /* of an override that the client knows; NULL: others */
    bool override;                      /* a client's setting; the name may stand twice */
    bool per_key; /* client overrides and converters: the key counts once, however much is wrong */
    char **errors;
    size_t error_count;
};

struct validate_result {
    const struct catalog_plugin *plugin;
    struct validate_key *keys;
    size_t key_count;
    struct map *index; /* private: name → place among the keys */
    size_t front_count;
    /* The class is not here in the version asked for: only what all connectors have was checked. */
    bool bare;
};

/* raw: config with its references to config providers, as it was posted; NULL: it has none.
 * why: references of it stay as they are (struct provider_job); NULL: likewise. */
struct validate_input {
    const struct props *config;
    const struct catalog *catalog;
    const struct worker_config *worker;
    const struct props *raw;
    const struct map *why;
};

/* 0 and the keys with their problems (perhaps none); or MR_ERR_CONFIG when Connect looks at no
 * single keys: no connector.class, or one that is not installed, a version that is none, an
 * override of another type than the client's setting, a topics.regex that is none beside a topic
 * for dead letters. In both cases the caller deinitialises out. */
int validate_connector(const struct validate_input *input, struct validate_result *out,
                       struct mr_error *err);
void validate_deinit(struct validate_result *result);

/* Does the link to a connector's process carry the configuration, with room to spare?
 * MR_ERR_CONFIG: no start of it could ever work. */
int validate_size(const struct props *config, struct mr_error *err);

/* Settings of a valid configuration that have no effect, since nothing here acts on them or nobody
 * knows them (told with the nearest name that is known): each is handed to fn, to be logged as "KEY
 * has no effect: TEXT". result: of this input. */
typedef void (*validate_remark)(void *arg, const char *key, const char *text);
void validate_remarks(const struct validate_input *input, const struct validate_result *result,
                      validate_remark fn, void *arg);

/* References of a configuration that nothing was found for, so that the value is taken as it
 * stands, as in Java: which and why, to be logged as "KEY TEXT" (providers_left). */
void validate_references_left(const struct validate_input *input, validate_remark fn, void *arg);

/* --- validate_questions.c: what only plugin code can judge ------------------------------------ */

/* The values of the connector, of transforms and predicates that nothing is wrong with so far and
 * that their class has an opinion of, as a question for plugin_check.h; NULL: there are none. New
 * reference. */
json_t *validate_questions(const struct validate_input *input,
                           const struct validate_result *result);
/* The problems that came of it become the keys' own. */
void validate_answered(struct validate_result *result, const json_t *questions,
                       const json_t *problems);

/* Put references in place of values in what is told of the keys. In validate_references.c. */
void validate_hide(struct validate_result *result, const struct secrets *secrets);

size_t validate_error_count(const struct validate_result *result); /* as Connect counts */
/* The text of a refusal: "Connector configuration is invalid and contains the following N
 * error(s):" and so on. */
int validate_message(const struct validate_result *result, struct buf *out);

/* --- validate_reply.c: what REST shows, new references ---------------------------------------- */

/* {"name","error_count","groups","configs"} of a result that validate_connector gave for this
 * input. */
json_t *validate_reply(const struct validate_input *input, const struct validate_result *result);
/* Definitions of the keys of a plugin of any kind; for connectors the framework's follow. */
json_t *validate_definitions(const struct catalog *catalog, const struct catalog_plugin *plugin);

/* The worker's own converters exist, in the version asked for. MR_ERR_CONFIG: "FILE:LINE: Invalid
 * value … Class … could not be found." */
int validate_worker(const struct worker_config *worker, const struct catalog *catalog,
                    struct mr_error *err);

#endif
