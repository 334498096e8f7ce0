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

size_t trace_message_len(const struct mr_error *err)
{
    const char *cause = strstr(err->text, "\nCaused by: ");

    return cause != NULL ? (size_t)(cause - err->text) : strlen(err->text);
}

const char *trace_write(char *out, size_t size, const struct mr_error *err, const char *where)
{
    if (where == NULL)
        snprintf(out, size, "%s: %s", trace_class(err->code), err->text);
    else
        snprintf(out, size, "%s: %s\n\tin %s", trace_class(err->code), err->text, where);
    return out;
}
