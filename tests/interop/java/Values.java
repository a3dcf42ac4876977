import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;
import org.apache.paimon.utils.InternalRowUtils;

/**
 * How a value looks in JSON, both directions: the encoding of tests/interop/canonical.py.
 *
 * <p>Integers and floating-point numbers are numbers (NaN and the infinities are strings); decimals, dates, times and
 * timestamps are text, with six fractional digits up to precision 6 and nine above; bytes are hexadecimal; a map is a
 * list of pairs, a multiset a list of element and count, a row an object; a variant is an object of its value and its
 * metadata, and may come as text in JSON.
 */
final class Values {

    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Values() {}

    static ObjectNode encodeRow(InternalRow row, RowType type) {
        ObjectNode node = JSON.objectNode();
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField field = type.getFields().get(i);
            node.set(field.name(), encodeField(row, i, field.type()));
        }
        return node;
    }

    static JsonNode encodeField(DataGetters from, int position, DataType type) {
        if (from.isNullAt(position)) {
            return JSON.nullNode();
        }
        return encode(InternalRowUtils.get(from, position, type), type);
    }

    private static JsonNode encode(Object value, DataType type) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return JSON.booleanNode((Boolean) value);
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return JSON.numberNode(((Number) value).longValue());
            case FLOAT:
            case DOUBLE:
                double number = ((Number) value).doubleValue();
                if (Double.isNaN(number)) {
                    return JSON.textNode("NaN");
                }
                return Double.isInfinite(number)
                        ? JSON.textNode(number > 0 ? "Infinity" : "-Infinity")
                        : JSON.numberNode(number);
            case DECIMAL:
                return JSON.textNode(((Decimal) value).toBigDecimal().toPlainString());
            case CHAR:
            case VARCHAR:
                return JSON.textNode(value.toString());
            case BINARY:
            case VARBINARY:
                return JSON.textNode(toHex((byte[]) value));
            case DATE:
                return JSON.textNode(LocalDate.ofEpochDay((Integer) value).toString());
            case TIME_WITHOUT_TIME_ZONE:
                int millis = (Integer) value;
                return JSON.textNode(
                        String.format(
                                "%02d:%02d:%02d.%03d",
                                millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60, millis % 1000));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return JSON.textNode(timestampText((Timestamp) value, ((TimestampType) type).getPrecision()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return JSON.textNode(
                        timestampText((Timestamp) value, ((LocalZonedTimestampType) type).getPrecision()) + "Z");
            case ARRAY:
                return encodeArray((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                return encodeMap((InternalMap) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return encodeMap((InternalMap) value, ((MultisetType) type).getElementType(), new IntType(false));
            case VARIANT:
                Variant variant = (Variant) value;
                ObjectNode parts = JSON.objectNode();
                parts.put("value", toHex(variant.value()));
                parts.put("metadata", toHex(variant.metadata()));
                return parts;
            case ROW:
                return encodeRow((InternalRow) value, (RowType) type);
            default:
                throw new UnsupportedOperationException("the oracle does not encode " + type);
        }
    }

    private static ArrayNode encodeArray(InternalArray array, DataType elementType) {
        ArrayNode node = JSON.arrayNode();
        for (int i = 0; i < array.size(); i++) {
            node.add(encodeField(array, i, elementType));
        }
        return node;
    }

    private static ArrayNode encodeMap(InternalMap map, DataType keyType, DataType valueType) {
        InternalArray keys = map.keyArray();
        InternalArray values = map.valueArray();
        ArrayNode node = JSON.arrayNode();
        for (int i = 0; i < map.size(); i++) {
            ArrayNode pair = node.addArray();
            pair.add(encodeField(keys, i, keyType));
            pair.add(encodeField(values, i, valueType));
        }
        return node;
    }

    private static String timestampText(Timestamp timestamp, int precision) {
        LocalDateTime time = timestamp.toLocalDateTime();
        String whole =
                String.format(
                        "%04d-%02d-%02dT%02d:%02d:%02d",
                        time.getYear(), time.getMonthValue(), time.getDayOfMonth(),
                        time.getHour(), time.getMinute(), time.getSecond());
        return precision <= 6
                ? whole + String.format(".%06d", time.getNano() / 1000)
                : whole + String.format(".%09d", time.getNano());
    }

    /** A row from an object; a column that the object does not name is null. */
    static GenericRow decodeRow(JsonNode node, RowType type) {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField field = type.getFields().get(i);
            row.setField(i, decode(node.get(field.name()), field.type()));
        }
        node.fieldNames().forEachRemaining(name -> type.getFieldIndex(requireField(type, name)));
        return row;
    }

    private static String requireField(RowType type, String name) {
        if (!type.containsField(name)) {
            throw new IllegalArgumentException("no column " + name + " in " + type.getFieldNames());
        }
        return name;
    }

    static Object decode(JsonNode node, DataType type) {
        if (node == null || node.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return node.booleanValue();
            case TINYINT:
                return (byte) node.intValue();
            case SMALLINT:
                return (short) node.intValue();
            case INTEGER:
                return node.intValue();
            case BIGINT:
                return node.longValue();
            case FLOAT:
                return node.isTextual() ? Float.valueOf(node.textValue()) : (Float) (float) node.doubleValue();
            case DOUBLE:
                return node.isTextual() ? Double.valueOf(node.textValue()) : (Double) node.doubleValue();
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return Decimal.fromBigDecimal(
                        new BigDecimal(node.textValue()), decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(node.textValue());
            case BINARY:
            case VARBINARY:
                return fromHex(node.textValue());
            case DATE:
                return (int) LocalDate.parse(node.textValue()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (java.time.LocalTime.parse(node.textValue()).toNanoOfDay() / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(node.textValue()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                String text = node.textValue();
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(text.substring(0, text.length() - 1)));
            case ARRAY:
                return decodeArray(node, ((ArrayType) type).getElementType());
            case MAP:
                return decodeMap(node, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return decodeMap(node, ((MultisetType) type).getElementType(), new IntType(false));
            case VARIANT:
                return node.isTextual()
                        ? GenericVariant.fromJson(node.textValue())
                        : new GenericVariant(
                                fromHex(node.get("value").textValue()), fromHex(node.get("metadata").textValue()));
            case ROW:
                return decodeRow(node, (RowType) type);
            default:
                throw new UnsupportedOperationException("the oracle does not decode " + type);
        }
    }

    private static GenericArray decodeArray(JsonNode node, DataType elementType) {
        List<Object> values = new ArrayList<>();
        node.forEach(element -> values.add(decode(element, elementType)));
        return new GenericArray(values.toArray());
    }

    private static GenericMap decodeMap(JsonNode node, DataType keyType, DataType valueType) {
        Map<Object, Object> entries = new LinkedHashMap<>();
        node.forEach(pair -> entries.put(decode(pair.get(0), keyType), decode(pair.get(1), valueType)));
        return new GenericMap(entries);
    }

    private static String toHex(byte[] bytes) {
        StringBuilder text = new StringBuilder(bytes.length * 2);
        for (byte b : bytes) {
            text.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return text.toString();
    }

    private static byte[] fromHex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }
}
