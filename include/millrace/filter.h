/* SPDX-License-Identifier: Apache-2.0 */
/* What a REST filter is shown of a request, and how it refuses one: the handle of one call of its
 * `admit`. The host makes it, and it ends with the call.
 * Spec: org.apache.kafka.connect.rest.ConnectRestExtension (KIP-285), of which this is the part
 * that says who may do what; jakarta.ws.rs.container.ContainerRequestFilter. */
#ifndef MILLRACE_FILTER_H
#define MILLRACE_FILTER_H

#include <millrace/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mr_request {
    const struct mr_host *host;
};

/* "GET", "PUT", …. All texts here are NUL-terminated UTF-8 (what a client sent otherwise has '?' in
 * place of the bytes that are none), and live as long as the call. Thread: the call's, for all. */
static inline const char *mr_request_method(const struct mr_request *req)
{
    return req->host->request_text(req, 0);
}

/* Path and query as they were sent, not decoded: "/connectors/a%20b/status?x=y". */
static inline const char *mr_request_target(const struct mr_request *req)
{
    return req->host->request_text(req, 1);
}

/* The address that the request came from, such as "10.0.0.7" or "::1": of the client, or of a proxy
 * or another worker that sent it on. */
static inline const char *mr_request_client(const struct mr_request *req)
{
    return req->host->request_text(req, 2);
}

/* The value of the first header of this name, in any case; NULL: there is none. A worker that sends
 * a request on to another of the cluster, whose filter is asked about it too, sends Authorization
 * alone of what the client sent, as the Java worker does. */
static inline const char *mr_request_header(const struct mr_request *req, const char *name)
{
    return req->host->request_header(req, name);
}

/* The request is not let through: the client gets this status (400 to 599) and Connect's error body
 * with text, which is copied and cut at 1000 bytes. The last call counts. Another status is the
 * plugin's mistake, and refuses with 503. */
static inline void mr_refuse(struct mr_request *req, int status, const char *text)
{
    req->host->request_refuse(req, status, text);
}

#ifdef __cplusplus
}
#endif

#endif
