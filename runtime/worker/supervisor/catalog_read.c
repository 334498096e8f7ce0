/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what `millrace scan` prints, line by line. The scanner has unknown libraries in its address
 * space, so every byte is untrusted: caps first, then JSON, then shapes. Called by catalog_scan.c
 * while the scanner runs. Pure but for the catalog. */
#include "worker/supervisor/catalog.h"

#include "link/printable.h"
#include "link/scan_format.h"

#include <string.h>

static int add_plugins(struct catalog *cat, const char *library, const json_t *list,
                       struct mr_error *err)
{
    size_t before = catalog_count(cat);
    json_t *plugin;
    size_t i;

    if (json_array_size(list) > SCAN_FORMAT_PLUGINS_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "more than %d plugins", SCAN_FORMAT_PLUGINS_MAX);
    json_array_foreach(list, i, plugin)
    {
        int rc = catalog_add(cat, library, plugin, err);

        if (rc != 0) {
            err_prefix(err, "plugin %zu", i);
            catalog_cut(cat, before);
            return rc;
        }
    }
    return 0;
}

static int read_object(struct catalog *cat, const json_t *object, struct catalog_line *out,
                       struct mr_error *err)
{
    const json_t *plugins = json_object_get(object, "plugins");
    const char *text;
    bool begin = false;

    if (!json_get_text(object, "library", &text) || strlen(text) >= sizeof(out->library))
        return mr_fail(err, MR_ERR_PROTOCOL, "the line names no library");
    snprintf(out->library, sizeof(out->library), "%s", text);
    if (json_get_bool(object, "begin", &begin) && begin) {
        out->kind = CATALOG_LINE_BEGIN;
        return 0;
    }
    if (json_get_text(object, "error", &text)) {
        out->kind = CATALOG_LINE_ERROR;
        memcpy(out->error, text, printable_cut(text, strlen(text), sizeof(out->error) - 1));
        printable_clean(out->error, strlen(out->error));
        return 0;
    }
    if (!json_is_array(plugins))
        return mr_fail(err, MR_ERR_PROTOCOL, "the line has neither plugins nor an error");
    out->kind = CATALOG_LINE_PLUGINS;
    return add_plugins(cat, out->library, plugins, err);
}

int catalog_read_line(struct catalog *cat, const char *line, size_t len, struct catalog_line *out,
                      struct mr_error *err)
{
    json_t *object;
    int rc;

    memset(out, 0, sizeof(*out));
    if (len > SCAN_FORMAT_LINE_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "a line of more than %d bytes", SCAN_FORMAT_LINE_MAX);
    object = json_parse(line, len, err);
    if (object == NULL)
        return MR_ERR_PROTOCOL;
    rc = read_object(cat, object, out, err);
    json_decref(object);
    return rc;
}
