/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a task by themselves, with the shipped converters and transforms, on one fixed
 * input, as often as asked: for counting what a record costs. Reading is from bytes to values and
 * through the transforms, as for a sink; writing starts with values, as a source's plugin makes
 * them, and ends with bytes. */
#ifndef TESTS_RECORD_RUN_H
#define TESTS_RECORD_RUN_H

#include "host/task/stages/pipeline.h"

#define RECORD_RUN_BATCH 500

struct record_run;

/* "read-json-0": read or write; string, bytes, json or schema; 0 or 3 transforms. Gives the i-th
 * name, NULL behind the last. */
const char *record_run_name(size_t i);

/* plugins: the folder of the shipped libraries. Ends the program with a text when anything is
 * wrong. */
struct record_run *record_run_open(const char *name, const char *plugins);
void record_run_batches(struct record_run *run, size_t count); /* of RECORD_RUN_BATCH records */
void record_run_close(struct record_run **run);

#endif
