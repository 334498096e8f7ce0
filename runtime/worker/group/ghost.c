/* SPDX-License-Identifier: Apache-2.0 */
/* The ghost's record: one JSON object, {"group":…,"member":…,"boot":…}. Written by the group thread
 * at each new member id, read when the membership is made. Never by URL or name: only who wrote the
 * file here is made to leave, also before this machine started: a member id is never given twice,
 * so the worst is a LeaveGroup for nobody. boot is for who reads the file. */
#include "worker/group/ghost.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define FILE_MAX 65536

static bool boot_id(char *out, size_t size)
{
    struct buf text;
    bool ok;

    buf_init(&text, 256);
    ok = file_read(BOOT_ID, &text, NULL) == 0 && text.len > 0 && text.len < size;
    if (ok) {
        memcpy(out, text.data, text.len + 1);
        out[strcspn(out, "\n")] = '\0';
    }
    buf_deinit(&text);
    return ok;
}

static bool same(const json_t *record, const char *key, const char *wanted)
{
    const char *text;

    return json_get_text(record, key, &text) && strcmp(text, wanted) == 0;
}

bool ghost_read(const char *path, const char *group, char *id, size_t size)
{
    const char *member;
    struct buf text;
    json_t *record = NULL;
    bool ok;

    buf_init(&text, FILE_MAX);
    if (file_read(path, &text, NULL) == 0)
        record = json_parse(text.data, text.len, NULL);
    ok = json_is_object(record) && same(record, "group", group) &&
         json_get_text(record, "member", &member) && member[0] != '\0' && strlen(member) < size;
    if (ok)
        memcpy(id, member, strlen(member) + 1);
    json_decref(record);
    buf_deinit(&text);
    return ok;
}

static int replace(const char *path, const char *text, struct mr_error *err)
{
    char beside[4096];
    size_t len = strlen(text);
    ssize_t wrote;
    int fd;

    if (snprintf(beside, sizeof(beside), "%s.tmp", path) >= (int)sizeof(beside))
        return mr_fail(err, MR_ERR_TOO_LARGE, "%s: the path is too long", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, "cannot write %s", beside);
    wrote = write(fd, text, len);
    if (wrote >= 0 && wrote < (ssize_t)len)
        errno = ENOSPC; /* what a further write would say, most likely */
    if (wrote != (ssize_t)len) {
        err_errno(err, "cannot write %s", beside);
        close(fd);
        return MR_ERR_IO;
    }
    if (close(fd) != 0 || rename(beside, path) != 0)
        return err_errno(err, "cannot write %s", path);
    return 0;
}

int ghost_write(const char *path, const char *group, const char *id, struct mr_error *err)
{
    char boot[128];
    json_t *record;
    char *text;
    int rc;

    if (!boot_id(boot, sizeof(boot)))
        return mr_fail(err, MR_ERR_IO, "cannot read %s", BOOT_ID);
    record = json_pack("{s:s, s:s, s:s}", "group", group, "member", id, "boot", boot);
    text = record == NULL ? NULL : json_text(record);
    rc = text == NULL ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : replace(path, text, err);
    json_decref(record);
    free(text);
    return rc;
}

void ghost_remove(const char *path)
{
    (void)unlink(path);
}
