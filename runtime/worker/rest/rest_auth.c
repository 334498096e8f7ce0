/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP's basic authentication under the name of Connect's extension. Users stand in a properties
 * file, user=password, which takes the place of Java's JAAS file and is read once, at start.
 * Other than there an empty file admits nobody. Called by the HTTP threads with a request's
 * headers; nothing here changes after start. */
#define LOGGER "worker.rest"
#include "worker/rest/rest_auth.h"

#include "base/base64.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLASSES_KEY "rest.extension.classes"
#define BASIC "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
#define CREDENTIALS_MAX 8192 /* bytes, decoded; a header block is no longer */

struct rest_auth {
    struct props users;
};

static bool is_basic(const char *name, size_t len)
{
    const char *simple = strrchr(BASIC, '.') + 1;

    return (len == strlen(BASIC) && memcmp(name, BASIC, len) == 0) ||
           (len == strlen(simple) && memcmp(name, simple, len) == 0);
}

/* 0: how many are asked for is in *count. */
static int check_classes(const char *list, size_t *count, struct mr_error *err)
{
    *count = 0;
    while (list != NULL && *(list += strspn(list, ", \t\r\n\f")) != '\0') {
        size_t len = strcspn(list, ", \t\r\n\f");

        if (!is_basic(list, len))
            return mr_fail(
                err, MR_ERR_CONFIG,
                "Invalid value %.*s for configuration " CLASSES_KEY
                ": REST extensions are Java code, and the one that is built in here is " BASIC
                ". Remove it, and put a proxy that does its work before a listener on "
                "localhost",
                (int)len, list);
        list += len;
        ++*count;
    }
    return 0;
}

static int load_users(const struct worker_config *config, struct rest_auth *auth,
                      struct mr_error *err)
{
    const char *path = props_get(&config->props, REST_AUTH_USERS);

    if (path == NULL || *path == '\0')
        return mr_fail(err, MR_ERR_CONFIG,
                       CLASSES_KEY
                       " asks for users and passwords: set " REST_AUTH_USERS
                       " to a file of lines user=password; it stands in for Java's JAAS "
                       "file");
    if (props_load(&auth->users, path, err) != 0) {
        err_prefix(err, REST_AUTH_USERS);
        return MR_ERR_CONFIG;
    }
    if (auth->users.count == 0)
        log_warn("%s holds no users: every request is refused", path);
    return 0;
}

int rest_auth_new(const struct worker_config *config, struct rest_auth **out, struct mr_error *err)
{
    struct rest_auth *auth;
    size_t count;
    int rc = check_classes(props_get(&config->props, CLASSES_KEY), &count, err);

    *out = NULL;
    if (rc != 0 || count == 0)
        return rc;
    auth = calloc(1, sizeof(*auth));
    mr_assert(auth != NULL);
    props_init(&auth->users);
    rc = load_users(config, auth, err);
    if (rc != 0)
        rest_auth_free(&auth);
    *out = auth;
    return rc;
}

void rest_auth_free(struct rest_auth **auth)
{
    if (*auth != NULL)
        props_deinit(&(*auth)->users);
    free(*auth);
    *auth = NULL;
}

/* Takes as long wherever the first difference is. */
static bool same_secret(const char *given, const char *wanted)
{
    size_t given_len = strlen(given), wanted_len = strlen(wanted);
    volatile unsigned char differs = given_len != wanted_len;

    for (size_t i = 0; i < given_len; i++)
        differs =
            (unsigned char)(differs | (given[i] ^ wanted[wanted_len > 0 ? i % wanted_len : 0]));
    return differs == 0;
}

bool rest_auth_admits(const struct rest_auth *auth, const char *authorization)
{
    unsigned char text[CREDENTIALS_MAX + 1];
    const char *wanted;
    char *colon;
    size_t len;

    if (authorization == NULL || strncasecmp(authorization, "Basic ", 6) != 0 ||
        !base64_decode(authorization + 6, strlen(authorization + 6), text, CREDENTIALS_MAX, &len) ||
        memchr(text, '\0', len) != NULL)
        return false;
    text[len] = '\0';
    colon = strchr((char *)text, ':');
    if (colon == NULL || colon == (char *)text)
        return false;
    *colon = '\0';
    wanted = props_get(&auth->users, (char *)text);
    return same_secret(colon + 1, wanted != NULL ? wanted : "") && wanted != NULL;
}
