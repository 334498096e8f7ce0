/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASIC_SIMPLE_HEADER_CONVERTER_H
#define BASIC_SIMPLE_HEADER_CONVERTER_H

#include <millrace/plugin.h>

extern const struct mr_converter simple_header_converter_plugin;

#endif
