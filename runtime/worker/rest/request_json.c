/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the two shapes of JSON that carry a connector's configuration, straight into properties.
 *
 * A cursor walks the bytes; each reader below leaves it after what it read or records one error.
 * Nothing nests deeper than a map in a map, so nothing recurses: an object or array where text
 * belongs is refused where it begins. Called by the HTTP threads with bytes of clients. Pure. */
#include "worker/rest/request_json.h"

#include "model/conn_config.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "worker/rest/rest_text.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *start;
    const char *at;
    const char *end;
    struct buf key;  /* scratch: the last key read, NUL-terminated */
    struct buf text; /* scratch: the last scalar read */
    struct mr_error *err;
};

/* --- the grammar's parts ---------------------------------------------------------------------- */

MR_PRINTF(2, 3)
static int malformed(struct cursor *c, const char *fmt, ...)
{
    char what[256];
    int line = 1;
    const char *line_start = c->start;
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    for (const char *p = c->start; p < c->at; p++)
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    return mr_fail(c->err, MR_ERR_PROTOCOL, "Malformed JSON at line %d, column %d: %s", line,
                   (int)(c->at - line_start) + 1, what);
}

static int no_memory(struct cursor *c)
{
    return mr_fail(c->err, MR_ERR_NOMEM, "out of memory");
}

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* The next byte that is no white space, or -1 at the end. */
static int peek(struct cursor *c)
{
    skip_blanks(c);
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

/* What belongs at the cursor, and what stands there. */
static int expected(struct cursor *c, const char *what)
{
    if (c->at == c->end)
        return malformed(c, "%s is expected, but the text ends", what);
    if (*c->at > ' ' && *c->at <= '~')
        return malformed(c, "%s is expected, not '%c'", what, *c->at);
    return malformed(c, "%s is expected, not the byte 0x%02X", what, (unsigned char)*c->at);
}

static int unended(struct cursor *c)
{
    return malformed(c, "a string has no closing \"");
}

static int hex4(struct cursor *c, uint32_t *out)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        int digit = c->at < c->end ? rest_text_hex(*c->at) : -1;

        if (digit < 0)
            return expected(c, "a hexadecimal digit (\\u has four)");
        value = value * 16 + (uint32_t)digit;
        c->at++;
    }
    *out = value;
    return 0;
}

/* After `\u`: a character, or the two halves of one. */
static int unicode_escape(struct cursor *c, struct buf *out)
{
    uint32_t code = 0;
    uint32_t low = 0;

    if (hex4(c, &code) != 0)
        return MR_ERR_PROTOCOL;
    if (code >= 0xD800 && code <= 0xDFFF) {
        bool pair = code <= 0xDBFF && c->end - c->at >= 2 && c->at[0] == '\\' && c->at[1] == 'u';

        if (!pair)
            return malformed(c, "half of a surrogate pair stands alone");
        c->at += 2;
        if (hex4(c, &low) != 0)
            return MR_ERR_PROTOCOL;
        if (low < 0xDC00 || low > 0xDFFF)
            return malformed(c, "half of a surrogate pair stands alone");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return rest_text_append(out, code) == 0 ? 0 : no_memory(c);
}

static int escape(struct cursor *c, struct buf *out)
{
    static const char plain[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    const char *found;

    c->at++;
    if (c->at == c->end)
        return unended(c);
    if (*c->at == 'u') {
        c->at++;
        return unicode_escape(c, out);
    }
    found = *c->at != '\0' ? strchr(plain, *c->at) : NULL;
    if (found == NULL)
        return expected(c, "one of \" \\ / b f n r t u behind \\");
    c->at++;
    return buf_putc(out, meaning[found - plain]) == 0 ? 0 : no_memory(c);
}

/* Bytes of a string that stand for themselves, checked to be UTF-8 without control characters. */
static int plain_run(struct cursor *c, struct buf *out)
{
    const char *from = c->at;

    while (c->at < c->end && *c->at != '"' && *c->at != '\\') {
        int n = utf8_char(c->at, (size_t)(c->end - c->at));

        if (n < 0)
            return malformed(c, "a string is not UTF-8");
        if (*c->at == '\n' || *c->at == '\r')
            return malformed(c,
                             "a line break in a string: its closing \" is missing, or write \\n");
        if ((unsigned char)*c->at < 0x20)
            return malformed(c, "a control character in a string: write \\u%04X", *c->at);
        c->at += n;
    }
    return buf_append(out, from, (size_t)(c->at - from)) == 0 ? 0 : no_memory(c);
}

static int read_string(struct cursor *c, struct buf *out)
{
    int rc = 0;

    c->at++;
    buf_reset(out);
    if (buf_append(out, "", 0) != 0)
        rc = no_memory(c);
    while (rc == 0 && c->at < c->end && *c->at != '"')
        rc = *c->at == '\\' ? escape(c, out) : plain_run(c, out);
    if (rc == 0 && c->at == c->end)
        rc = unended(c);
    if (rc == 0)
        c->at++;
    return rc;
}

static size_t digits(struct cursor *c)
{
    const char *from = c->at;

    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return (size_t)(c->at - from);
}

#define A_VALUE "a value (text in double quotes, a number, true, false or null)"

/* A number, kept as it is written. */
static int read_number(struct cursor *c)
{
    const char *from = c->at;

    c->at += *c->at == '-';
    if (c->at < c->end && *c->at == '0')
        c->at++;
    else if (digits(c) == 0)
        return expected(c, A_VALUE);
    if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        return malformed(c, "a number may not begin with 0: remove it, or write it as text");
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (digits(c) == 0)
            return expected(c, "a digit after the decimal point");
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        c->at += c->at < c->end && (*c->at == '+' || *c->at == '-');
        if (digits(c) == 0)
            return expected(c, "a digit of the exponent");
    }
    return buf_append(&c->text, from, (size_t)(c->at - from)) == 0 ? 0 : no_memory(c);
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
        return false;
    c->at += len;
    return true;
}

static int read_boolean(struct cursor *c, const char *word)
{
    if (!take_word(c, word))
        return expected(c, A_VALUE);
    return buf_puts(&c->text, word) == 0 ? 0 : no_memory(c);
}

/* Text, number, boolean or null into c->text. `what` names the value in errors. */
static int read_scalar(struct cursor *c, const char *what, bool *is_null)
{
    int next = peek(c);

    *is_null = false;
    if (next == '"')
        return read_string(c, &c->text);
    buf_reset(&c->text);
    switch (next) {
    case -1:
        return expected(c, A_VALUE);
    case '{':
    case '[':
        return mr_fail(c->err, MR_ERR_PROTOCOL,
                       "%s must be text, a number, a boolean or null, not an %s", what,
                       next == '{' ? "object" : "array");
    case 'n':
        *is_null = take_word(c, "null");
        return *is_null ? 0 : expected(c, A_VALUE);
    case 't':
        return read_boolean(c, "true");
    case 'f':
        return read_boolean(c, "false");
    default:
        return read_number(c);
    }
}

/* --- objects ---------------------------------------------------------------------------------- */

typedef int (*member_fn)(struct cursor *c, void *arg);

/* Walk one object; `member` reads each value, with the key in c->key. */
static int read_object(struct cursor *c, const char *what, member_fn member, void *arg)
{
    int rc;

    if (peek(c) != '{') {
        if (c->at < c->end && strchr("[\"tfn-0123456789", *c->at) != NULL && *c->at != '\0')
            return mr_fail(c->err, MR_ERR_PROTOCOL, "%s must be a JSON object", what);
        return expected(c, "{");
    }
    c->at++;
    if (peek(c) == '}') {
        c->at++;
        return 0;
    }
    for (;;) {
        rc = peek(c) == '"' ? read_string(c, &c->key) : expected(c, "a key in double quotes");
        if (rc == 0 && strlen(c->key.data) != c->key.len)
            rc = mr_fail(c->err, MR_ERR_PROTOCOL,
                         "A key of the request may not hold the character U+0000");
        if (rc == 0 && peek(c) != ':')
            rc = expected(c, "a : after a key");
        if (rc != 0)
            return rc;
        c->at++;
        rc = member(c, arg);
        if (rc != 0)
            return rc;
        switch (peek(c)) {
        case '}':
            c->at++;
            return 0;
        case ',':
            c->at++;
            break;
        default:
            return expected(c, "a comma or } after a value");
        }
    }
}

static int config_member(struct cursor *c, void *arg)
{
    struct props *config = arg;
    char what[160];
    bool is_null;
    int rc;

    snprintf(what, sizeof(what), "The value of the configuration '%.100s'", c->key.data);
    rc = read_scalar(c, what, &is_null);
    if (rc != 0)
        return rc;
    if (!is_null && strlen(c->text.data) != c->text.len)
        return mr_fail(c->err, MR_ERR_PROTOCOL, "%s may not hold the character U+0000", what);
    if (config->count >= CONN_CONFIG_KEYS_MAX)
        return mr_fail(c->err, MR_ERR_PROTOCOL,
                       "A connector's configuration may have at most %d keys",
                       CONN_CONFIG_KEYS_MAX);
    return props_set(config, c->key.data, is_null ? NULL : c->text.data) == 0 ? 0 : no_memory(c);
}

/* A body of POST, given to what takes the configuration alone. */
static int alone_member(struct cursor *c, void *arg)
{
    if (strcmp(c->key.data, "config") == 0 && peek(c) == '{')
        return mr_fail(c->err, MR_ERR_PROTOCOL,
                       "The body must be the configuration alone, without \"name\" and \"config\" "
                       "around it, which only POST takes");
    return config_member(c, arg);
}

/* Java's trim: everything up to U+0020 at both ends, NUL among it. */
static int take_name(struct cursor *c, char **name)
{
    const char *from = c->text.data;
    size_t len = c->text.len;
    char *copy;

    while (len > 0 && (unsigned char)*from <= 0x20) {
        from++;
        len--;
    }
    while (len > 0 && (unsigned char)from[len - 1] <= 0x20)
        len--;
    if (memchr(from, '\0', len) != NULL)
        return mr_fail(c->err, MR_ERR_PROTOCOL,
                       "The connector's name may not hold the character U+0000");
    copy = strndup(from, len);
    if (copy == NULL)
        return no_memory(c);
    free(*name);
    *name = copy;
    return 0;
}

static int create_name(struct cursor *c, struct request_create *out)
{
    bool is_null;
    int rc = read_scalar(c, "The member 'name'", &is_null);

    if (rc != 0)
        return rc;
    if (is_null)
        buf_reset(&c->text);
    return buf_append(&c->text, "", 0) == 0 ? take_name(c, &out->name) : no_memory(c);
}

static int create_config(struct cursor *c, struct request_create *out)
{
    props_deinit(&out->config);
    props_init(&out->config);
    out->has_config = false;
    if (peek(c) == 'n' && take_word(c, "null"))
        return 0;
    out->has_config = true;
    return read_object(c, "The member 'config'", config_member, &out->config);
}

static int create_initial_state(struct cursor *c, struct request_create *out)
{
    bool is_null;
    int rc = read_scalar(c, "The member 'initial_state'", &is_null);

    if (rc != 0)
        return rc;
    out->initial = TARGET_STARTED;
    out->has_initial = false;
    if (is_null || c->text.len == 0)
        return 0;
    if (strlen(c->text.data) != c->text.len ||
        !target_state_from_initial(c->text.data, &out->initial))
        return mr_fail(c->err, MR_ERR_PROTOCOL,
                       "Invalid initial_state '%.100s': it must be RUNNING, PAUSED or STOPPED",
                       c->text.data);
    out->has_initial = true;
    return 0;
}

static const struct {
    const char *key;
    int (*read)(struct cursor *c, struct request_create *out);
} create_members[] = {
    {"name", create_name},
    {"config", create_config},
    {"initial_state", create_initial_state},
};

static int create_member(struct cursor *c, void *arg)
{
    for (size_t i = 0; i < sizeof(create_members) / sizeof(*create_members); i++)
        if (strcmp(create_members[i].key, c->key.data) == 0)
            return create_members[i].read(c, arg);
    return mr_fail(c->err, MR_ERR_PROTOCOL,
                   "Unrecognized member '%.100s' (known are name, config and initial_state)",
                   c->key.data);
}

/* --- documents -------------------------------------------------------------------------------- */

static int read_document(const char *data, size_t len, bool *absent, member_fn member, void *arg,
                         struct mr_error *err)
{
    struct cursor c = {.start = data, .at = data, .end = data + len, .err = err};
    int rc = 0;

    if (len >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0)
        c.start = c.at = data + 3;
    buf_init(&c.key, len + 1);
    buf_init(&c.text, len + 1);
    *absent = peek(&c) < 0 || (*c.at == 'n' && take_word(&c, "null"));
    if (!*absent)
        rc = read_object(&c, "The request body", member, arg);
    if (rc == 0 && peek(&c) >= 0)
        rc = expected(&c, "nothing more");
    buf_deinit(&c.key);
    buf_deinit(&c.text);
    return rc;
}

int request_json_create(const char *data, size_t len, struct request_create *out, bool *absent,
                        struct mr_error *err)
{
    int rc;

    *out = (struct request_create){.name = strdup(""), .initial = TARGET_STARTED};
    props_init(&out->config);
    rc = out->name == NULL ? mr_fail(err, MR_ERR_NOMEM, "out of memory")
                           : read_document(data, len, absent, create_member, out, err);
    if (rc != 0)
        request_json_create_deinit(out);
    return rc;
}

void request_json_create_deinit(struct request_create *create)
{
    free(create->name);
    create->name = NULL;
    props_deinit(&create->config);
    create->has_config = false;
}

int request_json_config(const char *data, size_t len, struct props *out, bool *absent,
                        struct mr_error *err)
{
    int rc;

    props_init(out);
    rc = read_document(data, len, absent, alone_member, out, err);
    if (rc != 0)
        props_deinit(out);
    return rc;
}
