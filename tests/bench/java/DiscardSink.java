// SPDX-License-Identifier: Apache-2.0
// The discarding sink for the Java worker.
package bench;

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.*;

public class DiscardSink extends SinkConnector {
    private Map<String, String> props;
    public String version() { return "1"; }
    public void start(Map<String, String> p) { props = p; }
    public Class<? extends Task> taskClass() { return Discard.class; }
    public List<Map<String, String>> taskConfigs(int max) { return Collections.nCopies(max, props); }
    public void stop() { }
    public ConfigDef config() { return new ConfigDef(); }

    public static class Discard extends SinkTask {
        public String version() { return "1"; }
        public void start(Map<String, String> p) { }
        public void put(Collection<SinkRecord> records) { }
        public void stop() { }
    }
}
