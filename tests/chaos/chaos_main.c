/* SPDX-License-Identifier: Apache-2.0 */
/* `make chaos`: all scenarios in turn, on three brokers that they share. A word chooses those that have it in their name. */
#include "chaos/chaos.h"

#include <stdio.h>

#define RUN(group) _cmocka_run_group_tests(#group, group, group##_count, NULL, NULL)

int main(int argc, char **argv)
{
    int failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %u: make chaos SEED=%u\n", chaos_seed(), chaos_seed());
    if (argc > 1 && argv[1][0] != '\0')
        cmocka_set_test_filter(scratch_text("*%s*", argv[1]));
    failed += RUN(chaos_deaths);
    failed += RUN(chaos_freezes);
    failed += RUN(chaos_brokers);
    failed += RUN(chaos_network);
    failed += RUN(chaos_clocks);
    failed += RUN(chaos_scaling);
    failed += RUN(chaos_topics);
    failed += RUN(chaos_storms);
    return failed == 0 ? 0 : 1;
}
