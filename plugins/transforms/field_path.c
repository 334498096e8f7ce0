/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of field paths. Steps are split at dots; a step that begins with a backtick runs to
 * the next backtick that a dot or the end follows, and a backslash before such a one makes it part
 * of the name. All else is literal. Parsed at start; followed on the task's thread. */
#include "field_path.h"

#include "requirement.h"

#include <stdlib.h>

struct scan {
    const char *text;
    const char *at;
    const char *end;
    struct field_path *path;
    char *to; /* where the next step's text goes */
};

static void add_step(struct scan *s, char *name)
{
    *s->to++ = '\0';
    s->path->steps[s->path->count++] = field_name_of(name);
}

static void plain_step(struct scan *s)
{
    char *name = s->to;

    while (s->at < s->end && *s->at != '.')
        *s->to++ = *s->at++;
    s->at += s->at < s->end;
    add_step(s, name);
}

static int quoted_step(struct scan *s, struct mr_error *err)
{
    const char *open = s->at++;
    char *name = s->to;

    for (; s->at < s->end; *s->to++ = *s->at++) {
        bool last = s->at + 1 == s->end, escaped = s->at[-1] == '\\';

        if (*s->at != '`' || (!last && s->at[1] != '.'))
            continue;
        if (!escaped) {
            s->at += last ? 1 : 2;
            add_step(s, name);
            return MR_OK;
        }
        if (last)
            break;
        s->to--; /* the backslash goes */
    }
    return mr_fail(err, MR_ERR_CONFIG,
                   "Incomplete backtick pair in path: [%.300s], consider adding a backslash before "
                   "backtick at position %td to escape it",
                   s->text, open - s->text);
}

static int nested_steps(struct scan *s, struct mr_error *err)
{
    int rc = MR_OK;

    if (s->at == s->end)
        return mr_fail(err, MR_ERR_CONFIG, "Invalid value  for configuration field: an empty path");
    while (s->at < s->end && rc == MR_OK) {
        if (*s->at == '`')
            rc = quoted_step(s, err);
        else
            plain_step(s);
    }
    if (rc == MR_OK && s->end[-1] == '.')
        add_step(s, s->to);
    return rc;
}

int field_path_parse(struct field_path *path, const char *text, bool nested, struct mr_error *err)
{
    size_t len = strlen(text);
    struct scan s = {text, text, text + len, path, NULL};
    int rc = MR_OK;

    path->count = 0;
    path->steps = (struct field_name *)calloc(len + 2, sizeof(*path->steps));
    path->texts = s.to = (char *)malloc(2 * len + 2);
    if (path->steps == NULL || path->texts == NULL)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for a path");
    else if (nested)
        rc = nested_steps(&s, err);
    else
        path->steps[path->count++] = field_name_of((char *)memcpy(s.to, text, len + 1));
    if (rc != MR_OK)
        field_path_free(path);
    return rc;
}

void field_path_free(struct field_path *path)
{
    free(path->steps);
    free(path->texts);
    memset(path, 0, sizeof(*path));
}

int field_path_get(struct field_path *path, struct mr_value map, struct mr_value *out,
                   struct mr_error *err)
{
    for (size_t i = 0; i < path->count; i++) {
        int64_t at;

        if (mr_is_null(map))
            break;
        if (i > 0 && requirement_map(map, "nested field access", err) != MR_OK)
            return MR_ERR_DATA;
        at = field_name_find(&path->steps[i], mr_pairs(map), map.len);
        map = at < 0 ? mr_null() : mr_pairs(map)[at].value;
    }
    *out = map;
    return MR_OK;
}
