/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/text.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

char *text_dup(const char *text)
{
    return text != NULL ? text_dup_len(text, strlen(text)) : NULL;
}

char *text_dup_len(const char *text, size_t len)
{
    char *copy = strndup(text, len);

    mr_assert(copy != NULL);
    return copy;
}

void text_replace(char **text, const char *with)
{
    char *copy = text_dup(with);

    free(*text);
    *text = copy;
}
