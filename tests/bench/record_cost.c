/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a task on a fixed input, for instructions.py to count what a record costs:
 * tests/unit/host/record_run.h.
 *
 *   record_cost PLUGINS                 prints the names of what it can do
 *   record_cost PLUGINS NAME BATCHES    does it
 */
#include "unit/host/record_run.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct record_run *run;

    if (argc == 2)
        for (size_t i = 0; record_run_name(i) != NULL; i++)
            printf("%s\n", record_run_name(i));
    if (argc != 4)
        return argc == 2 ? 0 : 2;
    run = record_run_open(argv[2], argv[1]);
    record_run_batches(run, (size_t)atoi(argv[3]));
    record_run_close(&run);
    return 0;
}
