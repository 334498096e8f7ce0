/* SPDX-License-Identifier: Apache-2.0 */
/* Values with references, and the files that they name. Input: a value, a NUL, the bytes of a file;
 * "@" in the value is the folder with that file, which is called "f". Whatever comes in: references
 * lie within the text, one behind the other; resolving gives a value or an error; and what was
 * resolved can be hidden in what came of it. */
#include "base/config_ref.h"
#include "base/provider.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/fuzz-provider-XXXXXX";

static void remove_folder(void)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/f", folder);
    unlink(path);
    rmdir(folder);
}

static struct providers *open_providers(void)
{
    static const char *const settings[][2] = {
        {"config.providers", "f,d,e"},
        {"config.providers.f.class", "FileConfigProvider"},
        {"config.providers.f.param.allowed.paths", folder},
        {"config.providers.d.class", "DirectoryConfigProvider"},
        {"config.providers.d.param.allowed.paths", folder},
        {"config.providers.e.class", "EnvVarConfigProvider"},
        {"config.providers.e.param.allowlist.pattern", "FUZZ.*"},
    };
    struct props worker;
    struct providers *providers;

    if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0)
        abort();
    setenv("FUZZ_A", "value ${f:@:a} of a", 1);
    props_init(&worker);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        props_set(&worker, settings[i][0], settings[i][1]);
    providers = providers_new(&worker, true, NULL, NULL);
    props_deinit(&worker);
    if (providers == NULL)
        abort();
    return providers;
}

static void write_file(const uint8_t *data, size_t size)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "%s/f", folder);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

static void check_references(const char *text)
{
    const char *end = text + strlen(text);
    struct config_ref ref;

    while (config_ref_next(text, &ref)) {
        const char *stop = ref.whole.at + ref.whole.len;

        if (ref.whole.at < text || stop > end || stop[-1] != '}' ||
            memchr(ref.whole.at, '}', ref.whole.len) != stop - 1 ||
            ref.key.at + ref.key.len > stop - 1 || ref.provider.at != ref.whole.at + 2)
            abort();
        text = stop;
    }
}

/* Hidden, the value of each pair is in the text no more, unless references bring it in. */
static void check_hiding(const struct secrets *secrets, const char *value)
{
    char *hidden = secrets_hide(secrets, value), *again;
    const char *reference, *secret;

    if (hidden == NULL)
        for (size_t i = 0; secrets_at(secrets, i, &reference, &secret); i++)
            if (strstr(value, secret) != NULL)
                abort();
    again = hidden != NULL ? secrets_hide(secrets, hidden) : NULL;
    free(again);
    free(hidden);
}

static void resolve(const struct providers *providers, const char *value)
{
    struct secrets *secrets = secrets_new();
    struct props in, out;
    struct mr_error err = {0};
    char *seen;

    props_init(&in);
    props_set(&in, "k", value);
    if (providers_resolve(providers, &(struct provider_job){.in = &in, .secrets = secrets}, &out,
                          &err) == 0) {
        check_hiding(secrets, props_get(&out, "k"));
        props_deinit(&out);
    } else if (err.code == 0) {
        abort();
    }
    seen = providers_glance(providers, value);
    free(seen);
    secrets_free(&secrets);
    props_deinit(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct providers *providers;
    char value[VALUE_MAX];
    size_t n = 0, i = 0;

    if (providers == NULL)
        providers = open_providers();
    for (; i < size && data[i] != 0 && n + sizeof(folder) < sizeof(value); i++) {
        if (data[i] == '@')
            n += (size_t)snprintf(value + n, sizeof(value) - n, "%s", folder);
        else
            value[n++] = (char)data[i];
    }
    value[n] = '\0';
    write_file(i < size ? data + i + 1 : data, i < size ? size - i - 1 : 0);
    check_references(value);
    resolve(providers, value);
    return 0;
}
