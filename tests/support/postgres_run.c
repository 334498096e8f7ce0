/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL for integration tests, by tests/postgres/postgres.sh. */
#include "support/postgres_run.h"

#include "support/process.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MS 180000

static char folder[128];
static char url[256];

static char *script(const char *verb, const char *more)
{
    const char *command =
        scratch_text("POSTGRES_RUN='%s' tests/postgres/postgres.sh %s %s", folder, verb, more);
    char *output;
    int rc = process_shell(command, CALL_MS, &output);

    if (rc != 0)
        fail_msg("%s: exit %d: %s", command, rc, output == NULL ? "" : output);
    return output;
}

/* After the last test: no scratch functions here. */
static void stop(void)
{
    char command[4400];

    snprintf(command, sizeof(command), "POSTGRES_RUN='%s' '%s/tests/postgres/postgres.sh' stop",
             folder, TEST_SOURCE);
    if (system(command) != 0)
        fprintf(stderr, "could not stop PostgreSQL in %s\n", folder);
}

const char *postgres_run_url(void)
{
    const char *at;

    if (url[0] != '\0')
        return url;
    snprintf(folder, sizeof(folder), "/tmp/millrace-test-postgres-%d", (int)getpid());
    atexit(stop);
    at = strchr(script("start", ""), '@');
    assert_non_null(at);
    snprintf(url, sizeof(url), "jdbc:postgresql://%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return url;
}

/* In single quotes for the shell. */
static const char *quoted(const char *text)
{
    char *out = scratch_keep(malloc(4 * strlen(text) + 3)), *to = out;

    *to++ = '\'';
    for (; *text != '\0'; text++)
        if (*text == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *text;
    strcpy(to, "'");
    return out;
}

const char *postgres_run_sql(const char *fmt, ...)
{
    va_list args;
    char *query, *answer;

    postgres_run_url();
    va_start(args, fmt);
    if (vasprintf(&query, fmt, args) < 0)
        query = NULL;
    va_end(args);
    assert_non_null(query);
    answer = script("sql", quoted(scratch_keep(query)));
    if (answer[0] != '\0' && answer[strlen(answer) - 1] == '\n')
        answer[strlen(answer) - 1] = '\0';
    return answer;
}

void postgres_run_kill(void)
{
    script("kill", "");
}

void postgres_run_restart(void)
{
    script("restart", "");
}
