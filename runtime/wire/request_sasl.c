/* SPDX-License-Identifier: Apache-2.0 */
/* The two requests of a login, SaslHandshake and SaslAuthenticate, to bytes and back. What stands
 * in the tokens is sasl.c's. Called through the table of request.c. Pure. */
#include "request_private.h"

void request_sasl_encode_handshake(const struct request *request, int16_t version, struct buf *out)
{
    (void)version;
    codec_put_text(out, request->sasl_handshake.mechanism);
}

void request_sasl_decode_handshake(struct codec_reader *r, int16_t version, struct answer *out)
{
    size_t count;
    const char **names;

    (void)version;
    out->error = codec_get_i16(r);
    names = codec_get_array(r, 2, sizeof(*names), &count);
    for (size_t i = 0; i < count; i++)
        names[i] = codec_get_text(r);
    out->sasl_handshake =
        (struct answer_sasl_handshake){.mechanisms = names, .mechanism_count = count};
}

void request_sasl_encode_authenticate(const struct request *request, int16_t version,
                                      struct buf *out)
{
    (void)version;
    codec_put_bytes(out, request->sasl_authenticate.token);
}

void request_sasl_decode_authenticate(struct codec_reader *r, int16_t version, struct answer *out)
{
    struct answer_sasl_authenticate *a = &out->sasl_authenticate;

    out->error = codec_get_i16(r);
    a->message = codec_get_null_text(r);
    a->token = codec_get_bytes(r);
    a->session_lifetime_ms = version >= 1 ? codec_get_i64(r) : 0;
}
