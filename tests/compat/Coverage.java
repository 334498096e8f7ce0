/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what Kafka Connect has, a row each, `kind <tab> name`: keys of its workers, connectors and clients, operations of its REST
 * API, commands. Read from the jars that stand on the class path: java -cp 'LIBS/*' Coverage.java */
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.TopicCreationConfig;
import org.apache.kafka.connect.runtime.isolation.Plugins;

public class Coverage {
    static final String[][] DEFINITIONS = {
        {"standalone worker", "org.apache.kafka.connect.runtime.standalone.StandaloneConfig"},
        {"distributed worker", "org.apache.kafka.connect.runtime.distributed.DistributedConfig"},
        {"source connector", "org.apache.kafka.connect.runtime.SourceConnectorConfig"},
        {"sink connector", "org.apache.kafka.connect.runtime.SinkConnectorConfig"},
    };
    static final String RESOURCES = "org.apache.kafka.connect.runtime.rest.resources.";
    static final String[] RESOURCE_CLASSES = {"RootResource", "ConnectorsResource", "ConnectorPluginsResource",
        "LoggingResource", "InternalConnectResource", "InternalClusterResource"};
    static final String[] COMMANDS = {"org.apache.kafka.connect.cli.ConnectDistributed connect-distributed.sh",
        "org.apache.kafka.connect.cli.ConnectStandalone connect-standalone.sh",
        "org.apache.kafka.connect.mirror.MirrorMaker connect-mirror-maker.sh",
        "org.apache.kafka.tools.ConnectPluginPath connect-plugin-path.sh"};

    static final TreeSet<String> rows = new TreeSet<>();

    static void keys(String kind, ConfigDef def) {
        for (String name : def.names())
            rows.add(kind + "\t" + name);
    }

    /* What transforms, predicates and groups of topics add to a connector's keys, for one of each. */
    static void enriched() throws Exception {
        Map<String, String> props = Map.of("transforms", "T", "transforms.T.type", "org.apache.kafka.connect.transforms.Filter",
            "predicates", "P", "predicates.P.type", "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone");
        Plugins plugins = new Plugins(Map.of());
        ConfigDef def = ConnectorConfig.enrich(plugins, new ConfigDef(), props, false);
        keys("enriched connector", def);
        for (String name : TopicCreationConfig.defaultGroupConfigDef().names())
            rows.add("enriched connector\ttopic.creation.default." + name.replaceFirst("^topic\\.creation\\.default\\.", ""));
        for (String name : TopicCreationConfig.configDef("G", (short) 1, 1).names())
            rows.add("enriched connector\ttopic.creation.G." + name.replaceFirst("^topic\\.creation\\.G\\.", ""));
    }

    /* The static field or method of a class that holds its definition. */
    static ConfigDef definition(Class<?> type) throws Exception {
        for (String name : new String[] {"configDef", "baseConfigDef"})
            for (Method method : type.getDeclaredMethods())
                if (method.getName().equals(name) && method.getReturnType() == ConfigDef.class && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    return (ConfigDef) method.invoke(null);
                }
        for (var field : type.getDeclaredFields())
            if (field.getType() == ConfigDef.class) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        for (Method method : type.getDeclaredMethods()) // DistributedConfig asks for the ciphers of this JVM
            if (method.getReturnType() == ConfigDef.class && method.getParameterCount() == 1) {
                Class<?> crypto = method.getParameterTypes()[0];
                method.setAccessible(true);
                return (ConfigDef) method.invoke(null, crypto.getField("SYSTEM").get(null));
            }
        throw new IllegalStateException("no definition in " + type);
    }

    static String path(Object annotated) throws Exception {
        var annotations = annotated instanceof Class<?> c ? c.getAnnotations() : ((Method) annotated).getAnnotations();
        for (var a : annotations)
            if (a.annotationType().getSimpleName().equals("Path"))
                return ((String) a.annotationType().getMethod("value").invoke(a)).replaceAll("^/|/$", "");
        return "";
    }

    static void operations(Class<?> type) throws Exception {
        String base = type.getSimpleName().startsWith("Internal") ? "connectors" : path(type);
        for (Class<?> c = type; c != Object.class; c = c.getSuperclass())
            for (Method method : c.getDeclaredMethods())
                for (var a : method.getAnnotations()) {
                    String verb = a.annotationType().getSimpleName();
                    if (verb.matches("GET|PUT|POST|DELETE|PATCH"))
                        rows.add("operation\t" + verb + " /" + (base + "/" + path(method)).replaceAll("^/|/$", "")
                            .replaceAll("\\{[^}]*task[^}]*\\}", "{t}").replaceAll("\\{[^}]{2,}\\}", "{c}"));
                }
    }

    public static void main(String[] args) throws Exception {
        for (String[] d : DEFINITIONS)
            try {
                keys(d[0], definition(Class.forName(d[1])));
            } catch (ClassNotFoundException gone) {
                System.err.println(gone);
            }
        enriched();
        keys("producer", ProducerConfig.configDef());
        keys("consumer", ConsumerConfig.configDef());
        keys("admin client", AdminClientConfig.configDef());
        for (String name : RESOURCE_CLASSES)
            try {
                operations(Class.forName(RESOURCES + name));
            } catch (ClassNotFoundException gone) {
                System.err.println(gone);
            }
        for (String command : COMMANDS)
            rows.add("command\t" + command.split(" ")[1]);
        rows.forEach(System.out::println);
    }
}
