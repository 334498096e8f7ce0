/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a batch between plugin and Kafka, in both directions: transforms, converters,
 * retries, dead letters. Owner: the task's thread.
 * Spec: AbstractWorkerSourceTask.convertTransformedRecord,
 * WorkerSinkTask.convertAndTransformRecord. */
#ifndef HOST_PIPELINE_H
#define HOST_PIPELINE_H

#include "base/json.h"
#include "host/data/record_arena.h"
#include "host/task/stages/plugin_stage.h"
#include "host/task/stages/tolerance.h"
#include "kafka/consumer.h"

/* What a converter is for. */
enum plugin_role { PLUGIN_KEY, PLUGIN_VALUE, PLUGIN_HEADER, PLUGIN_ROLES };

struct pipeline;
struct producer_record;

/* Everything is borrowed for the pipeline's life.
 *
 * connector  the connector's configuration: its converters, errors.*; worker: converters where the
 *            connector names none
 * plugins    where the plugins are that these name (plugin_places.h)
 * owner      for the plugins' handles
 * source     of records: false for a sink's
 * wait       sleep that long, on the task's thread, between two tries of a stage; 0: only look.
 *            false: the task ends
 * carry      how dead letters are sent, see dead_letters_spec; with carrier
 * seen       a message of this topic was converted, whatever transforms make of it; for each one.
 *            NULL: nobody wants to know */
struct pipeline_spec {
    const struct props *connector;
    const struct props *worker;
    const json_t *plugins;
    struct stage_owner owner;
    bool source;
    bool (*wait)(void *arg, int64_t ms);
    void (*seen)(void *arg, const char *topic);
    int (*carry)(void *arg, const char *topic, const struct producer_record *rec,
                 struct mr_error *err);
    void *carrier; /* of carry */
    void *arg;
};

/* Load, configure and start key, value and header converter. */
struct pipeline *pipeline_new(const struct pipeline_spec *spec, struct mr_error *err);
void pipeline_free(struct pipeline **p); /* stops the converters */

/* Source: convert header, key, value of each record, in order. A tolerated failure sets `dropped`.
 * On failure *done says how many records are ready; they are to be delivered. */
int pipeline_to_kafka(struct pipeline *p, struct batch *batch, size_t *done, struct mr_error *err);

/* A sink that emits: convert its records from `from` on, header, key, value; no transforms, and no
 * tolerance: MR_ERR_DATA with which stage refused what, for whoever knows the record that is to
 * blame. */
int pipeline_emitted(struct pipeline *p, struct batch *batch, size_t from, struct mr_error *err);

/* Sink: append the records of count messages to batch, key, value, header. A tolerated failure
 * leaves the record out. Values borrow from the messages. Ends behind the message with which batch
 * and messages have PIPELINE_FULL_BYTES; *done says how many were taken, at least one. On failure
 * the batch is not to be used. */
#define PIPELINE_FULL_BYTES ((size_t)32 * 1024 * 1024)
int pipeline_from_kafka(struct pipeline *p, const struct consumer_msg *msgs, size_t count,
                        struct batch *batch, size_t *done, struct mr_error *err);

/* A sink refused one record of a batch, and err says why: as if a stage had. MR_OK: it counts as
 * done, and err is clear. */
int pipeline_reject(struct pipeline *p, const struct record *rec, struct mr_error *err);
/* Wait until the dead letters of what was processed so far are delivered: before that, nothing of
 * it may count as done. MR_ERR_CLOSED: the task ends, and they are not. */
int pipeline_settle(struct pipeline *p, struct mr_error *err);

/* As the dead letters are, if there are any. A sink, whose records are read again, drops them; a
 * source, whose are not, takes them back and sends them again. */
void pipeline_drop_letters(struct pipeline *p);
void pipeline_take_letters_back(struct pipeline *p);
void pipeline_send_letters_again(struct pipeline *p);
bool pipeline_writes_dead_letters(const struct pipeline *p);

struct tolerance *pipeline_tolerance(struct pipeline *p);

#endif
