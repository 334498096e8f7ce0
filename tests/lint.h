/* SPDX-License-Identifier: Apache-2.0 */
/* Seen by clang-tidy alone: tells its analyzer what it cannot see across files, that the functions
 * which record an error return one, so that "rc == 0" after them is not taken for possible. */
#ifndef TESTS_LINT_H
#define TESTS_LINT_H

#include "base/err.h"

#define mr_fail(err, code, ...) ((void)mr_fail(err, code, __VA_ARGS__), (int)(code))
#define err_errno(err, ...) ((void)err_errno(err, __VA_ARGS__), (int)MR_ERR_IO)

#endif
