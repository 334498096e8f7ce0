# SPDX-License-Identifier: Apache-2.0
# Millrace: one Makefile, no configure step. `make` builds, `make deps` installs what is missing, `make check` tests;
# `make help` lists the rest. SAN=address|undefined|thread and FUZZING=1 are variants in build/ folders of their own.
VERSION := 0.1.0

SAN ?=
FUZZING ?=
WERROR ?=
V ?= 0
VARIANT ?= $(if $(FUZZING),fuzz,$(if $(SAN),$(SAN),release))
BUILD := build/$(VARIANT)
Q := $(if $(filter 0,$(V)),@)
JOBS := $(shell nproc 2>/dev/null || echo 2)
# Plain `make` uses every core; -j on the command line wins.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS) --no-print-directory
endif

# --- what must be installed -------------------------------------------------------------------------------------------

# One list, Debian 12's names. `make` needs the first line, `make demo` the second too, `make check` and CI the third.
DEPS_BUILD := gcc libc6-dev make pkg-config librdkafka-dev libmicrohttpd-dev libgnutls28-dev libjansson-dev libssl-dev libcurl4-openssl-dev libpcre2-dev libpq-dev
DEPS_DEMO := openjdk-17-jdk-headless maven curl
DEPS_CHECK := libcmocka-dev g++ clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14 cppcheck postgresql
DEPS_BENCH := python3 python3-venv valgrind
DEPS := $(DEPS_BUILD) $(DEPS_DEMO) $(DEPS_CHECK) $(DEPS_BENCH)

PKGS := rdkafka libmicrohttpd gnutls jansson openssl libcurl libpcre2-8
PLUGIN_PKGS := libpq
TEST_PKGS := cmocka
DEBIAN_rdkafka := librdkafka-dev
DEBIAN_libmicrohttpd := libmicrohttpd-dev
DEBIAN_gnutls := libgnutls28-dev
DEBIAN_jansson := libjansson-dev
DEBIAN_openssl := libssl-dev
DEBIAN_cmocka := libcmocka-dev
DEBIAN_libcurl := libcurl4-openssl-dev
DEBIAN_libpcre2-8 := libpcre2-dev
DEBIAN_libpq := libpq-dev

# --- flags ------------------------------------------------------------------------------------------------------------

CC := $(if $(filter default,$(origin CC)),$(if $(FUZZING),clang-14,gcc),$(CC))
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Wundef \
        $(if $(WERROR),-Werror)
STD := -std=c11 -D_GNU_SOURCE $(WARN) -fvisibility=hidden -fno-common -fPIC -MMD -MP
SANFLAGS := $(if $(FUZZING),-fsanitize=fuzzer-no-link -fsanitize=address -fsanitize=undefined,$(if $(SAN),-fsanitize=$(SAN)))
SANFLAGS += $(if $(SANFLAGS),-fno-omit-frame-pointer -fno-sanitize-recover=all)
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS = $(shell pkg-config --libs $(PKGS)) -ldl -lpthread -lm
TEST_LIBS = $(shell pkg-config --libs $(TEST_PKGS))

RUNTIME_FLAGS = $(STD) $(SANFLAGS) -Iinclude -Iruntime -include runtime/base/ban.h \
                -DMILLRACE_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(if $(CRASHING),-DMILLRACE_CRASH_POINTS)
PLUGIN_FLAGS = $(STD) $(SANFLAGS) -Iinclude -Wno-unused-parameter
# What a plugin needs of a library, beside libc.
PLUGIN_CFLAGS_postgres = $(shell pkg-config --cflags libpq)
PLUGIN_LIBS_postgres = $(shell pkg-config --libs libpq)
# Tests know where the tree and the build are, so that each runs from any folder.
TEST_FLAGS = $(STD) $(SANFLAGS) -Iinclude -Iruntime -Iplugins -Itests -Wno-unused-parameter \
             -DTEST_SOURCE='"$(CURDIR)"' -DTEST_BUILD='"$(CURDIR)/$(BUILD)"' -DMILLRACE_VERSION='"$(VERSION)"' $(PKG_CFLAGS)

comma := ,

# --- sources ----------------------------------------------------------------------------------------------------------

ROOMS := base kafka wire model link worker host
BELOW_base := base
BELOW_kafka := kafka base
BELOW_wire := wire base
BELOW_model := model base
BELOW_link := link model base
BELOW_worker := worker link model wire kafka base
BELOW_host := host link model wire kafka base

sources = $(shell find runtime/$(1) -name '*.c' 2>/dev/null | sort)
to_objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
$(foreach room,$(ROOMS),$(eval SOURCES_$(room) := $(call sources,$(room))))
HAVE := $(foreach room,$(ROOMS),$(if $(SOURCES_$(room)),$(room)))
archives = $(patsubst %,$(BUILD)/%.a,$(filter $(HAVE),$(1)))

PLUGINS := $(sort $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/*.c))))
PLUGIN_FILES := $(patsubst %,$(BUILD)/plugins/%.so,$(PLUGINS))
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$(BUILD)/tests/plugins/%.so,$(wildcard tests/plugins/*.c))

UNIT := $(patsubst %.c,%,$(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c))
FUZZERS := $(patsubst %.c,%,$(wildcard tests/fuzz/fuzz_*.c))
CHAOS := $(patsubst %.c,%,$(wildcard tests/chaos/*.c))
BENCH := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/*.c))
COMPAT := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/compat/*.c))
BENCH_PLUGINS := $(patsubst tests/bench/plugins/%.c,$(BUILD)/tests/bench/%.so,$(wildcard tests/bench/plugins/*.c))
INTEGRATION := $(patsubst %.c,%,$(wildcard tests/integration/test_*.c))
SUPPORT := $(filter-out tests/support/fuzz_main.c tests/support/tsan_threads.c,$(wildcard tests/support/*.c))
TSAN := $(if $(filter thread,$(SAN)),$(BUILD)/tests/support/tsan_threads.o)
# VARIANT=crashing: a binary that can be made to die at each of its crash points.
CRASHING := $(if $(filter crashing,$(VARIANT)),$(BUILD)/tests/support/crash_trigger.o)

HEADERS := $(shell find include runtime plugins tests -name '*.h' 2>/dev/null | sort)
ALL_C := $(shell find runtime plugins tests examples -name '*.c' 2>/dev/null | sort)

# --- the binary and its plugins ---------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
all: $(BUILD)/millrace plugins

plugins: $(PLUGIN_FILES)

$(BUILD)/millrace: $(BUILD)/runtime/main.o $(TSAN) $(CRASHING) $(call archives,$(ROOMS))
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) $(LDFLAGS)

# What something is made of, in a file that is written anew only when the list changes: a source that was removed is missed.
define members
$(BUILD)/$(1).members: always
	$$(Q)mkdir -p $$(@D) && { [ "$$$$(cat $$@ 2>/dev/null)" = '$(sort $(2))' ] || echo '$(sort $(2))' >$$@; }
endef

define room_rule
$(call members,$(1),$(SOURCES_$(1)))
$(BUILD)/$(1).a: $(call to_objects,$(SOURCES_$(1))) $(BUILD)/$(1).members
	@echo "  AR    $$@"
	$$(Q)rm -f $$@ && ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach room,$(HAVE),$(eval $(call room_rule,$(room))))

$(BUILD)/runtime/%.o: runtime/%.c | libraries
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(RUNTIME_FLAGS) -c -o $@ $<

# The answer to GET / names the commit; that object alone is made anew when it changes. A tree without git: "unknown".
COMMIT := $(or $(if $(wildcard .git),$(shell git rev-parse --short=16 HEAD 2>/dev/null)),unknown)
$(BUILD)/commit.txt: always
	$(Q)mkdir -p $(@D) && { [ "$$(cat $@ 2>/dev/null)" = $(COMMIT) ] || echo $(COMMIT) >$@; }
$(BUILD)/runtime/worker/herder/view.o: private RUNTIME_FLAGS += -DMILLRACE_COMMIT='"$(COMMIT)"'
$(BUILD)/runtime/worker/herder/view.o: $(BUILD)/commit.txt

$(BUILD)/plugins/%.o: plugins/%.c | libraries
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PLUGIN_FLAGS) $(PLUGIN_CFLAGS_$(word 2,$(subst /, ,$<))) -c -o $@ $<

# A plugin links against nothing of ours: -z defs proves it (a sanitizer's own symbols come from the binary).
SHARED = $(CC) $(CFLAGS) $(SANFLAGS) -shared -Wl,-z,now $(if $(SANFLAGS),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(SHARED_LIBS) -lpthread -lm $(LDFLAGS)

define plugin_rule
$(call members,plugins/$(1),$(wildcard plugins/$(1)/*.c))
$(BUILD)/plugins/$(1).so: SHARED_LIBS = $(PLUGIN_LIBS_$(1))
$(BUILD)/plugins/$(1).so: $(call to_objects,$(wildcard plugins/$(1)/*.c)) $(BUILD)/plugins/$(1).members
	@echo "  SO    $$@"
	$$(Q)$$(SHARED)
endef
$(foreach plugin,$(PLUGINS),$(eval $(call plugin_rule,$(plugin))))

# Libraries that are missing are named before the compiler stumbles over them.
missing = $(strip $(foreach pkg,$(1),$(shell pkg-config --exists $(pkg) 2>/dev/null || echo $(DEBIAN_$(pkg)))))
libraries:
	$(if $(shell command -v pkg-config),,$(error pkg-config is missing: make deps))
	$(if $(shell command -v $(firstword $(CC))),,$(error $(firstword $(CC)) is missing: make deps))
	$(foreach package,$(call missing,$(PKGS) $(PLUGIN_PKGS)),$(error $(package) is missing: make deps))
test-libraries: libraries
	$(foreach package,$(call missing,$(TEST_PKGS)),$(error $(package) is missing: make deps))

# --- tests: building --------------------------------------------------------------------------------------------------

$(BUILD)/tests/%.o: tests/%.c | test-libraries
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(TEST_FLAGS) -c -o $@ $<

$(BUILD)/tests/plugins/%.o: tests/plugins/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PLUGIN_FLAGS) -c -o $@ $<

$(BUILD)/tests/plugins/%.so: $(BUILD)/tests/plugins/%.o
	@echo "  SO    $@"
	$(Q)$(SHARED)

test-plugins: $(TEST_PLUGINS)

# The generator and the discarding sink of `make bench`, in the plugin path that it gives.
$(BUILD)/tests/bench/plugins/%.o: tests/bench/plugins/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PLUGIN_FLAGS) -c -o $@ $<

$(BUILD)/tests/bench/%.so: $(BUILD)/tests/bench/plugins/%.o
	@echo "  SO    $@"
	$(Q)$(SHARED)

# TEST_LINK: what one test needs besides, such as -Wl,--wrap=write; set it for that target.
LINK_TEST = $(CC) $(CFLAGS) $(SANFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
            $(TEST_LINK) $(TEST_LIBS) $(LIBS) $(LDFLAGS)

# Objects of the plugin that has the file $(1).c. (File names are unique in the tree.)
plugin_of = $(patsubst plugins/%/,%,$(dir $(firstword $(wildcard plugins/*/$(1).c))))
plugin_objects = $(if $(1),$(call to_objects,$(wildcard plugins/$(1)/*.c)))

# tests/unit/<room>/test_<file>: the room's archive, those below it, and the helpers of its folder (files that are no test).
# tests/unit/plugins/test_<file>, tests/unit/plugins/<plugin>/test_<what>: that plugin's own objects, and the host's room.
room_of = $(word 3,$(subst /, ,$(1)))
about = $(patsubst test_%,%,$(patsubst fuzz_%,%,$(notdir $(1))))
unit_rooms = $(if $(filter plugins,$(call room_of,$(1))),$(BELOW_host),$(BELOW_$(call room_of,$(1))))
unit_plugin = $(if $(filter plugins,$(call room_of,$(1))),$(if $(word 5,$(subst /, ,$(1))),$(word 4,$(subst /, ,$(1))),$(call plugin_of,$(call about,$(1)))))
helpers = $(filter-out $(dir $(1))test_%,$(wildcard $(dir $(1))*.c))

# What unit tests of several rooms share: tests/support/unit/, as an archive.
$(eval $(call members,tests/support/unit,$(wildcard tests/support/unit/*.c)))
$(BUILD)/tests/support/unit.a: $(call to_objects,$(wildcard tests/support/unit/*.c)) $(BUILD)/tests/support/unit.members
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

# Tests of the host put structs of their own in place of plugins: tests/unit/host/task_rig.c.
$(patsubst %,$(BUILD)/%,$(filter tests/unit/host/%,$(UNIT))): TEST_LINK += -Wl,--wrap=plugin_load_find

# Tests of the worker run the real nest; what it forks is their own host_main: tests/unit/worker/fake_host.c.
$(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/worker/test_*.c)): $(BUILD)/runtime/host/nest_main.o

define unit_rule
$(BUILD)/$(1): $(BUILD)/$(1).o $(call to_objects,$(call helpers,$(1))) $(TSAN) \
               $(call plugin_objects,$(call unit_plugin,$(1))) $(call archives,$(call unit_rooms,$(1))) \
               $(if $(filter base host kafka model plugins wire worker,$(call room_of,$(1))),$(BUILD)/tests/support/unit.a)
	@echo "  TEST  $$@"
	$$(Q)$$(LINK_TEST)
endef
$(foreach test,$(UNIT),$(eval $(call unit_rule,$(test))))

$(BUILD)/tests/unit/host/test_topic_create: TEST_LINK += $(addprefix -Wl$(comma)--wrap=topic_admin_,new free exists create)
$(BUILD)/tests/unit/host/test_topic_patience: TEST_LINK += -Wl,--wrap=clock_ms $(addprefix -Wl$(comma)--wrap=topic_admin_,new free exists create partitions)
$(addprefix $(BUILD)/tests/unit/host/,test_sink_emit test_sink_txn): TEST_LINK += $(addprefix -Wl$(comma)--wrap=producer_txn_,offsets commit abort)
$(BUILD)/tests/unit/host/test_source_txn: TEST_LINK += $(addprefix -Wl$(comma)--wrap=,txn_wait sender_again_take_back)
$(BUILD)/tests/unit/host/test_sink_txn: TEST_LINK += $(addprefix -Wl$(comma)--wrap=,consumer_new consumer_poll producer_free)
$(BUILD)/tests/unit/host/test_sink_control: TEST_LINK += -Wl,--wrap=consumer_poll
$(BUILD)/tests/unit/host/test_sink_state: TEST_LINK += $(addprefix -Wl$(comma)--wrap=,clock_ms topic_admin_partitions)
$(BUILD)/tests/unit/host/test_hosted_question: TEST_LINK += -Wl,--wrap=task_answer_take
$(BUILD)/tests/unit/host/test_host: TEST_LINK += -Wl,--wrap=schema_tree_spent
$(BUILD)/tests/unit/worker/test_resolver: TEST_LINK += -Wl,--wrap=props_copy
$(BUILD)/tests/unit/host/test_sink_lease: TEST_LINK += -Wl,--wrap=task_lease_act
$(BUILD)/tests/unit/host/test_dead_letters: TEST_LINK += $(addprefix -Wl$(comma)--wrap=producer_,send purge)
$(BUILD)/tests/unit/host/test_own_offsets: TEST_LINK += $(addprefix -Wl$(comma)--wrap=topic_admin_,create setting)
$(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/plugins/postgres/test_*.c)): TEST_LINK += $(PLUGIN_LIBS_postgres)
$(BUILD)/tests/unit/plugins/test_file_offsets: TEST_LINK += $(addprefix -Wl$(comma)--wrap=,write ftruncate fdatasync fsync rename)
$(BUILD)/tests/unit/kafka/test_consumer_group: TEST_LINK = -Wl,--wrap=rd_kafka_new
# The wall clock is the test's.
$(addprefix $(BUILD)/tests/unit/,kafka/test_steady_wait worker/test_cluster_probe): TEST_LINK = -Wl,--wrap=clock_gettime

# A fuzzer links the rooms whose headers it includes, and the plugin that has the file it is named after. With FUZZING=1
# clang's fuzzer drives it; otherwise a plain main replays the seeds.
fuzz_rooms = $(sort $(foreach room,$(shell sed -n 's:^\#include "\([a-z]*\)/.*:\1:p' $(1).c),$(BELOW_$(room))))
define fuzz_rule
$(BUILD)/$(1): $(BUILD)/$(1).o $(if $(FUZZING),,$(BUILD)/tests/support/fuzz_main.o) \
               $(call plugin_objects,$(call plugin_of,$(call about,$(1)))) $(call archives,$(call fuzz_rooms,$(1)))
	@echo "  FUZZ  $$@"
	$$(Q)$$(LINK_TEST) $(if $(FUZZING),-fsanitize=fuzzer)
endef
$(foreach fuzzer,$(FUZZERS),$(eval $(call fuzz_rule,$(fuzzer))))

define integration_rule
$(BUILD)/$(1): $(BUILD)/$(1).o $(call to_objects,$(SUPPORT)) $(TSAN)
	@echo "  TEST  $$@"
	$$(Q)$$(LINK_TEST)
endef
$(foreach test,$(INTEGRATION),$(eval $(call integration_rule,$(test))))
# The rooms themselves against a real broker, without a worker.
$(BUILD)/tests/integration/test_stores: $(call archives,$(BELOW_worker))
$(BUILD)/tests/integration/test_wire: $(call archives,$(BELOW_wire)) $(BUILD)/tests/support/unit.a
$(addprefix $(BUILD)/tests/integration/,test_worker_secure test_rest_secure test_two_clusters): $(BUILD)/tests/support/unit.a
# The membership against a real broker, and beside the Java worker.
$(BUILD)/tests/integration/test_group: $(call archives,$(BELOW_worker))
# A producer of its own beside the workers.
$(addprefix $(BUILD)/tests/integration/,test_exactly_once test_topic_to_topic): $(call archives,$(BELOW_worker))

# The short forms of some scenarios.
chaos_objects = $(patsubst %,$(BUILD)/tests/chaos/chaos_%.o,$(1))
$(BUILD)/tests/integration/test_worker_freeze: $(call chaos_objects,rig ledger)
$(BUILD)/tests/integration/test_chaos_tools: $(call chaos_objects,rig ledger link proxy route naive numbers)
FAULTS = atomic flows group ledger mix naive numbers proxy rig route segments
$(BUILD)/tests/integration/test_exactly_once_faults: $(call chaos_objects,$(FAULTS)) $(call archives,$(BELOW_wire)) | $(BUILD)/tests/support/preload/route_shim.so

# Scenarios of faults, in one program; a library that is preloaded into workers; a build whose link has another version; one
# that can be made to die at its crash points.
$(BUILD)/tests/chaos/chaos: $(patsubst %,$(BUILD)/%.o,$(CHAOS)) $(call to_objects,$(SUPPORT)) $(TSAN) $(call archives,$(BELOW_wire))
	@echo "  TEST  $@"
	$(Q)$(LINK_TEST)
$(BUILD)/tests/support/preload/%.so: tests/support/preload/%.c
	@mkdir -p $(@D)
	@echo "  SO    $@"
	$(Q)$(CC) $(CFLAGS) $(STD) -shared -o $@ $< -ldl -lpthread
CHAOS_BUILT = $(BUILD)/tests/chaos/chaos $(BUILD)/tests/bench/raw_produce $(BUILD)/tests/support/preload/clock_shim.so $(BUILD)/tests/support/preload/route_shim.so
chaos-build: $(CHAOS_BUILT) | all test-plugins
	$(Q)$(MAKE) VARIANT=older CPPFLAGS='$(CPPFLAGS) -DINHERIT_LINK_VERSION=0' all
	$(Q)$(MAKE) VARIANT=crashing all

$(BENCH) $(COMPAT): %: %.o
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) $(LDFLAGS)
$(BUILD)/tests/bench/record_cost: $(BUILD)/tests/unit/host/record_run.o $(call archives,$(BELOW_host))

# --- tests: running ---------------------------------------------------------------------------------------------------

# T=word runs only the tests whose path has the word.
T ?=
chosen = $(if $(T),$(foreach test,$(1),$(if $(findstring $(T),$(test)),$(test))),$(1))
built = $(patsubst %,$(BUILD)/%,$(call chosen,$(1)))
# A crash must look like one: with handle_segv=1 a sanitizer would turn signals into exit codes and spoil obituaries.
SANITIZER_ENV := ASAN_OPTIONS=handle_segv=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:handle_sigbus=0:detect_leaks=1 \
                 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=handle_segv=0:halt_on_error=1:suppressions=$(CURDIR)/tests/tsan.supp
RUN := $(SANITIZER_ENV) tests/support/run-tests.sh $(BUILD)/logs

check: deps
	$(Q)rm -rf $(BUILD)/logs
	$(Q)rc=0; tests/compat/coverage.py || rc=1; for suite in check-unit check-seeds check-integration; do $(MAKE) $$suite || rc=1; done; \
	    tests/support/run-tests.sh $(BUILD)/logs summary unit seeds integration; exit $$rc

check-unit: $(call built,$(UNIT)) | plugins test-plugins
	$(Q)$(RUN) unit $(JOBS) $(if $(SAN),600,120) $^

check-seeds: $(call built,$(FUZZERS))
	$(Q)$(RUN) seeds $(JOBS) 120 $^

check-integration: $(call built,$(INTEGRATION)) | all test-plugins
	$(Q)$(SANITIZER_ENV) tests/integration/run.sh $(BUILD)/logs $^

# KAFKA=3.9.1 before a target takes that version in place of the one in tests/kafka/pom.xml.
KAFKA ?=
export KAFKA_VERSION := $(or $(KAFKA),$(KAFKA_VERSION))

# What a cluster needs of its brokers, against the oldest that are supported.
CLUSTER_TESTS := test_wire test_group test_stores test_worker_cluster test_worker_secure test_file_flow
check-3.9: $(patsubst %,$(BUILD)/tests/integration/%,$(CLUSTER_TESTS)) | all test-plugins
	$(Q)KAFKA_VERSION=$(or $(KAFKA_VERSION),3.9.1) $(SANITIZER_ENV) tests/integration/run.sh $(BUILD)/logs $^

# Unit tests, seeds, and the tests of hosts with the whole binary, under each sanitizer.
asan:
	$(Q)$(MAKE) SAN=address check-unit check-seeds && $(MAKE) SAN=address T=test_host check-integration
ubsan:
	$(Q)$(MAKE) SAN=undefined check-unit check-seeds && $(MAKE) SAN=undefined T=test_host check-integration
tsan:
	$(Q)$(MAKE) SAN=thread check-unit

FUZZ_SECONDS ?= 60
fuzz:
	$(Q)$(MAKE) FUZZING=1 fuzz-run
fuzz-run: $(call built,$(FUZZERS))
	$(Q)tests/support/run-fuzz.sh $(BUILD) $(FUZZ_SECONDS) $^

# The same REST calls, connectors and records for the Java worker and for ours; ten minutes.
compat: deps
	$(Q)$(MAKE) all $(COMPAT)
	$(Q)tests/compat/run.sh $(BUILD)
	$(Q)tests/compat/openapi.sh $(BUILD)

# Faults on a cluster with three brokers; an hour in all. T=word chooses scenarios, SEED=n repeats what chance chose.
SEED ?=
.PHONY: chaos chaos-build
chaos: deps
	$(Q)$(MAKE) chaos-build
	$(Q)CHAOS_SEED=$(SEED) tests/chaos/run.sh $(BUILD) $(T)

# Figures beside raw librdkafka and the Java worker; half an hour.
bench: deps
	$(Q)$(MAKE) bench-build
	$(Q)rc=0; for part in instructions bench bench_postgres bench_exactly_once bench_rest bench_cluster; do tests/bench/$$part.py $(BUILD) || rc=1; done; exit $$rc
bench-cluster: deps
	$(Q)$(MAKE) bench-build
	$(Q)tests/bench/bench_cluster.py $(BUILD)
bench-build: all test-plugins $(BENCH) $(BENCH_PLUGINS)

demo: deps
	$(Q)$(MAKE) all
	$(Q)tests/demo.sh $(BUILD)/millrace

demo-cluster: deps
	$(Q)$(MAKE) all
	$(Q)tests/demo-cluster.sh $(BUILD)/millrace

# --- checks of the source ---------------------------------------------------------------------------------------------

FORMATTED := $(HEADERS) $(ALL_C)
format:
	$(Q)clang-format-14 -i $(FORMATTED)
format-check:
	$(Q)clang-format-14 --dry-run -Werror $(FORMATTED) && echo "format-check: $(words $(FORMATTED)) files are as clang-format leaves them"

doors:
	$(Q)tests/doors.sh

# Every header compiles alone; public ones as C++17 too.
PUBLIC_HEADERS := $(filter include/%,$(HEADERS))
CHECK_HEADERS := $(patsubst %,$(BUILD)/headers/%.ok,$(HEADERS)) $(patsubst %,$(BUILD)/headers/%.cpp-ok,$(PUBLIC_HEADERS))
headers: $(CHECK_HEADERS)
	@echo "headers: $(words $(HEADERS)) compile alone, $(words $(PUBLIC_HEADERS)) public ones also as C++17"
$(BUILD)/headers/include/%.ok: include/% | libraries
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -pedantic $(WARN) -Werror -Iinclude -fsyntax-only -x c $< && touch $@
$(BUILD)/headers/%.ok: % | test-libraries
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(TEST_FLAGS)) $(PLUGIN_CFLAGS_postgres) -Werror -Wno-unused-function -fsyntax-only -x c $< && touch $@
$(BUILD)/headers/%.cpp-ok: %
	@mkdir -p $(@D)
	$(Q)g++ -std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ $< && touch $@
$(CHECK_HEADERS): $(HEADERS)

# clang-tidy: one stamp a file, so that a second run looks only at what changed. Which checks, and why: .clang-tidy.
LINTED := $(filter runtime/% plugins/%,$(ALL_C))
lint: $(patsubst %,$(BUILD)/lint/%.ok,$(LINTED))
	$(Q)cppcheck -q -j $(JOBS) --std=c11 --language=c --error-exitcode=1 --inline-suppr \
	    --enable=warning,performance,portability --suppressions-list=tests/cppcheck.txt -Iinclude -Iruntime $(LINTED)
	@echo "lint: $(words $(LINTED)) files are clean"
TIDY_FLAGS = -std=c11 -D_GNU_SOURCE -Iinclude -Iruntime -Iplugins -Itests -DTEST_SOURCE='""' -DTEST_BUILD='""' \
             -DMILLRACE_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(PLUGIN_CFLAGS_postgres)
$(BUILD)/lint/%.ok: % .clang-tidy $(HEADERS) | test-libraries
	@mkdir -p $(@D)
	@echo "  TIDY  $<"
	$(Q)clang-tidy-14 --quiet $< -- $(TIDY_FLAGS) $(if $(filter runtime/%,$<),-include runtime/base/ban.h) \
	    $(if $(filter-out runtime/base/err.c,$<),-include tests/lint.h) 2>$@.log || { cat $@.log; exit 1; }
	@mv $@.log $@

# --- installation -----------------------------------------------------------------------------------------------------

# Nothing but what is missing is installed; what is done is printed first. apt-get only gets new lists when it must.
deps:
	$(Q)command -v dpkg-query >/dev/null || { echo "deps: no Debian here; needed are: $(DEPS)"; exit 0; }; \
	have=" $$(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(DEPS) 2>/dev/null | sed -n 's/ installed$$//p' | tr '\n' ' ') "; \
	want=; for package in $(DEPS); do case "$$have" in *" $$package "*) ;; *) want="$$want $$package" ;; esac; done; \
	[ -n "$$want" ] || exit 0; \
	sudo=; if [ "$$(id -u)" != 0 ]; then sudo=$$(command -v sudo) || { echo "deps: run as root: apt-get install$$want" >&2; exit 1; }; fi; \
	get="$$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0"; \
	apt-cache show $$want >/dev/null 2>&1 || { echo "deps: apt-get update"; $$get update || exit 1; }; \
	echo "deps: apt-get install$$want"; \
	$$get install -y --no-install-recommends $$want >/dev/null || { $$get update && $$get install -y --no-install-recommends $$want >/dev/null; }

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR ?= $(PREFIX)/share/doc/millrace
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
PLUGINDIR := $(PREFIX)/lib/millrace/plugins
INSTALL := install -D -m
# For users and authors of plugins; links to what stays in the tree become plain text.
DOCS_INSTALLED := README.md include/millrace/README.md $(wildcard plugins/*/README.md) examples/README.md $(wildcard examples/*/README.md examples/*/Makefile examples/*/*.c examples/*/*.cpp)
DOCS_TREE := config|runtime|tests|CONTRIBUTING
PKG_CONFIG_DIRS = $(subst :, ,$(PKG_CONFIG_PATH):$(shell pkg-config --variable pc_path pkg-config 2>/dev/null))
install: all
	$(Q)$(INSTALL) 755 $(BUILD)/millrace $(DESTDIR)$(BINDIR)/millrace
	$(Q)for file in $(PLUGIN_FILES); do $(INSTALL) 644 $$file $(DESTDIR)$(PLUGINDIR)/$${file##*/} || exit 1; done
	$(Q)for file in $(wildcard include/millrace/*.h); do $(INSTALL) 644 $$file $(DESTDIR)$(INCLUDEDIR)/millrace/$${file##*/} || exit 1; done
	$(Q)mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$(INCLUDEDIR)' 'plugindir=$(PLUGINDIR)' '' 'Name: millrace' \
	    'Description: Headers for plugins of Millrace, a Kafka Connect worker' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' >$(DESTDIR)$(LIBDIR)/pkgconfig/millrace.pc
	$(Q)for file in $(wildcard config/*.properties); do $(INSTALL) 644 $$file $(DESTDIR)$(SYSCONFDIR)/millrace/$${file##*/} || exit 1; done
	$(Q)for file in LICENSE $(DOCS_INSTALLED); do $(INSTALL) 644 $$file $(DESTDIR)$(DOCDIR)/$$file || exit 1; done
	$(Q)sed -i -E 's/\[([^]]*)\]\(($(DOCS_TREE))[^)]*\)/\1/g' $(addprefix $(DESTDIR)$(DOCDIR)/,$(filter %.md,$(DOCS_INSTALLED)))
	@echo "install: millrace $(VERSION) in $(DESTDIR)$(PREFIX)"
	$(if $(DESTDIR),,$(if $(filter $(LIBDIR)/pkgconfig,$(PKG_CONFIG_DIRS)),,@echo \
	    "install: pkg-config does not look there; before you build plugins: export PKG_CONFIG_PATH=$(LIBDIR)/pkgconfig"))

clean:
	$(Q)rm -rf build

help:
	@printf '%s\n' \
	    'make                 the binary and its plugins, in build/release' \
	    'make deps            install the missing Debian packages (root or sudo)' \
	    'make demo            a file through a real Kafka into another file, managed with curl' \
	    'make demo-cluster    three workers, one of which is killed: another goes on' \
	    'make check           all tests: unit, seeds of the fuzzers, integration; T=word chooses' \
	    '                     alone: check-unit check-seeds check-integration' \
    'make check-3.9       the tests of clusters against Kafka 3.9; KAFKA=3.9.1 does so for any target' \
	    'make asan ubsan tsan unit and host tests under a sanitizer' \
	    'make compat          the same REST calls to the Java worker and to ours' \
	    'make chaos           faults of all kinds on a cluster; T=word SEED=n CHAOS_SECONDS=120' \
	    'make bench           figures beside raw librdkafka and the Java worker; bench-cluster: those of a cluster alone' \
	    'make fuzz            every fuzzer for FUZZ_SECONDS=60; T=word chooses' \
	    'make lint format-check doors headers     checks of the source; format mends the layout' \
	    'make install         PREFIX=/usr/local DESTDIR=' \
	    'make clean' '' \
	    'V=1 shows commands; WERROR=1 makes warnings errors; SAN=address|undefined|thread builds that variant'

# Goals that are named together run in that order, each using all cores.
SERIAL := all deps demo demo-cluster check check-unit check-seeds check-integration check-3.9 asan ubsan tsan fuzz compat bench bench-cluster lint format format-check doors headers install
chain = $(if $(word 2,$(1)),$(eval $(word 2,$(1)): | $(word 1,$(1)))$(call chain,$(wordlist 2,$(words $(1)),$(1))))
$(call chain,$(filter $(SERIAL),$(MAKECMDGOALS)))

.PHONY: always $(SERIAL) plugins test-plugins bench-build fuzz-run libraries test-libraries clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD) -path $(BUILD)/logs -prune -o -type f -name '*.d' -print 2>/dev/null)
