/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASIC_STRING_CONVERTER_H
#define BASIC_STRING_CONVERTER_H

#include <millrace/plugin.h>

extern const struct mr_converter string_converter_plugin;

#endif
