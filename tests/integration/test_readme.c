/* SPDX-License-Identifier: Apache-2.0 */
/* README.md is true to the letter: every ```console block is run from top to bottom, as a newcomer
 * would type it, and each line of output is compared; `…` stands for anything. Only ports, the
 * build folder and the files in /tmp are others, so that the test disturbs nobody. A command that
 * ends in & goes on until the end; a plain look (no -X, no -d) is repeated for some seconds, since
 * a person too is slower than a machine. */
#include "support/process.h"
#include "support/scratch.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMAND_MS 60000
#define LOOK_AGAIN_MS 15000
#define BLOCK "```console\n"

struct swap {
    const char *from;
    const char *to;
};

static struct swap swaps[8];
static size_t swap_count;

static const struct swap *swap_at(const char *text)
{
    for (size_t i = 0; i < swap_count; i++)
        if (strncmp(text, swaps[i].from, strlen(swaps[i].from)) == 0)
            return &swaps[i];
    return NULL;
}

/* text with every `from` replaced, in one pass: what a replacement holds (a checkout below /tmp) is
 * left alone. */
static const char *ours(const char *text)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);

    assert_non_null(f);
    while (*text != '\0') {
        const struct swap *swap = swap_at(text);

        if (swap != NULL)
            fputs(swap->to, f);
        else
            fputc(*text, f);
        text += swap != NULL ? strlen(swap->from) : 1;
    }
    fclose(f);
    return scratch_keep(out);
}

static bool matches(const char *text, const char *pattern)
{
    const char *any = strstr(pattern, "…");
    size_t len;

    if (any == NULL)
        return strcmp(text, pattern) == 0;
    len = (size_t)(any - pattern);
    if (strncmp(text, pattern, len) != 0)
        return false;
    pattern = any + strlen("…");
    for (text += len; *text != '\0'; text++)
        if (matches(text, pattern))
            return true;
    return matches(text, pattern);
}

/* White space at the end of an answer does not count: JSON has no newline there. */
static const char *trimmed(const char *text)
{
    size_t len = strlen(text);

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    return scratch_text("%.*s", (int)len, text);
}

static bool is_a_look(const char *command)
{
    return strstr(command, " -X") == NULL && strstr(command, " -d") == NULL &&
           strstr(command, ">>") == NULL;
}

static struct process *jobs[4]; /* %1 and on */
static size_t job_count;

static void start_in_background(const char *command, const char *mark)
{
    const char *line =
        scratch_text("cd '%s' && exec %.*s", TEST_SOURCE, (int)strlen(command) - 1, command);
    const char *argv[] = {"bash", "-c", line, NULL};

    assert_true(job_count < 4);
    jobs[job_count++] = process_start(argv, scratch_path("background.log"), mark);
}

/* `kill %1 %2`: they end in order. */
static void end_jobs(void)
{
    assert_true(job_count > 0);
    for (size_t i = 0; i < job_count; i++)
        process_signal(jobs[i], SIGTERM);
    while (job_count > 0)
        assert_int_equal(process_wait(jobs[--job_count], COMMAND_MS), 0);
}

static void run(const char *command, const char *expected)
{
    int64_t from = scratch_now_ms();
    char *output;

    printf("             $ %s\n", command);
    fflush(stdout);
    for (;;) {
        int rc = process_shell(command, COMMAND_MS, &output);

        if (rc == 0 && matches(trimmed(output), trimmed(expected)))
            return;
        if (!is_a_look(command) || scratch_since(from) > LOOK_AGAIN_MS)
            fail_msg("README.md: $ %s\nexit %d; it says:\n%s\nthe README says:\n%s", command, rc,
                     output, expected);
        scratch_pause(100);
    }
}

/* One block: commands behind "$ ", going on after a backslash, each followed by its output. */
static void run_block(char *block, const char *mark)
{
    char *at = block;

    while (*at != '\0') {
        char *end = at, *output, *next;

        assert_true(strncmp(at, "$ ", 2) == 0);
        do {
            end = strchr(end + 1, '\n');
            assert_non_null(end);
        } while (end[-1] == '\\');
        *end = '\0';
        output = end + 1;
        next = strncmp(output, "$ ", 2) == 0 ? output : strstr(output, "\n$ ");
        if (next == NULL)
            next = output + strlen(output);
        else if (next != output)
            *next++ = '\0';
        if (end[-1] == '&')
            start_in_background(ours(at + 2), mark);
        else if (strncmp(at + 2, "kill %", 6) == 0)
            end_jobs();
        else
            run(ours(at + 2), next == output ? "" : ours(output));
        at = next;
    }
}

static void stop_kafka(void *arg)
{
    char command[8192];

    snprintf(command, sizeof(command), "KAFKA_RUN='%s' '%s/tests/kafka/kafka.sh' stop",
             (const char *)arg, TEST_SOURCE);
    if (system(command) != 0)
        fprintf(stderr, "could not stop the broker in %s\n", (const char *)arg);
}

static void end_marked(void *arg)
{
    pid_t pids[64];
    size_t count = process_marked(arg, pids, 64);

    for (size_t i = 0; i < count && i < 64; i++)
        kill(pids[i], SIGKILL);
}

/* The shipped configurations, with our ports and our folder. */
static void prepare(void)
{
    static const char *const shipped[] = {"config/standalone.properties",
                                          "config/distributed.properties"};
    const char *tmp = scratch_path("tmp");

    assert_int_equal(mkdir(tmp, 0755), 0);
    swap_count = 0;
    swaps[swap_count++] = (struct swap){"build/release", TEST_BUILD};
    swaps[swap_count++] = (struct swap){"9092", scratch_text("%d", worker_run_free_port())};
    swaps[swap_count++] = (struct swap){"8083", scratch_text("%d", worker_run_free_port())};
    swaps[swap_count++] = (struct swap){"8084", scratch_text("%d", worker_run_free_port())};
    swaps[swap_count++] = (struct swap){"/tmp/", scratch_text("%s/", tmp)};
    for (size_t i = 0; i < 2; i++) {
        const char *own = scratch_path(strchr(shipped[i], '/') + 1);
        char *text = scratch_read(scratch_text("%s/%s", TEST_SOURCE, shipped[i]), NULL);

        assert_non_null(text);
        scratch_write_text(own, ours(text));
        swaps[swap_count++] = (struct swap){shipped[i], own};
    }
}

static void every_command_of_the_readme_does_what_it_says(void **state)
{
    char *readme = scratch_read(TEST_SOURCE "/README.md", NULL);
    const char *folder = scratch_path("kafka"), *mark = scratch_name("readme");
    size_t blocks = 0;

    (void)state;
    assert_non_null(readme);
    prepare();
    setenv("KAFKA_RUN", folder, 1);
    scratch_at_end(stop_kafka, (void *)folder);
    scratch_at_end(end_marked, (void *)mark);
    for (char *at = strstr(readme, BLOCK); at != NULL; at = strstr(at, BLOCK)) {
        char *end;

        at += strlen(BLOCK);
        end = strstr(at, "```");
        assert_non_null(end);
        *end = '\0';
        run_block(at, mark);
        at = end + 3;
        blocks++;
    }
    assert_true(blocks > 0);
}

/* `make <target>` in a ```sh block names a target that there is. */
static void every_make_target_of_the_readme_exists(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(
        process_shell("sed -n '/^```sh$/,/^```$/s/^make  *\\([a-z-]*\\)\\( .*\\|$\\)/\\1/p' "
                      "README.md CONTRIBUTING.md | grep . | sort -u | "
                      "while read -r target; do grep -q \"^$target:\" Makefile || echo \"no target "
                      "$target\"; done",
                      COMMAND_MS, &output),
        0);
    assert_string_equal(output, "");
}

/* Paths in backquotes or links that look like files of the tree are there. */
static void every_file_that_a_map_names_exists(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(
        process_shell("for map in README.md CONTRIBUTING.md; do "
                      "grep -o '](\\([^)#:]*\\))' $map | tr -d '()]' | while read -r file; do "
                      "[ -e \"$file\" ] || echo \"$map names $file\"; done; done",
                      COMMAND_MS, &output),
        0);
    assert_string_equal(output, "");
}

/* The plugin that is shown is the example that is built and run by another test. */
static void the_plugin_that_is_shown_is_the_example(void **state)
{
    char *readme = scratch_read(TEST_SOURCE "/README.md", NULL);
    char *example = scratch_read(TEST_SOURCE "/examples/hello_source/hello_source.c", NULL);

    (void)state;
    assert_non_null(readme);
    assert_non_null(example);
    assert_non_null(strstr(readme, scratch_text("```c\n%s```\n", example)));
}

static void the_demo_of_a_cluster_loses_no_line(void **state)
{
    char *output = NULL;
    int rc = process_shell("tests/demo-cluster.sh " TEST_BUILD "/millrace", 120000, &output);

    (void)state;
    if (rc != 0 || strstr(output, "out.txt has 4000 different ones") == NULL)
        fail_msg("it ends with %d: %s", rc, output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(every_command_of_the_readme_does_what_it_says),
        scratch_test(the_demo_of_a_cluster_loses_no_line),
        scratch_test(the_plugin_that_is_shown_is_the_example),
        scratch_test(every_make_target_of_the_readme_exists),
        scratch_test(every_file_that_a_map_names_exists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
