/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `admit` of a REST filter: from the question's JSON to a handle for the plugin, and from what
 * the plugin says to the answer's JSON. Called by service.c, on its only thread. Nothing but a call
 * that returned MR_OK without a refusal and without a mistake says "admit". */
#include "host/service_filter.h"

#include "link/printable.h"

#include <millrace/filter.h>

#include <string.h>
#include <strings.h>

#define REQUEST_MAGIC 0x66696c74u
#define TEXT_MAX 1000
#define STATUS_MIN 400
#define STATUS_MAX 599

struct request {
    struct mr_request pub; /* first */
    uint32_t magic;
    struct instance *inst;
    const char *texts[3]; /* method, target, client */
    const json_t *headers;
    int status; /* 0: not refused */
    char text[TEXT_MAX + 1];
};

static struct request *request_of(const struct mr_request *req)
{
    struct request *request = (struct request *)(uintptr_t)req;

    mr_assert(request->magic == REQUEST_MAGIC);
    return request;
}

const char *service_filter_text(const struct mr_request *req, int which)
{
    return which >= 0 && which <= 2 ? request_of(req)->texts[which] : NULL;
}

const char *service_filter_header(const struct mr_request *req, const char *name)
{
    size_t i;
    const json_t *header;

    json_array_foreach(request_of(req)->headers, i, header)
    {
        const char *its = json_string_value(json_array_get(header, 0));

        if (its != NULL && name != NULL && strcasecmp(its, name) == 0)
            return json_string_value(json_array_get(header, 1));
    }
    return NULL;
}

void service_filter_refuse(struct mr_request *req, int status, const char *text)
{
    struct request *request = request_of(req);
    size_t len = text != NULL ? strnlen(text, TEXT_MAX + 4) : 0;

    if (status < STATUS_MIN || status > STATUS_MAX) {
        instance_misused(request->inst, "it refused with status %d, which is no error", status);
        return;
    }
    request->status = status;
    len = len > 0 ? printable_cut(text, len, TEXT_MAX) : 0;
    if (len > 0)
        memcpy(request->text, text, len);
    request->text[len] = '\0';
    printable_clean(request->text, len);
}

static json_t *call(struct request *request, struct mr_error *err)
{
    const struct mr_rest_filter *filter = &request->inst->plugin->filter;
    int rc = filter->admit(request->inst->self, &request->pub, err);

    if (request->status != 0)
        return json_pack("{s:i, s:s}", "status", request->status, "text", request->text);
    if (rc == MR_OK)
        return json_pack("{s:b}", "admit", 1);
    mr_fail(err, rc < 0 ? rc : MR_ERR_PROTOCOL, "it failed with %d and no text", rc);
    return NULL;
}

json_t *service_filter_run(struct instance *inst, const json_t *question, struct mr_error *err)
{
    struct request request = {.pub = {&host_api_table},
                              .magic = REQUEST_MAGIC,
                              .inst = inst,
                              .headers = json_object_get(question, "headers")};
    json_t *answer;

    if (json_object_get(question, "method") == NULL) /* it has started: that is all */
        return json_pack("{s:b}", "started", 1);
    if (!json_get_text(question, "method", &request.texts[0]) ||
        !json_get_text(question, "target", &request.texts[1]) ||
        !json_get_text(question, "client", &request.texts[2]) || !json_is_array(request.headers)) {
        mr_fail(err, MR_ERR_PROTOCOL, "the question describes no request");
        return NULL;
    }
    answer = call(&request, err);
    request.magic = 0;
    return answer;
}
