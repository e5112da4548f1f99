//! CSV and JSON files: the types of columns, the rows, and the places of errors.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::{fs, io::Write, ops::ControlFlow, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use flate2::{Compression, write::GzEncoder};
use tfarrow_columnar::{TextColumns, count, first_rows, rows, rows_of, schema_within, unify_text};
use tfarrow_dataset::{ErrorKind, Shard, resolve};

fn shard(folder: &Path, name: &str, bytes: &[u8]) -> Shard {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    resolve(&[&path]).unwrap().into_iter().next().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(
        schema,
        columns.iter().map(|(_, array)| Arc::clone(array)).collect(),
    )
    .unwrap()
}

fn read(shard: &Shard) -> RecordBatch {
    let schema = schema_within(shard, &Default::default()).unwrap().unwrap();
    let batches: Vec<_> = rows(shard).unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Checks the rows of a text, plain, with a byte order mark, with line ends of Windows, and
/// compressed.
#[track_caller]
fn check(name: &str, text: &str, expected: &[(&str, ArrayRef)]) {
    let folder = tempfile::tempdir().unwrap();
    let expected = table(expected);
    let mark = ["\u{feff}", text].concat();
    for (name, bytes) in [
        (name.to_owned(), text.as_bytes().to_vec()),
        (format!("mark.{name}"), mark.as_bytes().to_vec()),
        (format!("{name}.gz"), gzip(text.as_bytes())),
        (format!("mark.{name}.GZ"), gzip(mark.as_bytes())),
        (
            format!("no-end.{name}"),
            text.trim_end_matches('\n').as_bytes().to_vec(),
        ),
    ] {
        let shard = shard(folder.path(), &name, &bytes);
        assert_eq!(read(&shard), expected, "{name}");
        assert_eq!(count(&shard).unwrap(), expected.num_rows() as u64);
    }
}

/// Checks the error of a file.
#[track_caller]
fn check_error(name: &str, bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let shard = shard(folder.path(), name, bytes);
    let found = rows(&shard)
        .and_then(|batches| batches.collect::<Result<Vec<_>, _>>())
        .unwrap_err()
        .to_string();
    let found = found
        .strip_prefix(&format!("{}: ", shard.path.display()))
        .unwrap()
        .to_owned();
    assert!(found.starts_with(expected), "{found}");
}

fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn floats(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn the_types_of_csv_are_those_of_all_rows() {
    let text = "id,price,is_new,city,when,none,mixed\n\
                1,0.1,true,Oslo,2026-11-26,,1\n\
                -2,3,FALSE,\"a \"\"quoted\"\" text\",2026-11-26T01:02:03,\"\",true\n\
                ,1e-3,,Köln,,,\n";
    check(
        "a.csv",
        text,
        &[
            ("id", ints(&[Some(1), Some(-2), None])),
            ("price", floats(&[Some(0.1), Some(3.0), Some(0.001)])),
            (
                "is_new",
                Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            ),
            (
                "city",
                texts(&[Some("Oslo"), Some("a \"quoted\" text"), Some("Köln")]),
            ),
            (
                "when",
                texts(&[Some("2026-11-26"), Some("2026-11-26T01:02:03"), None]),
            ),
            ("none", texts(&[None, None, None])),
            ("mixed", texts(&[Some("1"), Some("true"), None])),
        ],
    );
    let numbers =
        "a,b,c\nNaN,9223372036854775807,9223372036854775808\n-inf,-9223372036854775808,1\n1,0,2\n";
    let folder = tempfile::tempdir().unwrap();
    let found = read(&shard(folder.path(), "a.csv", numbers.as_bytes()));
    let types: Vec<_> = found
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    assert_eq!(
        types,
        [DataType::Float64, DataType::Int64, DataType::Float64]
    );
    assert_eq!(
        found.column(1),
        &ints(&[Some(i64::MAX), Some(i64::MIN), Some(0)])
    );
}

/// Identifiers are often long integers, or begin with zeros. As floats, different ones would be
/// equal.
#[test]
fn digits_of_integers_are_kept() {
    let long = ["18446744073709551615", "18446744073709551614"];
    let mixed = ["9007199254740993", "1.5"];
    let csv = format!(
        "long,mixed,zeros,held,int\n{},{},01234,9223372036854775808,9007199254740993\n{},{},7,1.5,-3\n",
        long[0], mixed[0], long[1], mixed[1]
    );
    let expected = |with_zeros: bool| {
        let mut columns = vec![
            ("long", texts(&long.map(Some))),
            ("mixed", texts(&mixed.map(Some))),
            ("zeros", texts(&[Some("01234"), Some("7")])),
            ("held", floats(&[Some(2f64.powi(63)), Some(1.5)])),
            ("int", ints(&[Some((1 << 53) + 1), Some(-3)])),
        ];
        columns.retain(|(name, _)| with_zeros || *name != "zeros");
        columns
    };
    check("a.csv", &csv, &expected(true));
    let json = format!(
        "{{\"long\":{},\"mixed\":{},\"held\":9223372036854775808,\"int\":9007199254740993}}\n\
         {{\"long\":{},\"mixed\":{},\"held\":1.5,\"int\":-3}}\n",
        long[0], mixed[0], long[1], mixed[1]
    );
    check("a.jsonl", &json, &expected(false));
    // Of more than 128 bits, a zero, signs, and a fraction with a zero before it.
    let csv = "a,b,c,d\n1000000000000000000000000000000000000000001,0,-9007199254740993,0.5\n1,+5,1e3,-0.25\n";
    check(
        "b.csv",
        csv,
        &[
            (
                "a",
                texts(&[
                    Some("1000000000000000000000000000000000000000001"),
                    Some("1"),
                ]),
            ),
            ("b", ints(&[Some(0), Some(5)])),
            ("c", texts(&[Some("-9007199254740993"), Some("1e3")])),
            ("d", floats(&[Some(0.5), Some(-0.25)])),
        ],
    );
}

#[test]
fn fields_of_csv_have_delimiters_and_line_feeds_in_quotes() {
    let lines = "a,b\r\n\"x\r\ny\",1\r\n\"p,q\",2\r\n";
    check(
        "a.csv",
        lines,
        &[
            ("a", texts(&[Some("x\r\ny"), Some("p,q")])),
            ("b", ints(&[Some(1), Some(2)])),
        ],
    );
    check(
        "a.tsv",
        "a\tb\nx,y\t1\n",
        &[("a", texts(&[Some("x,y")])), ("b", ints(&[Some(1)]))],
    );
    check("A.CSV", "a,b\n", &[("a", texts(&[])), ("b", texts(&[]))]);
    // A quote within a field is a character.
    check(
        "a.csv",
        "a,b\n5\" pipe,1\n6\" pipe,2\n",
        &[
            ("a", texts(&[Some("5\" pipe"), Some("6\" pipe")])),
            ("b", ints(&[Some(1), Some(2)])),
        ],
    );
}

#[test]
fn a_late_value_of_another_type_changes_the_type_of_its_column() {
    let mut csv = "n,t,e\n".to_owned();
    let mut json = String::new();
    for row in 0..50_000 {
        csv.push_str(&format!("{row},{row},\n"));
        json.push_str(&format!("{{\"n\": {row}, \"t\": {row}}}\n"));
    }
    csv.push_str("1.5,late,7\n");
    json.push_str("{\"n\": 1.5, \"t\": \"late\", \"e\": 7}\n");
    let folder = tempfile::tempdir().unwrap();
    let numbers = (0..50_000).map(f64::from).chain([1.5]);
    let words = (0..50_000)
        .map(|row| row.to_string())
        .chain(["late".to_owned()]);
    let expected = table(&[
        ("n", Arc::new(Float64Array::from_iter_values(numbers))),
        ("t", Arc::new(StringArray::from_iter_values(words))),
        (
            "e",
            Arc::new(
                (0..=50_000)
                    .map(|row| (row == 50_000).then_some(7))
                    .collect::<Int64Array>(),
            ),
        ),
    ]);
    for (name, text) in [("a.csv", &csv), ("a.jsonl", &json)] {
        let shard = shard(folder.path(), name, text.as_bytes());
        assert!(read(&shard) == expected, "{name}");
        // The first rows alone have other types.
        let first = first_rows(&shard, 5).unwrap().next().unwrap().unwrap();
        assert_eq!(
            *first.schema().field(0).data_type(),
            DataType::Int64,
            "{name}"
        );
    }
}

/// Rows after the first ones change neither their types nor their success.
#[test]
fn the_first_rows_alone_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for count in [1, 10, 8192, 10_000, 16_384] {
        let mut csv = "a,b\n".to_owned();
        let mut json = String::new();
        for row in 0..count {
            csv.push_str(&format!("{row},x\r\n"));
            json.push_str(&format!("{{\"a\":{row},\"b\":\"x\"}}\n"));
        }
        let (other_csv, other_json) =
            ("text,y\nz\n", "{\"a\":\"text\",\"b\":\"y\"}\n{\"a\":[1]}\n");
        for (name, text) in [("a.csv", csv + other_csv), ("a.jsonl", json + other_json)] {
            let batches = first_rows(&shard(folder.path(), name, text.as_bytes()), count).unwrap();
            let batches: Vec<_> = batches.map(Result::unwrap).collect();
            assert_eq!(
                batches
                    .iter()
                    .map(|batch| batch.num_rows() as u64)
                    .sum::<u64>(),
                count,
                "{name}"
            );
            let types = batches[0]
                .schema()
                .fields()
                .iter()
                .map(|field| field.data_type().clone())
                .collect::<Vec<_>>();
            assert_eq!(types, [DataType::Int64, DataType::Utf8], "{name}");
        }
    }
}

#[test]
fn json_has_lists_objects_and_missing_fields() {
    let text = "{\"a\": 1, \"l\": [1, 2], \"f\": [1, 2.5], \"t\": \"é\\n\", \"b\": true}\n\n\
                {\"l\": [], \"x\": {\"y\": 1}, \"a\": null, \"n\": null, \"e\": []}\n\
                  {\"a\": -3, \"t\": 7, \"l\": null, \"b\": false}  \n";
    let lists = |values: Vec<Option<Vec<Option<i64>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(values))
    };
    let folder = tempfile::tempdir().unwrap();
    let found = read(&shard(folder.path(), "a.json", text.as_bytes()));
    let column = |name: &str| Arc::clone(found.column_by_name(name).unwrap());
    assert_eq!(&column("a"), &ints(&[Some(1), None, Some(-3)]));
    assert_eq!(
        &column("l"),
        &lists(vec![Some(vec![Some(1), Some(2)]), Some(vec![]), None])
    );
    let decimals = ListArray::from_iter_primitive::<Float64Type, _, _>([
        Some(vec![Some(1.0), Some(2.5)]),
        None,
        None,
    ]);
    assert_eq!(&column("f"), &(Arc::new(decimals) as ArrayRef));
    assert_eq!(&column("t"), &texts(&[Some("é\n"), None, Some("7")]));
    assert_eq!(&column("n"), &texts(&[None, None, None]));
    let x = column("x");
    assert_eq!(
        x.as_any().downcast_ref::<StructArray>().unwrap().column(0),
        &ints(&[None, Some(1), None])
    );
    assert_eq!(
        found.schema().field_with_name("e").unwrap().data_type(),
        &DataType::new_list(DataType::Utf8, true)
    );
    for name in ["a.json", "a.jsonl", "a.ndjson", "a.JSONL"] {
        check(
            name,
            "{\"a\": 1}\n{\"a\": 2}\n",
            &[("a", ints(&[Some(1), Some(2)]))],
        );
    }
    let empty = shard(folder.path(), "empty.jsonl", b"");
    assert_eq!((read(&empty).num_rows(), count(&empty).unwrap()), (0, 0));
}

#[test]
fn errors_of_csv_have_the_line() {
    check_error(
        "a.csv",
        b"",
        "the file is empty; the first line of a CSV file has the names of the columns",
    );
    check_error(
        "a.csv",
        b"a,b,a\n1,2,3\n",
        "line 1: columns 1 and 3 have the name \"a\"; rename one of them",
    );
    let short = "line 5 (row 2): found 1 fields, expected 2 as in the header; put quotes around a field that contains";
    check_error("a.csv", b"a,b\n\"x\ny\",1\nz,2\nlast\n", short);
    check_error("a.csv", b"a,b\r\n\"x\r\ny\",1\r\nz,2\r\nlast\r\n", short);
    check_error("a.csv.gz", &gzip(b"a,b\n\"x\ny\",1\nz,2\nlast\n"), short);
    let long = "line 2 (row 0): found 3 fields, expected 2 as in the header";
    check_error("a.csv", b"a,b\n1,2,3\n", long);
    check_error(
        "a.csv",
        b"a,b\nx,1\ny,\xff\n",
        "line 3 (row 1): field 2 is not UTF-8; convert the file, such as with iconv",
    );
    // Blank lines count as lines, before the header, after it, and between rows.
    check_error(
        "a.csv",
        b"a,b\n1,2\n\n\n\nx\n",
        "line 6 (row 1): found 1 fields",
    );
    check_error(
        "a.csv",
        b"a,b\r\n1,2\r\n\r\n\r\nx\r\n",
        "line 5 (row 1): found 1 fields",
    );
    check_error(
        "a.csv",
        b"\n\n\"a\nc\",b\n\nx\n",
        "line 6 (row 0): found 1 fields",
    );
    let latin = "line 1: a name of a column is not UTF-8; convert the file, such as with iconv -f latin1 -t utf8";
    check_error("a.csv", b"a,\xe9\n1,2\n", latin);
    let wide = "the text is UTF-16, and not UTF-8; convert the file, such as with iconv -f utf-16 -t utf-8";
    for name in ["a.csv", "a.jsonl"] {
        check_error(name, b"\xff\xfea\0,\0b\0\n\0", wide);
        check_error(name, b"\xfe\xff\0a\0,\0b\0\n", wide);
    }
    // Beyond the first batch.
    let mut csv = b"a,b\n".to_vec();
    (0..30_000).for_each(|row| csv.extend_from_slice(format!("{row},x\n").as_bytes()));
    csv.extend_from_slice(b"1,2,3\n");
    check_error("a.csv", &csv, "line 30002 (row 30000): found 3 fields");
    let wide = (0..=100_000)
        .map(|i| i.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let folder = tempfile::tempdir().unwrap();
    let error = rows(&shard(folder.path(), "wide.csv", wide.as_bytes()))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("the header has 100001 columns"), "{error}");
}

#[test]
fn errors_of_json_have_the_line_and_the_field() {
    let lines =
        "expected one object a line, or one array of objects; jq -c . writes objects as lines";
    check_error(
        "a.json",
        b"{\"a\": 1}\n\n[1, 2]\n",
        &format!("line 3 (row 1): found a list, {lines}"),
    );
    check_error(
        "a.json",
        b"{\n  \"a\": 1\n}\n",
        "line 1 (row 0): found a part of a value that has several lines",
    );
    check_error(
        "a.json",
        b"{\"a\": 1}\n7\n",
        "line 2 (row 1): found a number, ",
    );
    check_error(
        "a.json",
        b"{\"a\": 1} {\"a\": 2}\n",
        "line 1 (row 0): not JSON: trailing characters at column 10; ",
    );
    check_error(
        "a.json",
        b"{\"a\": \"\xff\"}\n",
        "line 1 (row 0): not JSON: ",
    );
    let form = "expected an integer as in earlier rows; a field has values of one form, so that one value is a list too: [1]";
    check_error(
        "a.json",
        b"{\"a\": 1}\n{\"a\": [1]}\n",
        &format!("line 2 (row 1): field \"a\": found a list, {form}"),
    );
    let list = "line 2 (row 1): field \"x.a\": found a text, expected a list as in earlier rows";
    check_error(
        "a.json",
        b"{\"x\": {\"a\": [1]}}\n{\"x\": {\"a\": \"t\"}}\n",
        list,
    );
    let deep = [vec![b'['; 200], vec![b']'; 200]].concat();
    check_error(
        "a.json",
        &[b"{\"a\":", &deep[..], b"}"].concat(),
        "line 1 (row 0): field \"a\": more than 50 lists and objects are nested in each other",
    );
}

#[test]
fn an_array_of_objects_has_the_rows_of_lines() {
    let expected = [
        ("a", ints(&[Some(1), Some(2), None])),
        ("b", texts(&[Some("],"), None, Some("\\\"")])),
    ];
    check(
        "a.json",
        " [{\"a\":1,\"b\":\"],\"},{\"a\":2},{\"b\":\"\\\\\\\"\"}]",
        &expected,
    );
    let pretty =
        "[\n  {\n    \"a\": 1,\n    \"b\": \"],\"\n  },\n{\"a\":2} , {\"b\":\"\\\\\\\"\"}\n]\n";
    check("a.json", pretty, &expected);
    check_error(
        "a.json",
        b"[{\"a\":1},\n7]",
        "row 1: found a number, expected one object a line, or one array",
    );
    check_error("a.json", b"[{\"a\":1}", "the array of objects has no end");
    check_error(
        "a.json",
        b"[{\"a\":1}] {\"a\":1}",
        "other text follows the array of objects",
    );
}

/// Python writes NaN without quotes, and outputs of tfarrow have it as a text.
#[test]
fn numbers_of_json_that_are_not_finite_are_floats() {
    let text = "{\"a\":NaN,\"b\":1,\"c\":\"NaN\",\"d\":\"NaN\",\"e\":[-Infinity,1]}\n\
                {\"a\":-Infinity,\"b\":\"Infinity\",\"c\":\"x\",\"d\":\"Infinity\",\"e\":[\"NaN\"]}\n";
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
        Some(vec![Some(f64::NEG_INFINITY), Some(1.0)]),
        Some(vec![Some(f64::NAN)]),
    ]);
    check(
        "a.jsonl",
        text,
        &[
            ("a", floats(&[Some(f64::NAN), Some(f64::NEG_INFINITY)])),
            ("b", floats(&[Some(1.0), Some(f64::INFINITY)])),
            // Without a number, a text is a text.
            ("c", texts(&[Some("NaN"), Some("x")])),
            ("d", texts(&[Some("NaN"), Some("Infinity")])),
            ("e", Arc::new(lists)),
        ],
    );
    let mixed = [("a", texts(&[Some("1"), Some("NaN"), Some("x")]))];
    check("a.jsonl", "{\"a\":1}\n{\"a\":NaN}\n{\"a\":\"x\"}\n", &mixed);
}

#[test]
fn wide_csv_has_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let line = |first: usize| {
        (first..first + 40_000)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
            .join(",")
            + "\n"
    };
    let reversed = (0..40_000)
        .rev()
        .map(|i| i.to_string())
        .collect::<Vec<_>>()
        .join(",")
        + "\n"
        + &line(0);
    let shards = [
        shard(folder.path(), "a.csv", (line(0) + &line(0)).as_bytes()),
        shard(folder.path(), "b.csv", reversed.as_bytes()),
    ];
    unify_text(&shards, TextColumns::OfAll, 1, &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    for (shard, value) in shards.iter().zip([39_999, 0]) {
        let batch = rows(shard).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.num_columns(), 40_000);
        assert_eq!(
            batch.column(39_999).as_primitive::<Int64Type>().value(0),
            value
        );
    }
}

/// The fields of all objects of a file count, so that its columns have a bounded size.
#[test]
fn fields_have_a_limit_for_the_file() {
    let keys = |count: usize| {
        (0..count)
            .map(|i| format!("\"{i}\":1"))
            .collect::<Vec<_>>()
            .join(",")
    };
    check_error(
        "a.json",
        format!("{{{}}}\n", keys(100_001)).as_bytes(),
        "line 1 (row 0): found more than 100000 ",
    );
    let nested = format!("{{\"x\":{{{0}}}}}\n{{\"y\":[{{{0}}}]}}\n", keys(60_000));
    check_error(
        "a.json",
        nested.as_bytes(),
        "line 2 (row 1): field \"y\": found more than 100000 fields in the file",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = shard(
        folder.path(),
        "a.json",
        format!("{{\"x\":{{{}}}}}\n", keys(99_999))
            .repeat(2)
            .as_bytes(),
    );
    assert_eq!(count(&file).unwrap(), 2);
}

/// Readers refuse deeper columns, so that such a file could be written and not read.
#[test]
fn lists_and_objects_have_a_depth_that_readers_accept() {
    let text = |open: &str, close: &str, depth| {
        format!("{{\"a\":{}1{}}}\n", open.repeat(depth), close.repeat(depth))
    };
    for (open, close, forms) in [("{\"b\":", "}", 1), ("[", "]", 1), ("[{\"b\":", "}]", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let file = shard(
            folder.path(),
            "a.jsonl",
            text(open, close, 50 / forms).as_bytes(),
        );
        assert_eq!(read(&file).num_rows(), 1);
        let deep = ["{\"a\":null}\n", &text(open, close, 50 / forms + 1)].concat();
        let folder = tempfile::tempdir().unwrap();
        let error = count(&shard(folder.path(), "a.jsonl", deep.as_bytes()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 2 (row 1): field \"a"), "{error}");
        assert!(
            error.ends_with("more than 50 lists and objects are nested in each other"),
            "{error}"
        );
    }
}

#[test]
fn batches_of_long_rows_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let value = "x\n".repeat(100_000);
    let csv = format!("a,b\n{}", format!("\"{value}\",1\n").repeat(100));
    let json = serde_json::json!({"a": value, "b": 1}).to_string() + "\n";
    for (name, text) in [
        ("a.csv", csv.into_bytes()),
        ("a.jsonl", json.repeat(100).into_bytes()),
    ] {
        let batches: Vec<_> = rows(&shard(folder.path(), name, &text))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            100,
            "{name}"
        );
        assert!(batches.iter().all(|batch| batch.num_rows() <= 25), "{name}");
        let first = batches[0]
            .column(0)
            .as_any()
            .downcast_ref::<StringArray>()
            .unwrap();
        assert!(
            first.iter().all(|found| found == Some(value.as_str())),
            "{name}"
        );
    }
}

#[test]
fn columns_are_chosen_by_their_indices() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.csv", "a,b,c\n1,x,2\n"),
        ("a.jsonl", "{\"a\": 1, \"b\": \"x\", \"c\": 2}\n"),
    ] {
        let shard = shard(folder.path(), name, text.as_bytes());
        let batch = rows_of(&shard, Some([0, 2].into()))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(
            batch,
            table(&[("a", ints(&[Some(1)])), ("c", ints(&[Some(2)]))]),
            "{name}"
        );
    }
}

/// The file is read once for its columns, which clones of the shard share.
#[test]
fn the_columns_are_inferred_once() {
    let folder = tempfile::tempdir().unwrap();
    let shard = shard(folder.path(), "a.csv", b"a\n1\n2\n");
    let clone = shard.clone();
    assert_eq!(count(&shard).unwrap(), 2);
    fs::write(&shard.path, "a\nx\n3\n").unwrap();
    assert_eq!(count(&clone).unwrap(), 2);
    // The new value does not fit the columns.
    let error = rows(&clone)
        .unwrap()
        .next()
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 2 (row 0): ") && error.contains("'x'"),
        "{error}"
    );
}

/// The files are parts of one table: a column has one type, in any order of columns and with others
/// missing.
#[test]
fn a_column_has_one_type_in_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a.csv", "a,b,none\n1,x,\n"),
        ("b.csv", "b,a\n2,1.5\n"),
        (
            "c.jsonl",
            "{\"c\":{\"y\":1,\"x\":true},\"a\":2,\"none\":[1]}\n",
        ),
        ("d.jsonl", "{\"c\":{\"x\":false},\"b\":[1]}\n"),
    ];
    let resolve = || -> Vec<_> {
        files
            .map(|(name, text)| shard(folder.path(), name, text.as_bytes()))
            .into()
    };
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(
        vec![Some(1)],
    )]));
    let object = |y: Option<i64>, x: bool| -> ArrayRef {
        let fields = [("y", DataType::Int64), ("x", DataType::Boolean)]
            .map(|(name, of)| Field::new(name, of, true));
        let arrays: Vec<ArrayRef> = vec![ints(&[y]), Arc::new(BooleanArray::from(vec![x]))];
        Arc::new(StructArray::new(fields.to_vec().into(), arrays, None))
    };
    let shards = resolve();
    unify_text(&shards, TextColumns::OfFile, 2, &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let found: Vec<_> = shards.iter().map(read).collect();
    assert_eq!(
        found[0],
        table(&[
            ("a", floats(&[Some(1.0)])),
            ("b", texts(&[Some("x")])),
            ("none", texts(&[None]))
        ])
    );
    assert_eq!(
        found[1],
        table(&[("b", texts(&[Some("2")])), ("a", floats(&[Some(1.5)]))])
    );
    let columns = [
        ("c", object(Some(1), true)),
        ("a", floats(&[Some(2.0)])),
        ("none", Arc::clone(&lists)),
    ];
    assert_eq!(found[2], table(&columns));
    // A list among single values stays one.
    assert_eq!(
        found[3],
        table(&[("c", object(None, false)), ("b", Arc::clone(&lists))])
    );
    // All columns in all files, in the order of the first file that has each.
    let shards = &resolve()[..2];
    unify_text(shards, TextColumns::OfAll, 1, &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(
        read(&shards[1]),
        table(&[
            ("a", floats(&[Some(1.5)])),
            ("b", texts(&[Some("2")])),
            ("none", texts(&[None]))
        ])
    );
    assert_eq!(
        rows_of(&shards[1], Some([2].into()))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .num_columns(),
        1
    );
    // The first file with a wrong line is reported.
    let bad = [
        shard(folder.path(), "e.csv", b"a,b\n1\n"),
        shard(folder.path(), "f.csv", b"a\n1,2\n"),
    ];
    let error = unify_text(&bad, TextColumns::OfFile, 2, &|_, _| {
        ControlFlow::Continue(())
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("e.csv: line 2 (row 0): found 1 fields"),
        "{error}"
    );
    let stopped =
        unify_text(&bad, TextColumns::OfFile, 2, &|_, _| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(stopped.kind(), ErrorKind::Stopped), "{stopped}");
}
