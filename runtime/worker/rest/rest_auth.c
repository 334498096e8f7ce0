/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP's basic authentication under the name of Connect's extension. Users stand in a properties
 * file, user=password, which takes the place of Java's JAAS file and is read once, at start.
 * Other than there an empty file admits nobody. Called by the HTTP threads with a request's
 * headers; nothing here changes after start. */
#define LOGGER "worker.rest"
#include "worker/rest/rest_auth.h"

#include "base/base64.h"
#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLASSES_KEY "rest.extension.classes"
#define SEPARATORS ", \t\r\n\f"
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

/* The next class of a list, and the rest of it; NULL: there is none. */
static const char *next_class(const char **list, size_t *len)
{
    const char *at = *list != NULL ? *list + strspn(*list, SEPARATORS) : "";

    *len = strcspn(at, SEPARATORS);
    *list = at + *len;
    return *len > 0 ? at : NULL;
}

void rest_auth_filters(const struct props *props, void (*fn)(void *arg, const char *class_name),
                       void *arg)
{
    const char *list = props_get(props, CLASSES_KEY), *at;
    size_t len;

    while ((at = next_class(&list, &len)) != NULL)
        if (!is_basic(at, len)) {
            char *name = text_dup_len(at, len);

            fn(arg, name);
            free(name);
        }
}

/* 0: whether users are asked for is in *basic. Which filters there are has been seen to, where
 * there are services. */
static int check_classes(const struct props *props, bool *basic, struct mr_error *err)
{
    const char *list = props_get(props, CLASSES_KEY), *at;
    size_t len;

    *basic = false;
    while ((at = next_class(&list, &len)) != NULL) {
        if (is_basic(at, len))
            *basic = true;
        else if (props_get(props, PROVIDER_SOCKET_KEY) == NULL)
            return mr_fail(err, MR_ERR_CONFIG,
                           "Invalid value %.*s for configuration " CLASSES_KEY
                           ": no plugin in plugin.path is a REST filter of this name, and built in "
                           "is " BASIC,
                           (int)len, at);
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
    bool basic;
    int rc = check_classes(&config->props, &basic, err);

    *out = NULL;
    if (rc != 0 || !basic)
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
