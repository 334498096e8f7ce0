/* SPDX-License-Identifier: Apache-2.0 */
/* The names of our loggers beside those that users of Kafka Connect know: setting the level of the
 * one sets the other. */
#ifndef MODEL_LOGGER_NAMES_H
#define MODEL_LOGGER_NAMES_H

/* Declare all of them (base/log_levels.h), so that REST lists them from the start. Once, by a
 * worker; its hosts are told of them. */
void logger_names_declare(void);

/* Of a plugin: its lines' logger, "plugin.NAME". */
void logger_names_plugin(const char *name, const char *java_class);

#endif
