/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of clients. libmicrohttpd 0.9.75 asks for one when a listener has authorities,
 * and goes on whatever comes; here a session is told, before its handshake, to insist and to
 * judge. The only file that knows gnutls.h. Called by server.c when a connection has come, on
 * its HTTP thread. */
#include "worker/rest/client_cert.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* Not 0: the handshake ends. */
static int judge(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(void *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0, count = 0;

    if (gnutls_certificate_get_peers(session, &count) == NULL || count == 0)
        return 0; /* where one is required, the library has ended the handshake already */
    if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status != 0)
        return GNUTLS_E_CERTIFICATE_ERROR;
    return 0;
}

void client_cert_ask(void *session, bool required)
{
    gnutls_certificate_server_set_request(session,
                                          required ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_REQUEST);
    gnutls_session_set_verify_function(session, judge);
}
