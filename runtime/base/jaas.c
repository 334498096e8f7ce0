/* SPDX-License-Identifier: Apache-2.0 */
/* sasl.jaas.config taken apart: one login module, its control flag, its options, a semicolon.
 *
 *     org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";
 *
 * Words may stand in single or double quotes with Java's escapes (\n \t \" \\ and octal); comments
 * of both kinds are skipped; a control flag in any case. A table says which options of which module
 * become which settings, by librdkafka's names. Principal and key table are held to plain
 * characters, since librdkafka puts them into a shell command. No word of the text but a login
 * module's name ever stands in an error. Pure. Spec: org.apache.kafka.common.security.JaasConfig,
 * reference worker-config 9.2. */
#include "base/jaas.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX (64 * 1024)
#define OPTIONS_MAX 100

/* --- words ------------------------------------------------------------------------------------ */

struct scan {
    const char *p;
    struct buf word;
    struct mr_error *err;
};

enum token { TOKEN_END, TOKEN_WORD, TOKEN_EQUALS, TOKEN_SEMICOLON, TOKEN_BAD };

static enum token bad(struct scan *s, const char *why)
{
    mr_fail(s->err, MR_ERR_CONFIG, "Invalid value [hidden] for configuration sasl.jaas.config: %s",
            why);
    return TOKEN_BAD;
}

static bool skip_blanks(struct scan *s)
{
    for (;;) {
        const char *end;

        while (isspace((unsigned char)*s->p))
            s->p++;
        if (s->p[0] == '/' && s->p[1] == '/') {
            s->p += strcspn(s->p, "\n");
        } else if (s->p[0] == '/' && s->p[1] == '*') {
            end = strstr(s->p + 2, "*/");
            if (end == NULL)
                return false;
            s->p = end + 2;
        } else {
            return true;
        }
    }
}

static int octal(const char **p)
{
    int n = 0;
    int most = **p <= '3' ? 3 : 2;

    while (most-- > 0 && **p >= '0' && **p <= '7')
        n = n * 8 + (*(*p)++ - '0');
    return n;
}

static char escaped(const char **p)
{
    static const char from[] = "abfnrtv";
    static const char to[] = "\a\b\f\n\r\t\v";
    char c = **p;
    const char *at = c != '\0' ? strchr(from, c) : NULL;

    if (c >= '0' && c <= '7')
        return (char)octal(p);
    (*p)++;
    return at != NULL ? to[at - from] : c;
}

static enum token quoted(struct scan *s)
{
    char quote = *s->p++;

    while (*s->p != quote) {
        char c = *s->p++;

        if (c == '\0' || c == '\n')
            return bad(s, "a quoted value has no closing quote");
        if (c == '\\') {
            if (*s->p == '\0')
                return bad(s, "a quoted value has no closing quote");
            c = escaped(&s->p);
            if (c == '\0')
                return bad(s, "a value holds a NUL");
        }
        buf_putc(&s->word, c);
    }
    s->p++;
    return TOKEN_WORD;
}

/* The next token; a word's text is in s->word. */
static enum token next(struct scan *s)
{
    size_t len;

    buf_reset(&s->word);
    if (!skip_blanks(s))
        return bad(s, "a comment has no end");
    switch (*s->p) {
    case '\0':
        return TOKEN_END;
    case '=':
        s->p++;
        return TOKEN_EQUALS;
    case ';':
        s->p++;
        return TOKEN_SEMICOLON;
    case '"':
    case '\'':
        if (buf_reserve(&s->word, 0) != 0) /* "" is a value too */
            return bad(s, "out of memory");
        return quoted(s);
    default:
        len = strcspn(s->p, " \t\r\n\f\v=;\"'");
        buf_append(&s->word, s->p, len);
        s->p += len;
        return TOKEN_WORD;
    }
}

/* --- modules ---------------------------------------------------------------------------------- */

enum check { CHECK_NONE, CHECK_SHELL, CHECK_IGNORED, CHECK_CLAIM, CHECK_NOT_TRUE };

/* java ending in "_" is a prefix. rdkafka NULL: known, but of no consequence. */
struct option {
    const char *java;
    const char *rdkafka;
    enum check check;
};

static const struct option password_options[] = {
    {"username", "sasl.username", CHECK_NONE},
    {"password", "sasl.password", CHECK_NONE},
    {NULL, NULL, CHECK_NONE},
};

static const struct option scram_options[] = {
    {"username", "sasl.username", CHECK_NONE},
    {"password", "sasl.password", CHECK_NONE},
    {"tokenauth", NULL, CHECK_NOT_TRUE},
    {NULL, NULL, CHECK_NONE},
};

static const struct option kerberos_options[] = {
    {"principal", "sasl.kerberos.principal", CHECK_SHELL},
    {"keyTab", "sasl.kerberos.keytab", CHECK_SHELL},
    {"serviceName", "sasl.kerberos.service.name", CHECK_SHELL},
    {"useKeyTab", NULL, CHECK_IGNORED},
    {"storeKey", NULL, CHECK_IGNORED},
    {"useTicketCache", NULL, CHECK_IGNORED},
    {"renewTGT", NULL, CHECK_IGNORED},
    {"doNotPrompt", NULL, CHECK_IGNORED},
    {"refreshKrb5Config", NULL, CHECK_IGNORED},
    {"isInitiator", NULL, CHECK_IGNORED},
    {"debug", NULL, CHECK_IGNORED},
    {NULL, NULL, CHECK_NONE},
};

/* Claims of unsecured tokens are gathered in sasl.oauthbearer.config, extensions in the setting of
 * their own too. */
static const struct option oauth_options[] = {
    {"clientId", "sasl.oauthbearer.client.id", CHECK_NONE},
    {"clientSecret", "sasl.oauthbearer.client.secret", CHECK_NONE},
    {"scope", "sasl.oauthbearer.scope", CHECK_NONE},
    {"unsecuredLoginStringClaim_sub", "principal", CHECK_CLAIM},
    {"unsecuredLoginPrincipalClaimName", "principalClaimName", CHECK_CLAIM},
    {"unsecuredLoginScopeClaimName", "scopeClaimName", CHECK_CLAIM},
    {"unsecuredLoginListClaim_scope", "scope", CHECK_CLAIM},
    {"unsecuredLoginLifetimeSeconds", "lifeSeconds", CHECK_CLAIM},
    {"extension_", "extension_", CHECK_CLAIM},
    {NULL, NULL, CHECK_NONE},
};

static const struct module {
    const char *name; /* the simple name may stand alone */
    enum jaas_module module;
    const struct option *options;
} modules[] = {
    {"org.apache.kafka.common.security.plain.PlainLoginModule", JAAS_PASSWORD, password_options},
    {"org.apache.kafka.common.security.scram.ScramLoginModule", JAAS_PASSWORD, scram_options},
    {"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule", JAAS_OAUTH,
     oauth_options},
    {"com.sun.security.auth.module.Krb5LoginModule", JAAS_KERBEROS, kerberos_options},
};

static const struct module *find_module(const char *name)
{
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        if (strcmp(modules[i].name, name) == 0 ||
            strcmp(strrchr(modules[i].name, '.') + 1, name) == 0)
            return &modules[i];
    return NULL;
}

static const struct option *find_option(const struct option *options, const char *name)
{
    for (; options->java != NULL; options++) {
        size_t len = strlen(options->java);

        if (options->java[len - 1] == '_'
                ? strncmp(options->java, name, len) == 0 && name[len] != '\0'
                : strcmp(options->java, name) == 0)
            return options;
    }
    return NULL;
}

/* librdkafka runs kinit through a shell with these put in as they are. */
static bool shell_safe(const char *value)
{
    static const char fine[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@-+:";

    return value[0] != '\0' && value[0] != '-' && value[strspn(value, fine)] == '\0';
}

/* librdkafka separates claims by blanks, and extensions by commas. */
static bool claim_safe(const char *value)
{
    for (; *value != '\0'; value++)
        if (isspace((unsigned char)*value) || iscntrl((unsigned char)*value))
            return false;
    return true;
}

static int append_pair(struct props *out, const char *key, const char *separator, const char *name,
                       const char *value)
{
    const char *so_far = props_get(out, key);
    struct buf text;
    int rc;

    buf_init(&text, 4 * TEXT_MAX);
    rc = buf_printf(&text, "%s%s%s=%s", so_far != NULL ? so_far : "",
                    so_far != NULL ? separator : "", name, value);
    if (rc == 0)
        rc = props_set(out, key, text.data);
    buf_deinit(&text);
    return rc;
}

static int take_claim(struct props *out, const struct option *option, const char *name,
                      const char *value)
{
    bool extension = strcmp(option->rdkafka, "extension_") == 0;
    int rc =
        append_pair(out, "sasl.oauthbearer.config", " ", extension ? name : option->rdkafka, value);

    if (rc == 0 && extension)
        rc = append_pair(out, "sasl.oauthbearer.extensions", ",", name + strlen("extension_"),
                         value);
    if (rc == 0 && !extension)
        rc = props_set(out, "enable.sasl.oauthbearer.unsecure.jwt", "true");
    return rc;
}

static enum token unknown_option(struct scan *s, const struct module *module)
{
    char why[512];
    size_t used = (size_t)snprintf(why, sizeof(why), "%s has an option other than",
                                   strrchr(module->name, '.') + 1);

    for (const struct option *o = module->options; o->java != NULL && used < sizeof(why); o++)
        used += (size_t)snprintf(why + used, sizeof(why) - used, "%s %s%s",
                                 o == module->options ? "" : ",", o->java,
                                 o->java[strlen(o->java) - 1] == '_' ? "…" : "");
    return bad(s, why);
}

static enum token take_option(struct scan *s, const struct module *module, const char *name,
                              struct props *out)
{
    const struct option *option = find_option(module->options, name);
    const char *value = s->word.data;
    char why[160];
    int rc = 0;

    /* Not named: it may be a piece of a password that should have been quoted. */
    if (option == NULL)
        return unknown_option(s, module);
    if (option->check == CHECK_NOT_TRUE && strcasecmp(value, "true") == 0) {
        snprintf(why, sizeof(why), "option %s can't be honoured", option->java);
        return bad(s, why);
    }
    if (option->check == CHECK_SHELL && !shell_safe(value)) {
        snprintf(why, sizeof(why),
                 "option %s may hold only letters, digits and ._/@-+:", option->java);
        return bad(s, why);
    }
    if (option->check == CHECK_CLAIM) {
        if (!claim_safe(value) ||
            (strchr(value, ',') != NULL && strncmp(name, "extension_", 10) == 0)) {
            snprintf(why, sizeof(why), "option %s may hold no blanks and no commas", option->java);
            return bad(s, why);
        }
        rc = take_claim(out, option, name, value);
    } else if (option->rdkafka != NULL) {
        rc = props_set(out, option->rdkafka, value);
    }
    return rc == 0 ? TOKEN_WORD : bad(s, "out of memory");
}

/* --- the entry -------------------------------------------------------------------------------- */

static enum token parse_options(struct scan *s, const struct module *module, struct props *out)
{
    for (int count = 0;; count++) {
        enum token token = next(s);
        char name[64];

        if (token == TOKEN_SEMICOLON || token == TOKEN_BAD)
            return token;
        if (token != TOKEN_WORD || s->word.len == 0)
            return bad(s, "JAAS config entry not terminated by semi-colon");
        if (count == OPTIONS_MAX || s->word.len >= sizeof(name))
            return bad(s, "too many options, or one with too long a name");
        memcpy(name, s->word.data, s->word.len + 1);
        if (next(s) != TOKEN_EQUALS || next(s) != TOKEN_WORD)
            return s->err != NULL && s->err->code != 0 ? TOKEN_BAD
                                                       : bad(s, "an option has no value");
        if (s->word.failed || s->word.data == NULL)
            return bad(s, "out of memory");
        if (take_option(s, module, name, out) == TOKEN_BAD)
            return TOKEN_BAD;
    }
}

static bool control_flag(const char *word)
{
    static const char *const flags[] = {"required", "requisite", "sufficient", "optional"};

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (strcasecmp(flags[i], word) == 0)
            return true;
    return false;
}

static enum token parse_entry(struct scan *s, enum jaas_module *kind, struct props *out)
{
    const struct module *module;
    char why[256];

    if (next(s) != TOKEN_WORD || s->word.len == 0)
        return bad(s, "no login module is named");
    module = find_module(s->word.data);
    if (module == NULL) {
        snprintf(
            why, sizeof(why),
            "login module %.120s can't run here; known are PlainLoginModule, ScramLoginModule, "
            "OAuthBearerLoginModule and Krb5LoginModule",
            strstr(s->word.data, "LoginModule") != NULL ? s->word.data : "[hidden]");
        return bad(s, why);
    }
    if (next(s) != TOKEN_WORD || s->word.len == 0 || !control_flag(s->word.data))
        return bad(s, "the login module is not followed by a control flag such as \"required\"");
    if (parse_options(s, module, out) == TOKEN_BAD)
        return TOKEN_BAD;
    switch (next(s)) {
    case TOKEN_END:
        *kind = module->module;
        return TOKEN_END;
    case TOKEN_BAD:
        return TOKEN_BAD;
    default:
        return bad(s, "it holds more than one login module");
    }
}

int jaas_parse(const char *text, struct props *options, enum jaas_module *module,
               struct mr_error *err)
{
    struct mr_error own = {0};
    enum jaas_module any;
    struct scan s = {.p = text, .err = err != NULL ? err : &own};
    struct props found;
    int rc;

    if (strlen(text) > TEXT_MAX)
        return mr_fail(
            err, MR_ERR_CONFIG,
            "Invalid value [hidden] for configuration sasl.jaas.config: longer than %d bytes",
            TEXT_MAX);
    props_init(&found);
    buf_init(&s.word, TEXT_MAX);
    rc = parse_entry(&s, module != NULL ? module : &any, &found) == TOKEN_BAD ? MR_ERR_CONFIG : 0;
    if (rc == 0 && props_subset(&found, "", options) != 0)
        rc = mr_fail(err, MR_ERR_NOMEM, "Out of memory while reading sasl.jaas.config");
    buf_deinit(&s.word);
    props_deinit(&found);
    return rc;
}
