/* SPDX-License-Identifier: Apache-2.0 */
/* `millrace check`: a throwaway process that asks connectors, transforms and predicates of values
 * which only they can judge, such as regular expressions, and connectors of offsets that a user
 * wants changed, in the format of link/check_format.h. It is also the process in which clients of a
 * connector look into the offsets topic that it has for itself. Run by
 * worker/supervisor/plugin_check.c while a connector's configuration is validated or its offsets
 * are read or changed; it is killed when it takes too long. One thread.
 *
 * Plugin code may print, crash or hang: each line is complete before it runs, and the end is
 * _exit. */
#include "host/host.h"

#include "base/json.h"
#include "host/check_offsets.h"
#include "host/check_own.h"
#include "host/host_references.h"
#include "host/task/stages/plugin_stage.h"
#include "link/check_format.h"
#include "link/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 1
#define EXIT_INTERNAL 70
#define PRIVATE_FD 64 /* and above: out of the way of what a library may close by number */
#define PIECE_BYTES 65536

/* --- lines ------------------------------------------------------------------------------------ */

static void write_line(int fd, json_t *object)
{
    struct buf line;

    buf_init(&line, CHECK_FORMAT_ANSWERS_MAX);
    if (object == NULL || json_write(&line, object) != 0 || buf_putc(&line, '\n') != 0)
        _exit(EXIT_INTERNAL);
    for (size_t at = 0; at < line.len;) {
        ssize_t n = write(fd, line.data + at, line.len - at);

        if (n < 0 && errno != EINTR)
            _exit(EXIT_INTERNAL);
        at += n < 0 ? 0 : (size_t)n;
    }
    buf_deinit(&line);
    json_decref(object);
}

static void tell_begin(int fd, size_t stage, const char *key)
{
    write_line(fd, json_pack("{s:i, s:s}", "stage", (int)stage, "key", key));
}

static void tell_error(int fd, size_t stage, const char *key, struct mr_error *err)
{
    printable_clean(err->text, strlen(err->text));
    write_line(fd,
               json_pack("{s:i, s:s, s:s}", "stage", (int)stage, "key", key, "error", err->text));
}

static void tell_refusal(int fd, size_t stage, const char *key, struct mr_error *err)
{
    printable_clean(err->text, strlen(err->text));
    write_line(fd, json_pack("{s:i, s:s, s:s, s:i}", "stage", (int)stage, "key", key, "error",
                             err->text, "code", (int)err->code));
}

/* --- questions -------------------------------------------------------------------------------- */

/* One member of the array, as its caller wrote it. */
struct question {
    size_t stage;
    const char *library, *class_name;
    int64_t kind;
    const json_t *keys;
    const json_t *offsets; /* of a connector that is asked of them; NULL: of its keys */
    const json_t *worker;  /* NULL: config is resolved by nothing */
    bool all;
    struct props config;
};

static bool read_question(const json_t *from, size_t stage, struct question *q)
{
    q->stage = stage;
    q->keys = json_object_get(from, "keys");
    q->offsets = json_object_get(from, "offsets");
    q->worker = json_object_get(from, "worker");
    q->all = json_is_true(json_object_get(from, "all"));
    return json_get_text(from, "library", &q->library) &&
           json_get_text(from, "class", &q->class_name) &&
           json_get_int(from, "kind", MR_PLUGIN_SOURCE, MR_PLUGIN_PREDICATE, &q->kind) &&
           (q->offsets != NULL ? q->kind <= MR_PLUGIN_SINK && json_is_array(q->offsets)
                               : q->kind != MR_PLUGIN_CONVERTER) &&
           json_string_value(json_array_get(q->keys, 0)) != NULL &&
           json_to_props(json_object_get(from, "config"), &q->config, NULL) == 0;
}

static void ask_keys(int fd, const struct question *q, const struct instance *inst)
{
    size_t i;
    const json_t *item;

    json_array_foreach(q->keys, i, item)
    {
        const char *key = json_string_value(item);
        struct mr_error err = {0};

        if (key == NULL)
            _exit(EXIT_USAGE);
        tell_begin(fd, q->stage, key);
        if (plugin_stage_judge(inst, key, key, &err) != MR_OK)
            tell_error(fd, q->stage, key, &err);
    }
}

static void ask_offsets(int fd, const struct question *q, struct instance *inst)
{
    struct mr_error err = {0};

    if (check_offsets(inst, q->offsets, q->all, &err) != MR_OK)
        tell_refusal(fd, q->stage, json_string_value(json_array_get(q->keys, 0)), &err);
}

/* A connector may need its passwords. */
static int resolve(struct question *q, struct mr_error *err)
{
    struct props worker = {0}, resolved = {0};
    struct providers *providers = NULL;
    int rc = q->worker != NULL ? json_to_props(q->worker, &worker, err) : MR_OK;

    if (rc == MR_OK && q->worker != NULL) {
        providers = providers_new(&worker, false, NULL, err);
        rc = providers != NULL
                 ? host_references_resolve(
                       &(struct host_references){.providers = providers, .config = &q->config},
                       &resolved, err)
                 : MR_ERR_CONFIG;
    }
    if (rc == MR_OK && q->worker != NULL) {
        props_deinit(&q->config);
        q->config = resolved;
    }
    providers_free(&providers);
    props_deinit(&worker);
    return rc;
}

static void ask(int fd, const json_t *from, size_t stage)
{
    struct question q = {0};
    struct instance inst;
    struct mr_error err = {0};
    const struct plugin *plugin;

    if (!read_question(from, stage, &q))
        _exit(EXIT_USAGE);
    tell_begin(fd, stage, json_string_value(json_array_get(q.keys, 0)));
    plugin = plugin_load_find(q.library, (uint32_t)q.kind, q.class_name, &err);
    if (plugin == NULL || resolve(&q, &err) != MR_OK ||
        instance_init_loose(&inst, plugin, &q.config, &err) != MR_OK) {
        tell_error(fd, stage, json_string_value(json_array_get(q.keys, 0)), &err);
    } else {
        if (q.offsets != NULL)
            ask_offsets(fd, &q, &inst);
        else
            ask_keys(fd, &q, &inst);
        instance_deinit(&inst);
    }
    props_deinit(&q.config);
}

struct finding {
    int fd;
    size_t stage;
    const char *key;
};

static void tell_found(void *arg, json_t *entry)
{
    const struct finding *at = arg;

    write_line(at->fd, json_pack("{s:i, s:s, s:O}", "stage", (int)at->stage, "key", at->key,
                                 "found", entry));
}

static void ask_own(int fd, const json_t *from, size_t stage)
{
    struct finding at = {fd, stage,
                         json_string_value(json_array_get(json_object_get(from, "keys"), 0))};
    struct mr_error err = {0};

    if (at.key == NULL)
        _exit(EXIT_USAGE);
    tell_begin(fd, stage, at.key);
    if (check_own(from, tell_found, &at, &err) != MR_OK)
        tell_refusal(fd, stage, at.key, &err);
}

/* --- the process ------------------------------------------------------------------------------ */

static json_t *read_all(void)
{
    struct buf text;
    json_t *array;
    ssize_t n;

    buf_init(&text, CHECK_FORMAT_QUESTION_MAX + PIECE_BYTES); /* the last read finds the end */
    do {
        if (buf_reserve(&text, PIECE_BYTES) != 0)
            return NULL;
        n = read(STDIN_FILENO, text.data + text.len, PIECE_BYTES);
        text.len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    array = n == 0 ? json_parse(text.data, text.len, NULL) : NULL;
    buf_deinit(&text);
    return array;
}

int check_main(int argc, char **argv)
{
    json_t *array, *end;
    int fd;
    size_t i;
    const json_t *from;

    (void)argv;
    array = argc == 1 ? read_all() : NULL;
    fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, PRIVATE_FD);
    if (!json_is_array(array) || fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        fprintf(stderr, "usage: millrace check <QUESTIONS\n");
        json_decref(array);
        return EXIT_USAGE;
    }
    json_array_foreach(array, i, from)
    {
        if (json_object_get(from, "own") != NULL)
            ask_own(fd, from, i);
        else
            ask(fd, from, i);
    }
    end = json_pack("{s:b}", "end", 1);
    write_line(fd, end);
    _exit(0);
}
