import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.postpone.BucketFiles;
import org.apache.paimon.postpone.PostponeBucketFileStoreWrite;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.PostponeUtils;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.StreamTableCommit;
import org.apache.paimon.table.sink.StreamTableWrite;
import org.apache.paimon.table.sink.StreamWriteBuilder;
import org.apache.paimon.table.sink.TableWrite;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.table.source.TableScan;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.JsonSerdeUtil;
import org.apache.paimon.utils.SnapshotManager;

/**
 * The Java core of Paimon behind JSON lines: a request per line on stdin, an answer per line on stdout.
 *
 * <p>Request: {"id": 1, "command": "read", "path": "/warehouse/db.db/table", …}. Answer: {"id": 1, "ok": …} or
 * {"id": 1, "error": "ClassName", "message": "…"}. No request ends the process except "shutdown" and the end of stdin.
 * What each command takes is said in tests/interop/oracles.py, its only caller.
 */
public final class PaimonOracle {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** Every write and read: small buffers, because one small heap serves tables with many buckets. */
    private static final Map<String, String> SMALL = Map.of("write-buffer-size", "8 mb", "page-size", "32 kb");

    private final IOManager spill;

    private PaimonOracle(IOManager spill) {
        this.spill = spill;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // Whatever a library prints must not be taken for an answer.
        IOManager spill = IOManager.create(Files.createTempDirectory(Paths.get(args[0]), "spill").toString());
        PaimonOracle oracle = new PaimonOracle(spill);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = MAPPER.createObjectNode();
            boolean last = false;
            try {
                JsonNode request = MAPPER.readTree(line);
                answer.set("id", request.get("id"));
                last = request.path("command").asText().equals("shutdown");
                answer.set("ok", oracle.run(request));
            } catch (Throwable error) {
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", messageOf(error));
            }
            answers.println(MAPPER.writeValueAsString(answer));
            answers.flush();
            if (last) {
                break;
            }
        }
        spill.close();
        System.exit(0); // Paimon's pools are not all daemon threads.
    }

    private static String messageOf(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(text.length() == 0 ? "" : " <- ").append(cause);
        }
        StackTraceElement[] stack = error.getStackTrace();
        for (int i = 0; i < Math.min(6, stack.length); i++) {
            text.append("\n    at ").append(stack[i]);
        }
        return text.toString();
    }

    private JsonNode run(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "hello":
                return hello();
            case "create":
                return create(request);
            case "names":
                return catalogNames(request);
            case "rename":
                return rename(request);
            case "drop":
                return drop(request);
            case "catalog":
                try (Catalog catalog = catalog(request)) {
                    return CatalogCalls.run(catalog, identifier(request), request);
                }
            case "write":
                return write(request);
            case "read":
                return read(request);
            case "system":
                return system(request);
            case "changes":
                return changes(request);
            case "compact":
                return compact(request);
            case "snapshots":
                return snapshots(table(request));
            case "files":
                return files(request);
            case "info":
                return info(request);
            case "alter":
                return alter(request);
            case "expire":
                return expire(request);
            case "orphans":
                return orphans(request);
            case "tag":
                return tag(request);
            case "delete_tag":
                return deleteTag(request);
            case "branch":
                return branch(request);
            case "shutdown":
                return MAPPER.createObjectNode();
            default:
                throw new IllegalArgumentException("unknown command " + request.get("command"));
        }
    }

    private static JsonNode hello() {
        ObjectNode answer = MAPPER.createObjectNode();
        answer.put("implementation", "java");
        String jar = Paths.get(Table.class.getProtectionDomain().getCodeSource().getLocation().getPath()).getFileName().toString();
        answer.put("version", jar.replaceAll("^paimon-[a-z]+-", "").replaceAll("\\.jar$", ""));
        return answer;
    }

    // ---- catalog ----------------------------------------------------------------------------------------------

    private static Catalog catalog(JsonNode request) {
        Options options = new Options();
        java.nio.file.Path database = Paths.get(request.get("path").asText()).getParent();
        options.set("warehouse", database.getParent().toString());
        options.set("cache-enabled", "false"); // Others change these tables too.
        strings(request.get("catalog")).forEach(options::set);
        return CatalogFactory.createCatalog(CatalogContext.create(options));
    }

    private static Identifier identifier(JsonNode request) {
        java.nio.file.Path path = Paths.get(request.get("path").asText());
        String database = path.getParent().getFileName().toString();
        return Identifier.create(database.substring(0, database.length() - ".db".length()), path.getFileName().toString());
    }

    private static FileStoreTable table(JsonNode request) throws Exception {
        try (Catalog catalog = catalog(request)) {
            Table table = catalog.getTable(identifier(request));
            Map<String, String> options = new HashMap<>(SMALL);
            options.putAll(strings(request.get("options")));
            return (FileStoreTable) table.copy(options);
        }
    }

    private static Map<String, String> strings(JsonNode object) {
        Map<String, String> result = new HashMap<>();
        if (object != null && !object.isNull()) {
            object.fields().forEachRemaining(entry -> result.put(entry.getKey(), entry.getValue().asText()));
        }
        return result;
    }

    private static JsonNode create(JsonNode request) throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode column : request.get("columns")) {
            schema.column(column.get("name").asText(), DataTypeJsonParser.parseDataType(column.get("type")));
        }
        schema.primaryKey(names(request.get("primary_key")));
        schema.partitionKeys(names(request.get("partition_by")));
        schema.options(strings(request.get("options")));
        try (Catalog catalog = catalog(request)) {
            Identifier identifier = identifier(request);
            catalog.createDatabase(identifier.getDatabaseName(), true);
            catalog.createTable(identifier, schema.build(), false);
        }
        return MAPPER.createObjectNode();
    }

    private static JsonNode catalogNames(JsonNode request) throws Exception {
        ObjectNode answer = MAPPER.createObjectNode();
        try (Catalog catalog = catalog(request)) {
            for (String database : catalog.listDatabases()) {
                ArrayNode tables = answer.putArray(database);
                catalog.listTables(database).forEach(tables::add);
            }
        }
        return answer;
    }

    private static JsonNode rename(JsonNode request) throws Exception {
        try (Catalog catalog = catalog(request)) {
            Identifier identifier = identifier(request);
            catalog.renameTable(identifier, Identifier.create(identifier.getDatabaseName(), request.get("to").asText()), false);
        }
        return MAPPER.createObjectNode();
    }

    private static JsonNode drop(JsonNode request) throws Exception {
        try (Catalog catalog = catalog(request)) {
            catalog.dropTable(identifier(request), false);
        }
        return MAPPER.createObjectNode();
    }

    private static List<String> names(JsonNode array) {
        List<String> result = new ArrayList<>();
        if (array != null && !array.isNull()) {
            array.forEach(name -> result.add(name.asText()));
        }
        return result;
    }

    private static JsonNode alter(JsonNode request) throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        for (JsonNode change : request.get("changes")) {
            String column = change.path("column").asText();
            switch (change.get("action").asText()) {
                case "add":
                    changes.add(SchemaChange.addColumn(column, DataTypeJsonParser.parseDataType(change.get("type"))));
                    break;
                case "rename":
                    changes.add(SchemaChange.renameColumn(column, change.get("to").asText()));
                    break;
                case "drop":
                    changes.add(SchemaChange.dropColumn(column));
                    break;
                case "widen":
                    changes.add(SchemaChange.updateColumnType(column, DataTypeJsonParser.parseDataType(change.get("type"))));
                    break;
                case "set":
                    changes.add(SchemaChange.setOption(change.get("key").asText(), change.get("value").asText()));
                    break;
                default:
                    throw new IllegalArgumentException("unknown schema change " + change);
            }
        }
        try (Catalog catalog = catalog(request)) {
            catalog.alterTable(identifier(request), changes, false);
        }
        return MAPPER.createObjectNode();
    }

    // ---- writing ----------------------------------------------------------------------------------------------

    /** One commit. With "user" the commit has an identity (stream builder), else it is a batch commit. */
    private JsonNode write(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        if (request.hasNonNull("user")) {
            StreamWriteBuilder builder = table.newStreamWriteBuilder().withCommitUser(request.get("user").asText());
            long identifier = request.get("identifier").asLong();
            try (StreamTableWrite write = builder.newWrite(); StreamTableCommit commit = builder.newCommit()) {
                writeRows(request, table, write);
                List<CommitMessage> messages = write.prepareCommit(true, identifier);
                Map<Long, List<CommitMessage>> committable = new HashMap<>();
                committable.put(identifier, messages);
                commit.filterAndCommit(committable);
            }
        } else {
            BatchWriteBuilder builder = table.newBatchWriteBuilder();
            if (request.hasNonNull("overwrite")) {
                builder = builder.withOverwrite(strings(request.get("overwrite")));
            }
            try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
                writeRows(request, table, write);
                commit.commit(write.prepareCommit());
            }
        }
        return latest(request);
    }

    private void writeRows(JsonNode request, FileStoreTable table, TableWrite write) throws Exception {
        write.withIOManager(spill);
        RowType type = table.rowType();
        JsonNode kinds = request.get("kinds");
        boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
        HashBucketAssigner assigner = dynamic ? assigner(table) : null;
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        int position = 0;
        for (JsonNode node : request.get("rows")) {
            GenericRow row = Values.decodeRow(node, type);
            if (kinds != null && !kinds.isNull()) {
                row.setRowKind(kindOf(kinds.get(position).asText()));
            }
            if (dynamic) {
                write.write(row, assigner.assign(keys.partition(row), keys.trimmedPrimaryKey(row).hashCode()));
            } else {
                write.write(row);
            }
            position++;
        }
    }

    /** What an engine does before it writes to dynamic buckets; one assigner for all of them. */
    private static HashBucketAssigner assigner(FileStoreTable table) {
        return new HashBucketAssigner(
                table.snapshotManager(),
                "java-oracle-assigner",
                table.store().newIndexFileHandler(),
                1,
                1,
                0,
                table.coreOptions().dynamicBucketTargetRowNum(),
                table.coreOptions().dynamicBucketMaxBuckets());
    }

    private static RowKind kindOf(String symbol) {
        for (RowKind kind : RowKind.values()) {
            if (kind.shortString().equals(symbol)) {
                return kind;
            }
        }
        throw new IllegalArgumentException("unknown row kind " + symbol);
    }

    /** Compacts every bucket, or those of one partition and one bucket. Append tables without buckets have tasks. */
    private JsonNode compact(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        table = table.copy(Collections.singletonMap("write-only", "false"));
        if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            compactUnaware(table);
            return latest(request);
        }
        if (table.bucketMode() == BucketMode.POSTPONE_MODE) {
            distributePostponed(table);
            return latest(request);
        }
        boolean full = request.path("full").asBoolean(true);
        Map<String, String> partition = strings(request.get("partition"));
        RowType partitionType = table.schema().logicalPartitionType();
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(spill);
            for (BucketEntry entry : table.newSnapshotReader().bucketEntries()) {
                boolean wanted = !request.hasNonNull("bucket") || request.get("bucket").asInt() == entry.bucket();
                if (wanted && matches(entry.partition(), partitionType, partition)) {
                    write.compact(entry.partition(), entry.bucket(), full);
                }
            }
            commit.commit(write.prepareCommit());
        }
        return latest(request);
    }

    /** What the engines do with postponed files: their rows are written to buckets, a file after the other as they were created. */
    private void distributePostponed(FileStoreTable table) throws Exception {
        Map<BinaryRow, Integer> known = PostponeUtils.getKnownNumBuckets(table);
        for (DataSplit split : table.newSnapshotReader().withBucket(BucketMode.POSTPONE_BUCKET).read().dataSplits()) {
            int count = known.getOrDefault(split.partition(), table.coreOptions().postponeDefaultBucketNum());
            FileStoreTable real = table.copy(Map.of("bucket", String.valueOf(count)));
            List<DataFileMeta> files = new ArrayList<>(split.dataFiles());
            files.sort(Comparator.comparing(DataFileMeta::creationTime));
            BatchWriteBuilder builder = real.newBatchWriteBuilder();
            List<CommitMessage> messages = new ArrayList<>();
            try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
                write.withIOManager(spill);
                for (DataFileMeta file : files) {
                    PostponeBucketFileStoreWrite.getWriteId(file.fileName()); // What tells their readers apart.
                    DataSplit one = DataSplit.builder()
                            .withPartition(split.partition())
                            .withBucket(split.bucket())
                            .withBucketPath(split.bucketPath())
                            .withTotalBuckets(split.totalBuckets())
                            .withDataFiles(Collections.singletonList(file))
                            .isStreaming(false)
                            .build();
                    try (RecordReaderIterator<InternalRow> rows = new RecordReaderIterator<>(table.newRead().createReader(one))) {
                        while (rows.hasNext()) {
                            write.write(rows.next());
                        }
                    }
                }
                for (CommitMessage message : write.prepareCommit()) {
                    CommitMessageImpl written = (CommitMessageImpl) message;
                    BucketFiles made = new BucketFiles(
                            table.store().pathFactory().createDataFilePathFactory(written.partition(), written.bucket()), table.fileIO());
                    made.update(written);
                    messages.add(made.makeMessage(written.partition(), written.bucket()));
                }
                messages.add(new CommitMessageImpl(
                        split.partition(),
                        split.bucket(),
                        split.totalBuckets(),
                        DataIncrement.emptyIncrement(),
                        new CompactIncrement(split.dataFiles(), Collections.emptyList(), Collections.emptyList())));
                commit.commit(messages);
            }
        }
    }

    private static boolean matches(BinaryRow row, RowType type, Map<String, String> wanted) {
        for (int i = 0; i < type.getFieldCount(); i++) {
            String text = wanted.get(type.getFieldNames().get(i));
            if (text != null && !text.equals(Values.encodeField(row, i, type.getTypeAt(i)).asText())) {
                return false;
            }
        }
        return true;
    }

    private static void compactUnaware(FileStoreTable table) throws Exception {
        Map<String, String> eager = Map.of("compaction.min.file-num", "2");
        FileStoreTable eagerTable = table.copy(eager);
        String user = "java-oracle-compaction";
        BaseAppendFileStoreWrite write = ((AppendOnlyFileStore) eagerTable.store()).newWrite(user);
        List<CommitMessage> messages = new ArrayList<>();
        try {
            for (AppendCompactTask task : new AppendCompactCoordinator(eagerTable, false).run()) {
                messages.add(task.doCompact(eagerTable, write));
            }
        } finally {
            write.close();
        }
        try (BatchTableCommit commit = eagerTable.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
    }

    private static JsonNode expire(JsonNode request) throws Exception {
        ExpireConfig config =
                ExpireConfig.builder()
                        .snapshotRetainMin(request.get("retain").asInt())
                        .snapshotRetainMax(request.get("retain").asInt())
                        .snapshotTimeRetain(Duration.ZERO)
                        .build();
        int expired = table(request).newExpireSnapshots().config(config).expire();
        return MAPPER.createObjectNode().put("expired", expired);
    }

    private static JsonNode orphans(JsonNode request) throws Exception {
        long olderThan = request.get("older_than_millis").asLong();
        return MAPPER.createObjectNode()
                .put("removed", new LocalOrphanFilesClean(table(request), olderThan, false).clean().getDeletedFileCount());
    }

    private static JsonNode tag(JsonNode request) throws Exception {
        table(request).createTag(request.get("name").asText(), request.get("snapshot").asLong());
        return MAPPER.createObjectNode();
    }

    private static JsonNode deleteTag(JsonNode request) throws Exception {
        table(request).deleteTag(request.get("name").asText());
        return MAPPER.createObjectNode();
    }

    private static JsonNode branch(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        String name = request.get("name").asText();
        if (request.hasNonNull("tag")) {
            table.createBranch(name, request.get("tag").asText());
        } else {
            table.createBranch(name);
        }
        return MAPPER.createObjectNode();
    }

    // ---- reading ----------------------------------------------------------------------------------------------

    private JsonNode read(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        if (request.hasNonNull("snapshot")) {
            table = table.copy(Collections.singletonMap("scan.snapshot-id", request.get("snapshot").asText()));
        }
        if (request.hasNonNull("tag")) {
            table = table.copy(Collections.singletonMap("scan.tag-name", request.get("tag").asText()));
        }
        RowType type = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        if (request.hasNonNull("equals")) {
            builder = builder.withFilter(equality(request.get("equals"), type));
        }
        if (request.hasNonNull("columns")) {
            type = type.project(names(request.get("columns")));
            builder = builder.withReadType(type);
        }
        TableScan.Plan plan = builder.newScan().plan();
        TableRead read = builder.newRead().withIOManager(spill);
        if (request.hasNonNull("equals")) {
            read = read.executeFilter();
        }
        ObjectNode answer = MAPPER.createObjectNode();
        ArrayNode rows = answer.putArray("rows");
        RowType readType = type;
        try (RecordReader<InternalRow> reader = read.createReader(plan)) {
            reader.forEachRemaining(row -> rows.add(Values.encodeRow(row, readType)));
        }
        answer.put("splits", plan.splits().size());
        return answer;
    }

    /** The rows of the system table "name" of a table. */
    private JsonNode system(JsonNode request) throws Exception {
        Identifier plain = identifier(request);
        Identifier named = Identifier.create(plain.getDatabaseName(), plain.getObjectName() + "$" + request.get("name").asText());
        ObjectNode answer = MAPPER.createObjectNode();
        ArrayNode rows = answer.putArray("rows");
        try (Catalog catalog = catalog(request)) {
            Table table = catalog.getTable(named);
            RowType type = table.rowType();
            ArrayNode columns = answer.putArray("columns");
            type.getFields().forEach(field -> columns.addObject().put("name", field.name()).put("type", field.type().asSQLString()));
            ReadBuilder builder = table.newReadBuilder();
            TableScan.Plan plan = builder.newScan().plan();
            try (RecordReader<InternalRow> reader = builder.newRead().withIOManager(spill).createReader(plan)) {
                reader.forEachRemaining(row -> rows.add(Values.encodeRow(row, type)));
            }
        }
        return answer;
    }

    private static Predicate equality(JsonNode equals, RowType type) {
        PredicateBuilder builder = new PredicateBuilder(type);
        List<Predicate> all = new ArrayList<>();
        equals.fields().forEachRemaining(
                entry -> {
                    int field = type.getFieldIndex(entry.getKey());
                    all.add(builder.equal(field, Values.decode(entry.getValue(), type.getTypeAt(field))));
                });
        return PredicateBuilder.and(all);
    }

    /** The changes of the snapshots after "from" up to and including "to", as a streaming reader delivers them. */
    private JsonNode changes(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        long from = request.get("from").asLong();
        long to = request.get("to").asLong();
        Map<String, String> options = new HashMap<>();
        options.put("scan.mode", "from-snapshot");
        options.put("scan.snapshot-id", Long.toString(from + 1));
        ReadBuilder builder = table.copyWithoutTimeTravel(options).newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        scan.restore(from + 1);
        TableRead read = builder.newRead().withIOManager(spill);
        ArrayNode result = MAPPER.createArrayNode();
        RowType type = table.rowType();
        long next = from + 1;
        while (next <= to) {
            List<Split> splits = scan.plan().splits();
            Long checkpoint = scan.checkpoint();
            if (checkpoint == null || checkpoint <= next && splits.isEmpty()) {
                break;
            }
            next = checkpoint;
            for (Split split : splits) {
                try (RecordReader<InternalRow> reader = read.createReader(split)) {
                    reader.forEachRemaining(
                            row -> {
                                ArrayNode change = result.addArray();
                                change.add(row.getRowKind().shortString());
                                change.add(Values.encodeRow(row, type));
                            });
                }
            }
        }
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("changes", result);
        answer.put("next", next);
        return answer;
    }

    // ---- metadata ---------------------------------------------------------------------------------------------

    private static JsonNode snapshots(FileStoreTable table) throws Exception {
        List<Snapshot> found = new ArrayList<>();
        SnapshotManager manager = table.snapshotManager();
        for (Iterator<Snapshot> all = manager.snapshots(); all.hasNext(); ) {
            found.add(all.next());
        }
        found.sort((left, right) -> Long.compare(left.id(), right.id()));
        ArrayNode answer = MAPPER.createArrayNode();
        for (Snapshot snapshot : found) {
            answer.add(MAPPER.readTree(snapshot.toJson()));
        }
        return answer;
    }

    private static JsonNode latest(JsonNode request) throws Exception {
        Long id = table(request).snapshotManager().latestSnapshotId();
        return MAPPER.createObjectNode().put("snapshot", id == null ? 0 : id);
    }

    private static JsonNode files(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        RowType partitionType = table.schema().logicalPartitionType();
        ArrayNode answer = MAPPER.createArrayNode();
        for (Split split : table.newSnapshotReader().read().splits()) {
            DataSplit data = (DataSplit) split;
            for (DataFileMeta file : data.dataFiles()) {
                ObjectNode node = answer.addObject();
                node.set("partition", Values.encodeRow(data.partition(), partitionType));
                node.put("bucket", data.bucket());
                node.put("name", file.fileName());
                node.put("level", file.level());
                node.put("rows", file.rowCount());
                node.put("min_sequence", file.minSequenceNumber());
                node.put("max_sequence", file.maxSequenceNumber());
                node.put("raw_convertible", data.rawConvertible());
            }
        }
        return answer;
    }

    private static JsonNode info(JsonNode request) throws Exception {
        FileStoreTable table = table(request);
        ObjectNode answer = (ObjectNode) latest(request);
        answer.set("schema", MAPPER.readTree(JsonSerdeUtil.toFlatJson(table.schema())));
        answer.put("bucket_mode", table.bucketMode().name());
        return answer;
    }
}
