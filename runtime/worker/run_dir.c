/* SPDX-License-Identifier: Apache-2.0 */
/* The run folder: where hosts hold their locks, so that a new worker finds what an old one left
 * behind. It may lie below /tmp, so it is made with mode 0700 and refused when it belongs to
 * somebody else or others may write into it. The worker itself holds `worker.lock`: a second worker
 * on the same offset file would tear it, and bury the first one's hosts. What a worker made it
 * removes when it ends in order; a folder that was there before stays (a service manager may have
 * made it). */
#include "worker/run_dir.h"

#include "base/file.h"
#include "worker/worker_config.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t fnv(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* One number for all spellings of a file that may not exist yet: its folder is resolved, its name
 * is taken. */
static uint64_t hash_of_file(const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        snprintf(folder, sizeof(folder), ".");
    else
        snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (realpath(folder, real) == NULL)
        snprintf(real, sizeof(real), "%s", folder);
    return fnv(fnv(fnv(0xcbf29ce484222325u, real), "/"), slash != NULL ? slash + 1 : path);
}

static bool is_own_folder(const char *path)
{
    struct stat st;

    return path != NULL && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid();
}

char *run_dir_default(const char *offset_file)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
    unsigned long long hash = hash_of_file(offset_file);
    char *path = NULL;
    int n;

    if (is_own_folder(runtime))
        n = asprintf(&path, "%s/millrace/%016llx", runtime, hash);
    else
        n = asprintf(&path, "%s/millrace-%u/%016llx", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp",
                     (unsigned)geteuid(), hash);
    mr_assert(n > 0);
    return path;
}

char *run_dir_default_state(const char *run_dir)
{
    const char *named[] = {getenv("STATE_DIRECTORY"), getenv("XDG_STATE_HOME"), getenv("HOME")};
    const char *name = strrchr(run_dir, '/');
    char base[PATH_MAX], *path = NULL;

    for (size_t i = 0; i < 3 && name != NULL; i++) {
        /* systemd names several, a colon between two. */
        snprintf(base, sizeof(base), "%.*s", named[i] == NULL ? 0 : (int)strcspn(named[i], ":"),
                 named[i] == NULL ? "" : named[i]);
        if (!is_own_folder(base))
            continue;
        mr_assert(asprintf(&path, "%s%s/millrace%s", base, i == 2 ? "/.local/state" : "", name) >
                  0);
        return path;
    }
    return NULL;
}

/* The folder and the one above it: whoever may write there could plant a lock, or swap the
 * folder. */
static int check_folder(const char *path, const char *key, struct mr_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return err_errno(err, "folder %s", path);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(err, MR_ERR_IO,
                       "%s is not a folder: set %s to one that only this user may write", path,
                       key);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return mr_fail(err, MR_ERR_IO,
                       "folder %s belongs to user %u: set %s to one of this worker's user", path,
                       (unsigned)st.st_uid, key);
    if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
        return mr_fail(err, MR_ERR_IO,
                       "folder %s may be written by others (mode %04o): chmod go-w, or set %s",
                       path, (unsigned)(st.st_mode & 07777), key);
    return 0;
}

static int check_parent(const char *path, const char *key, struct mr_error *err)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];

    if (slash == NULL || slash == path)
        return 0;
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
    return check_folder(parent, key, err);
}

static int lock_path(const char *folder, char *out, size_t size)
{
    return snprintf(out, size, "%s/worker.lock", folder) < (int)size ? 0 : MR_ERR_IO;
}

static int open_at(struct run_dir *dir, const char *path, struct mr_error *err)
{
    struct mr_error own = {0};
    char lock[PATH_MAX];
    int64_t pid = 0;
    int rc;

    err = err != NULL ? err : &own;
    dir->path = path;
    dir->made = access(path, F_OK) != 0;
    rc = file_mkdirs(path, err);
    if (rc == 0)
        rc = check_parent(path, dir->key, err);
    if (rc == 0)
        rc = check_folder(path, dir->key, err);
    if (rc != 0)
        return rc;
    if (lock_path(path, lock, sizeof(lock)) != 0)
        return mr_fail(err, MR_ERR_IO, "folder %.100s…: the name is too long", path);
    rc = file_lock(lock, &dir->lock_fd, &pid, err);
    if (rc != MR_ERR_EXISTS)
        return rc;
    err_clear(err);
    return mr_fail(err, MR_ERR_EXISTS,
                   "another worker (pid %lld) runs with the folder %s: stop it, or give this one "
                   "its own %s",
                   (long long)pid, path, dir->apart);
}

int run_dir_open(struct run_dir *dir, const struct worker_config *config, struct mr_error *err)
{
    *dir = (struct run_dir){.key = "millrace.run.dir", .lock_fd = -1};
    dir->apart = config->offset_file != NULL ? "offset.storage.file.filename" : dir->key;
    dir->by_default = props_get(&config->props, dir->key) == NULL;
    return open_at(dir, config->run_dir, err);
}

int run_dir_open_state(struct run_dir *dir, const struct worker_config *config,
                       struct mr_error *err)
{
    *dir =
        (struct run_dir){.key = "millrace.state.dir", .apart = "millrace.state.dir", .lock_fd = -1};
    dir->by_default = props_get(&config->props, dir->key) == NULL;
    return strcmp(config->state_dir, config->run_dir) == 0 ? 0
                                                           : open_at(dir, config->state_dir, err);
}

/* Folders that are not empty, since another worker's is beside it or a host could not be ended,
 * stay. */
void run_dir_close(struct run_dir *dir)
{
    char path[PATH_MAX], *slash;

    if (dir->lock_fd < 0 || lock_path(dir->path, path, sizeof(path)) != 0)
        return;
    file_unlock(path, &dir->lock_fd);
    if (!dir->by_default && !dir->made)
        return;
    rmdir(dir->path);
    snprintf(path, sizeof(path), "%s", dir->path);
    slash = strrchr(path, '/');
    if (!dir->by_default || slash == NULL)
        return;
    *slash = '\0';
    rmdir(path);
}
