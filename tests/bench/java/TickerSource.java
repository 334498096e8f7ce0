// SPDX-License-Identifier: Apache-2.0
// The ticker (plugins/ticker.c) for the Java worker: `rate` records a second and task, the first at once, each task into a
// partition of its own; value "<number> <worker> <life>".
package bench;

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;

public class TickerSource extends SourceConnector {
    private Map<String, String> props;
    public String version() { return "1"; }
    public void start(Map<String, String> p) { props = p; }
    public Class<? extends Task> taskClass() { return Ticker.class; }
    public List<Map<String, String>> taskConfigs(int max) {
        List<Map<String, String>> all = new ArrayList<>();
        for (int i = 0; i < max; i++) {
            Map<String, String> one = new HashMap<>(props);
            one.put("number", Integer.toString(i));
            all.add(one);
        }
        return all;
    }
    public void stop() { }
    public ConfigDef config() { return new ConfigDef(); }

    public static class Ticker extends SourceTask {
        private long rate, next, first, fromMs;
        private int partition;
        private String topic, name, tail;
        private static long clockMs() { return System.nanoTime() / 1000000; }
        public String version() { return "1"; }
        public void start(Map<String, String> p) {
            topic = p.get("topic");
            rate = Long.parseLong(p.get("rate"));
            name = p.get("name") + "-" + p.get("number");
            partition = Integer.parseInt(p.get("first")) + Integer.parseInt(p.get("number"));
            Map<String, Object> stored = context.offsetStorageReader().offset(Map.of("name", name));
            first = next = stored == null ? 0 : (Long) stored.get("next");
            fromMs = clockMs();
            tail = " " + System.getenv("BENCH_WORKER") + " " + ProcessHandle.current().pid() + "-" + fromMs;
        }
        public List<SourceRecord> poll() throws InterruptedException {
            long due = first + 1 + (clockMs() - fromMs) * rate / 1000;
            if (next >= due) {
                Thread.sleep(Math.min(100, Math.max(1, fromMs + (next - first) * 1000 / rate - clockMs())));
                return null;
            }
            List<SourceRecord> out = new ArrayList<>();
            for (int n = 0; next < due && n < 500; n++) {
                String text = next + tail;
                out.add(new SourceRecord(Map.of("name", name), Map.of("next", ++next), topic, partition, Schema.STRING_SCHEMA, text));
            }
            return out;
        }
        public void stop() { }
    }
}
