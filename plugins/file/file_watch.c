/* SPDX-License-Identifier: Apache-2.0 */
/* inotify for a file source: writes to the open file, and names that come and go in its folder,
 * make one descriptor readable, on which the framework waits. So a line is seen within a
 * millisecond, where Java looks once a second. What the events say is not read: the source looks at
 * the file itself after each.
 *
 * Not told: changes made by other machines on a network file system, and anything once the user's
 * limit of inotify instances is reached. The source looks once a second besides. */
#include "file_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

void file_watch_folder(struct file_watch *watch, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);

    if (watch->fd < 0 || watch->folder >= 0 || len >= sizeof(folder))
        return;
    memcpy(folder, path, len);
    folder[len] = '\0';
    watch->folder =
        inotify_add_watch(watch->fd, len == 0 ? "." : folder,
                          IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
}

void file_watch_start(struct file_watch *watch, const struct mr_task *task, const char *path)
{
    watch->folder = -1;
    watch->file = -1;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0)
        mr_log(task, MR_LOG_WARN, "No inotify (%s): %s is looked at once a second instead",
               strerror(errno), path);
    file_watch_folder(watch, path);
}

void file_watch_stop(struct file_watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}

void file_watch_file(struct file_watch *watch, int fd)
{
    char name[64];

    if (watch->fd < 0)
        return;
    if (watch->file >= 0)
        inotify_rm_watch(watch->fd, watch->file);
    watch->file = -1;
    if (fd < 0)
        return;
    /* The file itself, whatever its name is by now. */
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    watch->file = inotify_add_watch(watch->fd, name, IN_MODIFY | IN_ATTRIB);
}

void file_watch_drain(struct file_watch *watch)
{
    char events[4096];

    while (watch->fd >= 0 && read(watch->fd, events, sizeof(events)) > 0)
        ;
}
