/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP by libcurl: one call, one connection, one answer in memory. */
#include "support/http.h"

#include "support/scratch.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t collect(char *data, size_t size, size_t count, void *arg)
{
    return fwrite(data, size, count, arg);
}

static void drop_json(void *arg)
{
    json_decref(arg);
}

static const char *header_text(CURL *curl, const char *name)
{
    struct curl_header *header;

    if (curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return "";
    return scratch_text("%s", header->value);
}

static void set_request(CURL *curl, const char *method, const char *url, const char *body)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (body == NULL)
        return;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
}

struct http_reply http_call(const char *method, const char *url, const char *body)
{
    struct curl_slist *headers =
        body == NULL ? NULL : curl_slist_append(NULL, "Content-Type: application/json");
    struct http_reply reply = {0};
    CURL *curl = curl_easy_init();
    char *data = NULL;
    FILE *out = open_memstream(&data, &reply.len);
    long status = 0;

    assert_non_null(curl);
    assert_non_null(out);
    set_request(curl, method, url, body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    fclose(out);
    reply.status = (int)status;
    reply.body = scratch_keep(data);
    curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME, &reply.seconds);
    reply.content_type = header_text(curl, "Content-Type");
    reply.location = header_text(curl, "Location");
    reply.json = json_loadb(reply.body, reply.len, JSON_DECODE_ANY, NULL);
    if (reply.json != NULL)
        scratch_at_end(drop_json, (void *)reply.json);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    return reply;
}

struct http_reply http_get(const char *url)
{
    return http_call("GET", url, NULL);
}

const char *http_at(const json_t *json, const char *path)
{
    char name[256];
    char *text;

    while (json != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");

        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(name, NULL, 10))
                                   : json_object_get(json, name);
        path += path[len] == '.' ? len + 1 : len;
    }
    if (json == NULL)
        return "";
    if (json_is_string(json))
        return scratch_text("%s", json_string_value(json));
    text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT);
    return scratch_keep(text);
}
