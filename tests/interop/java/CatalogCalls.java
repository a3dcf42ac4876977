import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.catalog.PropertyChange;
import org.apache.paimon.function.Function;
import org.apache.paimon.function.FunctionDefinition;
import org.apache.paimon.function.FunctionImpl;
import org.apache.paimon.partition.Partition;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.Instant;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.view.View;
import org.apache.paimon.view.ViewChange;
import org.apache.paimon.view.ViewImpl;

/** Calls of a catalog that keeps more than tables, as that of a service does: {"command": "catalog", "call": "view", …}. */
final class CatalogCalls {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    private CatalogCalls() {}

    static JsonNode run(Catalog catalog, Identifier table, JsonNode request) throws Exception {
        String name = request.path("name").asText();
        Identifier named = Identifier.create(table.getDatabaseName(), name);
        Map<String, Object> answer = new TreeMap<>();
        switch (request.get("call").asText()) {
            case "database":
                catalog.createDatabase(name, false, Map.of("owner", "ann"));
                catalog.alterDatabase(name, List.of(PropertyChange.setProperty("a", "b")), false);
                answer.put("owner", catalog.getDatabase(name).options().get("owner"));
                answer.put("a", catalog.getDatabase(name).options().get("a"));
                catalog.dropDatabase(name, false, true);
                answer.put("names", catalog.listDatabases());
                break;
            case "tag":
                catalog.createTag(table, name, request.get("snapshot").asLong(), "7 d", false);
                answer.put("snapshot", catalog.getTag(table, name).snapshot().id());
                answer.put("retained", catalog.getTag(table, name).tagTimeRetained());
                answer.put("names", catalog.listTagsPaged(table, null, null, null).getElements());
                break;
            case "branch":
                catalog.createBranch(table, name, request.get("tag").asText());
                answer.put("names", catalog.listBranches(table));
                break;
            case "forward":
                catalog.fastForward(table, name);
                break;
            case "rollback":
                Instant instant = request.has("tag")
                        ? Instant.tag(request.get("tag").asText())
                        : Instant.snapshot(request.get("snapshot").asLong());
                catalog.rollbackTo(table, instant);
                break;
            case "snapshots":
                List<Long> ids = new ArrayList<>();
                catalog.listSnapshotsPaged(table, null, null).getElements().forEach(one -> ids.add(one.id()));
                answer.put("ids", ids);
                answer.put("earliest", catalog.loadSnapshot(table, "EARLIEST").get().id());
                answer.put("records", catalog.loadSnapshot(table).get().recordCount());
                break;
            case "partitions":
                List<String> partitions = new ArrayList<>();
                for (Partition partition : catalog.listPartitions(table)) {
                    partitions.add(new TreeMap<>(partition.spec()) + " " + partition.recordCount() + " " + partition.fileCount());
                }
                answer.put("partitions", partitions);
                break;
            case "consumer":
                catalog.resetConsumer(table, name, request.get("snapshot").asLong());
                List<String> consumers = new ArrayList<>();
                catalog.listConsumersPaged(table, null, null).getElements()
                        .forEach(one -> consumers.add(one.getConsumerId() + " " + one.getNextSnapshot()));
                answer.put("consumers", consumers);
                break;
            case "view":
                List<DataField> fields = List.of(new DataField(0, "id", DataTypes.BIGINT(), "number"));
                View view = new ViewImpl(
                        named, fields, request.get("query").asText(), Map.of("flink", "SELECT 1"), "some", Map.of("k", "v"));
                catalog.createView(named, view, false);
                View kept = catalog.getView(named); // its options also hold what the service says about it
                answer.put("same", kept.query().equals(view.query()) && kept.rowType().equals(view.rowType())
                        && kept.comment().equals(view.comment()) && "v".equals(kept.options().get("k")));
                catalog.alterView(named, List.of(ViewChange.addDialect("spark", "SELECT 2")), false);
                answer.put("dialects", new TreeMap<>(catalog.getView(named).dialects()));
                answer.put("names", catalog.listViews(table.getDatabaseName()));
                break;
            case "function":
                List<DataField> one = List.of(new DataField(0, "x", DataTypes.BIGINT()));
                Function function = new FunctionImpl(
                        named, one, one, true, Map.of("spark", FunctionDefinition.sql("x + x")), "twice", Map.of("k", "v"));
                catalog.createFunction(named, function, false);
                answer.put("same", function.equals(catalog.getFunction(named)));
                answer.put("names", catalog.listFunctions(table.getDatabaseName()));
                break;
            default:
                throw new IllegalArgumentException("unknown call " + request.get("call"));
        }
        return MAPPER.valueToTree(answer);
    }
}
