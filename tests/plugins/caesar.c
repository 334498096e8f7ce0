/* SPDX-License-Identifier: Apache-2.0 */
/* A converter as somebody else would write one: text, each of its small letters `shift` places
 * further on in Kafka, under a name of its own and a Java class's. What has a '!' it does not
 * convert, on neither way; what begins with "busy" only at the third call. */
#include <millrace/plugin.h>

#include <string.h>

#define BUSY_CALLS 2

struct caesar {
    int shift;
    int busy; /* calls that were asked to come again */
    const struct mr_schema *schema;
};

static const struct mr_config_key keys[] = {
    {"shift", MR_CFG_INT, .fallback = "1", .doc = "Places, 1 to 25"},
    {0},
};

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct caesar *c = self;

    c->shift = (int)mr_config_long(task, "shift");
    c->schema = mr_schema_of(task, MR_KIND_STRING, true);
    if (c->shift < 1 || c->shift > 25)
        return mr_fail(err, MR_ERR_CONFIG, "shift is %d, where 1 to 25 belong", c->shift);
    return MR_OK;
}

static int check(struct caesar *c, const char *p, size_t len, struct mr_error *err)
{
    if (memchr(p, '!', len) != NULL)
        return mr_fail(err, MR_ERR_DATA, "Caesar does not shout");
    if (len >= 4 && memcmp(p, "busy", 4) == 0 && c->busy++ < BUSY_CALLS)
        return mr_fail(err, MR_ERR_RETRY, "Caesar is busy");
    return MR_OK;
}

static const char *moved(struct mr_arena *arena, const char *p, size_t len, int by)
{
    char *to = mr_alloc(arena, len + 1);

    for (size_t i = 0; i < len; i++)
        to[i] = p[i] < 'a' || p[i] > 'z' ? p[i] : (char)('a' + (p[i] - 'a' + by) % 26);
    to[len] = '\0';
    return to;
}

static int from_connect(void *self, struct mr_arena *arena, const char *topic,
                        const struct mr_schema *schema, struct mr_value value, const void **data,
                        size_t *len, struct mr_error *err)
{
    struct caesar *c = self;
    size_t n = 0;
    const char *text = mr_is_null(value) ? "" : mr_to_text(arena, value, &n);
    int rc = check(c, text, n, err);

    (void)topic;
    (void)schema;
    if (rc != MR_OK)
        return rc;
    *data = mr_is_null(value) ? NULL : moved(arena, text, n, c->shift);
    *len = n;
    return MR_OK;
}

static int to_connect(void *self, struct mr_arena *arena, const char *topic, const void *data,
                      size_t len, const struct mr_schema **schema, struct mr_value *value,
                      struct mr_error *err)
{
    struct caesar *c = self;
    const char *text = data == NULL ? "" : moved(arena, data, len, 26 - c->shift);
    int rc = check(c, text, len, err);

    (void)topic;
    if (rc != MR_OK)
        return rc;
    *schema = c->schema;
    *value = data == NULL ? mr_null() : mr_text_from(arena, text, len);
    return MR_OK;
}

static const char *const aliases[] = {"com.example.CaesarConverter", NULL};

MR_CONVERTER(Caesar, "1.0", .aliases = aliases, .keys = keys, .state_size = sizeof(struct caesar),
             .start = start, .from_connect = from_connect, .to_connect = to_connect)
