/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies that hold a connector's configuration. A reader of our own, because numbers must
 * keep the text that the client wrote (1.50, 1e3, integers of any length), which jansson does not
 * keep. Pure; any thread.
 * Spec: what Jackson accepts for Map<String, String> and CreateConnectorRequest. */
#ifndef WORKER_REQUEST_JSON_H
#define WORKER_REQUEST_JSON_H

#include "base/props.h"
#include "model/state.h"

/* {"name": …, "config": {…}, "initial_state": …}; all members may be absent or null. */
struct request_create {
    char *name; /* "" when absent or null; trimmed as Java's String.trim does */
    bool has_config;
    struct props config;
    bool has_initial;
    enum target_state initial; /* STARTED without one */
};

/* Both read one whole document: UTF-8, a byte order mark allowed, nothing but white space after it,
 * duplicate keys: the last wins. Values may be text, numbers, booleans (both become the text as
 * written) or null (stays null).
 *
 * Return 0, or MR_ERR_PROTOCOL ("Malformed JSON at line 1, column 7: …" or what else is wrong), or
 * MR_ERR_NOMEM; out needs no deinit then. *absent: the document is empty or null; out is empty. */
int request_json_create(const char *data, size_t len, struct request_create *out, bool *absent,
                        struct mr_error *err);
void request_json_create_deinit(struct request_create *create);
int request_json_config(const char *data, size_t len, struct props *out, bool *absent,
                        struct mr_error *err);

#endif
