#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks the arrows between rooms over the include lines, "one library, one door", that loggers are listed, and that file
# names are unique.
# The rules are the tables below; a line that breaks one is printed as file:line: what. Exit 1 when there is one.
set -uo pipefail
cd "$(dirname "$0")/.."

# who (longest prefix of the including file wins) : prefixes of what it may include, besides libc and its own folder
rules='
include/millrace/           : millrace/
runtime/main.c              : base/ worker/worker.h host/host.h millrace/error.h millrace/plugin.h
runtime/base/               : base/ jansson.h millrace/error.h
runtime/base/java_pattern.c : base/ millrace/error.h pcre2.h
runtime/base/oidc_fetch.c   : base/ jansson.h curl/
runtime/kafka/              : base/ kafka/ librdkafka/
runtime/wire/               : base/ wire/ openssl/
runtime/model/              : base/ model/ millrace/config.h
runtime/link/               : base/ model/ link/
runtime/worker/             : base/ kafka/ wire/ model/ link/ worker/ millrace/config.h millrace/plugin.h
runtime/worker/peer.c       : base/ worker/peer.h worker/worker_https.h curl/
runtime/worker/rest/        : base/ model/ worker/rest/ worker/herder/herder.h worker/herder/offsets/offset_entries.h worker/worker_config.h worker/peer.h millrace/config.h
runtime/worker/rest/server : base/ model/ worker/rest/ worker/herder/herder.h worker/worker_config.h worker/worker_https.h millrace/config.h microhttpd.h
runtime/worker/rest/client_cert. : worker/rest/ gnutls/
runtime/worker/herder/      : base/ kafka/ model/ worker/herder/validate/ worker/herder/offsets/ worker/store/ worker/supervisor/ worker/worker_config.h
runtime/worker/herder/cluster/  : base/ kafka/ wire/ model/ worker/herder/cluster/ worker/herder/conn_source.h worker/herder/herder.h worker/herder/log_control.h worker/herder/task_config.h worker/store/ worker/group/ worker/supervisor/ worker/worker_config.h worker/worker_https.h worker/peer.h
runtime/worker/herder/offsets/  : base/ kafka/ model/ worker/herder/offsets/ worker/herder/conn_source.h worker/store/offset_store.h worker/supervisor/ worker/worker_config.h
runtime/worker/herder/validate/ : base/ kafka/ model/ worker/herder/validate/ worker/supervisor/ worker/worker_config.h millrace/config.h millrace/plugin.h
runtime/worker/store/       : base/ kafka/ model/ worker/store/ worker/worker_config.h
runtime/worker/group/       : base/ kafka/ wire/ model/ worker/group/ worker/worker_config.h
runtime/worker/supervisor/  : base/ model/ link/ worker/supervisor/ worker/worker_config.h millrace/config.h millrace/plugin.h
runtime/host/               : base/ kafka/ wire/ model/ link/ host/ millrace/
runtime/host/plugin_load.c  : base/ model/ link/ host/ millrace/ dlfcn.h
runtime/host/task/          : base/ kafka/client_conf.h model/ link/ host/host_api.h host/host_references.h host/plugin_load.h host/thread_guard.h host/trace.h millrace/
runtime/host/task/source/   : base/ kafka/ model/ host/task/send/ host/task/stages/ host/task/task_inside.h host/task/task_client.h host/task/topic_patience.h host/data/ millrace/
runtime/host/task/sink/     : base/ kafka/ wire/ model/ host/task/send/ host/task/stages/ host/task/task_inside.h host/task/task_client.h host/data/ millrace/
runtime/host/task/send/     : base/ kafka/ model/ host/task/stages/tolerance.h host/task/task_inside.h host/task/task_client.h host/task/topic_patience.h host/data/record_arena.h host/trace.h millrace/
runtime/host/task/stages/   : base/ kafka/ model/ host/task/task_client.h host/task/topic_patience.h host/data/ host/host_api.h host/plugin_places.h host/trace.h millrace/
runtime/host/data/          : base/ model/ host/data/ millrace/
plugins/                    : millrace/
plugins/postgres/           : millrace/ libpq-fe.h
examples/                   : millrace/
tests/plugins/              : millrace/
'
# Headers that are no part of libc: a file may include one only where a rule above names it.
libraries='librdkafka/ jansson.h microhttpd.h gnutls/ dlfcn.h curl/ openssl/ sasl/ pcre2.h zlib.h libpq-fe.h'
# What a plugin author sees must compile anywhere.
plain_c=' assert.h errno.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h time.h '

find include runtime plugins examples tests/plugins -name '*.[ch]' 2>/dev/null | sort |
    xargs awk -v rules="$rules" -v libraries="$libraries" -v plain_c="$plain_c" '
function starts(text, prefix) { return substr(text, 1, length(prefix)) == prefix }
function bad(why) { printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0; found = 1 }
function any(text, list,    n, i, words) {
    n = split(list, words, " ")
    for (i = 1; i <= n; i++)
        if (starts(text, words[i])) return 1
    return 0
}
function folder(path) { sub(/[^\/]*$/, "", path); return path }
BEGIN {
    count = split(rules, lines, "\n")
    for (i = 1; i <= count; i++)
        if (split(lines[i], part, " *: *") == 2) may[part[1]] = part[2]
}
FNR == 1 {
    who = ""
    for (prefix in may)
        if (starts(FILENAME, prefix) && length(prefix) > length(who)) who = prefix
}
/^[ \t]*#[ \t]*include[ \t]/ {
    name = $0
    sub(/^[^<"]*[<"]/, "", name)
    sub(/[>"].*$/, "", name)
    quoted = ($0 ~ /include[ \t]*"/)
    if (quoted && (name !~ /\// || folder("runtime/" name) == folder(FILENAME))) next              # own folder
    if (name ~ /_private\.h$/ && folder("runtime/" name) != folder(FILENAME)) bad("a private header stays in its folder")
    if (quoted || starts(name, "millrace/") || any(name, libraries)) {
        if (!any(name, may[who])) bad("no door here")
    } else if (starts(FILENAME, "include/") && index(plain_c, " " name " ") == 0)
        bad("a public header includes standard C only")
}
END { exit found }' || exit 1

# Loggers can be seen and set at /admin/loggers.
unlisted=$(grep -rhoP '^#define LOGGER \K".*"' runtime --include='*.c' | sort -u | while read -r name; do
    grep -qF "{$name," runtime/model/logger_names.c || echo "$name"
done)
[ -z "$unlisted" ] || { echo "loggers that model/logger_names.c does not list:" $unlisted; exit 1; }

twice=$(find runtime plugins tests -name '*.[ch]' | sed 's:.*/::' | sort | uniq -d)
[ -z "$twice" ] || { echo "file names that stand twice in the tree:" $twice; exit 1; }
echo "doors: $(find include runtime plugins examples tests/plugins -name '*.[ch]' 2>/dev/null | wc -l) files keep the arrows"
