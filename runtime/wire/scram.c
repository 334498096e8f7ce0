/* SPDX-License-Identifier: Apache-2.0 */
/* SCRAM: a password proved without being sent, and a broker that proves that it knows it too.
 *
 *   client-first   n,,n=user,r=nonce
 *   server-first   r=nonce+more,s=salt,i=iterations
 *   client-final   c=biws,r=nonce+more,p=proof
 *   server-final   v=signature            checked; anything else ends the login
 *
 * The server's messages are foreign bytes: the nonce must go on from ours, the salt be base64, and
 * the number of iterations lie between what the RFC asks for and what keeps a loop alive. Called by
 * sasl.c on the loop's thread. */
#include "wire/scram.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#define NONCE_BYTES 24
#define MESSAGE_MAX 4096
#define MIN_ITERATIONS 4096  /* as Kafka's clients demand */
#define MAX_ITERATIONS 65536 /* four times what a Kafka broker lets be set */
#define GS2 "n,,"

enum step { STEP_FIRST, STEP_FINAL, STEP_VERIFY, STEP_DONE };

struct scram {
    enum step step;
    const EVP_MD *md;
    size_t md_len;
    char *password;
    struct buf nonce;
    struct buf first;                         /* client-first without the GS2 header */
    struct buf transcript;                    /* what is signed */
    unsigned char signature[EVP_MAX_MD_SIZE]; /* that the server must show */
};

/* --- texts ------------------------------------------------------------------------------------ */

static void put_base64(struct buf *out, const unsigned char *data, size_t len)
{
    unsigned char text[4 * (EVP_MAX_MD_SIZE + 2) / 3 + 4];

    EVP_EncodeBlock(text, data, (int)len);
    buf_puts(out, (const char *)text);
}

/* Strict base64. Bytes written, or -1. */
static int get_base64(const char *text, size_t len, unsigned char *out, size_t size)
{
    int pad = 0;
    int n;

    if (len == 0 || len % 4 != 0 || len / 4 * 3 > size)
        return -1;
    while (pad < 2 && text[len - 1 - (size_t)pad] == '=')
        pad++;
    if (memchr(text, '=', len - (size_t)pad) != NULL || strcspn(text, " \t\r\n") < len)
        return -1;
    n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)len);
    return n < 0 ? -1 : n - pad;
}

/* "," and "=" mean something in a message: written as =2C and =3D. */
static void put_name(struct buf *out, const char *name)
{
    for (; *name != '\0'; name++)
        if (*name == '=')
            buf_puts(out, "=3D");
        else if (*name == ',')
            buf_puts(out, "=2C");
        else
            buf_putc(out, *name);
}

/* The attribute at *p ("r=…"), which must be `name`; *p goes behind it and the comma. NULL: another
 * one. */
static const char *attribute(const char **p, char name, size_t *len)
{
    const char *value = *p + 2;

    if ((*p)[0] != name || (*p)[1] != '=')
        return NULL;
    *len = strcspn(value, ",");
    *p = value + *len + (value[*len] == ',');
    return value;
}

/* --- sums ------------------------------------------------------------------------------------- */

static bool hmac(const struct scram *s, const unsigned char *key, const void *data, size_t len,
                 unsigned char *out)
{
    return HMAC(s->md, key, (int)s->md_len, data, len, out, NULL) != NULL;
}

struct server_first {
    const char *nonce;
    size_t nonce_len;
    unsigned char salt[1024];
    int salt_len;
    int iterations;
};

/* The proof into `proof`, the signature that is awaited into s. */
static bool prove(struct scram *s, const struct server_first *first, unsigned char *proof)
{
    unsigned char salted[EVP_MAX_MD_SIZE];
    unsigned char key[EVP_MAX_MD_SIZE];
    unsigned char stored[EVP_MAX_MD_SIZE];
    const char *text = s->transcript.data;
    size_t len = s->transcript.len;
    bool fine;

    fine = PKCS5_PBKDF2_HMAC(s->password, (int)strlen(s->password), first->salt, first->salt_len,
                             first->iterations, s->md, (int)s->md_len, salted) == 1 &&
           hmac(s, salted, "Client Key", 10, key) &&
           EVP_Digest(key, s->md_len, stored, NULL, s->md, NULL) == 1 &&
           hmac(s, stored, text, len, proof);
    for (size_t i = 0; fine && i < s->md_len; i++)
        proof[i] ^= key[i];
    fine = fine && hmac(s, salted, "Server Key", 10, key) && hmac(s, key, text, len, s->signature);
    OPENSSL_cleanse(salted, sizeof(salted));
    OPENSSL_cleanse(key, sizeof(key));
    OPENSSL_cleanse(stored, sizeof(stored));
    return fine;
}

/* --- steps ------------------------------------------------------------------------------------ */

static int malformed(struct mr_error *err, const char *what)
{
    return mr_fail(err, MR_ERR_PROTOCOL, "the broker's part of the SCRAM login is malformed: %s",
                   what);
}

static int say_first(struct scram *s, struct buf *out, struct mr_error *err)
{
    buf_puts(out, GS2);
    buf_append(out, s->first.data, s->first.len);
    s->step = STEP_FINAL;
    return out->failed ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : 0;
}

static int read_first(struct scram *s, const char *text, struct server_first *first,
                      struct mr_error *err)
{
    const char *salt;
    const char *iterations;
    size_t len;
    char *end;

    first->nonce = attribute(&text, 'r', &first->nonce_len);
    if (first->nonce == NULL || first->nonce_len <= s->nonce.len ||
        memcmp(first->nonce, s->nonce.data, s->nonce.len) != 0)
        return malformed(err, "its nonce does not go on from ours");
    salt = attribute(&text, 's', &len);
    first->salt_len = salt != NULL ? get_base64(salt, len, first->salt, sizeof(first->salt)) : -1;
    if (first->salt_len < 1)
        return malformed(err, "no salt");
    iterations = attribute(&text, 'i', &len);
    first->iterations = iterations != NULL && len < 9 ? (int)strtol(iterations, &end, 10) : 0;
    if (first->iterations < MIN_ITERATIONS || first->iterations > MAX_ITERATIONS ||
        end != iterations + len)
        return mr_fail(err, MR_ERR_FATAL,
                       "the broker asks for a number of SCRAM iterations that is not from %d to %d",
                       MIN_ITERATIONS, MAX_ITERATIONS);
    return 0;
}

static int say_final(struct scram *s, const char *text, struct buf *out, struct mr_error *err)
{
    struct server_first first;
    unsigned char proof[EVP_MAX_MD_SIZE];
    size_t from = out->len;
    int rc = read_first(s, text, &first, err);

    if (rc != 0)
        return rc;
    buf_puts(out, "c=biws,r=");
    buf_append(out, first.nonce, first.nonce_len);
    buf_printf(&s->transcript, "%s,%s,", s->first.data, text);
    if (!out->failed)
        buf_append(&s->transcript, out->data + from, out->len - from);
    if (out->failed || s->transcript.failed)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    if (!prove(s, &first, proof))
        return mr_fail(err, MR_ERR_FATAL, "the SCRAM login could not be computed");
    buf_puts(out, ",p=");
    put_base64(out, proof, s->md_len);
    s->step = STEP_VERIFY;
    return out->failed ? mr_fail(err, MR_ERR_NOMEM, "out of memory") : 0;
}

static int verify(struct scram *s, const char *text, struct mr_error *err)
{
    unsigned char shown[EVP_MAX_MD_SIZE + 3];
    size_t len;
    const char *value = attribute(&text, 'v', &len);

    if (value == NULL && text[0] == 'e' && text[1] == '=')
        return mr_fail(err, MR_ERR_FATAL, "the broker refused the SCRAM login: %.200s", text + 2);
    if (value == NULL || get_base64(value, len, shown, sizeof(shown)) != (int)s->md_len)
        return malformed(err, "no signature");
    if (CRYPTO_memcmp(shown, s->signature, s->md_len) != 0)
        return mr_fail(
            err, MR_ERR_FATAL,
            "the broker does not know the password that it accepted (its SCRAM signature "
            "is wrong): it is not the broker that it should be");
    s->step = STEP_DONE;
    return MR_AGAIN;
}

int scram_step(struct scram *s, struct codec_bytes in, struct buf *out, struct mr_error *err)
{
    char text[MESSAGE_MAX];

    if (in.len >= sizeof(text) || (in.len > 0 && memchr(in.data, 0, in.len) != NULL) ||
        (in.len > 0 && !utf8_valid((const char *)in.data, in.len)))
        return malformed(err, "it is no text, or too long");
    if (in.len > 0)
        memcpy(text, in.data, in.len);
    text[in.len] = '\0';
    switch (s->step) {
    case STEP_FIRST:
        return say_first(s, out, err);
    case STEP_FINAL:
        return say_final(s, text, out, err);
    case STEP_VERIFY:
        return verify(s, text, err);
    default:
        return malformed(err, "it goes on after its end");
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static bool make_nonce(struct scram *s, const char *given)
{
    unsigned char random[NONCE_BYTES];

    if (given != NULL)
        return buf_puts(&s->nonce, given) == 0;
    if (RAND_bytes(random, sizeof(random)) != 1)
        return false;
    put_base64(&s->nonce, random, sizeof(random));
    return !s->nonce.failed;
}

struct scram *scram_new(const struct scram_user *user)
{
    struct scram *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL;
    buf_init(&s->nonce, MESSAGE_MAX);
    buf_init(&s->first, 4 * 65536);
    buf_init(&s->transcript, 8 * 65536);
    s->md = user->sha512 ? EVP_sha512() : EVP_sha256();
    s->md_len = (size_t)EVP_MD_get_size(s->md);
    s->password = strdup(user->password);
    if (s->password == NULL || !make_nonce(s, user->nonce)) {
        scram_free(&s);
        return NULL;
    }
    buf_puts(&s->first, "n=");
    put_name(&s->first, user->name);
    buf_printf(&s->first, ",r=%s", s->nonce.data);
    if (s->first.failed)
        scram_free(&s);
    return s;
}

void scram_free(struct scram **sp)
{
    struct scram *s = *sp;

    *sp = NULL;
    if (s == NULL)
        return;
    if (s->password != NULL)
        OPENSSL_cleanse(s->password, strlen(s->password));
    free(s->password);
    buf_deinit(&s->nonce);
    buf_deinit(&s->first);
    buf_deinit(&s->transcript);
    OPENSSL_cleanse(s, sizeof(*s));
    free(s);
}
