/* SPDX-License-Identifier: Apache-2.0 */
/* `make chaos`: all scenarios in turn, on three brokers that they share. Words choose those that
 * have one in their name. */
#include "chaos/chaos.h"

#include <stdio.h>

#define RUN(group) _cmocka_run_group_tests(#group, group, group##_count, NULL, NULL)

static int run_all(void)
{
    return RUN(chaos_deaths) + RUN(chaos_freezes) + RUN(chaos_brokers) + RUN(chaos_network) +
           RUN(chaos_clocks) + RUN(chaos_scaling) + RUN(chaos_topics) + RUN(chaos_storms) +
           RUN(chaos_exactly_once) + RUN(chaos_replicas) + RUN(chaos_wire) +
           RUN(chaos_crash_points);
}

int main(int argc, char **argv)
{
    int failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %u: make chaos SEED=%u\n", chaos_seed(), chaos_seed());
    for (int i = 1; i < argc; i++) {
        cmocka_set_test_filter(scratch_text("*%s*", argv[i]));
        failed += run_all();
    }
    if (argc < 2)
        failed = run_all();
    return failed == 0 ? 0 : 1;
}
