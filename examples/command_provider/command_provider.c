/* command_provider: secrets from whatever has a command line. With
 *
 *   config.providers=pass
 *   config.providers.pass.class=CommandConfigProvider
 *   config.providers.pass.param.command=/usr/local/bin/show-secret
 *   config.providers.pass.param.ttl.ms=3600000
 *
 * ${pass:database/shop:password} is what `/usr/local/bin/show-secret database/shop password`
 * prints. No shell is in between, so nothing in a path or a key is more than a word. */
#include <millrace/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALUE_MAX 65536

struct command {
    const char *command;
    int64_t ttl_ms;
};

static const struct mr_config_key command_keys[] = {
    {"command", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Program that prints the value of its two arguments, path and key"},
    {"ttl.ms", MR_CFG_LONG, .fallback = "0", .has_range = true, .max = 86400000,
     .doc = "After how long values are to be read again; 0: never"},
    {0},
};

static int command_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct command *c = self;

    c->command = mr_config_str(task, "command");
    c->ttl_ms = mr_config_long(task, "ttl.ms");
    return access(c->command, X_OK) == 0
               ? MR_OK
               : mr_fail(err, MR_ERR_CONFIG, "%s: %s", c->command, strerror(errno));
}

/* All that comes from fd, at most VALUE_MAX bytes. */
static size_t read_all(int fd, char *to)
{
    size_t len = 0;
    ssize_t n;

    while (len < VALUE_MAX &&
           ((n = read(fd, to + len, VALUE_MAX - len)) > 0 || (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    return len;
}

/* Its status, as of waitpid; what it printed in text. */
static int run(const char *command, const char *path, const char *key, char *text, size_t *len)
{
    int fds[2], status = -1;
    pid_t pid;

    if (pipe(fds) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execl(command, command, path, key, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    *len = read_all(fds[0], text);
    close(fds[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int command_get(void *self, struct mr_lookup *at, struct mr_error *err)
{
    const struct command *c = self;
    char text[VALUE_MAX];
    const char *key;
    size_t len;

    for (size_t i = 0; (key = mr_lookup_key(at, i)) != NULL; i++) {
        int status = run(c->command, mr_lookup_path(at), key, text, &len);

        if (status != 0)
            return mr_fail(err, MR_ERR_IO,
                           "%s failed for key %s: what it wrote to stderr is in the worker's log",
                           c->command, key);
        if (len > 0 && text[len - 1] == '\n')
            len--;
        mr_lookup_set(at, i, text, len);
    }
    if (c->ttl_ms > 0)
        mr_lookup_ttl(at, c->ttl_ms);
    return MR_OK;
}

MR_CONFIG_PROVIDER(CommandConfigProvider, "1.0", .keys = command_keys,
                   .state_size = sizeof(struct command), .start = command_start, .get = command_get)
