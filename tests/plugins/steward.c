/* SPDX-License-Identifier: Apache-2.0 */
/* A config provider that does as the path says, and otherwise gives what stands in the file
 * `values`, lines of "key value", as it is at each call (a line "crash" ends its process):
 *
 *   hang crash exit     what its process then does
 *   fork                likewise: it hangs, and so does a child
 *   thread              likewise: it ends the thread that it was called on
 *   print               likewise: it writes many lines to stdout and stderr, and to descriptors
 *   nul utf8 huge late  a value that is none, or for a key that nobody asked for
 *   refuse silent       a failure, with and without a text
 *   stop                it closes its descriptors, and waits
 *
 * With the setting `fail` its start says that, and with `ttl.ms` values are to be read again. */
#include <millrace/plugin.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct steward {
    struct mr_task *task;
};

static const struct mr_config_key steward_keys[] = {
    {"values", MR_CFG_STRING, .fallback = "", .doc = "File of lines: key, blank, value"},
    {"password", MR_CFG_PASSWORD, .fallback = "", .doc = "Given as the value of the key password"},
    {"ttl.ms", MR_CFG_LONG, .fallback = "0", .doc = "Time to live, 0: for ever"},
    {"fail", MR_CFG_STRING, .fallback = "", .doc = "What start has to say"},
    {0},
};

static int steward_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct steward *s = self;

    s->task = task;
    if (mr_config_str(task, "fail")[0] != '\0')
        return mr_fail(err, MR_ERR_CONFIG, "%s", mr_config_str(task, "fail"));
    mr_log(task, MR_LOG_INFO, "the steward is ready");
    return MR_OK;
}

/* --- misbehaviour ----------------------------------------------------------------------------- */

static int do_hang(struct mr_lookup *at, struct mr_error *err)
{
    while (poll(NULL, 0, -1) <= 0)
        ;
    return MR_OK;
}

static int do_crash(struct mr_lookup *at, struct mr_error *err)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's is another death */
    return raise(SIGSEGV);
}

static int do_exit(struct mr_lookup *at, struct mr_error *err)
{
    _exit(3);
}

/* The child is one that asks for nothing: no signal, no file. */
static int do_fork(struct mr_lookup *at, struct mr_error *err)
{
    if (fork() < 0)
        return mr_fail(err, MR_ERR_IO, "fork: %s", strerror(errno));
    return do_hang(at, err);
}

static int do_thread(struct mr_lookup *at, struct mr_error *err)
{
    pthread_exit(NULL);
}

static int do_print(struct mr_lookup *at, struct mr_error *err)
{
    for (int i = 0; i < 100000; i++) {
        fprintf(stdout, "a line %d for all to see\n", i);
        fprintf(stderr, "and another one\n");
    }
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, "\1\0\0\0x", 5) != 5)
            continue;
    mr_lookup_set(at, 0, "printed", 7);
    return MR_OK;
}

static int do_nul(struct mr_lookup *at, struct mr_error *err)
{
    mr_lookup_set(at, 0, "half\0half", 9);
    return MR_OK;
}

static int do_utf8(struct mr_lookup *at, struct mr_error *err)
{
    mr_lookup_set(at, 0, "\xff\xfe", 2);
    return MR_OK;
}

/* Nothing that long is there: it is not to be read. */
static int do_huge(struct mr_lookup *at, struct mr_error *err)
{
    mr_lookup_set(at, 0, "x", (size_t)1 << 30);
    return MR_OK;
}

static int do_late(struct mr_lookup *at, struct mr_error *err)
{
    mr_lookup_set(at, 1000, "x", 1);
    return MR_OK;
}

static int do_refuse(struct mr_lookup *at, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "the cellar is\nlocked");
}

static int do_silent(struct mr_lookup *at, struct mr_error *err)
{
    return MR_ERR_IO;
}

static int do_stop(struct mr_lookup *at, struct mr_error *err)
{
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    return do_hang(at, err);
}

static const struct {
    const char *path;
    int (*act)(struct mr_lookup *at, struct mr_error *err);
} ways[] = {
    {"fork", do_fork},   {"thread", do_thread}, {"print", do_print},   {"hang", do_hang},
    {"crash", do_crash}, {"exit", do_exit},     {"nul", do_nul},       {"utf8", do_utf8},
    {"huge", do_huge},   {"late", do_late},     {"refuse", do_refuse}, {"silent", do_silent},
    {"stop", do_stop},
};

/* --- values ----------------------------------------------------------------------------------- */

static void give(struct mr_lookup *at, const char *key, const char *value)
{
    const char *asked;

    for (size_t i = 0; (asked = mr_lookup_key(at, i)) != NULL; i++)
        if (strcmp(asked, key) == 0)
            mr_lookup_set(at, i, value, strlen(value));
}

static void give_file(struct mr_lookup *at, const char *path)
{
    FILE *file = path[0] != '\0' ? fopen(path, "r") : NULL;
    char line[4096];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *blank = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "crash") == 0)
            abort();
        if (blank != NULL) {
            *blank = '\0';
            give(at, line, blank + 1);
        }
    }
    if (file != NULL)
        fclose(file);
}

static int steward_get(void *self, struct mr_lookup *at, struct mr_error *err)
{
    struct steward *s = self;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].path, mr_lookup_path(at)) == 0)
            return ways[i].act(at, err);
    give(at, "password", mr_config_secret(s->task, "password"));
    give_file(at, mr_config_str(s->task, "values"));
    if (mr_config_long(s->task, "ttl.ms") != 0)
        mr_lookup_ttl(at, mr_config_long(s->task, "ttl.ms"));
    return MR_OK;
}

static const char *const steward_aliases[] = {"org.example.StewardConfigProvider", NULL};

MR_CONFIG_PROVIDER(Steward, "1.0", .keys = steward_keys, .state_size = sizeof(struct steward),
                   .aliases = steward_aliases, .start = steward_start, .get = steward_get)
