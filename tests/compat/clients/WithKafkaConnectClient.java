/* SPDX-License-Identifier: Apache-2.0 */
/* What org.sourcelab:kafka-connect-client, as Maven Central has it, makes of a worker: URL DIR. One line a call, to be
 * compared between workers; what belongs to one worker or one moment is left out. */
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.Callable;
import org.sourcelab.kafka.connect.apiclient.*;
import org.sourcelab.kafka.connect.apiclient.request.dto.*;
import org.sourcelab.kafka.connect.apiclient.request.post.PostConnectorRestart;

public class WithKafkaConnectClient {
    static final String NAME = "by-kafka-connect-client";
    static KafkaConnectClient client;
    static String folder;

    static String tidy(Object value) {
        return String.valueOf(value).replace(folder, "DIR").replaceAll("127\\.0\\.[01]\\.[01]:[0-9]+", "WORKER");
    }

    static void call(String what, Callable<?> fn) {
        String result;
        try {
            result = tidy(fn.call());
        } catch (Exception error) {
            result = error.getClass().getSimpleName() + " " + tidy(error.getMessage());
        }
        System.out.println(what + ": " + result);
    }

    static boolean is(String state, int tasks) {
        ConnectorStatus status = client.getConnectorStatus(NAME);
        return state.equals(status.getConnector().get("state")) && status.getTasks().size() == tasks
            && status.getTasks().stream().allMatch(t -> state.equals(t.getState()));
    }

    /** Until the connector and so many tasks are in this state. */
    static void settle(String state, int tasks) throws InterruptedException {
        for (int i = 0; i < 600; i++) {
            try {
                if (is(state, tasks))
                    return;
            } catch (RuntimeException notYet) {
                // asked again
            }
            Thread.sleep(100);
        }
        System.out.println("never: " + state + " with " + tasks + " tasks");
    }

    static Map<String, String> with(Map<String, String> config, String key, String value) {
        Map<String, String> more = new TreeMap<>(config);
        more.put(key, value);
        return more;
    }

    static int errors(Map<String, String> config) {
        return client.validateConnectorPluginConfig(ConnectorPluginConfigDefinition.newBuilder()
            .withName("FileStreamSource").withConfig(config).build()).getErrorCount();
    }

    public static void main(String[] args) throws Exception {
        folder = args[1];
        client = new KafkaConnectClient(new Configuration(args[0]));
        Path in = Paths.get(folder, "in.txt");
        Files.writeString(in, "one\n");
        Map<String, String> config = new TreeMap<>(Map.of("tasks.max", "1", "file", in.toString(), "topic", NAME,
            "connector.class", "org.apache.kafka.connect.file.FileStreamSourceConnector"));
        NewConnectorDefinition made = NewConnectorDefinition.newBuilder().withName(NAME).withConfig(config).build();

        call("version", () -> client.getConnectServerVersion().getVersion().startsWith("4."));
        call("plugins", () -> client.getConnectorPlugins().stream().map(ConnectorPlugin::getClassName)
            .filter(c -> c.contains("FileStream")).sorted().toList());
        call("create", () -> client.addConnector(made));
        settle("RUNNING", 1);
        call("create again", () -> client.addConnector(made));
        call("list", () -> client.getConnectors().contains(NAME));
        call("with status", () -> client.getConnectorsWithExpandedStatus().getStatusForConnector(NAME));
        call("with info", () -> client.getConnectorsWithExpandedInfo().getDefinitionForConnector(NAME));
        call("with all", () -> client.getConnectorsWithAllExpandedMetadata().getDefinitionForConnector(NAME));
        call("get", () -> client.getConnector(NAME));
        call("config", () -> new TreeMap<>(client.getConnectorConfig(NAME)));
        call("status", () -> client.getConnectorStatus(NAME));
        call("tasks", () -> client.getConnectorTasks(NAME).stream().map(t -> t.getId() + " " + new TreeMap<>(t.getConfig())).toList());
        call("task status", () -> client.getConnectorTaskStatus(NAME, 0));
        call("update", () -> client.updateConnectorConfig(NAME, with(config, "batch.size", "100")));
        settle("RUNNING", 1);
        call("pause", () -> client.pauseConnector(NAME));
        settle("PAUSED", 1);
        call("resume", () -> client.resumeConnector(NAME));
        settle("RUNNING", 1);
        call("restart", () -> client.restartConnector(NAME));
        settle("RUNNING", 1);
        call("restart with tasks", () -> client.restartConnector(new PostConnectorRestart(NAME).withIncludeTasks(true)));
        settle("RUNNING", 1);
        call("restart task", () -> client.restartConnectorTask(NAME, 0));
        settle("RUNNING", 1);
        call("topics", () -> client.getConnectorTopics(NAME));
        call("reset topics", () -> client.resetConnectorTopics(NAME));
        call("validate", () -> errors(with(config, "name", NAME)));
        call("validate a bad one", () -> errors(with(config, "tasks.max", "x")));
        call("delete", () -> client.deleteConnector(NAME));
        for (int i = 0; i < 600 && client.getConnectors().contains(NAME); i++)
            Thread.sleep(100);
        call("delete again", () -> client.deleteConnector(NAME));
        call("get what is not there", () -> client.getConnector(NAME));
        call("status of what is not there", () -> client.getConnectorStatus(NAME));
    }
}
