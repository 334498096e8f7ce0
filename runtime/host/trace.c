/* SPDX-License-Identifier: Apache-2.0 */
/* Writes traces: what a status shows of a failure. Clients that match on anything in a trace match
 * on the class of Kafka Connect's exception or on the message behind it, so both stand on the first
 * line as there. Pure; any thread. */
#include "host/trace.h"

#include <string.h>

static const struct {
    int code;
    const char *name;
} classes[] = {
    {MR_ERR_RETRY, "org.apache.kafka.connect.errors.RetriableException"},
    {MR_ERR_DATA, "org.apache.kafka.connect.errors.DataException"},
    {MR_ERR_CONFIG, "org.apache.kafka.common.config.ConfigException"},
    {MR_ERR_NOT_FOUND, "org.apache.kafka.connect.errors.NotFoundException"},
    {MR_ERR_EXISTS, "org.apache.kafka.connect.errors.AlreadyExistsException"},
    {MR_ERR_STATE, "org.apache.kafka.connect.errors.IllegalWorkerStateException"},
    {MR_ERR_UNSUPPORTED, "java.lang.UnsupportedOperationException"},
    {MR_ERR_NOMEM, "java.lang.OutOfMemoryError"},
    {MR_ERR_TOO_LARGE, "org.apache.kafka.common.errors.RecordTooLargeException"},
};

const char *trace_class(int code)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (classes[i].code == code)
            return classes[i].name;
    return "org.apache.kafka.connect.errors.ConnectException";
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '$';
}

/* The class at the front of a text; 0: none. */
static size_t own_class(const char *text)
{
    size_t len = 0;

    if (strncmp(text, "java.", 5) != 0 && strncmp(text, "org.apache.kafka.", 17) != 0)
        return 0;
    while (is_name(text[len]))
        len++;
    return text[len] == ':' && text[len + 1] == ' ' ? len : 0;
}

/* Where the causes begin: what a plugin says of it may be wrong, or nothing. */
static const char *message_end(const struct mr_error *err, const char *message)
{
    const char *end = message + strlen(message), *told = err->text + err->message_len, *line;

    if (err->message_len != 0 && told >= message && told <= end)
        return told;
    line = strstr(message, "\nCaused by: ");
    return line != NULL ? line : end;
}

struct trace_parts trace_parts(const struct mr_error *err)
{
    size_t own = own_class(err->text);
    struct trace_parts parts = {.class_name = own > 0 ? err->text : trace_class(err->code),
                                .message = err->text + (own > 0 ? own + 2 : 0)};

    parts.class_len = own > 0 ? own : strlen(parts.class_name);
    parts.message_len = (size_t)(message_end(err, parts.message) - parts.message);
    return parts;
}

const char *trace_write(char *out, size_t size, const struct mr_error *err, const char *where)
{
    const struct trace_parts parts = trace_parts(err);

    snprintf(out, size, "%.*s: %s%s%s", (int)parts.class_len, parts.class_name, parts.message,
             where == NULL ? "" : "\n\tin ", where == NULL ? "" : where);
    return out;
}
