/* SPDX-License-Identifier: Apache-2.0 */
/* A REST filter that does as the header X-Warden says, and otherwise lets everything through that
 * only reads, and whatever bears the word `badge` in the header X-Badge, or in Authorization behind
 * "Badge ":
 *
 *   hang crash     what its process then does
 *   odd            a refusal with a status that is none
 *   fail silent    a failure, with and without a text
 *   positive       what is neither MR_OK nor a failure
 *   teapot         a refusal with 418, and what it sees: client, method, target */
#include <millrace/plugin.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct warden {
    const char *badge;
};

static const struct mr_config_key warden_keys[] = {
    {"badge", MR_CFG_PASSWORD, .fallback = "none", .doc = "The word that lets one write"},
    {"fail", MR_CFG_STRING, .fallback = "", .doc = "What start has to say"},
    {0},
};

static int warden_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct warden *w = self;

    w->badge = mr_config_secret(task, "badge");
    if (mr_config_str(task, "fail")[0] != '\0')
        return mr_fail(err, MR_ERR_CONFIG, "%s", mr_config_str(task, "fail"));
    return MR_OK;
}

static int do_hang(struct mr_request *req, struct mr_error *err)
{
    while (poll(NULL, 0, -1) <= 0)
        ;
    return MR_OK;
}

static int do_crash(struct mr_request *req, struct mr_error *err)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's is another death */
    return raise(SIGSEGV);
}

static int do_odd(struct mr_request *req, struct mr_error *err)
{
    mr_refuse(req, 200, "come in");
    return MR_OK;
}

static int do_fail(struct mr_request *req, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "the guards are away");
}

static int do_silent(struct mr_request *req, struct mr_error *err)
{
    return MR_ERR_IO;
}

static int do_positive(struct mr_request *req, struct mr_error *err)
{
    return 1;
}

static int do_teapot(struct mr_request *req, struct mr_error *err)
{
    char text[512];

    snprintf(text, sizeof(text), "%s %s %s", mr_request_client(req), mr_request_method(req),
             mr_request_target(req));
    mr_refuse(req, 418, text);
    return MR_OK;
}

static const struct {
    const char *word;
    int (*act)(struct mr_request *req, struct mr_error *err);
} ways[] = {
    {"hang", do_hang},     {"crash", do_crash},       {"odd", do_odd},       {"fail", do_fail},
    {"silent", do_silent}, {"positive", do_positive}, {"teapot", do_teapot},
};

static bool bears_badge(const struct warden *w, const struct mr_request *req)
{
    const char *badge = mr_request_header(req, "X-Badge");
    const char *user = mr_request_header(req, "Authorization");

    return (badge != NULL && strcmp(badge, w->badge) == 0) ||
           (user != NULL && strncmp(user, "Badge ", 6) == 0 && strcmp(user + 6, w->badge) == 0);
}

static int warden_admit(void *self, struct mr_request *req, struct mr_error *err)
{
    struct warden *w = self;
    const char *word = mr_request_header(req, "x-warden");

    for (size_t i = 0; word != NULL && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].word, word) == 0)
            return ways[i].act(req, err);
    if (strcmp(mr_request_method(req), "GET") != 0 && !bears_badge(w, req))
        mr_refuse(req, 403, "Without a badge nothing is changed");
    return MR_OK;
}

static const char *const warden_aliases[] = {"org.example.WardenRestExtension", NULL};

MR_REST_FILTER(Warden, "1.0", .keys = warden_keys, .state_size = sizeof(struct warden),
               .aliases = warden_aliases, .start = warden_start, .admit = warden_admit)
