/* SPDX-License-Identifier: Apache-2.0 */
/* A test's folder, memory and end. The folder is
 * build/<variant>/logs/integration/<program>.files/<number of the test>, emptied when the test
 * begins and kept when it ends, so that a failure can be read. cmocka leaves a failed test by
 * longjmp: whatever must be ended or freed is therefore listed here, and done in teardown. */
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct end {
    void (*fn)(void *);
    void *arg;
};

static struct end *ends;
static size_t end_count, end_cap;
static char dir[4096];
static unsigned serial;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void make_dirs(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            fail_msg("%s: %s", path, strerror(errno));
        *slash = '/';
    }
    if (mkdir(path, 0755) != 0)
        fail_msg("%s: %s", path, strerror(errno));
}

static void make_dir(unsigned number)
{
    snprintf(dir, sizeof(dir), "%s/logs/integration/%s.files/%u", TEST_BUILD,
             program_invocation_short_name, number);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    make_dirs(dir);
}

int scratch_setup(void **state)
{
    (void)state;
    end_count = 0;
    make_dir(++serial);
    printf("             in %s\n", dir);
    fflush(stdout);
    return 0;
}

int scratch_teardown(void **state)
{
    (void)state;
    while (end_count > 0) {
        struct end end = ends[--end_count];

        end.fn(end.arg);
    }
    free(ends);
    ends = NULL;
    end_cap = 0;
    return 0;
}

void scratch_at_end(void (*fn)(void *), void *arg)
{
    if (end_count == end_cap) {
        end_cap = end_cap == 0 ? 256 : end_cap * 2;
        ends = realloc(ends, end_cap * sizeof(*ends));
        assert_non_null(ends);
    }
    ends[end_count++] = (struct end){fn, arg};
}

const char *scratch_dir(void)
{
    return dir;
}

const char *scratch_path(const char *name)
{
    if (dir[0] == '\0') /* what comes before the first test */
        make_dir(0);
    return scratch_text("%s/%s", dir, name);
}

const char *scratch_name(const char *stem)
{
    static unsigned names;

    return scratch_text("%s-%d-%u", stem, (int)getpid(), ++names);
}

void *scratch_keep(void *from_malloc)
{
    assert_non_null(from_malloc);
    scratch_at_end(free, from_malloc);
    return from_malloc;
}

const char *scratch_text(const char *fmt, ...)
{
    va_list args;
    char *text;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    assert_true(len >= 0);
    return scratch_keep(text);
}

static void put(const char *path, int flags, const char *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, data + at, len - at);

        if (n < 0)
            fail_msg("%s: %s", path, strerror(errno));
        at += (size_t)n;
    }
    close(fd);
}

void scratch_write(const char *path, const char *data, size_t len)
{
    put(path, O_TRUNC, data, len);
}

void scratch_append(const char *path, const char *data, size_t len)
{
    put(path, O_APPEND, data, len);
}

void scratch_write_text(const char *path, const char *text)
{
    scratch_write(path, text, strlen(text));
}

void scratch_append_text(const char *path, const char *text)
{
    scratch_append(path, text, strlen(text));
}

char *scratch_read(const char *path, size_t *len)
{
    FILE *in = fopen(path, "rbe");
    char *data = NULL;
    size_t size = 0, n;
    char chunk[65536];
    FILE *out;

    if (in == NULL)
        return NULL;
    out = open_memstream(&data, &size);
    assert_non_null(out);
    while ((n = fread(chunk, 1, sizeof(chunk), in)) > 0)
        fwrite(chunk, 1, n, out);
    fclose(in);
    fclose(out);
    if (len != NULL)
        *len = size;
    return scratch_keep(data);
}

bool scratch_contains(const char *path, const char *text)
{
    FILE *in = fopen(path, "rbe");
    bool found = false;
    char *line = NULL;
    size_t cap = 0;

    if (in == NULL)
        return false;
    while (!found && getline(&line, &cap, in) >= 0)
        found = strstr(line, text) != NULL;
    free(line);
    fclose(in);
    return found;
}

int64_t scratch_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t scratch_since(int64_t from_ms)
{
    return scratch_now_ms() - from_ms;
}

void scratch_pause(int ms)
{
    struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&ts, NULL);
}
