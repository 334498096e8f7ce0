/* SPDX-License-Identifier: Apache-2.0 */
/* Whether everybody understands a request's head as libmicrohttpd does. Proxies in front of a
 * worker must not see another end of a request than it does: what follows would be a request that
 * the client has smuggled past them.
 *
 * libmicrohttpd takes names with white space as names of their own, appends a folded line to the
 * name before it, and ends values at a NUL. It tells of neither, but leaves names and values where
 * they came in: between them there is nothing but what separates them, or else the head holds more
 * than it tells. */
#include "worker/rest/server_private.h"

#include <string.h>
#include <strings.h>

struct look {
    const char *at; /* the end of what was seen */
    int hosts, lengths, codings;
    const char *coding;
    bool fits; /* nothing was left out so far */
    bool clean;
};

/* From one to the other there are line ends and blanks only, or the NULs that took their place. */
static bool is_gap(const char *from, const char *to)
{
    if (from > to)
        return false;
    while (from < to && memchr("\0\r\n\t ", *from, 5) != NULL)
        from++;
    return from == to;
}

static bool is_token(const char *text, size_t len)
{
    static const char token[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    return len > 0 && strspn(text, token) == len;
}

static bool has_controls(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F)
            return true;
    return false;
}

static enum MHD_Result look_at(void *arg, enum MHD_ValueKind kind, const char *name,
                               size_t name_len, const char *value, size_t value_len)
{
    struct look *look = arg;

    (void)kind;
    look->fits = look->fits && is_gap(look->at, name) && is_gap(name + name_len + 1, value);
    look->clean = look->clean && is_token(name, name_len) && !has_controls(value, value_len);
    look->at = value + value_len;
    look->hosts += strcasecmp(name, "Host") == 0;
    look->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        look->codings++;
        look->coding = value;
    }
    return MHD_YES;
}

static bool length_is_clear(const struct look *look)
{
    if (look->codings == 0)
        return look->lengths <= 1;
    return look->lengths == 0 && look->codings == 1 && strcasecmp(look->coding, "chunked") == 0;
}

const char *server_framing_fault(struct MHD_Connection *connection, const struct server_head *head)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct look look = {.at = head->version + strlen(head->version), .clean = true};

    look.fits = is_gap(head->target + head->target_len, head->version);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &look);
    if (info != NULL)
        look.fits = look.fits && is_gap(look.at, head->method + info->header_size);
    if (!look.fits || !look.clean)
        return "a header is folded, or has characters that it may not have";
    if (!length_is_clear(&look))
        return "Content-Length and Transfer-Encoding contradict each other";
    if (look.hosts > 1)
        return "there is more than one Host header";
    if (look.hosts == 0 && strcmp(head->version, "HTTP/1.1") == 0)
        return "HTTP/1.1 asks for a Host header";
    return NULL;
}
