/* SPDX-License-Identifier: Apache-2.0 */
/* lead: whole rounds as the Java worker led them, by its own assignors; what members can't
 * break. */
#include "worker/group/lead.h"

#include "group_golden.h"

#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the recorded sequences ------------------------------------------------------------------- */

struct sequence {
    const char *name;
    enum connect_kind kind;
    int64_t max_delay_ms;
    struct map *assignors; /* of each member that leads */
    int compared;
};

static void free_assignor(void *value)
{
    struct assignor *assignor = value;

    assignor_free(&assignor);
}

static struct assignor *assignor_of(struct sequence *seq, const char *leader)
{
    struct assignor *assignor = map_get(seq->assignors, leader);

    if (assignor == NULL) {
        assignor = assignor_new();
        map_set(seq->assignors, leader, assignor);
    }
    return assignor;
}

static struct lead_snapshot *snapshot_of(const json_t *round, int64_t max_offset)
{
    const json_t *config = json_object_get(round, "config");
    const json_t *fresh = json_object_get(round, "fresh_config");
    struct lead_snapshot *snapshot;
    const char *conn;
    json_t *tasks;

    if (golden_int(config, "offset", -1) < max_offset && fresh != NULL)
        config = fresh;
    snapshot = lead_snapshot_new(golden_int(config, "offset", -1));
    json_object_foreach(json_object_get(config, "connectors"), conn, tasks)
        assert_int_equal(lead_snapshot_add(snapshot, conn, (int32_t)json_integer_value(tasks)), 0);
    return snapshot;
}

static void add_members(struct lead *lead, const json_t *round)
{
    json_t *member;
    size_t i;

    json_array_foreach(json_object_get(round, "members"), i, member)
    {
        const json_t *allocation = json_object_get(member, "allocation");
        struct connect_metadata metadata = {.url = strdup(golden_text(member, "url")),
                                            .offset = golden_int(member, "offset", -1)};

        if (json_is_object(allocation)) {
            metadata.allocation = calloc(1, sizeof(*metadata.allocation));
            golden_list(allocation, &metadata.allocation->assigned);
        }
        assert_int_equal(lead_add_take(lead, golden_text(member, "id"), &metadata), 0);
    }
}

static const char *url_of(const json_t *round, const char *id)
{
    json_t *member;
    size_t i;

    json_array_foreach(json_object_get(round, "members"), i,
                       member) if (strcmp(golden_text(member, "id"), id) ==
                                   0) return golden_text(member, "url");
    return NULL;
}

static void check_member(const char *where, const json_t *wanted, const struct lead_member *member,
                         bool eager)
{
    struct connect_assignment got = {0};

    assert_int_equal(
        connect_protocol_read_assignment(member->bytes.data, member->bytes.len, eager, &got, NULL),
        0);
    assert_string_equal(got.leader, golden_text(wanted, "leader"));
    assert_string_equal(got.leader_url, golden_text(wanted, "url"));
    assert_int_equal(got.error, golden_int(wanted, "error", 0));
    assert_int_equal(got.offset, golden_int(wanted, "offset", 0));
    golden_assert_same(where, json_object_get(wanted, "assigned"), &got.assigned);
    golden_assert_same(where, json_object_get(wanted, "revoked"), &got.revoked);
    if (got.delay_ms != golden_int(wanted, "delay", 0))
        print_error("%s: delay\n", where);
    assert_int_equal(got.delay_ms, golden_int(wanted, "delay", 0));
    connect_protocol_assignment_deinit(&got);
}

/* {"c0":"m0","c0-1":"m1"}: who runs what. */
static void check_owners(const json_t *wanted, const struct lead *lead)
{
    char name[256];
    size_t count = 0;

    for (size_t i = 0; i < lead->count; i++) {
        const struct work_list *owned = &lead->members[i].share->owned;

        for (size_t e = 0; e < owned->count; e++)
            for (size_t t = 0; t < owned->entries[e].count; t++, count++) {
                snprintf(name, sizeof(name),
                         owned->entries[e].tasks[t] == WORK_LIST_CONNECTOR ? "%s" : "%s-%d",
                         owned->entries[e].conn, owned->entries[e].tasks[t]);
                assert_string_equal(golden_text(wanted, name), lead->members[i].id);
            }
    }
    assert_int_equal(count, json_object_size(wanted));
}

static void run_round(struct sequence *seq, const json_t *round, size_t number)
{
    const char *leader = golden_text(round, "leader");
    const json_t *results = json_object_get(round, "result");
    struct lead lead = {0};
    struct lead_snapshot *snapshot;
    char where[256];

    add_members(&lead, round);
    snapshot = snapshot_of(round, lead.max_offset);
    assert_int_equal(
        lead_make(&lead,
                  &(struct lead_terms){
                      .assignor = assignor_of(seq, leader),
                      .kind = seq->kind,
                      .java = true,
                      .leader = leader,
                      .leader_url = url_of(round, leader),
                      .snapshot = snapshot,
                      .now_ms = golden_int(round, "now_ms", 0),
                      .generation = golden_int(round, "generation", 0),
                      .last_completed = golden_int(round, "last_completed_generation", -1),
                      .max_delay_ms = seq->max_delay_ms,
                  }),
        0);
    assert_int_equal(json_object_size(results), lead.count);
    for (size_t i = 0; i < lead.count; i++) {
        snprintf(where, sizeof(where), "%s, round %zu, %s", seq->name, number, lead.members[i].id);
        check_member(where, json_object_get(results, lead.members[i].id), &lead.members[i],
                     seq->kind == CONNECT_EAGER);
        seq->compared++;
    }
    if (lead.error == CONNECT_OK && seq->kind != CONNECT_EAGER)
        check_owners(json_object_get(round, "leader_state"), &lead);
    lead_deinit(&lead);
    lead_snapshot_free(&snapshot);
}

static void run_sequence(const json_t *line, void *compared)
{
    struct sequence seq = {.name = golden_text(line, "name"),
                           .max_delay_ms = golden_int(line, "max_delay_ms", 0),
                           .assignors = map_new()};
    json_t *round;
    size_t i;

    assert_true(connect_protocol_kind(golden_text(line, "protocol"), &seq.kind));
    json_array_foreach(json_object_get(line, "rounds"), i, round) run_round(&seq, round, i);
    map_free(&seq.assignors, free_assignor);
    *(int *)compared += seq.compared;
}

static void rounds_end_as_the_java_worker_ends_them(void **state)
{
    int compared = 0;

    (void)state;
    assert_int_equal(golden_each("assignor.jsonl", run_sequence, &compared), 77);
    assert_int_equal(golden_each("assignor-random.jsonl", run_sequence, &compared), 41);
    assert_true(compared > 1500);
}

/* --- what the recordings do not have ---------------------------------------------------------- */

static void add_holder(struct lead *lead, const char *id, int32_t first, int32_t last)
{
    struct connect_metadata metadata = {.url = strdup("u"), .offset = 1};

    metadata.allocation = calloc(1, sizeof(*metadata.allocation));
    for (int32_t task = first; task <= last; task++)
        assert_int_equal(work_list_add(&metadata.allocation->assigned, "c", task), 0);
    assert_int_equal(lead_add_take(lead, id, &metadata), 0);
}

/* Reference group-protocol 10, step 3: all that is active counts as assigned before, so what is
 * missing then is new, and is not waited for. */
static void a_revocation_without_effect_ends_the_wait_in_java(void **state)
{
    struct lead_snapshot *snapshot = lead_snapshot_new(1);
    struct assignor *assignor = assignor_new();
    struct lead_terms terms = {.assignor = assignor,
                               .kind = CONNECT_SESSIONED,
                               .java = true,
                               .leader = "a",
                               .leader_url = "u",
                               .snapshot = snapshot,
                               .last_completed = -1,
                               .generation = 1,
                               .max_delay_ms = 60000};
    struct lead lead = {0};

    (void)state;
    assert_int_equal(lead_snapshot_add(snapshot, "c", 9), 0);
    add_holder(&lead, "a", -1, 5);
    add_holder(&lead, "b", 6, 8);
    assert_int_equal(lead_make(&lead, &terms), 0);
    assert_true(lead.members[0].share->revoked.items > 0);
    lead_deinit(&lead);
    terms.last_completed = terms.generation++;
    add_holder(&lead, "a", -1, 5); /* has stopped nothing; and b is gone */
    assert_int_equal(lead_make(&lead, &terms), 0);
    assert_int_equal(lead.members[0].share->assigned.items, 3);
    lead_deinit(&lead);
    lead_snapshot_free(&snapshot);
    assignor_free(&assignor);
}

/* --- what members can't break ----------------------------------------------------------------- */

static struct lead_terms terms_of(struct assignor *assignor, const struct lead_snapshot *snapshot)
{
    return (struct lead_terms){.assignor = assignor,
                               .kind = CONNECT_SESSIONED,
                               .leader = "good",
                               .leader_url = "http://good:8083/",
                               .snapshot = snapshot,
                               .generation = 1,
                               .last_completed = -1};
}

/* Java's leader ends on such bytes, and with it the worker. */
static void a_member_with_unreadable_metadata_gets_an_empty_assignment(void **state)
{
    struct connect_metadata good = {.url = strdup("http://good:8083/"), .offset = 3};
    struct lead_snapshot *snapshot = lead_snapshot_new(3);
    struct assignor *assignor = assignor_new();
    struct connect_assignment got = {0};
    struct lead_terms terms = terms_of(assignor, snapshot);
    struct mr_error err = {0};
    struct lead lead = {0};

    (void)state;
    assert_int_equal(lead_snapshot_add(snapshot, "c", 2), 0);
    assert_int_equal(lead_add(&lead, "bad", "\xff\xff", 2, false, &err), 0);
    assert_non_null(strstr(err.text, "version"));
    assert_int_equal(lead_add_take(&lead, "good", &good), 0);
    assert_int_equal(lead_make(&lead, &terms), 0);
    assert_false(lead.members[0].readable);
    assert_int_equal(connect_protocol_read_assignment(lead.members[0].bytes.data,
                                                      lead.members[0].bytes.len, false, &got, NULL),
                     0);
    assert_int_equal(got.assigned.items, 0);
    connect_protocol_assignment_deinit(&got);
    assert_int_equal(lead.members[1].share->owned.items, 3);
    lead_deinit(&lead);
    lead_snapshot_free(&snapshot);
    assignor_free(&assignor);
}

static void a_snapshot_behind_a_member_sends_everybody_to_read_on(void **state)
{
    struct connect_metadata ahead = {.url = strdup("u"), .offset = 10};
    struct lead_snapshot *snapshot = lead_snapshot_new(9);
    struct assignor *assignor = assignor_new();
    struct connect_assignment got = {0};
    struct lead_terms terms = terms_of(assignor, snapshot);
    struct lead lead = {0};

    (void)state;
    assert_int_equal(lead_snapshot_add(snapshot, "c", 2), 0);
    assert_int_equal(lead_add_take(&lead, "good", &ahead), 0);
    assert_int_equal(lead_make(&lead, &terms), 0);
    assert_int_equal(connect_protocol_read_assignment(lead.members[0].bytes.data,
                                                      lead.members[0].bytes.len, false, &got, NULL),
                     0);
    assert_int_equal(got.error, CONNECT_CONFIG_MISMATCH);
    assert_int_equal(got.offset, 10);
    assert_int_equal(got.assigned.items, 0);
    assert_null(lead.members[0].share);
    connect_protocol_assignment_deinit(&got);
    lead_deinit(&lead);
    lead_snapshot_free(&snapshot);
    assignor_free(&assignor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_end_as_the_java_worker_ends_them),
        cmocka_unit_test(a_revocation_without_effect_ends_the_wait_in_java),
        cmocka_unit_test(a_member_with_unreadable_metadata_gets_an_empty_assignment),
        cmocka_unit_test(a_snapshot_behind_a_member_sends_everybody_to_read_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
