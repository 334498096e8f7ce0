/* SPDX-License-Identifier: Apache-2.0 */
/* PEM text: what it holds, and the same text with proper lines.
 *
 * Java takes "-----BEGIN CERTIFICATE----- MIIB… -----END CERTIFICATE-----" on one line, as it comes
 * out of a properties file; OpenSSL wants lines. Text between blocks is skipped, as in both. Called
 * by the readers of ssl.* settings with text that a user gave. Pure. */
#include "base/pem.h"

#include <ctype.h>
#include <string.h>

#define LABEL_MAX 40
#define LINE 64

static const char begin_mark[] = "-----BEGIN ";
static const char end_mark[] = "-----END ";

static const char *find(const char *from, const char *end, const char *what)
{
    return memmem(from, (size_t)(end - from), what, strlen(what));
}

/* "-----BEGIN <label>-----": gives what follows it, or NULL. */
static const char *read_label(const char *p, const char *end, char *label)
{
    const char *close = find(p, end, "-----");
    size_t len;

    if (close == NULL || (len = (size_t)(close - p)) == 0 || len >= LABEL_MAX)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (!isupper((unsigned char)p[i]) && p[i] != ' ' && !isdigit((unsigned char)p[i]))
            return NULL;
    memcpy(label, p, len);
    label[len] = '\0';
    return close + 5;
}

static void count_block(struct pem_found *found, const char *label)
{
    size_t len = strlen(label);

    if (strcmp(label, "CERTIFICATE") == 0 || strcmp(label, "TRUSTED CERTIFICATE") == 0) {
        found->certificates++;
    } else if (len >= 11 && strcmp(label + len - 11, "PRIVATE KEY") == 0) {
        found->keys++;
        found->encrypted = found->encrypted || strncmp(label, "ENCRYPTED", 9) == 0;
    }
}

/* Base64 in lines of 64. Old keys with "Proc-Type:" headers are no base64: refused, as in Java. */
static bool write_body(const char *p, const char *end, struct buf *out)
{
    size_t column = 0;

    for (; p < end; p++) {
        if (isspace((unsigned char)*p))
            continue;
        if (!isalnum((unsigned char)*p) && *p != '+' && *p != '/' && *p != '=')
            return false;
        if (out == NULL)
            continue;
        buf_putc(out, *p);
        if (++column % LINE == 0)
            buf_putc(out, '\n');
    }
    if (out != NULL && column % LINE != 0)
        buf_putc(out, '\n');
    return true;
}

bool pem_normalize(const char *text, size_t len, struct buf *out, struct pem_found *found)
{
    const char *end = text + len;
    const char *p = text;

    memset(found, 0, sizeof(*found));
    while ((p = find(p, end, begin_mark)) != NULL) {
        char label[LABEL_MAX];
        char closing[LABEL_MAX + 16];
        const char *body = read_label(p + strlen(begin_mark), end, label);
        const char *close;

        if (body == NULL)
            return false;
        snprintf(closing, sizeof(closing), "%s%s-----", end_mark, label);
        close = find(body, end, closing);
        if (close == NULL)
            return false;
        if (out != NULL)
            buf_printf(out, "%s%s-----\n", begin_mark, label);
        if (!write_body(body, close, out))
            return false;
        count_block(found, label);
        if (out != NULL)
            buf_printf(out, "%s\n", closing);
        p = close + strlen(closing);
    }
    return found->certificates + found->keys > 0 && (out == NULL || !out->failed);
}
