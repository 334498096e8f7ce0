/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: read with a cap, replaced atomically, locked. Blocks; never called on a loop after
 * start-up. */
#include "base/file.h"

#include "base/crash_point.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, const char *path, struct buf *out, struct mr_error *err)
{
    for (;;) {
        ssize_t n;

        if (buf_reserve(out, 65536) != 0 && buf_reserve(out, 1) != 0)
            return mr_fail(err, MR_ERR_TOO_LARGE, "%s is larger than %zu bytes", path, out->max);
        n = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, "cannot read %s", path);
        if (n == 0)
            return 0;
        if ((size_t)n > out->max - out->len)
            return mr_fail(err, MR_ERR_TOO_LARGE, "%s is larger than %zu bytes", path, out->max);
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        out->failed = false;
    }
}

int file_read(const char *path, struct buf *out, struct mr_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc;

    if (fd < 0 && errno == ENOENT)
        return mr_fail(err, MR_ERR_NOT_FOUND, "%s does not exist", path);
    if (fd < 0)
        return err_errno(err, "cannot open %s", path);
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        rc = mr_fail(err, MR_ERR_IO, "%s is not a regular file", path);
    else
        rc = read_all(fd, path, out, err);
    close(fd);
    return rc;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd);
}

/* A rename is on disk only when its folder is. */
static int sync_folder_of(const char *path, struct mr_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd;
    int rc;

    snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, "cannot open folder %s", folder);
    rc = fsync(fd) == 0 ? 0 : err_errno(err, "cannot sync folder %s", folder);
    close(fd);
    return rc;
}

int file_write_atomic(const char *path, const void *data, size_t len, struct mr_error *err)
{
    char temp[PATH_MAX];
    int fd;
    int rc = 0;

    if ((size_t)snprintf(temp, sizeof(temp), "%s.tmp", path) >= sizeof(temp))
        return mr_fail(err, MR_ERR_IO, "the path of %.200s… is too long", path);
    fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, "cannot create %s", temp);
    CRASH_POINT(FILE_WRITE);
    if (write_all(fd, data, len) != 0)
        rc = err_errno(err, "cannot write %s", temp);
    if (close(fd) != 0 && rc == 0)
        rc = err_errno(err, "cannot write %s", temp);
    CRASH_POINT(FILE_WRITTEN);
    if (rc == 0 && rename(temp, path) != 0)
        rc = err_errno(err, "cannot rename %s to %s", temp, path);
    CRASH_POINT(FILE_RENAMED);
    if (rc != 0) {
        unlink(temp);
        return rc;
    }
    return sync_folder_of(path, err);
}

int file_mkdirs(const char *path, struct mr_error *err)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    struct stat st;

    if (len == 0 || len >= sizeof(part))
        return mr_fail(err, MR_ERR_IO, "not a usable path of a folder: '%.200s'", path);
    memcpy(part, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return err_errno(err, "cannot create folder %s", part);
        part[i] = path[i];
    }
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return mr_fail(err, MR_ERR_IO, "%s is not a folder", path);
    return 0;
}

/* Whether the name still means the open file: a holder that ends removes it. */
static bool is_still(int fd, const char *path)
{
    struct stat open_file, named;

    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

int file_lock(const char *path, int *fd, int64_t *pid, struct mr_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (f < 0)
        return err_errno(err, "cannot open lock file %s", path);
    while (fcntl(f, F_SETLK, &lock) == 0) {
        if (is_still(f, path)) {
            *fd = f;
            return 0;
        }
        close(f);
        f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (f < 0)
            return err_errno(err, "cannot open lock file %s", path);
    }
    if (errno != EACCES && errno != EAGAIN) {
        err_errno(err, "cannot lock %s", path);
        close(f);
        return MR_ERR_IO;
    }
    lock.l_type = F_WRLCK;
    *pid = fcntl(f, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? (int64_t)lock.l_pid : 0;
    close(f);
    return mr_fail(err, MR_ERR_EXISTS, "%s is locked by process %lld", path, (long long)*pid);
}

void file_unlock(const char *path, int *fd)
{
    if (*fd < 0)
        return;
    if (is_still(*fd, path))
        unlink(path);
    close(*fd);
    *fd = -1;
}
