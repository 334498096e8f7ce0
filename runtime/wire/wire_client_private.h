/* SPDX-License-Identifier: Apache-2.0 */
/* What coordinator.c may ask of a client besides wire_client.h. */
#ifndef WIRE_WIRE_CLIENT_PRIVATE_H
#define WIRE_WIRE_CLIENT_PRIVATE_H

#include "wire/wire_book.h"
#include "wire/wire_client.h"

struct loop *wire_client_loop(const struct wire_client *client);
const struct wire_conf *wire_client_conf(const struct wire_client *client);
/* Why no broker can be asked; NULL: one can, or nothing has gone wrong yet. */
const struct mr_error *wire_client_trouble(const struct wire_client *client);
struct wire_book *wire_client_book(struct wire_client *client);

#endif
