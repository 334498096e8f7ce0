/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FILE_SINK_H
#define FILE_SINK_H

#include <millrace/plugin.h>

extern const struct mr_sink file_sink_plugin;

#endif
