# SPDX-License-Identifier: Apache-2.0
# Millrace: one Makefile, no configure step. `make` builds, `make deps` installs what is missing, `make check` tests.
VARIANT ?= $(if $(SAN),$(SAN),release)
BUILD := build/$(VARIANT)
V ?= 0
Q := $(if $(filter 0,$(V)),@)

CC ?= cc
CFLAGS ?= -O2 -g
PKGS := rdkafka libmicrohttpd jansson
STD := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
       -Wwrite-strings -Wvla -Wundef -fvisibility=hidden -fno-common -fPIC $(if $(WERROR),-Werror)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS = $(shell pkg-config --libs $(PKGS)) -ldl -lpthread -lm
RUNTIME_FLAGS = $(STD) $(SANFLAGS) -Iinclude -Iruntime -include runtime/base/ban.h -MMD -MP $(PKG_CFLAGS)
PLUGIN_FLAGS = $(STD) $(SANFLAGS) -Iinclude -MMD -MP -Wno-unused-parameter
TEST_FLAGS = $(STD) $(SANFLAGS) -Iinclude -Iruntime -Iplugins -Itests -MMD -MP -Wno-unused-parameter $(PKG_CFLAGS)

ROOMS := base kafka model link worker host
sources = $(shell find runtime/$(1) -name '*.c' | sort)
objects = $(patsubst %.c,$(BUILD)/%.o,$(call sources,$(1)))
archives = $(patsubst %,$(BUILD)/%.a,$(1))
PLUGINS := $(patsubst plugins/%/,%,$(sort $(dir $(wildcard plugins/*/*.c))))

all: $(BUILD)/millrace $(patsubst %,$(BUILD)/plugins/%.so,$(PLUGINS))

$(BUILD)/millrace: $(BUILD)/runtime/main.o $(call archives,worker host link model kafka base)
	@echo "  LD    $@"
	$(Q)$(CC) $(SANFLAGS) -o $@ $(BUILD)/runtime/main.o -Wl,--start-group $(call archives,worker host link model kafka base) -Wl,--end-group $(LIBS) $(LDFLAGS)

define room_rule
$(BUILD)/$(1).a: $(call objects,$(1))
	@echo "  AR    $$@"
	$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach room,$(ROOMS),$(eval $(call room_rule,$(room))))

$(BUILD)/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(RUNTIME_FLAGS) -c -o $@ $<

$(BUILD)/plugins/%.o: plugins/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS) $(PLUGIN_FLAGS) -c -o $@ $<

define plugin_rule
$(BUILD)/plugins/$(1).so: $(patsubst %.c,$(BUILD)/%.o,$(wildcard plugins/$(1)/*.c))
	@echo "  SO    $$@"
	$$(Q)$$(CC) $$(SANFLAGS) -shared -o $$@ $$^ -Wl,-z,now -lm
endef
$(foreach plugin,$(PLUGINS),$(eval $(call plugin_rule,$(plugin))))

# Unit tests: tests/unit/<room>/test_<file>.c links the room's archive and those below it.
UNIT := $(wildcard tests/unit/*/test_*.c)
BELOW_base := base
BELOW_kafka := kafka base
BELOW_model := model base
BELOW_link := link model base
BELOW_worker := worker link model kafka base
BELOW_host := host link model kafka base

$(BUILD)/tests/unit/%: tests/unit/%.c
$(BUILD)/tests/unit/%: tests/unit/%.c
	@mkdir -p $(@D)
	@$(MAKE) --no-print-directory $(call archives,$(BELOW_$(word 1,$(subst /, ,$*))))
	@echo "  TEST  $@"
	$(Q)$(CC) $(CFLAGS) $(TEST_FLAGS) -o $@ $< -Wl,--start-group $(call archives,$(BELOW_$(word 1,$(subst /, ,$*)))) -Wl,--end-group $(LIBS) -lcmocka

unit: $(patsubst %.c,$(BUILD)/%,$(UNIT))
	@for t in $^; do $$t || exit 1; done

clean:
	rm -rf build

.PHONY: all unit clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
