/* SPDX-License-Identifier: Apache-2.0 */
/* millrace: one binary, a table of verbs. The only file that knows both the worker and the host.
 *
 * Exit codes: 0 done · 1 usage · 2 bad configuration or failed initialisation · 3 failed start, or
 * a connector file that can't be used · 70 an internal error of a host · 128 + n ended at once by a
 * second signal n. */
#include "base/thread.h"
#include "host/host.h"
#include "worker/worker.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_USAGE 1

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *arguments;
    const char *summary; /* NULL: internal, not listed */
    const char *help;
    const char *sample; /* of the file that it is given; NULL none */
};

static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

static const struct verb verbs[] = {
    {"standalone", worker_standalone,
     "WORKER.properties [CONNECTOR.properties | CONNECTOR.json ...]",
     "run one worker that keeps its state in memory and in one file",
     "Runs a Kafka Connect worker on its own. WORKER.properties is a worker file by Kafka "
     "Connect's names;\n"
     "connectors come from the files named after it and by REST.\n"
     "A connector file is a properties file, a JSON object of texts, or {\"name\", \"config\", "
     "\"initial_state\"}.\n"
     "\n"
     "SIGTERM and SIGINT stop it in order; a second one ends it at once.\n"
     "\n"
     "Exit codes:\n"
     "  0  stopped in order\n"
     "  1  wrong usage\n"
     "  2  bad configuration, or an initialisation that failed (port in use, folder not writable, "
     "...)\n"
     "  3  a connector file that can't be used, or its connector's start failed\n"
     "  128 + n  ended at once by a second signal n\n",
     "standalone.properties"},
    {"worker", worker_cluster, "WORKER.properties",
     "run one worker of a cluster that keeps its state in Kafka",
     "Runs a Kafka Connect worker in distributed mode. All workers with the same group.id, Kafka "
     "and "
     "topics form\n"
     "one cluster and share its connectors and tasks; each answers REST for all of them. "
     "Connectors "
     "are created\n"
     "by REST.\n"
     "\n"
     "SIGTERM and SIGINT stop it in order, and its work goes to the others; a second one ends it "
     "at "
     "once.\n"
     "\n"
     "Exit codes:\n"
     "  0  stopped in order\n"
     "  1  wrong usage, or the group or the topics can't be used\n"
     "  2  bad configuration, or an initialisation that failed (port in use, folder not writable, "
     "...)\n"
     "  128 + n  ended at once by a second signal n\n",
     "distributed.properties"},
    {"help", run_help, "[VERB]", "explain a verb", "Lists the verbs, or explains one.\n", NULL},
    {"version", run_version, "", "print the version",
     "Prints the version of Millrace and of the Kafka Connect that it answers as.\n", NULL},
    {"host", host_main, "NAME", NULL,
     "Internal: the process of one connector, born from a worker with open descriptors. Not to be "
     "run by hand.\n",
     NULL},
    {"nest", nest_main, "", NULL,
     "Internal: the process that a worker forks its hosts from. Not to be run by hand.\n", NULL},
    {"scan", scan_main, "LIBRARY ...", NULL,
     "Internal: opens plugin libraries and describes what is in them, one JSON object a line.\n",
     NULL},
    {"check", check_main, "", NULL,
     "Internal: asks transforms and predicates whether values of a configuration will do.\n", NULL},
    {"service", service_main, "NAME", NULL,
     "Internal: the process of a plugin that is no connector's, such as a config provider. Not to "
     "be "
     "run by hand.\n",
     NULL},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static const struct verb *find(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* Where a sample lies: in the tree that this binary was built in, beside where it was installed, or
 * in /etc. */
static void tell_sample(FILE *to, const char *name)
{
    static const char *const places[] = {"../../config", "../etc/millrace", "/etc/millrace"};
    char exe[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int folder = places[i][0] == '/' ? 0 : (int)(strrchr(exe, '/') - exe + 1);

        snprintf(path, sizeof(path), "%.*s%s/%s", folder, exe, places[i], name);
        if (realpath(path, real) != NULL) {
            fprintf(to, "\nA sample: %s\n", real);
            return;
        }
    }
}

static int usage(FILE *to)
{
    fprintf(to, "usage: millrace VERB [ARGUMENTS]\n\n");
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i].summary != NULL)
            fprintf(to, "  %-12s %s\n", verbs[i].name, verbs[i].summary);
    fprintf(to, "\nmillrace help VERB explains one. millrace --version prints the version.\n");
    return to == stdout ? 0 : 1;
}

static int unknown(const char *name)
{
    fprintf(stderr, "millrace: no verb '%s'\n\n", name);
    return usage(stderr);
}

static int run_help(int argc, char **argv)
{
    const struct verb *verb;

    if (argc < 2)
        return usage(stdout);
    verb = find(argv[1]);
    if (verb == NULL)
        return unknown(argv[1]);
    printf("usage: millrace %s%s%s\n\n%s", verb->name, verb->arguments[0] != '\0' ? " " : "",
           verb->arguments, verb->help);
    if (verb->sample != NULL)
        tell_sample(stdout, verb->sample);
    return 0;
}

/* No verb has options: settings stand in files. */
static const char *option_in(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-')
            return argv[i];
    return NULL;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    const char *option = verb->summary != NULL ? option_in(argc, argv) : NULL;
    int code = option == NULL ? verb->run(argc, argv) : EXIT_USAGE;

    if (option != NULL)
        fprintf(stderr, "millrace: %s has no option %s\n", verb->name, option);

    if (code == EXIT_USAGE && verb->summary != NULL) {
        fprintf(stderr, "usage: millrace %s %s\n", verb->name, verb->arguments);
        if (verb->sample != NULL)
            tell_sample(stderr, verb->sample);
        fprintf(stderr, "millrace help %s explains it.\n", verb->name);
    }
    return code == WORKER_LOST ? 1 : code;
}

static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("millrace %s (Kafka Connect %s)\n", MILLRACE_VERSION, worker_connect_version());
    return 0;
}

static bool asks_for_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

int main(int argc, char **argv)
{
    const struct verb *verb;
    char *help[] = {argv[0], argc > 1 ? argv[1] : NULL, NULL};

    thread_c_locale();
    if (argc < 2)
        return usage(stderr);
    if (asks_for_help(argv[1]))
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0)
        return run_version(argc, argv);
    verb = find(argv[1]);
    if (verb == NULL)
        return unknown(argv[1]);
    if (argc > 2 && verb->summary != NULL && asks_for_help(argv[2]))
        return run_help(2, help);
    return run_verb(verb, argc - 1, argv + 1);
}
