/* SPDX-License-Identifier: Apache-2.0 */
/* The orders that Java's collections give to names, where they can be seen on the wire. Pure. */
#ifndef BASE_JAVA_ORDER_H
#define BASE_JAVA_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* As String.compareTo: by UTF-16 units. Both NUL-terminated UTF-8. */
int java_order_compare(const char *a, const char *b);

/* String.hashCode of NUL-terminated UTF-8; bytes that are no UTF-8 count as U+FFFD each. */
int32_t java_order_hash(const char *text);

/* The order in which a HashSet made from a collection of these distinct names gives them back:
 * places[i] is the index of the i-th. 0 or MR_ERR_NOMEM. */
int java_order_of_set(const char *const *names, size_t count, size_t *places);

#endif
