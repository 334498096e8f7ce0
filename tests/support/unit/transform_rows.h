/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rows of the transforms' and predicates' tables. */
#ifndef SUPPORT_TRANSFORM_ROWS_H
#define SUPPORT_TRANSFORM_ROWS_H

#include "support/unit/oracle.h"

/* An oracle_fn for apply and test; the row names the class. Each row runs twice on one instance, so
 * that what it keeps from one record to the next is used too, and the input must be what it was. */
bool transform_row(const json_t *row, void *unused);

#endif
