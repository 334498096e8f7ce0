// SPDX-License-Identifier: Apache-2.0
// The generator source for the Java worker: `count` records of `size` bytes, as fast as they are taken.
package bench;

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;

public class GeneratorSource extends SourceConnector {
    private Map<String, String> props;
    public String version() { return "1"; }
    public void start(Map<String, String> p) { props = p; }
    public Class<? extends Task> taskClass() { return Generator.class; }
    public List<Map<String, String>> taskConfigs(int max) { return List.of(props); }
    public void stop() { }
    public ConfigDef config() { return new ConfigDef(); }

    public static class Generator extends SourceTask {
        private long next, count;
        private String topic;
        private Schema schema;
        private Object value;
        public String version() { return "1"; }
        public void start(Map<String, String> p) {
            topic = p.get("topic");
            count = Long.parseLong(p.get("count"));
            String text = "x".repeat(Integer.parseInt(p.get("size")));
            boolean bytes = "bytes".equals(p.get("kind"));
            schema = bytes ? Schema.BYTES_SCHEMA : Schema.STRING_SCHEMA;
            value = bytes ? text.getBytes() : text;
        }
        public List<SourceRecord> poll() throws InterruptedException {
            if (next >= count) { Thread.sleep(100); return null; }
            List<SourceRecord> out = new ArrayList<>(2000);
            for (int i = 0; i < 2000 && next < count; i++)
                out.add(new SourceRecord(Map.of("name", "g"), Map.of("next", ++next), topic, schema, value));
            return out;
        }
        public void stop() { }
    }
}
