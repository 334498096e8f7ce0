/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: which mechanism, with what, and its tokens one after the other.
 *
 * broker_conn.c carries the tokens in SaslAuthenticate requests and asks for the next with each
 * answer. A table has one step function a mechanism; SCRAM's lies in scram.c. Secrets stand in no
 * error. Thread: the loop's; no I/O. */
#include "wire/sasl.h"

#include "base/clock.h"
#include "base/jaas.h"
#include "base/json.h"
#include "wire/scram.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define DEFAULT_LIFE_S 3600

/* --- settings --------------------------------------------------------------------------------- */

static const char *const names[] = {[SASL_PLAIN] = "PLAIN",
                                    [SASL_SCRAM_256] = "SCRAM-SHA-256",
                                    [SASL_SCRAM_512] = "SCRAM-SHA-512",
                                    [SASL_OAUTHBEARER] = "OAUTHBEARER"};

const char *sasl_name(enum sasl_mechanism mechanism)
{
    return names[mechanism];
}

static int find_mechanism(const char *name, enum sasl_mechanism *out, struct mr_error *err)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum sasl_mechanism)i;
            return 0;
        }
    if (strcmp(name, "GSSAPI") == 0)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Configuration sasl.mechanism can't be honoured: GSSAPI (Kerberos) is not "
                       "spoken here, and it is what Kafka takes when nothing is set; use PLAIN, "
                       "SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER");
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %.100s for configuration sasl.mechanism: use one of PLAIN, "
                   "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
                   name);
}

static int copy(char **to, const char *value, struct mr_error *err)
{
    if (value == NULL)
        return 0;
    *to = strdup(value);
    return *to != NULL ? 0 : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

static int take_password(struct sasl_conf *conf, const struct props *jaas, struct mr_error *err)
{
    int rc = copy(&conf->user, props_get(jaas, "sasl.username"), err);

    if (rc == 0)
        rc = copy(&conf->password, props_get(jaas, "sasl.password"), err);
    if (rc == 0 && (conf->user == NULL || conf->password == NULL))
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "sasl.mechanism %s needs username and password in sasl.jaas.config",
                     names[conf->mechanism]);
    return rc;
}

static int take_oauth(struct sasl_conf *conf, const struct props *jaas,
                      const struct props *settings, struct mr_error *err)
{
    bool endpoint = props_get(settings, "sasl.oauthbearer.token.endpoint.url") != NULL;
    int rc = copy(&conf->extensions, props_get(jaas, "sasl.oauthbearer.extensions"), err);

    if (rc == 0 && !endpoint && props_get(jaas, "enable.sasl.oauthbearer.unsecure.jwt") != NULL)
        rc = copy(&conf->claims, props_get(jaas, "sasl.oauthbearer.config"), err);
    if (rc == 0 && !endpoint && conf->claims == NULL)
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, or for "
                     "tests an unsecuredLoginStringClaim_sub in sasl.jaas.config");
    return rc;
}

int sasl_conf_read(struct sasl_conf *conf, const struct props *settings, struct mr_error *err)
{
    const char *name = props_get(settings, "sasl.mechanism");
    const char *text = props_get(settings, "sasl.jaas.config");
    enum jaas_module module = JAAS_PASSWORD;
    struct props jaas;
    int rc = find_mechanism(name != NULL ? name : "GSSAPI", &conf->mechanism, err);
    bool oauth = conf->mechanism == SASL_OAUTHBEARER;

    props_init(&jaas);
    if (rc == 0 && text == NULL && !oauth)
        rc = mr_fail(err, MR_ERR_CONFIG, "sasl.mechanism %s needs sasl.jaas.config",
                     names[conf->mechanism]);
    if (rc == 0 && text != NULL)
        rc = jaas_parse(text, &jaas, &module, err);
    if (rc == 0 && text != NULL && module != (oauth ? JAAS_OAUTH : JAAS_PASSWORD))
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "The login module in sasl.jaas.config does not go with sasl.mechanism %s",
                     names[conf->mechanism]);
    if (rc == 0)
        rc = oauth ? take_oauth(conf, &jaas, settings, err) : take_password(conf, &jaas, err);
    props_deinit(&jaas);
    return rc;
}

static void wipe(char **text)
{
    if (*text != NULL)
        OPENSSL_cleanse(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void sasl_conf_deinit(struct sasl_conf *conf)
{
    wipe(&conf->user);
    wipe(&conf->password);
    wipe(&conf->claims);
    wipe(&conf->extensions);
}

/* --- PLAIN ------------------------------------------------------------------------------------ */

struct sasl {
    const struct sasl_conf *conf;
    int steps;
    struct scram *scram;
    char *token;       /* OAUTHBEARER, given */
    char refusal[512]; /* OAUTHBEARER: what the broker said, until it says so as an error */
};

static int step_plain(struct sasl *s, struct codec_bytes in, struct buf *out, struct mr_error *err)
{
    (void)in;
    if (s->steps++ > 0)
        return MR_AGAIN;
    buf_putc(out, '\0');
    buf_puts(out, s->conf->user);
    buf_putc(out, '\0');
    buf_puts(out, s->conf->password);
    return out->failed ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : 0;
}

/* --- SCRAM ------------------------------------------------------------------------------------ */

static int step_scram(struct sasl *s, struct codec_bytes in, struct buf *out, struct mr_error *err)
{
    if (s->scram == NULL)
        s->scram = scram_new(&(struct scram_user){.name = s->conf->user,
                                                  .password = s->conf->password,
                                                  .sha512 = s->conf->mechanism == SASL_SCRAM_512});
    if (s->scram == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    return scram_step(s->scram, in, out, err);
}

/* --- OAUTHBEARER ------------------------------------------------------------------------------ */

/* base64url without padding */
static void put_part(struct buf *out, const char *json, size_t len)
{
    char *text = malloc(len * 2 + 8);
    size_t used;

    if (text == NULL) {
        out->failed = true;
        return;
    }
    used = (size_t)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)json, (int)len);
    while (used > 0 && text[used - 1] == '=')
        used--;
    for (size_t i = 0; i < used; i++)
        text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    buf_append(out, text, used);
    free(text);
}

/* The value of `name=` among claims separated by blanks; malloc'ed, NULL: not there. */
static char *claim(const char *claims, const char *name)
{
    size_t len = strlen(name);

    while (*claims != '\0') {
        size_t word = strcspn(claims, " ");

        if (strncmp(claims, name, len) == 0 && claims[len] == '=')
            return strndup(claims + len + 1, word - len - 1);
        claims += word + (claims[word] == ' ');
    }
    return NULL;
}

static json_t *claims_json(const char *claims)
{
    char *subject = claim(claims, "principal");
    char *subject_name = claim(claims, "principalClaimName");
    char *scope = claim(claims, "scope");
    char *scope_name = claim(claims, "scopeClaimName");
    char *life = claim(claims, "lifeSeconds");
    json_int_t now = clock_wall_ms() / 1000;
    json_int_t life_s = life != NULL ? strtoll(life, NULL, 10) : 0;
    json_t *json = json_object();

    json_object_set_new(json, subject_name != NULL ? subject_name : "sub",
                        json_string(subject != NULL ? subject : ""));
    if (scope != NULL)
        json_object_set_new(json, scope_name != NULL ? scope_name : "scope", json_string(scope));
    json_object_set_new(json, "iat", json_integer(now));
    json_object_set_new(
        json, "exp",
        json_integer(now + (life_s > 0 && life_s < INT32_MAX ? life_s : DEFAULT_LIFE_S)));
    free(subject);
    free(subject_name);
    free(scope);
    free(scope_name);
    free(life);
    return json;
}

static void put_unsecured(struct buf *out, const char *claims)
{
    static const char header[] = "{\"alg\":\"none\"}";
    json_t *json = claims_json(claims);
    char *text = json_text(json);

    put_part(out, header, sizeof(header) - 1);
    buf_putc(out, '.');
    if (text != NULL)
        put_part(out, text, strlen(text));
    else
        out->failed = true;
    buf_putc(out, '.');
    free(text);
    json_decref(json);
}

static void put_extensions(struct buf *out, const char *extensions)
{
    for (const char *p = extensions; p != NULL && *p != '\0'; p += strspn(p, ",")) {
        size_t len = strcspn(p, ",");

        buf_putc(out, '\1');
        buf_append(out, p, len);
        p += len;
    }
}

static int say_token(struct sasl *s, struct buf *out, struct mr_error *err)
{
    mr_assert(s->token != NULL || s->conf->claims != NULL);
    buf_puts(out, "n,,\1auth=Bearer ");
    if (s->token != NULL)
        buf_puts(out, s->token);
    else
        put_unsecured(out, s->conf->claims);
    put_extensions(out, s->conf->extensions);
    buf_puts(out, "\1\1");
    return out->failed ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : 0;
}

/* A broker that refuses a token says why in JSON, wants one byte for it, and refuses then. */
static int step_oauth(struct sasl *s, struct codec_bytes in, struct buf *out, struct mr_error *err)
{
    if (s->steps++ == 0)
        return say_token(s, out, err);
    if (in.len == 0)
        return MR_AGAIN;
    if (s->refusal[0] != '\0' || s->steps > 2)
        return mr_fail(err, MR_ERR_FATAL, "the broker refused the OAUTHBEARER token: %s",
                       s->refusal);
    snprintf(s->refusal, sizeof(s->refusal), "%.*s", in.len < 500 ? (int)in.len : 500,
             (const char *)in.data);
    return buf_putc(out, '\1') == 0 ? 0 : mr_fail(err, MR_ERR_NOMEM, "out of memory");
}

/* --- life ------------------------------------------------------------------------------------- */

static int (*const steps[])(struct sasl *s, struct codec_bytes in, struct buf *out,
                            struct mr_error *err) = {[SASL_PLAIN] = step_plain,
                                                     [SASL_SCRAM_256] = step_scram,
                                                     [SASL_SCRAM_512] = step_scram,
                                                     [SASL_OAUTHBEARER] = step_oauth};

int sasl_step(struct sasl *s, struct codec_bytes in, struct buf *out, struct mr_error *err)
{
    return steps[s->conf->mechanism](s, in, out, err);
}

struct sasl *sasl_new(const struct sasl_conf *conf)
{
    struct sasl *s = calloc(1, sizeof(*s));

    mr_assert(s != NULL);
    s->conf = conf;
    return s;
}

void sasl_give_token(struct sasl *s, char *token)
{
    wipe(&s->token);
    s->token = token;
}

void sasl_free(struct sasl **sp)
{
    struct sasl *s = *sp;

    *sp = NULL;
    if (s == NULL)
        return;
    scram_free(&s->scram);
    wipe(&s->token);
    free(s);
}
