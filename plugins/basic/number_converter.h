/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASIC_NUMBER_CONVERTER_H
#define BASIC_NUMBER_CONVERTER_H

#include <millrace/plugin.h>

extern const struct mr_converter boolean_converter_plugin;
extern const struct mr_converter short_converter_plugin;
extern const struct mr_converter integer_converter_plugin;
extern const struct mr_converter long_converter_plugin;
extern const struct mr_converter float_converter_plugin;
extern const struct mr_converter double_converter_plugin;

#endif
