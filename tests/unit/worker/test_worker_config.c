/* SPDX-License-Identifier: Apache-2.0 */
/* worker_config: Kafka's own sample file starts as it is, every mistake is told with file, line,
 * key and remedy, and what would be dangerous to ignore ends the start. run_dir: one worker a
 * folder, and a folder of its own. */
#include "base/file.h"
#include "worker/run_dir.h"
#include "worker/worker_config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char folder[64];
    char path[96];
    char log[96];
    struct worker_config config;
    struct mr_error err;
    int stderr_fd;
    bool cluster; /* of which its worker is one */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/millrace-config-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/w.properties", f->folder);
    snprintf(f->log, sizeof(f->log), "%s/log", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char lock[160];

    worker_config_deinit(&f->config);
    snprintf(lock, sizeof(lock), "%s/run/worker.lock", f->folder);
    unlink(lock);
    snprintf(lock, sizeof(lock), "%s/run", f->folder);
    rmdir(lock);
    unlink(f->path);
    unlink(f->log);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

/* Load a file of these lines, with what is logged into f->log. */
static int load(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->path, "w");
    int fd, rc;

    fputs(text, file);
    fclose(file);
    fflush(stderr);
    f->stderr_fd = dup(2);
    fd = open(f->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 2);
    close(fd);
    worker_config_deinit(&f->config);
    memset(&f->err, 0, sizeof(f->err));
    rc = (f->cluster ? worker_config_load_cluster : worker_config_load)(&f->config, f->path,
                                                                        &f->err);
    dup2(f->stderr_fd, 2);
    close(f->stderr_fd);
    return rc;
}

static bool logged(struct fixture *f, const char *text)
{
    struct buf log;
    bool found;

    buf_init(&log, 1 << 20);
    assert_int_equal(file_read(f->log, &log, NULL), 0);
    found = log.data != NULL && strstr(log.data, text) != NULL;
    buf_deinit(&log);
    return found;
}

#define GOOD \
    "key.converter=org.apache.kafka.connect.json.JsonConverter\n" \
    "value.converter=org.apache.kafka.connect.json.JsonConverter\n" \
    "offset.storage.file.filename=/tmp/connect.offsets\n"
#define LINE "4" /* the first line behind GOOD */

static void refused(struct fixture *f, const char *line, const char *text)
{
    char all[2048], want[1200];

    snprintf(all, sizeof(all), GOOD "%s\n", line);
    assert_int_equal(load(f, all), MR_ERR_CONFIG);
    snprintf(want, sizeof(want), "%s:" LINE ": %s", f->path, text);
    if (strcmp(f->err.text, want) != 0)
        fail_msg("'%s' where '%s' belongs", f->err.text, want);
}

static void accepted(struct fixture *f, const char *lines)
{
    char all[2048];

    snprintf(all, sizeof(all), GOOD "%s\n", lines);
    if (load(f, all) != 0)
        fail_msg("%s", f->err.text);
}

static void kafka_s_sample_file_is_taken_as_it_is(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(load(f, "bootstrap.servers=localhost:9092\n"
                             "key.converter=org.apache.kafka.connect.json.JsonConverter\n"
                             "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
                             "key.converter.schemas.enable=true\n"
                             "value.converter.schemas.enable=true\n"
                             "offset.storage.file.filename=/tmp/connect.offsets\n"
                             "offset.flush.interval.ms=10000\n"
                             "#plugin.path=\n"),
                     0);
    assert_false(logged(f, "WARN"));
    assert_int_equal(f->config.offset_flush_ms, 10000);
    assert_int_equal(f->config.graceful_ms, 5000);
    assert_int_equal(f->config.restart_max, 5);
    assert_string_equal(f->config.offset_file, "/tmp/connect.offsets");
    assert_int_equal(f->config.listener_count, 1);
    assert_string_equal(f->config.listeners[0].host, "localhost");
    assert_int_equal(f->config.listeners[0].port, 8083);
    assert_non_null(f->config.run_dir);
}

static void what_is_required_is_named(void **state)
{
    struct fixture *f = *state;
    char want[2048];

    assert_int_equal(load(f, ""), MR_ERR_CONFIG);
    snprintf(want, sizeof(want),
             "%s: Missing required configuration \"key.converter\" which has no default value.; "
             "%s: Missing required configuration \"value.converter\" which has no default value.; "
             "%s: Missing required configuration \"offset.storage.file.filename\" which has no "
             "default value.",
             f->path, f->path, f->path);
    assert_string_equal(f->err.text, want);
}

/* Each that is told is told whole. */
static void what_there_is_no_room_to_tell_is_counted(void **state)
{
    static const char lines[] = "offset.flush.interval.ms=never\n"
                                "offset.flush.timeout.ms=never\n"
                                "metrics.num.samples=never\n"
                                "metrics.sample.window.ms=never\n"
                                "task.shutdown.graceful.timeout.ms=never\n"
                                "millrace.restart.max=never\n"
                                "millrace.services.timeout.ms=never\n"
                                "rest.advertised.port=never\n";
    struct fixture *f = *state;
    const char *last, *more;
    int told = 1, untold = 0;

    assert_int_equal(load(f, lines), MR_ERR_CONFIG);
    for (last = f->err.text; (more = strstr(last, "; ")) != NULL; last = more + 2)
        told++;
    assert_int_equal(sscanf(last, "and %d more", &untold), 1);
    assert_int_equal(told - 1 + untold, 8 + 3); /* three that are required */
}

static void bad_values_are_told_with_file_and_line(void **state)
{
    struct fixture *f = *state;

    refused(f, "task.shutdown.graceful.timeout.ms=-1",
            "Invalid value -1 for configuration task.shutdown.graceful.timeout.ms: Value must be "
            "at least 0");
    refused(
        f, "millrace.restart.max=101",
        "Invalid value 101 for configuration millrace.restart.max: Value must be no more than 100");
    refused(f, "topic.creation.enable=yes",
            "Invalid value yes for configuration topic.creation.enable: Expected value to be "
            "either true or false");
    refused(f, "metrics.recording.level=LOUD",
            "Invalid value LOUD for configuration metrics.recording.level: String must be one of: "
            "INFO, DEBUG");
    refused(
        f, "connector.client.config.override.policy=org.x.Mine",
        "Invalid value org.x.Mine for configuration "
        "connector.client.config.override.policy: policies are All, None, Principal and Allowlist");
}

/* A text that is no number is no number out of range too. */
static void one_mistake_is_told_once(void **state)
{
    struct fixture *f = *state;

    refused(f, "offset.flush.interval.ms=12x",
            "Invalid value 12x for configuration offset.flush.interval.ms: Not a number of type "
            "LONG");
}

static void a_plugin_folder_with_a_tilde_is_refused(void **state)
{
    struct fixture *f = *state;

    refused(f, "plugin.path=/opt/plugins, ~/plugins",
            "Invalid value ~/plugins for configuration plugin.path: ~ is not expanded in a file, "
            "write the folder's whole path");
}

static void settings_of_kafka_clients_are_told_with_file_and_line(void **state)
{
    struct fixture *f = *state;
    char text[256];

    accepted(f, "producer.lingr.ms=5\nadmin.interceptor.classes=x\nconsumer.interceptor.classes=x\n"
                "metric.reporters=x");
    snprintf(text, sizeof(text),
             "%s:4: producer.lingr.ms: unknown setting, ignored; did you mean linger.ms?", f->path);
    assert_true(logged(f, text));
    snprintf(text, sizeof(text), "%s:6: consumer.interceptor.classes: ", f->path);
    assert_true(logged(f, text));
    snprintf(text, sizeof(text), "%s:7: metric.reporters has no effect: ", f->path);
    assert_true(logged(f, text));
    assert_false(logged(f, "a client's"));
    refused(f, "producer.linger.ms=5x",
            "Invalid value 5x for configuration linger.ms: Not a number of type LONG");
    refused(f, "admin.sasl.username=u",
            "\"sasl.username\" is a setting of librdkafka, not of Kafka's Java clients: use "
            "sasl.jaas.config instead");
    refused(f, "consumer.security.providers=org.x.Mine",
            "Configuration security.providers can't be honoured: Java security providers can't run "
            "here; remove it");
}

static void without_brokers_there_is_a_default(void **state)
{
    struct fixture *f = *state;

    accepted(f, "");
    assert_string_equal(worker_config_servers(&f->config), "localhost:9092");
    accepted(f, "bootstrap.servers=a:1,b:2");
    assert_string_equal(worker_config_servers(&f->config), "a:1,b:2");
}

static void listeners_are_read_and_their_mistakes_told_as_connect_does(void **state)
{
    struct fixture *f = *state;

    accepted(f, "listeners=http://:8080, HTTPS://h:1, http://[::1]:0");
    assert_int_equal(f->config.listener_count, 3);
    assert_string_equal(f->config.listeners[0].host, "");
    assert_int_equal(f->config.listeners[0].port, 8080);
    assert_true(f->config.listeners[1].https);
    assert_string_equal(f->config.listeners[2].host, "::1");
    assert_int_equal(f->config.listeners[2].port, 0);
    refused(f, "listeners=ftp://x:1",
            "Invalid value ftp://x:1 for configuration listeners: Listener protocol must be either "
            "\"http\" or \"https\".");
    refused(f, "listeners=http://x",
            "Invalid value http://x for configuration listeners: Listener doesn't have the right "
            "format "
            "(protocol://hostname:port).");
    refused(f, "listeners=http://x:65536",
            "Invalid value http://x:65536 for configuration listeners: Listener doesn't have the "
            "right format (protocol://hostname:port).");
    refused(
        f, "listeners=http://x:1y",
        "Invalid value http://x:1y for configuration listeners: Listener doesn't have the right "
        "format (protocol://hostname:port).");
    refused(f, "listeners=",
            "Invalid value for listeners, at least one URL is expected, ex: "
            "http://localhost:8080,https://localhost:8443.");
    refused(
        f, "listeners=http://a:1,,http://b:2",
        "Invalid value  for configuration listeners: Empty URL found when parsing listeners list.");
}

static void administration_has_its_own_listeners_or_none(void **state)
{
    struct fixture *f = *state;

    accepted(f, "listeners=http://a:1");
    assert_false(f->config.admin_apart);
    accepted(f, "listeners=http://a:1\nadmin.listeners=");
    assert_true(f->config.admin_apart);
    assert_int_equal(f->config.listener_count, 1);
    accepted(f, "listeners=http://a:1\nadmin.listeners=https://b:2,http://c:3");
    assert_int_equal(f->config.listener_count, 3);
    assert_false(f->config.listeners[0].admin);
    assert_true(f->config.listeners[1].admin && f->config.listeners[1].https);
    assert_string_equal(f->config.listeners[2].host, "c");
    refused(f, "admin.listeners=ftp://a:1",
            "Invalid value ftp://a:1 for configuration admin.listeners: Listener protocol must be "
            "either \"http\" or \"https\".");
}

static void what_would_open_a_door_ends_the_start(void **state)
{
    struct fixture *f = *state;

    refused(f, "exactly.once.source.support=enabled",
            "exactly.once.source.support: a standalone worker can't deliver exactly once from "
            "sources: start it by `millrace worker`, or set this to disabled");
    assert_false(logged(f, "exactly.once.source.support is a setting of"));
    accepted(f, "exactly.once.source.support=DISABLED");
}

static void references_are_resolved_once_and_hidden(void **state)
{
    struct fixture *f = *state;
    char lines[1024];
    const char *reference, *value;

    setenv("TEST_CONFIG_PASSWORD", "hunter2-hunter2", 1);
    setenv("TEST_CONFIG_FILE", "/no/such/file", 1);
    accepted(f, "config.providers=env\n"
                "config.providers.env.class=org.apache.kafka.common.config.provider."
                "EnvVarConfigProvider\n"
                "plugin.path=/usr\n"
                "producer.client.id=x-${env:TEST_CONFIG_PASSWORD}\n"
                "admin.client.id=${env:TEST_CONFIG_NONE}${none:x}\n");
    assert_string_equal(props_get(&f->config.props, "producer.client.id"), "x-hunter2-hunter2");
    assert_string_equal(props_get(&f->config.props, "admin.client.id"),
                        "${env:TEST_CONFIG_NONE}${none:x}");
    assert_true(logged(f,
                       "admin.client.id has a reference ${env:TEST_CONFIG_NONE} that stays as it "
                       "is: its config provider has no such value; and ${none:...} that stays"));
    assert_true(secrets_at(f->config.secrets, 0, &reference, &value));
    assert_string_equal(reference, "${env:TEST_CONFIG_PASSWORD}");
    assert_false(logged(f, "unknown key config.providers"));
    /* Told with its line, and logged without the value. */
    refused(f,
            "listeners=${env:TEST_CONFIG_PASSWORD}\nconfig.providers=env\n"
            "config.providers.env.class=EnvVarConfigProvider",
            "Invalid value hunter2-hunter2 for configuration listeners: Listener doesn't have the "
            "right format (protocol://hostname:port).");
    load(f, GOOD "offset.flush.timeout.ms.x=${env:TEST_CONFIG_PASSWORD}\n"
                 "group.id=${env:TEST_CONFIG_PASSWORD}\n"
                 "config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n");
    assert_false(logged(f, "hunter2"));
    snprintf(lines, sizeof(lines),
             "config.providers=file\n"
             "config.providers.file.class=FileConfigProvider\n"
             "client.id=${file:/no/such/file:k}\n");
    snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), "%s", GOOD);
    assert_int_equal(load(f, lines), MR_ERR_IO);
    assert_non_null(strstr(f->err.text, ":3: client.id: Could not read properties from file "
                                        "/no/such/file: /no/such/file does not exist"));
    refused(f, "config.providers.v.class=com.example.Vault\nconfig.providers=v",
            "Invalid value com.example.Vault for configuration config.providers.v.class: Could not "
            "load config provider class or one of its dependencies (built in are "
            "FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider of "
            "org.apache.kafka.common.config.provider; others are found by plugin.path)");
}

static void a_provider_that_is_none_is_told_at_start(void **state)
{
    struct fixture *f = *state;

    accepted(f, "config.providers=env,file\nconfig.providers.evn.class=EnvVarConfigProvider\n"
                "config.providers.file.class=FileConfigProvider\n"
                "config.providers.file.param.allowed.path=/tmp\n"
                "config.providers.file.allowed.paths=/tmp\nconfig.providers.file.clas=x\n"
                "config.providers.other.class=EnvVarConfigProvider\n");
    assert_true(logged(f, ":" LINE ": config.providers names env, but config.providers.env.class "
                          "is not set: references to it stay as they are"));
    assert_true(logged(f, "config.providers.evn.class has no effect: config.providers has no such "
                          "name: did you mean env?"));
    assert_true(logged(f, "unknown key config.providers.file.param.allowed.path: did you mean "
                          "config.providers.file.param.allowed.paths?"));
    assert_true(logged(f, "unknown key config.providers.file.allowed.paths: did you mean "
                          "config.providers.file.param.allowed.paths?"));
    assert_true(logged(f, "unknown key config.providers.file.clas: did you mean "
                          "config.providers.file.class?"));
    assert_true(logged(f,
                       "config.providers.other.class has no effect: config.providers has no such "
                       "name\n"));
}

static void right_providers_are_not_remarked_upon(void **state)
{
    struct fixture *f = *state;

    accepted(f, "config.providers=file,env\nconfig.providers.file.class=FileConfigProvider\n"
                "config.providers.file.param.allowed.paths=/tmp\n"
                "config.providers.env.class=EnvVarConfigProvider\n"
                "config.providers.env.param.allowlist.pattern=A.*\n");
    assert_false(logged(f, "config.providers"));
}

static void where_services_are_asked_is_nobody_s_to_say(void **state)
{
    struct fixture *f = *state;

    accepted(f, "config.providers.millrace.socket=mine\n");
    assert_null(props_get(&f->config.props, PROVIDER_SOCKET_KEY));
    refused(f, "millrace.services.timeout.ms=5",
            "Invalid value 5 for configuration millrace.services.timeout.ms: Value must be at "
            "least 100");
}

static void a_plugin_path_is_taken_as_it_is_written(void **state)
{
    struct fixture *f = *state;

    setenv("TEST_CONFIG_PATH", "/usr", 1);
    accepted(f, "plugin.path=${env:TEST_CONFIG_PATH}\nconfig.providers=env\n"
                "config.providers.env.class=EnvVarConfigProvider");
    assert_string_equal(f->config.plugin_path[0], "${env:TEST_CONFIG_PATH}");
}

static void security_that_cannot_be_honoured_ends_the_start_with_the_remedy(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[] = {
        "security.protocol=SSL\nssl.truststore.location=/etc/trust.jks\nssl.truststore.type=JKS",
        "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM",
        "producer.security.protocol=SASL_SSL\nproducer.sasl.mechanism=AWS_MSK_IAM",
        "consumer.sasl.login.callback.handler.class=com.example.Mine\nconsumer.security.protocol="
        "SASL_SSL",
    };
    char all[2048];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(all, sizeof(all), GOOD "%s\n", lines[i]);
        if (load(f, all) != MR_ERR_CONFIG)
            fail_msg("accepted: %s", lines[i]);
    }
}

static void unknown_keys_are_warned_about_with_the_nearest_known_one(void **state)
{
    struct fixture *f = *state;
    char text[256];

    accepted(f, "bootstrap.server=x:1\nmy.thing=1\nmillrace.restart.maxx=1\nproducer.batch.size="
                "1\nkey.converter.zzz=1\n"
                "group.id=g\nstatus.storage.topic=s\nconfig.storage.min.insync.replicas=2\nadmin."
                "listeners=\n"
                "metrics.context.label=x\nsasl.login.refresh.window.factor=0.9");
    snprintf(text, sizeof(text),
             "%s:4: unknown key bootstrap.server: did you mean bootstrap.servers?", f->path);
    assert_true(logged(f, text));
    snprintf(text, sizeof(text), "%s:5: unknown key my.thing\n", f->path);
    assert_true(logged(f, text));
    assert_true(logged(f, "unknown key millrace.restart.maxx: did you mean millrace.restart.max?"));
    assert_true(logged(f, "group.id is a setting of distributed workers: it has no effect here"));
    assert_true(
        logged(f, "config.storage.min.insync.replicas is a setting of distributed workers"));
    assert_false(logged(f, "key.converter.zzz"));
    assert_false(logged(f, "unknown key producer.batch.size"));
    assert_false(logged(f, "metrics.context"));
}

static void secrets_are_not_logged(void **state)
{
    struct fixture *f = *state;

    accepted(f, "sasl.jaas.confg=hunter2\nsasl.jaas.config=org.apache.kafka.common.security.plain."
                "PlainLoginModule required "
                "username=\"u\" "
                "password=\"hunter2\";\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN");
    assert_true(logged(f, "unknown key sasl.jaas.confg: did you mean sasl.jaas.config?"));
    assert_false(logged(f, "hunter2"));
}

static void policies_have_short_and_java_names(void **state)
{
    struct fixture *f = *state;

    accepted(f, "connector.client.config.override.policy=None");
    accepted(
        f,
        "connector.client.config.override.policy="
        "org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy");
    accepted(f, "connector.client.config.override.policy=Allowlist\nconnector.client.config."
                "override.allowlist=a, b");
}

/* --- the run folder --------------------------------------------------------------------------- */

static void the_run_folder_depends_on_the_offset_file(void **state)
{
    struct fixture *f = *state;
    char same[128], *a, *b, *c;

    snprintf(same, sizeof(same), "%s/../%s/o", f->folder, strrchr(f->folder, '/') + 1);
    a = run_dir_default(same);
    snprintf(same, sizeof(same), "%s/o", f->folder);
    b = run_dir_default(same);
    snprintf(same, sizeof(same), "%s/p", f->folder);
    c = run_dir_default(same);
    assert_string_equal(a, b);
    assert_string_not_equal(b, c);
    free(a);
    free(b);
    free(c);
}

/* Open the run folder <folder>/run, named by the configuration. */
static int open_run(struct fixture *f, struct run_dir *dir, struct mr_error *err)
{
    char line[160];

    snprintf(line, sizeof(line), "millrace.run.dir=%s/run", f->folder);
    accepted(f, line);
    return run_dir_open(dir, &f->config, err);
}

static void a_second_worker_on_one_folder_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    struct run_dir dir, second;
    char want[64];
    int status;

    assert_int_equal(open_run(f, &dir, &err), 0);
    if (fork() == 0) {
        snprintf(want, sizeof(want), "another worker (pid %d) runs", (int)getppid());
        _exit(run_dir_open(&second, &f->config, &err) == MR_ERR_EXISTS &&
                      strstr(err.text, want) != NULL
                  ? 0
                  : 1);
    }
    wait(&status);
    assert_int_equal(WEXITSTATUS(status), 0);
    run_dir_close(&dir);
}

/* --- the state folder of a cluster's worker --- */

static void expect_state(const char *run_dir, const char *want)
{
    char *got = run_dir_default_state(run_dir);

    if (want == NULL)
        assert_null(got);
    else
        assert_string_equal(got, want);
    free(got);
}

static void state_outlives_the_machine_where_the_user_or_systemd_keeps_such(void **state)
{
    struct fixture *f = *state;
    char want[160], several[160], *home = getenv("HOME");

    home = home != NULL ? strdup(home) : NULL;
    snprintf(several, sizeof(several), "%s:/var/lib/other", f->folder);
    setenv("STATE_DIRECTORY", several, 1);
    snprintf(want, sizeof(want), "%s/millrace/abc", f->folder);
    expect_state("/tmp/millrace-0/abc", want);
    unsetenv("STATE_DIRECTORY");
    setenv("XDG_STATE_HOME", "/no/such/folder", 1);
    setenv("HOME", f->folder, 1);
    snprintf(want, sizeof(want), "%s/.local/state/millrace/abc", f->folder);
    expect_state("/tmp/millrace-0/abc", want);
    setenv("HOME", "/no/such/folder", 1);
    expect_state("/tmp/millrace-0/abc", NULL);
    unsetenv("XDG_STATE_HOME");
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
}

static void a_state_folder_has_one_worker_and_is_taken_away_when_empty(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    struct run_dir run, dir, second;
    char path[160];
    int status;

    assert_int_equal(open_run(f, &run, &err), 0);
    snprintf(path, sizeof(path), "%s/state", f->folder);
    f->config.state_dir = strdup(path);
    assert_int_equal(run_dir_open_state(&dir, &f->config, &err), 0);
    if (fork() == 0)
        _exit(run_dir_open_state(&second, &f->config, &err) == MR_ERR_EXISTS &&
                      strstr(err.text, "give this one its own millrace.state.dir") != NULL
                  ? 0
                  : 1);
    wait(&status);
    assert_int_equal(WEXITSTATUS(status), 0);
    run_dir_close(&dir);
    assert_int_not_equal(access(path, F_OK), 0);
    /* Where it is the run folder, that one's lock is enough. */
    snprintf(f->config.state_dir, strlen(path) + 1, "%s/run", f->folder);
    assert_int_equal(run_dir_open_state(&dir, &f->config, &err), 0);
    run_dir_close(&dir);
    run_dir_close(&run);
}

static void a_folder_that_others_may_write_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};
    struct run_dir dir;
    char path[128];

    snprintf(path, sizeof(path), "%s/run", f->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(open_run(f, &dir, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "may be written by others (mode 0777)"));
    run_dir_close(&dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/tmp", path), 0);
    err_clear(&err);
    assert_int_equal(open_run(f, &dir, &err), MR_ERR_IO);
    run_dir_close(&dir);
    assert_int_equal(unlink(path), 0);
}

static void a_worker_takes_away_what_it_made(void **state)
{
    struct fixture *f = *state;
    struct run_dir dir;
    char path[128], lock[160];

    snprintf(path, sizeof(path), "%s/run", f->folder);
    snprintf(lock, sizeof(lock), "%s/worker.lock", path);
    assert_int_equal(open_run(f, &dir, NULL), 0);
    assert_int_equal(access(lock, F_OK), 0);
    run_dir_close(&dir);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(open_run(f, &dir, NULL), 0);
    run_dir_close(&dir);
    assert_int_not_equal(access(lock, F_OK), 0);
    assert_int_equal(access(path, F_OK), 0); /* it was there before */
}

static void the_default_folder_goes_too_and_others_stay(void **state)
{
    struct fixture *f = *state;
    struct run_dir dir;
    char other[200], root[160];

    assert_int_equal(setenv("XDG_RUNTIME_DIR", f->folder, 1), 0);
    accepted(f, "");
    assert_int_equal(run_dir_open(&dir, &f->config, NULL), 0);
    snprintf(root, sizeof(root), "%s/millrace", f->folder);
    assert_memory_equal(dir.path, root, strlen(root));
    snprintf(other, sizeof(other), "%s/other", root);
    assert_int_equal(mkdir(other, 0700), 0);
    run_dir_close(&dir);
    assert_int_not_equal(access(f->config.run_dir, F_OK), 0);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(run_dir_open(&dir, &f->config, NULL), 0);
    run_dir_close(&dir);
    assert_int_not_equal(access(root, F_OK), 0);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
}

/* --- a worker of a cluster -------------------------------------------------------------------- */

#define CLUSTER \
    "key.converter=org.apache.kafka.connect.json.JsonConverter\n" \
    "value.converter=org.apache.kafka.connect.json.JsonConverter\n" \
    "group.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n" \
    "listeners=http://127.0.0.1:8083\n"

static void cluster_refused(struct fixture *f, const char *lines, const char *text)
{
    char all[2048];

    f->cluster = true;
    snprintf(all, sizeof(all), CLUSTER "%s\n", lines);
    assert_int_equal(load(f, all), MR_ERR_CONFIG);
    if (strstr(f->err.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", f->err.text, text);
}

static void state_is_beside_the_locks_unless_it_is_named(void **state)
{
    struct fixture *f = *state;

    f->cluster = true;
    assert_int_equal(load(f, CLUSTER "millrace.run.dir=/a/run\n"), 0);
    assert_string_equal(f->config.state_dir, "/a/run");
    worker_config_deinit(&f->config);
    assert_int_equal(load(f, CLUSTER "millrace.run.dir=/a/run\nmillrace.state.dir=/a/state\n"), 0);
    assert_string_equal(f->config.state_dir, "/a/state");
}

static void a_cluster_s_worker_has_connects_defaults(void **state)
{
    struct fixture *f = *state;
    const struct worker_cluster *cluster = &f->config.cluster;

    f->cluster = true;
    assert_int_equal(load(f, CLUSTER), 0);
    assert_string_equal(cluster->group_id, "g");
    assert_int_equal(cluster->session_ms, 10000);
    assert_int_equal(cluster->heartbeat_ms, 3000);
    assert_int_equal(cluster->rebalance_ms, 60000);
    assert_int_equal(cluster->sync_ms, 3000);
    assert_int_equal(cluster->max_delay_ms, 300000);
    assert_int_equal(cluster->retry_backoff_ms, 100);
    assert_string_equal(cluster->protocol, "sessioned");
    assert_string_equal(cluster->assignor, "millrace");
    assert_int_equal(cluster->key_ttl_ms, 3600000);
    assert_int_equal(cluster->key_bits, 0);
    assert_string_equal(cluster->signature_algorithm, "HmacSHA256");
    assert_string_equal(cluster->verification_algorithms[0], "HmacSHA256");
    assert_null(cluster->verification_algorithms[1]);
    assert_non_null(f->config.state_dir);
    assert_null(f->config.offset_file);
    assert_non_null(f->config.run_dir);
}

static void a_cluster_s_worker_is_told_what_is_missing_or_wrong(void **state)
{
    struct fixture *f = *state;

    f->cluster = true;
    assert_int_equal(load(f, "key.converter=x\nvalue.converter=x\n"), MR_ERR_CONFIG);
    assert_non_null(strstr(f->err.text, "Missing required configuration \"group.id\" which has no "
                                        "default value."));
    assert_non_null(strstr(f->err.text, "\"status.storage.topic\""));
    assert_null(strstr(f->err.text, "offset.storage.file.filename"));
    cluster_refused(f, "heartbeat.interval.ms=10000",
                    "Heartbeat must be set lower than the session timeout");
    cluster_refused(f, "connect.protocol=quick", "connect.protocol");
    cluster_refused(f, "millrace.assignor=fair", "millrace.assignor");
    cluster_refused(f, "exactly.once.source.support=sometimes", "exactly.once.source.support");
    cluster_refused(f, "inter.worker.signature.algorithm=HmacSHA512",
                    "Signature algorithm must be present in inter.worker.verification.algorithms "
                    "list");
    cluster_refused(f, "inter.worker.key.generation.algorithm=Rot13", "Rot13");
    cluster_refused(f, "inter.worker.key.size=8", "40 to 4096");
    cluster_refused(f, "scheduled.rebalance.max.delay.ms=-1", "scheduled.rebalance.max.delay.ms");
    cluster_refused(f, "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI",
                    "Configuration sasl.mechanism can't be honoured: GSSAPI");
    cluster_refused(f, "security.protocol=SASL_PLAINTEXT", "GSSAPI (Kerberos) is not spoken here");
}

static void each_kind_of_worker_warns_about_the_other_s_keys(void **state)
{
    struct fixture *f = *state;

    f->cluster = true;
    assert_int_equal(load(f, CLUSTER "offset.storage.file.filename=/tmp/x\n"
                                     "config.storage.min.insync.replicas=2\n"),
                     0);
    assert_true(logged(f, "offset.storage.file.filename is a setting of standalone workers: it has "
                          "no effect here"));
    assert_false(logged(f, "config.storage.min.insync.replicas"));
    f->cluster = false;
    assert_int_equal(load(f, GOOD "group.id=g\nstatus.storage.min.insync.replicas=2\n"), 0);
    assert_true(
        logged(f, "status.storage.min.insync.replicas is a setting of distributed workers"));
}

static void a_graceful_end_that_the_group_does_not_wait_for_is_warned_about(void **state)
{
    struct fixture *f = *state;

    f->cluster = true;
    assert_int_equal(load(f, CLUSTER "task.shutdown.graceful.timeout.ms=29000\n"), 0);
    assert_false(logged(f, "may run beside its successor"));
    assert_int_equal(load(f, CLUSTER "task.shutdown.graceful.timeout.ms=29001\n"), 0);
    assert_true(logged(f, "task.shutdown.graceful.timeout.ms (29001) + 1000 ms is more than half "
                          "of rebalance.timeout.ms (60000)"));
    assert_true(logged(f, "may run beside its successor"));
}

static void a_cluster_s_worker_without_listeners_is_open_and_says_so(void **state)
{
    struct fixture *f = *state;

    f->cluster = true;
    assert_int_equal(load(f, "key.converter=org.apache.kafka.connect.json.JsonConverter\n"
                             "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
                             "group.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\n"
                             "status.storage.topic=s\n"),
                     0);
    assert_string_equal(f->config.listeners[0].host, "");
    assert_int_equal(f->config.listeners[0].port, 8083);
    assert_true(logged(f, "listeners is not set: REST is served on every address"));
}

#define config_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        config_test(kafka_s_sample_file_is_taken_as_it_is),
        config_test(what_is_required_is_named),
        config_test(what_there_is_no_room_to_tell_is_counted),
        config_test(bad_values_are_told_with_file_and_line),
        config_test(one_mistake_is_told_once),
        config_test(a_plugin_folder_with_a_tilde_is_refused),
        config_test(settings_of_kafka_clients_are_told_with_file_and_line),
        config_test(without_brokers_there_is_a_default),
        config_test(listeners_are_read_and_their_mistakes_told_as_connect_does),
        config_test(administration_has_its_own_listeners_or_none),
        config_test(what_would_open_a_door_ends_the_start),
        config_test(references_are_resolved_once_and_hidden),
        config_test(a_plugin_path_is_taken_as_it_is_written),
        config_test(where_services_are_asked_is_nobody_s_to_say),
        config_test(a_provider_that_is_none_is_told_at_start),
        config_test(right_providers_are_not_remarked_upon),
        config_test(security_that_cannot_be_honoured_ends_the_start_with_the_remedy),
        config_test(unknown_keys_are_warned_about_with_the_nearest_known_one),
        config_test(secrets_are_not_logged),
        config_test(policies_have_short_and_java_names),
        config_test(the_run_folder_depends_on_the_offset_file),
        config_test(a_second_worker_on_one_folder_is_refused),
        config_test(state_outlives_the_machine_where_the_user_or_systemd_keeps_such),
        config_test(a_state_folder_has_one_worker_and_is_taken_away_when_empty),
        config_test(a_folder_that_others_may_write_is_refused),
        config_test(a_worker_takes_away_what_it_made),
        config_test(the_default_folder_goes_too_and_others_stay),
        config_test(state_is_beside_the_locks_unless_it_is_named),
        config_test(a_cluster_s_worker_has_connects_defaults),
        config_test(a_cluster_s_worker_is_told_what_is_missing_or_wrong),
        config_test(each_kind_of_worker_warns_about_the_other_s_keys),
        config_test(a_graceful_end_that_the_group_does_not_wait_for_is_warned_about),
        config_test(a_cluster_s_worker_without_listeners_is_open_and_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
