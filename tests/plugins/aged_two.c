/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of aged_one.c in their next release. */
#define AGED "2.0"
#include "aged_one.c"
