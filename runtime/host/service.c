/* SPDX-License-Identifier: Apache-2.0 */
/* `millrace service NAME`: the process of one plugin that is no connector's: a config provider or a
 * REST filter. Started by worker/supervisor/services.c, with the descriptors and frames of
 * base/service_link.h; one thread, one question after the other.
 *
 * The plugin is opened and started before the first question is answered; what is wrong with it is
 * that question's answer, and the next question tries anew. The worker keeps the deadlines. The
 * process ends with its worker: at the end of the connection, or, while the plugin hangs, by the
 * kernel, when the worker's thread that started it is gone; what the plugin has forked ends with
 * it. */
#include "host/host.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/service_link.h"
#include "host/group_guard.h"
#include "host/service_filter.h"
#include "host/service_lookup.h"
#include "link/printable.h"
#include "model/config_def.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOGGER "host.service"

#define EXIT_USAGE 1
#define EXIT_INTERNAL 70
#define PRIVATE_FD 64 /* and above: out of the way of what a library may close by number */

/* What a kind of service is asked, and how it starts and ends. */
struct kind {
    uint32_t kind;
    const char *prefix; /* of its parameters' keys among the worker's properties */
    bool named;         /* the service's name stands behind that */
    const char *suffix;
    json_t *(*run)(struct instance *inst, const json_t *question, struct mr_error *err);
    int (*start)(struct instance *inst, struct mr_error *err);
    void (*stop)(struct instance *inst);
};

static int provider_start(struct instance *inst, struct mr_error *err)
{
    const struct mr_config_provider *provider = &inst->plugin->provider;

    return provider->start != NULL ? provider->start(inst->self, &inst->pub, err) : 0;
}

static void provider_stop(struct instance *inst)
{
    if (inst->plugin->provider.stop != NULL)
        inst->plugin->provider.stop(inst->self);
}

static int filter_start(struct instance *inst, struct mr_error *err)
{
    const struct mr_rest_filter *filter = &inst->plugin->filter;

    return filter->start != NULL ? filter->start(inst->self, &inst->pub, err) : 0;
}

static void filter_stop(struct instance *inst)
{
    if (inst->plugin->filter.stop != NULL)
        inst->plugin->filter.stop(inst->self);
}

static const struct kind kinds[] = {
    {MR_PLUGIN_CONFIG_PROVIDER, "config.providers.", true, ".param.", service_lookup_run,
     provider_start, provider_stop},
    {MR_PLUGIN_REST_FILTER, "millrace.rest.filter.", false, "", service_filter_run, filter_start,
     filter_stop},
};

struct service {
    int fd;
    const char *name;
    const char *library;
    const char *class_name;
    const struct kind *kind;
    struct props params;
    struct instance inst;
    bool opened; /* inst is there */
};

/* --- birth ------------------------------------------------------------------------------------ */

/* With a worker, that is: what happens to that one from now on ends this process. */
static bool born_right(void)
{
    struct stat st;
    char c;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return fstat(SERVICE_LINK_FD, &st) == 0 && S_ISSOCK(st.st_mode) &&
           recv(SERVICE_LINK_FD, &c, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

static json_t *read_setup(void)
{
    struct buf text;
    json_t *setup = NULL;
    ssize_t n;

    buf_init(&text, SERVICE_LINK_SETUP_MAX);
    do {
        if (buf_reserve(&text, 4096) != 0)
            break;
        n = read(STDIN_FILENO, text.data + text.len, 4096);
        text.len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (text.data != NULL) {
        setup = json_parse(text.data, text.len, NULL);
        explicit_bzero(text.data, text.len);
    }
    buf_deinit(&text);
    return setup;
}

static const struct kind *kind_of(int64_t number)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].kind == number)
            return &kinds[i];
    return NULL;
}

/* The texts lead into setup. */
static bool take_setup(struct service *s, const json_t *setup)
{
    int64_t kind = 0;

    if (!json_get_text(setup, "name", &s->name) || !json_get_text(setup, "library", &s->library) ||
        !json_get_text(setup, "class", &s->class_name) ||
        !json_get_int(setup, "kind", 1, INT32_MAX, &kind) ||
        json_to_props(json_object_get(setup, "params"), &s->params, NULL) != 0)
        return false;
    s->kind = kind_of(kind);
    return s->kind != NULL;
}

/* A child that the plugin forks must not be taken for this process. */
static bool keep_fd(struct service *s)
{
    s->fd = fcntl(SERVICE_LINK_FD, F_DUPFD_CLOEXEC, PRIVATE_FD);
    return s->fd >= 0 && close(SERVICE_LINK_FD) == 0;
}

/* --- its parameters --------------------------------------------------------------------------- */

/* As the user has written it; malloc'ed. */
static char *whole_key(const struct service *s, const char *key)
{
    char *whole = NULL;

    mr_assert(asprintf(&whole, "%s%s%s%s", s->kind->prefix, s->kind->named ? s->name : "",
                       s->kind->suffix, key) > 0);
    return whole;
}

static void on_bad(void *arg, const char *key, const char *text)
{
    (void)key;
    mr_fail(arg, MR_ERR_CONFIG, "%s", text);
}

/* Before the plugin sees them, so that what is wrong is told by whole keys. */
static int check(const struct service *s, const struct plugin *plugin, struct mr_error *err)
{
    struct props whole;
    int wrong = 0;

    props_init(&whole);
    for (size_t i = 0; i < s->params.count; i++) {
        char *name = whole_key(s, s->params.entries[i].key);

        mr_assert(props_set(&whole, name, s->params.entries[i].value) == 0);
        free(name);
    }
    for (size_t i = 0; wrong == 0 && i < plugin->key_count; i++) {
        struct mr_config_key key = plugin->keys[i];
        char *name = whole_key(s, key.name);

        key.name = name;
        wrong = config_def_start(&key, &whole, NULL, on_bad, err);
        free(name);
    }
    props_deinit(&whole);
    return wrong == 0 ? 0 : MR_ERR_CONFIG;
}

/* Filters share one prefix: what is unknown to one may be another's. */
static void warn_of_unknown(const struct service *s, const struct plugin *plugin)
{
    const char **known = calloc(plugin->key_count + 1, sizeof(*known));

    mr_assert(known != NULL);
    for (size_t i = 0; i < plugin->key_count; i++)
        known[i] = plugin->keys[i].name;
    for (size_t i = 0; s->kind->named && i < s->params.count; i++) {
        const char *key = s->params.entries[i].key, *near = nearest_name(key, known);
        char *whole = whole_key(s, key), *meant = near != NULL ? whole_key(s, near) : NULL;

        if (near == NULL || strcmp(near, key) != 0)
            log_warn("unknown key %s%s%s%s", whole, near != NULL ? ": did you mean " : "",
                     near != NULL ? meant : "", near != NULL ? "?" : "");
        free(whole);
        free(meant);
    }
    free(known);
}

/* --- the plugin ------------------------------------------------------------------------------- */

static void stop(struct service *s)
{
    if (s->opened)
        s->kind->stop(&s->inst);
    instance_deinit(&s->inst);
    s->opened = false;
}

/* What the plugin did wrong in a call counts, whatever it returned. */
static bool misused(struct service *s, struct mr_error *err)
{
    if (s->inst.misuse.code == 0)
        return false;
    *err = s->inst.misuse;
    s->inst.misuse = (struct mr_error){0};
    return true;
}

static int call_start(struct service *s, struct mr_error *err)
{
    int rc = s->kind->start(&s->inst, err);

    if (misused(s, err))
        return err->code;
    return rc >= 0 ? 0
                   : mr_fail(err, rc, "it did not start: %s, without a text", err_code_name(rc));
}

/* So that inst is there, and started; else nothing of it is. */
static int start(struct service *s, struct mr_error *err)
{
    const struct plugin *plugin = plugin_load_find(s->library, s->kind->kind, s->class_name, err);
    int rc;

    if (plugin == NULL)
        return err->code;
    rc = check(s, plugin, err);
    if (rc == 0)
        rc = instance_init(&s->inst, plugin, &s->params, err);
    if (rc != 0)
        return rc;
    warn_of_unknown(s, plugin);
    s->inst.connector = s->name;
    s->opened = true;
    rc = call_start(s, err);
    if (rc != 0)
        stop(s);
    return rc;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Too large to be sent is an error of the plugin's. */
static void answer(const struct service *s, json_t *object)
{
    struct buf text;

    buf_init(&text, SERVICE_LINK_ANSWER_MAX);
    if (object == NULL || json_write(&text, object) != 0) {
        buf_deinit(&text);
        buf_init(&text, SERVICE_LINK_ANSWER_MAX);
        buf_puts(&text, "{\"error\":\"its values are more than one answer may hold\"}");
    }
    if (service_link_write(s->fd, text.data, text.len, -1, NULL) != 0)
        _exit(EXIT_INTERNAL);
    explicit_bzero(text.data, text.len);
    buf_deinit(&text);
    json_decref(object);
}

static void answer_error(const struct service *s, struct mr_error *err)
{
    printable_clean(err->text, strlen(err->text));
    answer(s, json_pack("{s:s}", "error", err->text));
}

static void serve(struct service *s, const struct buf *body)
{
    json_t *question = json_parse(body->data, body->len, NULL);
    struct mr_error err = {0};
    json_t *object = NULL;

    if (!json_is_object(question))
        mr_fail(&err, MR_ERR_PROTOCOL, "the question is no JSON object");
    else
        object = s->kind->run(&s->inst, question, &err);
    if (misused(s, &err)) {
        json_decref(object);
        object = NULL;
    }
    if (object != NULL)
        answer(s, object);
    else
        answer_error(s, &err);
    json_decref(question);
}

/* Until there are no more questions. */
static void run(struct service *s)
{
    for (;;) {
        struct mr_error err = {0};
        struct buf body;
        bool more;

        buf_init(&body, SERVICE_LINK_QUESTION_MAX);
        more = service_link_read(s->fd, body.max, -1, &body, NULL) == 0 && body.data != NULL;
        if (more && !s->opened && start(s, &err) != 0)
            answer_error(s, &err);
        else if (more)
            serve(s, &body);
        buf_deinit(&body);
        if (!more)
            break;
    }
    stop(s);
}

int service_main(int argc, char **argv)
{
    struct service s = {.fd = -1};
    json_t *setup;

    if (argc < 2 || !born_right()) {
        fprintf(stderr, "millrace service: this command is started by the worker, not by hand\n");
        return EXIT_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    log_relay_to(STDERR_FILENO);
    setup = read_setup();
    if (!take_setup(&s, setup) || !keep_fd(&s)) {
        log_error("the service %s was given no setup that it understands", argv[1]);
        _exit(EXIT_INTERNAL);
    }
    group_guard_start();
    run(&s);
    _exit(0);
}
