/* SPDX-License-Identifier: Apache-2.0 */
/* ssl.client.auth of a listener: libmicrohttpd asks clients for a certificate at most, and
 * judges none. */
#ifndef WORKER_CLIENT_CERT_H
#define WORKER_CLIENT_CERT_H

#include <stdbool.h>

/* Of a TLS session (a gnutls_session_t) whose handshake has not begun: a certificate that a client
 * shows must be signed by the listener's authorities and be for clients, else its handshake fails;
 * so does that of a client without one where required.
 * Thread: the connection's. */
void client_cert_ask(void *session, bool required);

#endif
