/* SPDX-License-Identifier: Apache-2.0 */
/* Characters and percent-encoding as the REST room needs them: JSON strings come from clients with
 * escapes, names go out again in the Location header. Pure; any thread. */
#include "worker/rest/rest_text.h"

#include <string.h>

int rest_text_append(struct buf *out, uint32_t code)
{
    char utf8[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};

    for (size_t i = n - 1; i > 0; i--) {
        utf8[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    utf8[0] = (char)(lead[n] | code);
    return buf_append(out, utf8, n);
}

int rest_text_hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool stays_in_path(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~!$&'()*+,=:@/", c) != NULL);
}

int rest_text_encode_path(struct buf *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        bool escape = *c == '%' && rest_text_hex(c[1]) >= 0 && rest_text_hex(c[2]) >= 0;

        if (escape || stays_in_path(*c))
            buf_putc(out, *c);
        else
            buf_printf(out, "%%%02X", (unsigned char)*c);
    }
    return out->failed ? MR_ERR_FULL : 0;
}
