/* SPDX-License-Identifier: Apache-2.0 */
/* Three forms, told apart by what is in the file and not by its name: a JSON object of texts (the
 * configuration itself), a JSON object {name, config, initial_state} (the body of POST
 * /connectors), else a properties file. Reads and checks form only; whether the configuration is
 * one that a connector may have is the herder's to say. */
#include "worker/herder/connector_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define MAX_BYTES ((size_t)1 << 20)

static const char *kind_of(const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };

    return value == NULL ? "nothing" : kinds[json_typeof(value)];
}

static int read_config(const char *path, const char *prefix, json_t *object, struct props *config,
                       struct mr_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        if (json_is_object(value) || json_is_array(value))
            return mr_fail(err, MR_ERR_CONFIG, "%s: member %s%s: expected text, found %s", path,
                           prefix, key, kind_of(value));
    }
    return json_to_props(object, config, err);
}

/* {name, config, initial_state}; other members are ignored. */
static int read_request(json_t *root, struct connector_file *out, struct mr_error *err)
{
    const json_t *name = json_object_get(root, "name"),
                 *state = json_object_get(root, "initial_state");
    const char *inner;

    if (!json_is_string(name))
        return mr_fail(err, MR_ERR_CONFIG, "%s: member name: expected text, found %s", out->path,
                       kind_of(name));
    if (read_config(out->path, "config.", json_object_get(root, "config"), &out->config, err) != 0)
        return MR_ERR_CONFIG;
    inner = props_get(&out->config, "name");
    if (inner != NULL && strcmp(inner, json_string_value(name)) != 0)
        return mr_fail(
            err, MR_ERR_CONFIG,
            "%s: Connector name configuration in 'config' (%s) doesn't match the one specified in "
            "'name' (%s)",
            out->path, inner, json_string_value(name));
    if (inner == NULL && props_set(&out->config, "name", json_string_value(name)) != 0)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    if (state == NULL || json_is_null(state))
        return 0;
    if (!json_is_string(state) ||
        !target_state_from_initial(json_string_value(state), &out->initial))
        return mr_fail(err, MR_ERR_CONFIG,
                       "%s: member initial_state: expected RUNNING, PAUSED or STOPPED, found %s",
                       out->path,
                       json_is_string(state) ? json_string_value(state) : kind_of(state));
    return 0;
}

static int read_json(const char *data, size_t len, struct connector_file *out, struct mr_error *err)
{
    json_t *root = json_parse(data, len, err);
    int rc;

    if (root == NULL) {
        err_prefix(err, "%s", out->path);
        return MR_ERR_CONFIG;
    }
    if (!json_is_object(root))
        rc = mr_fail(err, MR_ERR_CONFIG, "%s: expected a JSON object, found %s", out->path,
                     kind_of(root));
    else if (json_is_object(json_object_get(root, "config")))
        rc = read_request(root, out, err);
    else
        rc = read_config(out->path, "", root, &out->config, err);
    json_decref(root);
    return rc;
}

static bool looks_like_json(const char *data, size_t len, const char *path)
{
    size_t path_len = strlen(path), i = len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (i < len && strchr(" \t\r\n", data[i]) != NULL)
        i++;
    return (i < len && data[i] == '{') ||
           (path_len > 5 && strcmp(path + path_len - 5, ".json") == 0);
}

int connector_file_parse(const char *data, size_t len, const char *path, struct connector_file *out,
                         struct mr_error *err)
{
    struct mr_error own = {0};
    int rc;

    err = err != NULL ? err : &own;
    memset(out, 0, sizeof(*out));
    out->path = path;
    out->initial = TARGET_STARTED;
    props_init(&out->config);
    if (looks_like_json(data, len, path))
        rc = read_json(data, len, out, err);
    else
        rc = props_parse(&out->config, data, len, path, err);
    if (rc == 0 && props_get(&out->config, "name") == NULL)
        rc = mr_fail(
            err, MR_ERR_CONFIG,
            "Connector configuration at '%s' is missing the mandatory 'name' configuration", path);
    if (rc == 0) {
        out->name = text_dup(props_get(&out->config, "name"));
    } else {
        connector_file_deinit(out);
    }
    return rc;
}

int connector_file_read(const char *path, struct connector_file *out, struct mr_error *err)
{
    struct buf data;
    int rc;

    memset(out, 0, sizeof(*out));
    buf_init(&data, MAX_BYTES);
    rc = file_read(path, &data, err);
    if (rc == 0)
        rc = connector_file_parse(data.data != NULL ? data.data : "", data.len, path, out, err);
    buf_deinit(&data);
    return rc;
}

void connector_file_deinit(struct connector_file *file)
{
    free(file->name);
    props_deinit(&file->config);
    memset(file, 0, sizeof(*file));
}
