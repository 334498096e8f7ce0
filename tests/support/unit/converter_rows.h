/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rows of the converters' tables. */
#ifndef SUPPORT_CONVERTER_ROWS_H
#define SUPPORT_CONVERTER_ROWS_H

#include "support/unit/oracle.h"

/* An oracle_fn for fromConnectData and toConnectData; arg: the plugin's name. */
bool converter_row(const json_t *row, void *name);

#endif
