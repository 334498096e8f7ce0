/* SPDX-License-Identifier: Apache-2.0 */
/* `millrace scan LIBRARY...`: a throwaway process that opens unknown libraries and prints what is
 * in them, in the format of link/scan_format.h. Run by worker/supervisor/catalog_scan.c, which takes
 * its end, however it ends, as the answer. One thread.
 *
 * Opening a library runs its constructors, which may print, crash or hang: the answers go to a
 * private copy of standard output, each line is complete before the next library is touched, and
 * the end is _exit. */
#include "host/host.h"

#include "base/json.h"
#include "host/plugin_load.h"
#include "host/task/stages/plugin_stage.h"
#include "link/printable.h"
#include "link/scan_format.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define EXIT_USAGE 1
#define EXIT_INTERNAL 70
#define PRIVATE_FD 64 /* and above: out of the way of what a library may close by number */

static int answers_fd = -1; /* set once; a fork handler has no argument */

/* A child that a library forks must not keep the worker waiting for more answers. */
static void in_forked_child(void)
{
    close(answers_fd);
}

static int private_stdout(void)
{
    answers_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, PRIVATE_FD);
    if (answers_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    pthread_atfork(NULL, NULL, in_forked_child);
    return answers_fd;
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR)
            _exit(EXIT_INTERNAL);
        data += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
}

/* One line; what is too long for the format is told as an error of that library. */
static void print_line(int fd, const char *library, json_t *object)
{
    struct buf line;

    json_object_set_new(object, "library", json_stringn_nocheck(library, strlen(library)));
    buf_init(&line, SCAN_FORMAT_LINE_MAX);
    if (json_write(&line, object) == 0) {
        buf_putc(&line, '\n');
        write_all(fd, line.data, line.len);
    } else if (json_object_get(object, "plugins") != NULL) {
        print_line(fd, library,
                   json_pack("{s:s}", "error", "its descriptors are larger than a scan may print"));
    }
    buf_deinit(&line);
    json_decref(object);
}

/* A null or zero member is left out. */
static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, int64_t number)
{
    if (number != 0)
        json_object_set_new(object, key, json_integer(number));
}

static json_t *json_of_key(const struct mr_config_key *key)
{
    json_t *object = json_pack("{s:s, s:i, s:i}", "name", key->name, "type", (int)key->type,
                               "flags", (int)key->flags);

    set_text(object, "fallback", key->fallback);
    set_text(object, "doc", key->doc);
    set_text(object, "choices", key->choices);
    if (key->has_range) {
        json_object_set_new(object, "has_range", json_true());
        set_number(object, "min", key->min);
        set_number(object, "max", key->max);
    }
    set_number(object, "importance", key->importance);
    set_text(object, "group", key->group);
    set_number(object, "order", key->order);
    set_number(object, "width", key->width);
    set_text(object, "display_name", key->display_name);
    return object;
}

static json_t *json_of_plugin(const struct plugin *plugin)
{
    json_t *object = json_pack("{s:s, s:s, s:i}", "name", plugin->name, "version", plugin->version,
                               "kind", (int)plugin->kind);
    json_t *aliases = json_array();
    json_t *keys = json_array();

    for (size_t i = 0; plugin->aliases[i] != NULL; i++)
        json_array_append_new(aliases, json_string(plugin->aliases[i]));
    for (size_t i = 0; i < plugin->key_count; i++)
        json_array_append_new(keys, json_of_key(&plugin->keys[i]));
    json_object_set_new(object, "aliases", aliases);
    set_text(object, "doc", plugin->doc);
    set_text(object, "exactly_once", plugin->exactly_once);
    json_object_set_new(object, "keys", keys);
    if (plugin->source.boundaries)
        json_object_set_new(object, "boundaries", json_true());
    if (plugin->sink.emits != NULL)
        json_object_set_new(object, "emits", json_true());
    set_text(object, "stores_offsets", plugin->sink.stores_offsets);
    if (plugin_stage_checks(plugin))
        json_object_set_new(object, "checks", json_true());
    return object;
}

/* The line names the library already. */
static const char *without_path(const char *text, const char *library)
{
    size_t len = strlen(library);

    return strncmp(text, library, len) == 0 && strncmp(text + len, ": ", 2) == 0 ? text + len + 2
                                                                                 : text;
}

static void scan(int fd, const char *library)
{
    struct mr_error err = {0};
    const struct plugin *plugins;
    size_t count = 0;
    json_t *list;

    print_line(fd, library, json_pack("{s:b}", "begin", 1));
    plugins = plugin_load(library, &count, &err);
    if (plugins == NULL) {
        printable_clean(err.text, strlen(err.text));
        print_line(fd, library, json_pack("{s:s}", "error", without_path(err.text, library)));
        return;
    }
    list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_of_plugin(&plugins[i]));
    print_line(fd, library, json_pack("{s:o}", "plugins", list));
}

int scan_main(int argc, char **argv)
{
    int fd;

    if (argc < 2) {
        fprintf(stderr, "usage: millrace scan LIBRARY...\n");
        return EXIT_USAGE;
    }
    fd = private_stdout();
    if (fd < 0) {
        fprintf(stderr, "millrace scan: cannot keep standard output: %s\n", strerror(errno));
        return EXIT_INTERNAL;
    }
    for (int i = 1; i < argc; i++)
        scan(fd, argv[i]);
    _exit(0);
}
