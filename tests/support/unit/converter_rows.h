/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rows of the converters' tables. */
#ifndef SUPPORT_CONVERTER_ROWS_H
#define SUPPORT_CONVERTER_ROWS_H

#include "support/unit/oracle.h"

/* An oracle_fn for fromConnectData, toConnectData and the same of headers; arg: the plugin's name,
 * NULL the row's class. */
bool converter_row(const json_t *row, void *name);

#endif
