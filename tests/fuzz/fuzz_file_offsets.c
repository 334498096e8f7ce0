/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets that the file sink keeps beside its file (plugins/file/file_offsets.c): any bytes are
 * refused with a text that names the file, or read as offsets that can be; what was read is written
 * and read again to the same. */
#include "file/file_offsets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory where that can be, so that what is synced is no disk's. */
static char folder[64];
static struct file_offsets first, again;

static void require(bool good)
{
    if (!good)
        abort();
}

static void clean_up(void)
{
    unlink(first.path);
    unlink(first.new_path);
    rmdir(folder);
    file_offsets_deinit(&first);
    file_offsets_deinit(&again);
}

static bool make_folder(const char *where)
{
    snprintf(folder, sizeof(folder), "%s/millrace-fuzz-XXXXXX", where);
    return mkdtemp(folder) != NULL;
}

static void start(void)
{
    char file[sizeof(folder) + 8];

    require(make_folder("/dev/shm") || make_folder("/tmp"));
    snprintf(file, sizeof(file), "%s/out", folder);
    require(file_offsets_init(&first, file, NULL) == MR_OK);
    require(file_offsets_init(&again, file, NULL) == MR_OK);
    atexit(clean_up);
}

static void put(const uint8_t *data, size_t size)
{
    int fd = open(first.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void check_item(const struct file_offset *item)
{
    size_t len = strlen(item->topic);

    require(len >= 1 && len <= 249 && strpbrk(item->topic, " \n") == NULL);
    require(item->partition >= 0 && item->offset >= 0);
    require(file_offsets_get(&first, item->topic, item->partition) == item->offset);
}

static void check_again(void)
{
    require(file_offsets_write(&first, NULL) == MR_OK);
    require(file_offsets_read(&again, NULL) == MR_OK);
    require(again.size == first.size && again.count == first.count);
    for (size_t i = 0; i < first.count; i++) {
        require(strcmp(again.items[i].topic, first.items[i].topic) == 0);
        require(again.items[i].partition == first.items[i].partition);
        require(again.items[i].offset == first.items[i].offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};

    if (first.path == NULL)
        start();
    put(data, size);
    if (file_offsets_read(&first, &err) != MR_OK) {
        require(err.code == MR_ERR_FATAL && strstr(err.text, first.path) != NULL);
        return 0;
    }
    require(first.size >= 0);
    for (size_t i = 0; i < first.count; i++)
        check_item(&first.items[i]);
    check_again();
    return 0;
}
