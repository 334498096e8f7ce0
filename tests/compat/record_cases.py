# SPDX-License-Identifier: Apache-2.0
"""Connectors and records for record_diff.py. One case is one connector that runs in both workers.

case(name, config, ...) gives it
    lines     bytes of the file that a file source reads
    topics    {name: Topic} that are made and filled before
    out       more topics that are made before, for the connector to write to: {name: partitions}
    unordered the file's lines come in no order (several partitions or topics)
In texts: @{c} the connector's name, @{dir} its folder. A topic's name in `topics` and `out` goes after "@{c}-".
With lines it is a file source to @{c}-out, else a file sink of all its topics; a sink reads keys as strings unless it says otherwise.
"""
import json

CONNECT = "org.apache.kafka.connect."
STRING = CONNECT + "storage.StringConverter"
JSON = CONNECT + "json.JsonConverter"
BYTES = CONNECT + "converters.ByteArrayConverter"
PLAIN = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
SCHEMAS = {"value.converter": JSON, "value.converter.schemas.enable": "true"}
TEXT = {"value.converter": STRING}
KEYED = {"key.converter": STRING}
DEAD = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "@{c}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1", "errors.deadletterqueue.context.headers.enable": "true"}
SKIP = {"errors.tolerance": "all"}

CASES = []


def case(name, *configs, **more):
    config = dict(KEYED) if "topics" in more else {}
    for c in configs:
        config.update(c)
    CASES.append(dict(name=name, config=config, **more))


def record(value, key=None, headers=(), partition=0, time=1700000000000):
    return {"value": value, "key": key, "headers": headers, "partition": partition, "time": time}


def records(*values, key="k"):
    return [v if isinstance(v, dict) and "value" in v and "time" in v else record(v, key) for v in values]


def topic(*values, partitions=1, key="k"):
    return {"partitions": partitions, "records": records(*values, key=key)}


def chain(*steps, predicates=()):
    """transforms of ("Class", {option: value}) in this order, and predicates of (name, "Class", {option: value})."""
    config = {"transforms": ",".join("t%d" % i for i in range(len(steps)))}
    for i, (kind, options) in enumerate(steps):
        config["transforms.t%d.type" % i] = CONNECT + "transforms." + kind
        config.update(("transforms.t%d.%s" % (i, k), v) for k, v in options.items())
    if predicates:
        config["predicates"] = ",".join(p[0] for p in predicates)
    for name, kind, options in predicates:
        config["predicates.%s.type" % name] = CONNECT + "transforms.predicates." + kind
        config.update(("predicates.%s.%s" % (name, k), v) for k, v in options.items())
    return config


def envelope(schema, payload):
    return json.dumps({"schema": schema, "payload": payload}, ensure_ascii=False, separators=(",", ":"))


def of(kind, **more):
    return dict({"type": kind, "optional": False}, **more)


def struct(*fields, **more):
    """fields: (name, schema)"""
    return dict({"type": "struct", "fields": [dict(s, field=n) for n, s in fields], "optional": False}, **more)


def logical(kind, base, **more):
    return of(base, name=CONNECT + "data." + kind, version=1, **more)


def decimal(scale, **more):
    return logical("Decimal", "bytes", parameters={"scale": str(scale)}, **more)


# --- sources: converters -----------------------------------------------------------------------------------------------------

ODD_LINES = ("plain\n\n  blanks  \ncr\r\nlone\rcr\nÄ ß 日本 😀\n\"quotes\" \\ / \t tab\n".encode() + b"\xff\xfe bad \xc3( \xed\xa0\x80 \xf0\x9f\x98\n"
             + "\ufeffbom\u2028sep\x00nul\n".encode() + b"x" * 5000 + b"\nlast\n")

case("src-string", TEXT, lines=ODD_LINES)
case("src-json-schema", SCHEMAS, lines=ODD_LINES)
case("src-json-plain", PLAIN, lines=ODD_LINES)
case("src-latin1", TEXT, {"value.converter.converter.encoding": "ISO-8859-1"}, lines=ODD_LINES)
case("src-utf16", TEXT, {"value.converter.converter.encoding": "UTF-16"}, lines=ODD_LINES)
case("src-ascii", TEXT, {"value.converter.converter.encoding": "US-ASCII"}, lines=ODD_LINES)
case("src-bytes-none", {"value.converter": BYTES}, lines=b"one\ntwo\n")
NUMBERS = (b"0\n1\n-1\n32767\n32768\n-32768\n2147483647\n2147483648\n-2147483649\n9223372036854775807\n9223372036854775808\n1.5\n1e3\n"
           b"NaN\nInfinity\n-0.0\n3.4028236e38\n4.9e-324\n true\nTRUE\nfalse\nabc\n\n+7\n 8\n9\n")
for kind, to in (("Short", "int16"), ("Integer", "int32"), ("Long", "int64"), ("Float", "float32"), ("Double", "float64"), ("Boolean", "boolean")):
    case("src-" + kind.lower(), {"value.converter": CONNECT + "converters.%sConverter" % kind}, SKIP, chain(("Cast$Value", {"spec": to})), lines=NUMBERS)
    case("src-%s-json" % kind.lower(), SCHEMAS, SKIP, chain(("Cast$Value", {"spec": to})), lines=NUMBERS)
case("src-short-wrong", {"value.converter": CONNECT + "converters.ShortConverter"}, chain(("Cast$Value", {"spec": "int32"})), lines=b"1\n2\n")

# --- sources: transforms, predicates, headers -----------------------------------------------------------------------------------

HOIST = ("HoistField$Value", {"field": "line"})
WHOLE = [HOIST,
         ("InsertField$Value", {"static.field": "origin!", "static.value": "a file", "topic.field": "from"}),
         ("ReplaceField$Value", {"renames": "line:text", "exclude": "nothing"}),
         ("ValueToKey", {"fields": "text,origin"}),
         ("HeaderFrom$Value", {"fields": "origin", "headers": "h1", "operation": "copy"}),
         ("InsertHeader", {"header": "h2", "value.literal": "12"}),
         ("InsertHeader", {"header": "h3", "value.literal": "{\"a\":[1,2.5,null]}"}),
         ("InsertHeader", {"header": "gone", "value.literal": "x"}),
         ("DropHeaders", {"headers": "gone,other"}),
         ("MaskField$Value", {"fields": "origin", "replacement": "masked"}),
         ("SetSchemaMetadata$Value", {"schema.name": "io.demo.Line", "schema.version": "3"}),
         ("Flatten$Value", {"delimiter": "_"}),
         ("RegexRouter", {"regex": "(.*)-out", "replacement": "$1-routed"})]
case("src-chain-schema", SCHEMAS, {"key.converter": JSON}, chain(*WHOLE), lines=b"one\ntwo\nthree\n")
case("src-chain-plain", PLAIN, {"key.converter": JSON, "key.converter.schemas.enable": "false"}, chain(*WHOLE), lines=b"one\ntwo\nthree\n")
case("src-chain-string", TEXT, KEYED, chain(*WHOLE[:11]), lines=b"one\ntwo\nthree\n")
case("src-header-json", TEXT, {"header.converter": JSON}, chain(HOIST, WHOLE[5], WHOLE[6], ("HeaderFrom$Value", {"fields": "line", "headers": "line", "operation": "move"})), lines=b"one\ntwo\n")
case("src-header-string", TEXT, {"header.converter": STRING}, chain(WHOLE[5], WHOLE[6]), lines=b"one\ntwo\n")
case("src-headers", TEXT, chain(*[("InsertHeader", {"header": "h%d" % i, "value.literal": v}) for i, v in enumerate(
    ["12", "-1.50", "true", "null", "", " blanks ", "2024-01-05", "2024-01-05T06:07:08.009Z", "06:07:08.009Z", "[1,\"a\",true]", "{\"a\":1,\"b\":{\"c\":null}}",
     "\"quoted\"", "1e400", "99999999999999999999", "[unclosed", "Ä😀", "127", "128", "3.4e38", "{1:2}", "[[],{}]"])]), lines=b"one\n")
case("src-predicates", TEXT, chain(
    ("InsertHeader", {"header": "seen", "value.literal": "yes"}),
    ("RegexRouter", {"regex": "(.*)-out", "replacement": "$1-seen", "predicate": "has"}),
    ("RegexRouter", {"regex": "(.*)", "replacement": "$1-not", "predicate": "has", "negate": "true"}),
    ("RegexRouter", {"regex": "(.*)-seen", "replacement": "$1-matched", "predicate": "topic"}),
    ("Filter", {"predicate": "dead"}),
    ("DropHeaders", {"headers": "seen", "predicate": "dead", "negate": "true"}),
    predicates=[("has", "HasHeaderKey", {"name": "seen"}), ("topic", "TopicNameMatches", {"pattern": ".*-se+n"}), ("dead", "RecordIsTombstone", {})]),
     lines=b"one\ntwo\n")
case("src-filter-all", TEXT, chain(("Filter", {"predicate": "topic", "negate": "true"}),
                                   predicates=[("topic", "TopicNameMatches", {"pattern": ".*-(?!in)o[u-w&&[^v]]t"})]), lines=b"one\ntwo\n")
case("src-timestamps", SCHEMAS, SKIP, chain(
    ("TimestampConverter$Value", {"target.type": "Timestamp", "format": "yyyy-MM-dd HH:mm:ss.SSS"}),
    ("HoistField$Value", {"field": "at"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "EEE, d MMM yyyy HH:mm:ss Z"})),
     lines=b"2024-01-05 06:07:08.009\n2024-13-45 25:61:61.1\n1582-10-15 00:00:00.000\n1582-10-04 00:00:00.000\nnone\n0001-01-01 00:00:00.000\n1969-12-31 23:59:59.999\n")
for kind in ("Date", "Time", "unix"):
    case("src-to-" + kind.lower(), SCHEMAS, chain(("TimestampConverter$Value", {"target.type": kind, "format": "yyyy-MM-dd HH:mm", "unix.precision": "seconds"})),
         lines=b"2024-01-05 06:07\n1969-12-31 23:59\n")
case("src-router", TEXT, chain(("TimestampRouter", {"topic.format": "${topic}_${topic}_${timestamp}", "timestamp.format": "'y'yyyy"})), lines=b"one\n")

# --- sources: errors, topics, client settings ------------------------------------------------------------------------------------

case("src-cast-none", TEXT, chain(("Cast$Value", {"spec": "int32"})), lines=b"1\n2\nthree\n4\n", out={"out": 1})
case("src-cast-all", TEXT, SKIP, {"errors.log.enable": "true", "errors.log.include.messages": "true", "errors.retry.timeout": "500"},
     chain(("Cast$Value", {"spec": "int32"})), lines=b"1\n2\nthree\n4\n")
case("src-missing-field", TEXT, chain(HOIST, ("ValueToKey", {"fields": "nope"})), lines=b"1\n")
case("src-key-converter", TEXT, {"key.converter": CONNECT + "converters.LongConverter"}, chain(HOIST, ("ValueToKey", {"fields": "line"}), ("ExtractField$Key", {"field": "line"})), lines=b"1\n")
case("src-keys", TEXT, KEYED, {"topic.creation.default.partitions": "5", "topic.creation.default.replication.factor": "1"},
     chain(HOIST, ("ValueToKey", {"fields": "line"}), ("ExtractField$Key", {"field": "line"}), ("ExtractField$Value", {"field": "line"})),
     lines="".join("key %d ä\n" % i for i in range(60)).encode())
GROUPS = {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "-1", "topic.creation.default.retention.ms": "86400000",
          "topic.creation.groups": "even,odd", "topic.creation.odd.include": ".*-r[13]", "topic.creation.odd.exclude": ".*3", "topic.creation.odd.partitions": "3",
          "topic.creation.odd.cleanup.policy": "compact", "topic.creation.even.include": ".*2,.*4", "topic.creation.even.compression.type": "lz4"}
for i in (1, 2, 3):
    case("src-groups%d" % i, TEXT, KEYED, GROUPS, chain(HOIST, ("ValueToKey", {"fields": "line"}), ("RegexRouter", {"regex": "(.*)-out", "replacement": "$1-r%d" % i})),
         lines=b"a\nb\nc\nd\ne\n")
case("src-too-large", TEXT, {"producer.override.max.request.size": "2000"}, lines=b"small\n" + b"x" * 3000 + b"\nsmall\n", out={"out": 1})
case("src-too-large-all", TEXT, SKIP, {"producer.override.max.request.size": "2000"}, lines=b"small\n" + b"x" * 3000 + b"\nsmall again\n")
for codec in ("gzip", "snappy", "lz4", "zstd"):
    case("src-" + codec, TEXT, {"producer.override.compression.type": codec, "producer.override.linger.ms": "20", "producer.override.acks": "1"},
         lines=b"".join(b"%d %s\n" % (i, b"x" * (i % 300)) for i in range(500)))
case("src-bad-topic", TEXT, chain(("RegexRouter", {"regex": ".*", "replacement": "no good/name"})), lines=b"one\n")
case("src-bad-override", TEXT, {"producer.override.acks": "many"}, lines=b"one\n")

# --- sinks: converters ----------------------------------------------------------------------------------------------------------

ODD = [None, b"", b"plain", b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", "\ufeffbom".encode(),
       b"nul\x00byte", "Ä😀".encode(), b"x" * 3000]
case("snk-string", TEXT, topics={"in": topic(*ODD)})
case("snk-latin1", TEXT, {"value.converter.converter.encoding": "ISO-8859-1"}, topics={"in": topic(*ODD)})
case("snk-utf16", TEXT, {"value.converter.converter.encoding": "UTF-16"}, topics={"in": topic(*ODD)})
case("snk-bytes", {"value.converter": BYTES}, chain(("Cast$Value", {"spec": "string"})), topics={"in": topic(*ODD)})
WIDTHS = [None, b"", b"\x01", b"\x00", b"\x02", b"\x80\x00", b"\x7f\xff", b"\x00\x00\x00\x01", b"\xff\xff\xff\xff", b"\x7f\xc0\x00\x00", b"\x3f\xc0\x00\x00", b"\x00\x00\x01",
          b"\x40\x09\x21\xfb\x54\x44\x2d\x18", b"\xff\xf0\x00\x00\x00\x00\x00\x00", b"\x80" + b"\x00" * 7, b"123456789", b"\x7f\x7f\xff\xff", b"\x00\x00\x00\x00\x00\x00\x00\x01"]
for kind in ("Short", "Integer", "Long", "Float", "Double", "Boolean"):
    case("snk-" + kind.lower(), {"value.converter": CONNECT + "converters.%sConverter" % kind}, DEAD, topics={"in": topic(*WIDTHS)})

DOCUMENTS = ["null", "true", "false", "1", "-0", "0012", "-0.0", "1e2", "1.5", "123456789012345678901234567890", "1e400", "-1e400", "1E-400", "\"text\"", "\"\\ud83d\\ude00\"",
             "\"\\ud800\"", "\"\\u0000\"", "[]", "{}", "[1,\"a\",null,true,2.5,[],{}]", "{\"a\":1}", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":{\"c\":[1,2]}}}", " 1 ", "", " ",
             "1 2", "5x", "nullx", "{\"a\":1}x", "[] []", "{\"a\":", "{a:1}", "{'a':1}", "[1,]", "[,1]", "NaN", "+5", ".5", "5.", "\"a\nb\"", "\"unclosed", "// c\n1", "tru",
             "\ufeff1", "[" * 1000 + "]" * 1000, "[" * 1001 + "]" * 1001, "1" * 1000, "1" * 1001, "0.1234567890123456789", "100.0", "1.0E10", "12345678.9", "0.001", "0.0001",
             b"\xff", b"\"\xff\"", b"\"\xc0\x80\"", "1".encode("utf-16-be"), "{\"\":1}", "{\"k\\\"q\":\"v\\n\"}", "\"\\/\"", "\"\\x\"", "[1", "{}{}", "9223372036854775808", "-9223372036854775809"]
case("snk-json-plain", PLAIN, DEAD, topics={"in": topic(None, *DOCUMENTS)})
case("snk-json-none", PLAIN, topics={"in": topic("1", "2", "{\"a\":", "4")})
case("snk-json-all", PLAIN, SKIP, {"errors.retry.timeout": "1000", "errors.retry.delay.max.ms": "100"}, topics={"in": topic("1", "2", "{\"a\":", "4")})

SCHEMA_DOCUMENTS = (
    [envelope(of(t), v) for t in ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes") for v in (None, 1, 300, 3000000000, 1.5, "AQID", "x", True, [], {})] +
    [envelope(of(t, optional=True), None) for t in ("int8", "string", "bytes", "array", "struct")] +
    [envelope(of(t, default=d), v) for t, d in (("int32", 7), ("string", "d"), ("boolean", True), ("double", 1.5), ("bytes", "AQ==")) for v in (None, 5, "x")] +
    [envelope(None, v) for v in (None, 1, "a", [1, "2", 3], {"a": 1}, 12.24)] +
    [envelope(of("array", items=of("int32")), v) for v in ([], [1, 2], [None], {"a": 1, "b": 2}, 5)] +
    [envelope(of("map", keys=of("string"), values=of("int32")), v) for v in ({}, {"a": 1}, [["a", 1]], 5)] +
    [envelope(of("map", keys=of("int32"), values=of("string")), v) for v in ([], [[1, "a"]], [[1]], [1], {"a": 1}, [[2, "x"]])] +
    [envelope(struct(("id", of("int32")), ("name", of("string", optional=True)), name="io.demo.User"), v)
     for v in ({"id": 1, "name": "a"}, {"id": 1}, {}, {"id": None, "name": None}, {"id": 2, "more": 3}, [], 5, None)] +
    [envelope(decimal(2), v) for v in ("AJw=", "/w==", "AA==", "", "!", 1.56, 1, 1.5600, True)] +
    [envelope(logical(n, b), v) for n, b in (("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64")) for v in (0, 19675, 80000000, 86400000, 86400001, -1, 1700000000000, 1.5, "x", None)] +
    ["{\"schema\":{},\"payload\":1}", "{\"schema\":{\"type\":\"none\"},\"payload\":1}", "{\"payload\":1}", "{\"schema\":null}", "{\"schema\":{\"type\":\"int32\"},\"payload\":1,\"x\":2}",
     "{\"schema\":{\"type\":\"array\"},\"payload\":[]}", "{\"schema\":{\"type\":\"map\"},\"payload\":{}}", "{\"schema\":{\"type\":\"map\",\"keys\":{\"type\":\"string\"}},\"payload\":{}}",
     "{\"schema\":{\"type\":\"struct\"},\"payload\":{}}", "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\"}]},\"payload\":{}}", "{\"schema\":{\"type\":5},\"payload\":1}",
     "{\"schema\":\"string\",\"payload\":\"x\"}", "{\"schema\":{\"type\":\"string\",\"parameters\":{\"a\":1}},\"payload\":\"x\"}", "{\"schema\":{\"type\":\"int32\",\"default\":null},\"payload\":1}",
     "{\"schema\":{\"type\":\"int32\",\"optional\":\"yes\"},\"payload\":null}", "{\"schema\":{\"type\":\"int32\"},\"payload\":", "{\"schema\":{\"type\":\"int32\"", "null", "1", "[]", "", "x"])
case("snk-json-schema", SCHEMAS, DEAD, topics={"in": topic(None, *SCHEMA_DOCUMENTS)})
DEFAULTS = struct(("a", of("int32", optional=True, default=7)), ("b", of("string", default="d")), ("c", of("int32", optional=True)))
NULLS = [envelope(DEFAULTS, v) for v in ({"a": 1, "b": "x", "c": 2}, {"a": None, "c": None}, {"a": 1, "b": None}, {})]
case("snk-replace-null", SCHEMAS, DEAD, topics={"in": topic(*NULLS)})
case("snk-keep-null", SCHEMAS, {"value.converter.replace.null.with.default": "false"}, DEAD, topics={"in": topic(*NULLS)})
case("snk-key-json", TEXT, {"key.converter": JSON}, DEAD, topics={"in": topic(record("v", envelope(of("int32"), 1)), record("v2", "{"), record("v3"), record("v4", ""))})
case("snk-key-long", TEXT, {"key.converter": CONNECT + "converters.LongConverter"}, DEAD, topics={"in": topic(record("v", b"\x00" * 8), record("v2", b"\x00"), record("v3"))})
HEADERS = [("a", b"1"), ("a", b"{\"x\":"), ("", b""), ("n", None), ("bin", b"\xff\x00\xfe"), ("__connect.errors.topic", b"mine"), ("t", b"2024-01-05T06:07:08.009Z")]
case("snk-headers", PLAIN, DEAD, topics={"in": topic(record("1", "k1", HEADERS), record("{", "k2", HEADERS), record("{", None, HEADERS), record("{", "k3"), record(None, "k4", HEADERS), record("", b"", HEADERS))})
case("snk-header-json", TEXT, {"header.converter": JSON}, DEAD,
     topics={"in": topic(record("v1", "k", [("h", envelope(of("int32"), 1).encode())]), record("v2", "k", [("h", b"{")]), record("v3", "k", [("h", None)]), record("v4", "k"))})
# A value that its schema's kind does not go with: converters make it, headers refuse it.
case("snk-header-json-odd", TEXT, {"header.converter": JSON}, DEAD,
     topics={"in": topic(*[record("v%d" % i, "k", [("h", envelope(schema, v).encode())]) for i, (schema, v) in enumerate(
         [(logical(n, b), 0) for n in ("Date", "Time", "Timestamp") for b in ("int32", "int64", "string", "boolean")] +
         [(decimal(2), "AJw="), (logical("Decimal", "string", parameters={"scale": "2"}), "AJw="), (logical("Timestamp", "int32", optional=True), None),
          (logical("Timestamp", "struct", fields=[]), 0)])])})
case("snk-header-json-plain", TEXT, {"header.converter": JSON, "header.converter.schemas.enable": "false"}, DEAD,
     topics={"in": topic(record("v1", "k", [("h", b"[1]")]), record("v2", "k", [("h", b"x")]), record("v3", "k", [("h", b"")]))})
case("snk-all-bad", {"key.converter": JSON, "header.converter": JSON}, SCHEMAS, DEAD, topics={"in": topic(record("{", "{", [("h", b"{")]), record(envelope(of("int32"), 1), None))})

# --- sinks: transforms ------------------------------------------------------------------------------------------------------------

ROW = struct(("id", of("int64")), ("price", of("double")), ("ok", of("string")), ("at", logical("Timestamp", "int64", optional=True)), ("sum", decimal(2)),
             ("nested", struct(("a", of("int32", optional=True, default=5)), ("b", of("string")), optional=True)), ("list", of("array", items=of("int32"))), name="R", version=2)
ROWS = [envelope(ROW, {"id": 42, "price": 19.99, "ok": "TRUE", "at": 1700000000000, "sum": "AJw=", "nested": {"a": 1, "b": "x"}, "list": [1, 2]}),
        envelope(ROW, {"id": -1, "price": 3e10, "ok": "no", "at": None, "sum": "/w==", "nested": None, "list": []}),
        envelope(of("string"), "no struct"), envelope(None, {"id": 7, "price": 1.5, "ok": "true", "nested": {"a": 2}, "at": 0}), envelope(None, "text"), None,
        envelope(ROW, {"id": 9007199254740993, "price": -0.0, "ok": "", "at": -1, "sum": 1.50, "nested": {"a": None, "b": ""}, "list": [3]})]
STEPS = {
    "cast": [("Cast$Value", {"spec": "id:string,price:int32,ok:boolean,at:string,sum:string"})],
    "cast-wide": [("Cast$Value", {"spec": "id:int8,price:float32,sum:float64,at:int64"})],
    "extract": [("ExtractField$Value", {"field": "nested.a", "field.syntax.version": "V2"})],
    "extract-v1": [("ExtractField$Value", {"field": "id"})],
    "flatten": [("Flatten$Value", {"delimiter": "/"})],
    "header": [("HeaderFrom$Value", {"fields": "id,ok", "headers": "h,h", "operation": "move"})],
    "insert": [("InsertField$Value", {"topic.field": "t", "partition.field": "p!", "offset.field": "o?", "timestamp.field": "ts", "static.field": "s", "static.value": "v"}),
               ("InsertField$Key", {"static.field": "ks", "static.value": "v"})],
    "mask": [("MaskField$Value", {"fields": "id,price,ok,at,sum,list"})],
    "mask-with": [("MaskField$Value", {"fields": "id,price", "replacement": "12"})],
    "replace": [("ReplaceField$Value", {"include": "id,ok,at", "renames": "id:key,ok:good"})],
    "metadata": [("SetSchemaMetadata$Value", {"schema.name": "n2", "schema.version": "9"})],
    "time": [("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"})],
    "time-unix": [("TimestampConverter$Value", {"field": "at", "target.type": "unix", "unix.precision": "microseconds"})],
    "key": [("ValueToKey", {"fields": "id,ok"})],
    "hoist": [("HoistField$Value", {"field": "v"})],
    "drop": [("Filter", {"predicate": "dead"})],
    "many": [("Flatten$Value", {}), ("ReplaceField$Value", {"exclude": "list"}), ("Cast$Value", {"spec": "price:int64"}), ("InsertField$Value", {"static.field": "z", "static.value": "1"})],
}
for name, steps in STEPS.items():
    predicates = [("dead", "RecordIsTombstone", {})] if name == "drop" else []
    case("snk-t-" + name, SCHEMAS, DEAD, chain(*steps, predicates=predicates), topics={"in": topic(*ROWS)})
# What fails as another class than DataException; and texts with a cause below them.
AT = struct(("at", of("string")), ("id", of("int32")), ("sum", decimal(2)))
ATS = [envelope(AT, {"at": "2024-01-05", "id": 1, "sum": "AJw="}), envelope(AT, {"at": "never", "id": 2, "sum": "/w=="})]
ODD_STEPS = {
    "unknown-field": [("ExtractField$Value", {"field": "zz"})],
    "unknown-path": [("ExtractField$Value", {"field": "at.b", "field.syntax.version": "V2"})],
    "twice": [("InsertField$Value", {"static.field": "id", "static.value": "x"})],
    "twice-renamed": [("ReplaceField$Value", {"renames": "at:id"})],
    "no-time": [("TimestampConverter$Value", {"field": "sum", "target.type": "string", "format": "yyyy"})],
    "no-date": [("TimestampConverter$Value", {"field": "at", "target.type": "Timestamp", "format": "yyyy-MM-dd"})],
    "no-group": [("RegexRouter", {"regex": "(.*)", "replacement": "$2"})],
    "no-name": [("RegexRouter", {"regex": "(?<a>.*)", "replacement": "${b}"})],
    "half-escape": [("RegexRouter", {"regex": "(.*)", "replacement": "x\\"})],
    "wrong-number": [("Cast$Value", {"spec": "at:int32"})],
    "no-mask": [("MaskField$Value", {"fields": "id", "replacement": "x"})],
    "no-key": [("ValueToKey", {"fields": "zz"})],
}
for name, steps in ODD_STEPS.items():
    case("snk-odd-" + name, SCHEMAS, DEAD, chain(*steps), topics={"in": topic(*ATS)})
# What a message quotes is the record's own text: half a pair, a line like a cause's, a class's name, U+0000, and more of it than fits.
QUOTED = ["\\ud83d", "x\\nCaused by: java.lang.Foo: z", "java.lang.Foo: z", "a\\u0000b", "\u00e9" * 2000]
case("snk-dead-texts", PLAIN, DEAD, chain(("Cast$Value", {"spec": "a:int8"})), topics={"in": topic(*["{\"a\":\"%s\"}" % q for q in QUOTED])})
case("snk-nul-names", SCHEMAS, DEAD, topics={"in": topic(envelope(struct(("a\0b", of("int32"))), {"a\0b": 1}), envelope(of("string", name="n\0"), "v"), envelope(of("string", doc="\0"), "v"))})
case("snk-nul-delimiter", PLAIN, DEAD, chain(("Flatten$Value", {"delimiter": "\0"})), topics={"in": topic("{\"a\":{\"b\":1}}")})
FAR_MS = (0, 185542587100800000, 185542587187200000, -185542587187200000, -185542587187200001, 2 ** 63 - 1, -2 ** 63)
case("src-far-date", SCHEMAS, chain(("Cast$Value", {"spec": "int64"}), ("TimestampConverter$Value", {"target.type": "Date"})), lines=b"".join(b"%d\n" % ms for ms in FAR_MS))
case("snk-far-date", PLAIN, DEAD, chain(("TimestampConverter$Value", {"field": "t", "target.type": "Date"})),
     topics={"in": topic(*["{\"t\":%d}" % ms for ms in FAR_MS])})
MAPS = ["{\"a\":1,\"b\":\"x\",\"c\":{\"d\":[1,2],\"e\":null},\"t\":1700000000000,\"f\":2.50}", "{\"b\":\"2\"}", "{}", "[1]", "5", None, "{\"a\":null,\"c\":{},\"t\":null}"]
PLAIN_STEPS = {
    "cast": [("Cast$Value", {"spec": "a:string,f:int32,zz:int8"})],
    "insert": [("InsertField$Value", {"topic.field": "t2", "offset.field": "o", "timestamp.field": "ts"})],
    "flatten": [("Flatten$Value", {})],
    "replace": [("ReplaceField$Value", {"exclude": "c", "renames": "a:z,b:a"})],
    "mask": [("MaskField$Value", {"fields": "a,b,c,f"})],
    "time": [("TimestampConverter$Value", {"field": "t", "target.type": "string", "format": "yyyyMMddHHmmss"})],
    "extract": [("ExtractField$Value", {"field": "c"})],
    "extract-v2": [("ExtractField$Value", {"field": "c.d", "field.syntax.version": "v2"})],
    "header": [("HeaderFrom$Value", {"fields": "a,zz", "headers": "x,y", "operation": "copy"})],
    "key": [("ValueToKey", {"fields": "a,zz"})],
    "metadata": [("SetSchemaMetadata$Value", {"schema.name": "n"})],
    "hoist": [("HoistField$Value", {"field": "v"}), ("ExtractField$Value", {"field": "v"})],
}
for name, steps in PLAIN_STEPS.items():
    case("snk-p-" + name, PLAIN, DEAD, chain(*steps), topics={"in": topic(*MAPS)})
case("snk-predicates", TEXT, chain(
    ("Filter", {"predicate": "gone"}), ("HoistField$Value", {"field": "v", "predicate": "red"}), ("HoistField$Value", {"field": "w", "predicate": "red", "negate": "TRUE"}),
    predicates=[("gone", "RecordIsTombstone", {}), ("red", "HasHeaderKey", {"name": "red"})]),
     topics={"in": topic(record("a", "k", [("red", None)]), record(None, "k"), record("b", "k", [("Red", b"1")]), record("c", "k", [("x", b"1"), ("red", b"2")]))})

# --- sinks: topics, errors, client settings -----------------------------------------------------------------------------------------

case("snk-regex", TEXT, {"topics.regex": "@\\{c\\}-r[0-9]+".replace("\\", "")}, topics={"r1": topic("a1", "a2"), "r22": topic("b1"), "rx": topic("never")}, unordered=True)
case("snk-regex-ahead", TEXT, {"topics.regex": "@{c}-(?!private).*"}, topics={"public": topic("a1", "a2"), "private": topic("never"), "public2": topic("b1")}, unordered=True)
case("snk-partitions", TEXT, topics={"in": topic(*[record("v%d" % i, "k%d" % i, partition=i % 3) for i in range(30)], partitions=3)}, unordered=True)
case("snk-route", PLAIN, DEAD, chain(("RegexRouter", {"regex": "(.*)", "replacement": "$1-elsewhere"}), ("InsertField$Value", {"topic.field": "t", "offset.field": "o"}),
                                            ("Cast$Value", {"spec": "n:int32"})), topics={"in": topic("{\"n\":\"1\"}", "{\"n\":\"x\"}", "{\"n\":\"3\"}")})
case("snk-router", TEXT, chain(("TimestampRouter", {}), ("HoistField$Value", {"field": "v"}), ("InsertField$Value", {"topic.field": "t"})), topics={"in": topic("a", "b")})
case("snk-dead-bare", PLAIN, DEAD, {"errors.deadletterqueue.context.headers.enable": "false"}, topics={"in": topic(record("{", "k", HEADERS), record("1"), record("[", None))})
case("snk-dead-none", PLAIN, DEAD, {"errors.tolerance": "none"}, topics={"in": topic("1", "{", "3")})
case("snk-dead-parts", PLAIN, DEAD, topics={"in": topic(*[record("{", "key %d" % i) for i in range(40)])}, out={"dead": 4})
case("snk-dead-copies", PLAIN, DEAD, {"errors.deadletterqueue.topic.replication.factor": "3"}, topics={"in": topic("1", "{")})
case("snk-dead-codec", PLAIN, DEAD, {"producer.override.compression.type": "gzip", "consumer.override.max.poll.records": "1"}, topics={"in": topic("{", "2", "[", "4")})
case("snk-one-by-one", TEXT, {"consumer.override.max.poll.records": "1", "consumer.override.fetch.max.bytes": "100"}, topics={"in": topic(*["v%d" % i for i in range(50)])})
case("snk-latest", TEXT, {"consumer.override.auto.offset.reset": "earliest", "consumer.override.group.id": "@{c}-group"}, topics={"in": topic("a", "b")})
case("snk-no-such-predicate", TEXT, {"transforms": "a", "transforms.a.type": CONNECT + "transforms.Filter", "transforms.a.predicate": "none"}, topics={"in": topic("a")})
