/* SPDX-License-Identifier: Apache-2.0 */
/* Which of our loggers does what which class of Kafka Connect does: whoever sets
 * org.apache.kafka.connect.runtime.WorkerSinkTask to DEBUG, since that is what is written
 * everywhere, gets our sink task's lines. Called at the start of a worker.
 *
 * A room's own name ("worker", "host.task") is a logger too, so that what lies below it can be set
 * at once. */
#include "model/logger_names.h"

#include "base/log_levels.h"

#define RUNTIME "org.apache.kafka.connect.runtime."

/* java NULL: nothing there is alike. */
static const struct {
    const char *name;
    const char *java;
} names[] = {
    {"worker", "org.apache.kafka.connect.cli.ConnectDistributed"},
    {"worker.catalog", RUNTIME "isolation.PluginScanner"},
    {"worker.config", RUNTIME "WorkerConfig"},
    {"worker.group", RUNTIME "distributed.WorkerCoordinator"},
    {"worker.herder", RUNTIME "distributed.DistributedHerder"},
    {"worker.herder.fence", NULL},
    {"worker.kafka", "org.apache.kafka.clients.NetworkClient"},
    {"worker.rest", RUNTIME "rest.RestServer"},
    {"worker.services", NULL},
    {"worker.store", "org.apache.kafka.connect.storage.KafkaConfigBackingStore"},
    {"worker.supervisor", RUNTIME "Worker"},
    {"host", NULL},
    {"host.api", NULL},
    {"host.connector", RUNTIME "WorkerConnector"},
    {"host.control", NULL},
    {"host.data.record_arena", NULL},
    {"host.plugins", RUNTIME "isolation.Plugins"},
    {"host.service", NULL},
    {"host.task", RUNTIME "WorkerTask"},
    {"host.task.dead_letters", RUNTIME "errors.DeadLetterQueueReporter"},
    {"host.task.emit", NULL},
    {"host.task.offset_writer", "org.apache.kafka.connect.storage.OffsetStorageWriter"},
    {"host.task.offsets", "org.apache.kafka.connect.storage.ConnectorOffsetBackingStore"},
    {"host.task.send", "org.apache.kafka.clients.producer.KafkaProducer"},
    {"host.task.sink", RUNTIME "WorkerSinkTask"},
    {"host.task.source", RUNTIME "WorkerSourceTask"},
    {"host.task.state", NULL},
    {"host.task.tolerance", RUNTIME "errors.RetryWithToleranceOperator"},
    {"host.task.txn", RUNTIME "ExactlyOnceWorkerSourceTask"},
    {"kafka", "org.apache.kafka.clients"},
    {"kafka.consumer", "org.apache.kafka.clients.consumer.KafkaConsumer"},
    {"plugin.stderr", NULL},
    {"plugin.stdout", NULL},
};

void logger_names_declare(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        log_levels_declare(names[i].name, names[i].java);
}

void logger_names_plugin(const char *name, const char *java_class)
{
    char own[256];

    snprintf(own, sizeof(own), "plugin.%.100s", name);
    log_levels_declare(own, java_class);
}
