/* SPDX-License-Identifier: Apache-2.0 */
/* A connector's configuration in a file of the command line. Start-up only.
 * Spec: org.apache.kafka.connect.cli.ConnectStandalone.parseConnectorConfigurationFile. */
#ifndef WORKER_CONNECTOR_FILE_H
#define WORKER_CONNECTOR_FILE_H

#include "base/props.h"
#include "model/state.h"

struct connector_file {
    const char *path; /* borrowed */
    char *name;
    struct props config; /* with `name` */
    enum target_state initial;
};

/* MR_ERR_CONFIG: "FILE:LINE: …", or "FILE: line 3, column 7: …", or "FILE: member config.topics:
 * expected text, found an array"; MR_ERR_IO, MR_ERR_NOT_FOUND. What is left behind on failure:
 * nothing. */
int connector_file_read(const char *path, struct connector_file *out, struct mr_error *err);
int connector_file_parse(const char *data, size_t len, const char *path, struct connector_file *out,
                         struct mr_error *err);
void connector_file_deinit(struct connector_file *file);

#endif
