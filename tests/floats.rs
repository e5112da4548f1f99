//! One rule of equality for floats in SQL, whatever the format of the files: NaN is one value above
//! all numbers, and -0.0 equals 0.0. Columns that a query only carries keep their bits.

use std::{collections::BTreeSet, fmt::Write, fs::File, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use datafusion::{
    arrow::{compute::cast, datatypes::DataType},
    prelude::{SessionConfig, SessionContext},
};
use parquet::{
    arrow::ArrowWriter,
    file::{
        metadata::RowGroupMetaData,
        properties::{EnabledStatistics, WriterProperties},
        reader::{FileReader, SerializedFileReader},
    },
};
use proptest::prelude::*;
use tempfile::TempDir;
use tfarrow_convert::{ConvertOptions, Progress, convert};
use tfarrow_sql::{SessionOptions, session_context};

use crate::support::tfarrow;

/// Floats of both zeros, of four NaNs, and of the limits of numbers.
fn special(number: usize) -> f32 {
    let bits = [
        0x7fc0_0000,
        0xffc0_0000,
        0x7f80_0001,
        0xffff_ffff,
        0x0000_0000,
        0x8000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x0000_0001,
        0x8000_0001,
        0x7f7f_ffff,
        0x3f80_0000,
        0xbf80_0000,
        0x3f00_0000,
    ];
    f32::from_bits(bits[number % bits.len()])
}

/// A row of the tables: `id` is its number.
#[derive(Clone, Debug)]
struct Row {
    g: Option<i64>,
    x: Option<f32>,
    y: Option<f32>,
    l: Vec<f32>,
}

/// The place of a float in the order of all floats, as the rule has it.
fn place(value: f32) -> i64 {
    let value = if value.is_nan() {
        f32::NAN
    } else {
        value + 0.0
    };
    let bits = i64::from(value.to_bits() as i32);
    if bits < 0 {
        i64::from(i32::MIN) - bits - 1
    } else {
        bits
    }
}

/// A float as SQL.
fn literal(value: f32) -> String {
    format!("CAST('{value:e}' AS FLOAT)")
}

/// A value that queries compare: a column or a constant.
#[derive(Clone, Debug)]
enum Operand {
    X,
    Y,
    Constant(f32),
}

impl Operand {
    fn sql(&self) -> String {
        match self {
            Self::X => "x".to_owned(),
            Self::Y => "y".to_owned(),
            Self::Constant(value) => literal(*value),
        }
    }

    fn place(&self, row: &Row) -> Option<i64> {
        match self {
            Self::X => row.x.map(place),
            Self::Y => row.y.map(place),
            Self::Constant(value) => Some(place(*value)),
        }
    }
}

#[derive(Clone, Debug)]
enum Predicate {
    Compare(usize, Operand, Operand),
    In(Operand, Vec<f32>, bool),
    Between(Operand, f32, f32, bool),
    CaseWhen(Operand, f32),
    NullIf(Operand, f32),
    Has(f32),
    IsNan,
    IsNull,
    Of(i64),
    Not(Box<Predicate>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
}

const OPERATORS: [&str; 8] = [
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
];

fn negated(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

impl Predicate {
    fn sql(&self) -> String {
        match self {
            Self::Compare(operator, left, right) => {
                format!("{} {} {}", left.sql(), OPERATORS[*operator], right.sql())
            }
            Self::In(value, list, is_not) => {
                let list: Vec<_> = list.iter().map(|value| literal(*value)).collect();
                format!(
                    "{} {}IN ({})",
                    value.sql(),
                    negated(*is_not),
                    list.join(", ")
                )
            }
            Self::Between(value, low, high, is_not) => {
                let (low, high) = (literal(*low), literal(*high));
                format!(
                    "{} {}BETWEEN {low} AND {high}",
                    value.sql(),
                    negated(*is_not)
                )
            }
            Self::CaseWhen(value, when) => {
                format!(
                    "CASE {} WHEN {} THEN true ELSE false END",
                    value.sql(),
                    literal(*when)
                )
            }
            Self::NullIf(value, other) => {
                format!("nullif({}, {}) IS NULL", value.sql(), literal(*other))
            }
            Self::Has(item) => format!("array_has(l, {})", literal(*item)),
            Self::IsNan => "isnan(x)".to_owned(),
            Self::IsNull => "x IS NULL".to_owned(),
            Self::Of(group) => format!("g = {group}"),
            Self::Not(inner) => format!("NOT ({})", inner.sql()),
            Self::And(one, other) => format!("({}) AND ({})", one.sql(), other.sql()),
            Self::Or(one, other) => format!("({}) OR ({})", one.sql(), other.sql()),
        }
    }

    /// The answer for a row; `None` is unknown.
    fn of(&self, row: &Row) -> Option<bool> {
        match self {
            Self::Compare(6, left, right) => Some(left.place(row) != right.place(row)),
            Self::Compare(7, left, right) => Some(left.place(row) == right.place(row)),
            Self::Compare(operator, left, right) => {
                let order = left.place(row)?.cmp(&right.place(row)?);
                Some(
                    [
                        order.is_eq(),
                        order.is_ne(),
                        order.is_lt(),
                        order.is_le(),
                        order.is_gt(),
                        order.is_ge(),
                    ][*operator],
                )
            }
            Self::In(value, list, is_not) => {
                let value = value.place(row)?;
                Some(list.iter().any(|item| place(*item) == value) != *is_not)
            }
            Self::Between(value, low, high, is_not) => {
                Some((place(*low)..=place(*high)).contains(&value.place(row)?) != *is_not)
            }
            Self::CaseWhen(value, when) => Some(value.place(row) == Some(place(*when))),
            Self::NullIf(value, other) => {
                Some(value.place(row).is_none_or(|value| value == place(*other)))
            }
            // A feature without values is null.
            Self::Has(item) if !row.l.is_empty() => {
                Some(row.l.iter().any(|value| place(*value) == place(*item)))
            }
            Self::Has(_) => None,
            Self::IsNan => row.x.map(f32::is_nan),
            Self::IsNull => Some(row.x.is_none()),
            Self::Of(group) => row.g.map(|value| value == *group),
            Self::Not(inner) => inner.of(row).map(|answer| !answer),
            Self::And(one, other) => match (one.of(row), other.of(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (one, other) => one.zip(other).map(|_| true),
            },
            Self::Or(one, other) => match (one.of(row), other.of(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (one, other) => one.zip(other).map(|_| false),
            },
        }
    }
}

/// A value of a result: an integer, or the place of a float.
type Cell = Option<i64>;

/// A query of the table `t`, and its rows. `is_sorted`: the order of the rows is that of the query.
#[derive(Clone, Debug)]
struct Question {
    sql: String,
    rows: Vec<Vec<Cell>>,
    is_sorted: bool,
}

impl Question {
    fn unsorted(sql: String, mut rows: Vec<Vec<Cell>>) -> Self {
        rows.sort();
        Self {
            sql,
            rows,
            is_sorted: false,
        }
    }
}

/// The least and the greatest float, and the number of distinct ones.
fn figures(values: impl Iterator<Item = Option<f32>>) -> Vec<Cell> {
    let mut places: Vec<_> = values.flatten().map(place).collect();
    places.sort_unstable();
    places.dedup();
    vec![
        places.first().copied(),
        places.last().copied(),
        Some(places.len() as i64),
    ]
}

fn of_filter(table: &[Row], filter: &Predicate) -> Question {
    let kept = table
        .iter()
        .enumerate()
        .filter(|(_, row)| filter.of(row) == Some(true));
    let rows = kept.map(|(id, _)| vec![Some(id as i64)]).collect();
    Question::unsorted(format!("SELECT id FROM t WHERE {}", filter.sql()), rows)
}

fn of_aggregate(table: &[Row], filter: &Predicate) -> Question {
    let kept = table.iter().filter(|row| filter.of(row) == Some(true));
    let sql = format!(
        "SELECT min(x), max(x), count(DISTINCT x) FROM t WHERE {}",
        filter.sql()
    );
    Question::unsorted(sql, vec![figures(kept.map(|row| row.x))])
}

fn of_groups(table: &[Row]) -> Question {
    let mut groups: Vec<_> = table.iter().map(|row| row.g).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |group: &Cell| {
        let values = table.iter().filter(|row| row.g == *group).map(|row| row.x);
        [vec![*group], figures(values)].concat()
    };
    let sql = "SELECT g, min(x), max(x), count(DISTINCT x) FROM t GROUP BY g".to_owned();
    Question::unsorted(sql, groups.iter().map(of_group).collect())
}

fn of_distinct(table: &[Row]) -> Question {
    let mut places: Vec<_> = table.iter().map(|row| row.x.map(place)).collect();
    places.sort_unstable();
    let rows = places
        .chunk_by(|one, other| one == other)
        .map(|equal| vec![equal[0], Some(equal.len() as i64)]);
    Question::unsorted(
        "SELECT x, count(*) FROM t GROUP BY x".to_owned(),
        rows.collect(),
    )
}

fn of_join(table: &[Row], kind: usize) -> Question {
    let (xs, ys) = (|row: &Row| row.x.map(place), |row: &Row| row.y.map(place));
    let all: Vec<_> = table.iter().map(ys).collect();
    let ids = table.iter().enumerate();
    match kind {
        0 => {
            let mut rows = Vec::new();
            for (id, row) in ids {
                let partners =
                    (0..all.len()).filter(|other| xs(row).is_some() && all[*other] == xs(row));
                rows.extend(partners.map(|other| vec![Some(id as i64), Some(other as i64)]));
            }
            Question::unsorted(
                "SELECT a.id, b.id FROM t a JOIN t b ON a.x = b.y".to_owned(),
                rows,
            )
        }
        1 => {
            let rows = ids.filter(|(_, row)| xs(row).is_some_and(|x| all.contains(&Some(x))));
            let rows = rows.map(|(id, _)| vec![Some(id as i64)]).collect();
            Question::unsorted(
                "SELECT id FROM t WHERE x IN (SELECT y FROM t)".to_owned(),
                rows,
            )
        }
        2 => {
            let rows = ids.filter(|(_, row)| xs(row).is_none_or(|x| !all.contains(&Some(x))));
            let rows = rows.map(|(id, _)| vec![Some(id as i64)]).collect();
            let sql = "SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.y = a.x)";
            Question::unsorted(sql.to_owned(), rows)
        }
        3 => {
            let mut rows: Vec<_> = table
                .iter()
                .map(xs)
                .filter(|x| !all.contains(x))
                .map(|x| vec![x])
                .collect();
            rows.sort_unstable();
            rows.dedup();
            Question::unsorted("SELECT x FROM t EXCEPT SELECT y FROM t".to_owned(), rows)
        }
        _ => {
            let mut rows: Vec<_> = table
                .iter()
                .flat_map(|row| [vec![xs(row)], vec![ys(row)]])
                .collect();
            rows.sort_unstable();
            rows.dedup();
            Question::unsorted("SELECT x FROM t UNION SELECT y FROM t".to_owned(), rows)
        }
    }
}

fn of_order(table: &[Row], is_descending: bool, limit: usize) -> Question {
    let mut places: Vec<_> = table.iter().filter_map(|row| row.x.map(place)).collect();
    places.sort_unstable();
    if is_descending {
        places.reverse();
    }
    let nulls = table.len() - places.len();
    let places = places
        .into_iter()
        .map(Some)
        .chain(std::iter::repeat_n(None, nulls));
    let order = if is_descending { "DESC" } else { "ASC" };
    let sql = format!("SELECT x FROM t ORDER BY x {order} NULLS LAST LIMIT {limit}");
    Question {
        sql,
        rows: places.take(limit).map(|x| vec![x]).collect(),
        is_sorted: true,
    }
}

fn of_window(table: &[Row]) -> Question {
    let rank = |x: Cell| {
        1 + table
            .iter()
            .filter(|row| {
                row.x.map(place).map_or((1, 0), |x| (0, x)) < x.map_or((1, 0), |x| (0, x))
            })
            .count()
    };
    let equal = |x: Cell| table.iter().filter(|row| row.x.map(place) == x).count();
    let rows = table.iter().enumerate().map(|(id, row)| {
        let x = row.x.map(place);
        vec![Some(id as i64), Some(rank(x) as i64), Some(equal(x) as i64)]
    });
    let sql =
        "SELECT id, rank() OVER (ORDER BY x NULLS LAST), count(*) OVER (PARTITION BY x) FROM t";
    Question::unsorted(sql.to_owned(), rows.collect())
}

fn any_float() -> impl Strategy<Value = f32> {
    (0..14_usize).prop_map(special)
}

fn any_operand() -> impl Strategy<Value = Operand> {
    prop_oneof![3 => Just(Operand::X), 1 => Just(Operand::Y), 3 => any_float().prop_map(Operand::Constant)]
}

/// Two predicates, of which at most one has a list. DataFusion 55.2 merges two lists, and where the
/// merged list is empty it answers true or false for null as well, also of integers: `NOT (x IN (1)
/// AND x NOT IN (1))`.
fn combination(
    inner: &BoxedStrategy<Predicate>,
) -> impl Strategy<Value = (Predicate, Predicate)> + use<> {
    let has_list = |predicate: &Predicate| predicate.sql().contains("IN (");
    let pair = (inner.clone(), inner.clone());
    pair.prop_map(
        move |(one, other)| match has_list(&one) && has_list(&other) {
            true => (one, Predicate::IsNull),
            false => (one, other),
        },
    )
}

fn any_predicate() -> impl Strategy<Value = Predicate> {
    let list = prop_oneof![
        proptest::collection::vec(any_float(), 1..4),
        proptest::collection::vec(any_float(), 12..40)
    ];
    let leaf = prop_oneof![
        6 => (0..8_usize, any_operand(), any_operand()).prop_map(|(op, one, other)| Predicate::Compare(op, one, other)),
        2 => (any_operand(), list, any::<bool>()).prop_map(|(value, list, is_not)| Predicate::In(value, list, is_not)),
        1 => (any_operand(), any_float(), any_float(), any::<bool>())
            .prop_map(|(value, low, high, is_not)| Predicate::Between(value, low, high, is_not)),
        1 => (any_operand(), any_float()).prop_map(|(value, when)| Predicate::CaseWhen(value, when)),
        1 => (any_operand(), any_float()).prop_map(|(value, other)| Predicate::NullIf(value, other)),
        1 => any_float().prop_map(Predicate::Has),
        1 => Just(Predicate::IsNan),
        1 => Just(Predicate::IsNull),
        1 => (0..4_i64).prop_map(Predicate::Of),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|inner| Predicate::Not(Box::new(inner))),
            combination(&inner)
                .prop_map(|(one, other)| Predicate::And(Box::new(one), Box::new(other))),
            combination(&inner)
                .prop_map(|(one, other)| Predicate::Or(Box::new(one), Box::new(other))),
        ]
    })
}

/// The most rows of a table: 12, or `TFARROW_TEST_ROWS`. With 1,000 rows, 200 cases compare 10
/// million rows with the oracle.
fn most_rows() -> usize {
    std::env::var("TFARROW_TEST_ROWS").map_or(12, |rows| rows.parse().unwrap())
}

/// Tables whose first row has all features, so that each is a column.
fn any_table() -> impl Strategy<Value = Vec<Row>> {
    let float = || proptest::option::weighted(0.85, any_float());
    let list = proptest::collection::vec(any_float(), 0..3);
    let row = (
        proptest::option::weighted(0.9, 0..3_i64),
        float(),
        float(),
        list,
    );
    let rows = proptest::collection::vec(
        row.prop_map(|(g, x, y, l)| Row { g, x, y, l }),
        0..most_rows(),
    );
    (any_float(), rows).prop_map(|(x, rows)| {
        let first = Row {
            g: Some(0),
            x: Some(x),
            y: Some(1.0),
            l: vec![1.0, 0.5],
        };
        [vec![first], rows].concat()
    })
}

/// The table that CSV and JSON have: without NaN and infinities, which JSON does not have.
fn as_text(table: &[Row]) -> Vec<Row> {
    let number = |value: f32| if value.is_finite() { value } else { 0.5 };
    let text = |row: &Row| Row {
        x: row.x.map(number),
        y: row.y.map(number),
        l: row.l.iter().copied().map(number).collect(),
        ..row.clone()
    };
    table.iter().map(text).collect()
}

fn batch(table: &[Row], first: usize) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (first..first + table.len()).map(|id| id as i64),
    ));
    let groups: ArrayRef = Arc::new(table.iter().map(|row| row.g).collect::<Int64Array>());
    let floats = |of: fn(&Row) -> Option<f32>| {
        Arc::new(table.iter().map(of).collect::<Float32Array>()) as ArrayRef
    };
    let list = |row: &Row| {
        (!row.l.is_empty()).then(|| row.l.iter().copied().map(Some).collect::<Vec<_>>())
    };
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        table.iter().map(list),
    ));
    let columns = [
        ("id", ids),
        ("g", groups),
        ("x", floats(|row| row.x)),
        ("y", floats(|row| row.y)),
        ("l", lists),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// Writes a Parquet file as other programs do: with bounds that leave NaN out, of row groups and of
/// pages, and with Bloom filters.
fn write_parquet(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(3))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true)
        .build();
    let mut writer = ArrowWriter::try_new(
        File::create(path).unwrap(),
        batch.schema(),
        Some(properties),
    )
    .unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batch: &RecordBatch) {
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(File::create(path).unwrap(), &batch.schema())
            .unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn csv(table: &[Row]) -> String {
    let float = |value: Option<f32>| {
        value
            .map(|value| format!("{:?}", f64::from(value)))
            .unwrap_or_default()
    };
    let mut text = "id,g,x,y\n".to_owned();
    for (id, row) in table.iter().enumerate() {
        let group = row.g.map(|group| group.to_string()).unwrap_or_default();
        writeln!(text, "{id},{group},{},{}", float(row.x), float(row.y)).unwrap();
    }
    text
}

fn json(table: &[Row]) -> String {
    let mut text = String::new();
    for (id, row) in table.iter().enumerate() {
        let mut fields = vec![format!("\"id\": {id}")];
        fields.extend(row.g.map(|group| format!("\"g\": {group}")));
        fields.extend(row.x.map(|x| format!("\"x\": {:?}", f64::from(x))));
        fields.extend(row.y.map(|y| format!("\"y\": {:?}", f64::from(y))));
        if !row.l.is_empty() {
            fields.push(format!("\"l\": {:?}", row.l));
        }
        writeln!(text, "{{{}}}", fields.join(", ")).unwrap();
    }
    text
}

/// A table in all formats.
struct Files(TempDir);

impl Files {
    fn of(table: &[Row]) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        write_arrow(&files.path("t.arrow"), &batch(table, 0));
        files.convert("t.arrow", "t.tfrecord", ConvertOptions::default());
        let bloom_filters = vec!["x".to_owned(), "y".to_owned()];
        let ours = ConvertOptions {
            row_group_rows: 3,
            bloom_filters,
            page_index: true,
            ..ConvertOptions::default()
        };
        files.convert("t.tfrecord", "t.parquet", ours);
        std::fs::create_dir(files.path("others")).unwrap();
        let half = table.len() / 2;
        write_parquet(&files.path("others/0.parquet"), &batch(&table[..half], 0));
        write_parquet(
            &files.path("others/1.parquet"),
            &batch(&table[half..], half),
        );
        let text = as_text(table);
        std::fs::write(files.path("t.csv"), csv(&text)).unwrap();
        std::fs::write(files.path("t.jsonl"), json(&text)).unwrap();
        files
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn convert(&self, from: &str, to: &str, options: ConvertOptions) {
        convert(
            &[self.path(from)],
            &self.path(to),
            &options,
            &Progress::default(),
        )
        .unwrap();
    }
}

/// A session that filters in the scans of Parquet and TFRecord, or above them.
fn session(filters_in_scans: bool) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2);
    let config = config.set_bool(
        "datafusion.execution.parquet.pushdown_filters",
        filters_in_scans,
    );
    let mut options = SessionOptions {
        config,
        ..SessionOptions::default()
    };
    options.tables.pushdown_filters = filters_in_scans;
    session_context(options).unwrap()
}

async fn batches(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = context
        .sql(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    frame
        .collect()
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The rows of a result, with floats as their places.
async fn answer(context: &SessionContext, sql: &str) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for batch in batches(context, sql).await {
        let cells = |column: &ArrayRef| -> Vec<Cell> {
            if column.data_type().is_floating() {
                let floats = cast(column, &DataType::Float32).unwrap();
                return floats
                    .as_primitive::<Float32Type>()
                    .iter()
                    .map(|value| value.map(place))
                    .collect();
            }
            cast(column, &DataType::Int64)
                .unwrap()
                .as_primitive::<Int64Type>()
                .iter()
                .collect()
        };
        let columns: Vec<_> = batch.columns().iter().map(cells).collect();
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column[row]).collect::<Vec<_>>()),
        );
    }
    rows
}

async fn check(context: &SessionContext, files: &Files, format: &str, question: &Question) {
    let table = format!("FROM '{}'", files.path(format).display());
    let sql = question
        .sql
        .replace("FROM t", &table)
        .replace("JOIN t", &table.replace("FROM", "JOIN"));
    let mut rows = answer(context, &sql).await;
    if !question.is_sorted {
        rows.sort();
    }
    assert_eq!(rows, question.rows, "{sql}");
}

/// Questions of a table; `text`: of one without lists.
fn questions(table: &[Row], filters: &[Predicate], number: usize) -> Vec<Question> {
    let mut questions: Vec<_> = filters
        .iter()
        .map(|filter| of_filter(table, filter))
        .collect();
    questions.extend(filters.first().map(|filter| of_aggregate(table, filter)));
    questions.push(match number % 10 {
        0 => of_groups(table),
        1 => of_distinct(table),
        2..=6 => of_join(table, number % 10 - 2),
        7 => of_order(table, true, 1 + number % 4),
        8 => of_order(table, false, 1 + number % 4),
        _ => of_window(table),
    });
    questions
}

proptest! {
    // Some 2,800 questions, each of files of six formats.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn answers_do_not_depend_on_the_format(
        table in any_table(),
        filters in proptest::collection::vec(any_predicate(), 3),
        number in 0..1000_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let files = Files::of(&table);
        runtime.block_on(async {
            for context in [session(false), session(true)] {
                for question in questions(&table, &filters, number) {
                    for format in ["t.tfrecord", "t.parquet", "others/", "t.arrow"] {
                        check(&context, &files, format, &question).await;
                    }
                }
            }
            let context = session(true);
            let filters: Vec<_> = filters.into_iter().filter(|filter| !filter.sql().contains("(l,")).collect();
            for question in questions(&as_text(&table), &filters, number) {
                for format in ["t.csv", "t.jsonl"] {
                    check(&context, &files, format, &question).await;
                }
            }
        });
    }
}

/// The bits of a column of float32.
async fn bits(context: &SessionContext, sql: &str) -> Vec<u32> {
    let of_batch = |batch: RecordBatch| {
        batch
            .column(0)
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    batches(context, sql)
        .await
        .into_iter()
        .flat_map(of_batch)
        .collect()
}

fn table_of(values: impl IntoIterator<Item = f32>) -> Vec<Row> {
    values
        .into_iter()
        .map(|x| Row {
            g: Some(0),
            x: Some(x),
            y: Some(1.0),
            l: vec![1.0, x],
        })
        .collect()
}

/// Footers of other writers say of 1, NaN, 1 that minimum and maximum are 1.
#[tokio::test]
async fn columns_that_are_carried_keep_their_bits() {
    for values in [
        vec![1.0, special(1), 1.0, 1.0, 1.0, 1.0],
        (0..14).map(special).collect(),
    ] {
        let files = Files::of(&table_of(values.iter().copied()));
        let context = session(true);
        let expect: Vec<_> = values.iter().map(|value| value.to_bits()).collect();
        for format in ["t.tfrecord", "t.parquet", "others/", "t.arrow"] {
            let table = format!("'{}'", files.path(format).display());
            assert_eq!(
                bits(&context, &format!("SELECT x FROM {table} ORDER BY id")).await,
                expect,
                "{format}"
            );
            let copy = files.path("copy.arrow").display().to_string();
            batches(
                &context,
                &format!("COPY (SELECT * FROM {table} ORDER BY id) TO '{copy}'"),
            )
            .await;
            assert_eq!(
                bits(&context, &format!("SELECT x FROM '{copy}'")).await,
                expect,
                "{format}"
            );
            std::fs::remove_file(copy).unwrap();
            let mut found = bits(&context, &format!("SELECT x FROM {table} ORDER BY x")).await;
            let mut all = expect.clone();
            found.sort_unstable();
            all.sort_unstable();
            assert_eq!(found, all, "{format}");
        }
    }
}

/// DataFusion's `max` of a group begins with the least finite number.
#[tokio::test]
async fn groups_of_infinities_have_them_as_minimum_and_maximum() {
    let context = session(true);
    let sql = "SELECT g, min(x), max(x), min(-x), max(-x) FROM (VALUES (1, '-inf'::float), (1, '-inf'::float)) AS t(g, x) GROUP BY g";
    let [least, greatest] = [f32::NEG_INFINITY, f32::INFINITY].map(|value| Some(place(value)));
    assert_eq!(
        answer(&context, sql).await,
        [vec![Some(1), least, least, greatest, greatest]]
    );
}

#[tokio::test]
async fn doubles_lists_and_structs_follow_the_rule() {
    let context = session(true);
    let table = "(VALUES (1, '0'::double), (2, '-0'::double), (3, 'NaN'::double), (4, -'NaN'::double)) AS t(id, x)";
    for (sql, expect) in [
        ("SELECT count(*) FROM t WHERE x = 0", 2),
        ("SELECT count(*) FROM t WHERE x > 1e300", 2),
        ("SELECT count(*) FROM t WHERE x < 0", 0),
        ("SELECT count(DISTINCT x) FROM t", 2),
        ("SELECT count(DISTINCT [x]) FROM t", 2),
        ("SELECT count(DISTINCT struct(x)) FROM t", 2),
        ("SELECT count(*) FROM t WHERE [x] = [0.0::double]", 2),
        ("SELECT count(*) FROM (SELECT DISTINCT x, [x] FROM t)", 2),
        ("SELECT count(*) FROM t a JOIN t b ON [a.x] = [b.x]", 8),
        ("SELECT count(*) FROM t a JOIN t b USING (x)", 8),
        ("SELECT count(*) FROM t a NATURAL JOIN t b", 4),
        (
            "SELECT count(*) FROM t a FULL JOIN t b ON a.x = b.x AND a.id < b.id",
            6,
        ),
        (
            "SELECT count(*) FROM (SELECT x FROM t GROUP BY ROLLUP (x))",
            3,
        ),
        (
            "SELECT count(*) FROM (SELECT x, id, count(*) FROM t GROUP BY GROUPING SETS ((x), (id), ()))",
            7,
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT ON (x) x, id FROM t ORDER BY x, id)",
            2,
        ),
        ("SELECT cardinality(array_distinct(array_agg(x))) FROM t", 2),
        ("SELECT cardinality(array_agg(DISTINCT x)) FROM t", 2),
        (
            "SELECT count(*) FROM t a WHERE (SELECT count(*) FROM t b WHERE b.x = a.x) = 2",
            4,
        ),
        (
            "SELECT count(*) FROM t WHERE x IN (SELECT x FROM t WHERE id IN (1, 3))",
            4,
        ),
        (
            "SELECT count(*) FROM t WHERE x NOT IN (SELECT x FROM t WHERE id = 1)",
            2,
        ),
        (
            "SELECT count(*) FROM t a WHERE a.x = ANY (SELECT b.x FROM t b WHERE b.id = 3)",
            2,
        ),
        (
            "SELECT count(*) FROM t WHERE x >= (SELECT max(x) FROM t)",
            2,
        ),
        (
            "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.x < a.x AND b.id > a.id)",
            0,
        ),
        (
            "SELECT count(*) FROM (SELECT x FROM t INTERSECT SELECT x FROM t)",
            2,
        ),
        (
            "SELECT max(n) FROM (SELECT dense_rank() OVER (ORDER BY x) AS n FROM t)",
            2,
        ),
        ("SELECT greatest('-NaN'::double, 1) = 'NaN'::double", 1),
        ("SELECT -0.0::double IN (0.0::double)", 1),
        ("SELECT CASE '-0'::double WHEN 0 THEN 1 END", 1),
        (
            "WITH RECURSIVE r AS (SELECT 0.0::double AS x UNION SELECT -x FROM r) SELECT count(*) FROM r",
            1,
        ),
    ] {
        let sql = sql.replace(
            "FROM t a JOIN t b",
            &format!(
                "FROM {} JOIN {}",
                table.replace("t(", "a("),
                table.replace("t(", "b(")
            ),
        );
        let sql = sql.replace(
            "t a FULL JOIN t b",
            &format!(
                "{} FULL JOIN {}",
                table.replace("t(", "a("),
                table.replace("t(", "b(")
            ),
        );
        let sql = sql.replace(
            "t a NATURAL JOIN t b",
            &format!(
                "{} NATURAL JOIN {}",
                table.replace("t(", "a("),
                table.replace("t(", "b(")
            ),
        );
        let sql = sql
            .replace("FROM t a", &format!("FROM {}", table.replace("t(", "a(")))
            .replace("FROM t b", &format!("FROM {}", table.replace("t(", "b(")));
        let sql = sql.replace("FROM t", &format!("FROM {table}"));
        assert_eq!(answer(&context, &sql).await, [[Some(expect)]], "{sql}");
    }
}

/// The text of a plan.
async fn plan(context: &SessionContext, sql: &str) -> String {
    let found = batches(context, &format!("EXPLAIN {sql}")).await;
    datafusion::arrow::util::pretty::pretty_format_batches(&found)
        .unwrap()
        .to_string()
}

#[tokio::test]
async fn names_of_columns_and_filters_of_other_types_stay() {
    let files = Files::of(&table_of([1.0, f32::NAN, 0.5, 2.0]));
    let (context, table) = (
        session(true),
        format!("'{}'", files.path("t.parquet").display()),
    );
    let frame = context
        .sql(&format!(
            "SELECT x > 1, max(x), x FROM {table} t GROUP BY x, x > 1 ORDER BY x"
        ))
        .await
        .unwrap();
    let names: Vec<_> = frame
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["t.x > Int64(1)", "max(t.x)", "x"]);
    assert_eq!(
        frame.collect().await.unwrap()[0].schema().field(0).name(),
        "t.x > Int64(1)"
    );
    let found = plan(
        &context,
        &format!("SELECT id FROM {table} WHERE x > 0.75 AND id > 1.5 AND y IS NOT NULL"),
    )
    .await;
    for part in [
        "CAST(normalize_nan_and_zero(x@3) AS Float64) > 0.75",
        "id_max@",
        "y_null_count@",
    ] {
        assert!(found.contains(part), "no {part}: {found}");
    }
    assert!(
        !found.contains("x_max") && !found.contains("x_min"),
        "{found}"
    );
    // A group is normalized once.
    let found = plan(
        &context,
        &format!("SELECT x, count(*) FROM {table} GROUP BY x HAVING x > 1 ORDER BY x"),
    )
    .await;
    assert!(
        !found.contains("normalize_nan_and_zero(normalize"),
        "{found}"
    );
}

#[tokio::test]
async fn bounds_of_chunks_with_nan_are_not_written() {
    let files = Files::of(&table_of([
        1.0,
        2.0,
        3.0,
        1.0,
        f32::NAN,
        1.0,
        -0.0,
        5.0,
        6.0,
    ]));
    let options = SerializedFileReader::new(File::open(files.path("t.parquet")).unwrap()).unwrap();
    let metadata = options.metadata();
    let bounds: Vec<_> = metadata
        .row_groups()
        .iter()
        .map(|group| {
            let column = group
                .columns()
                .iter()
                .find(|column| column.column_path().string() == "x")
                .unwrap();
            let statistics = column.statistics().unwrap();
            (
                statistics.min_bytes_opt().is_some(),
                statistics.max_bytes_opt().is_some(),
                statistics.null_count_opt(),
                column.column_index_offset().is_some(),
            )
        })
        .collect();
    assert_eq!(
        bounds,
        [
            (true, true, Some(0), true),
            (false, false, Some(0), false),
            (true, true, Some(0), true)
        ]
    );
}

/// The columns of a Parquet file with a minimum or a maximum in any row group, or with a column
/// index.
fn bounded_columns(path: &Path) -> BTreeSet<String> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let mut bounded = BTreeSet::new();
    for column in reader
        .metadata()
        .row_groups()
        .iter()
        .flat_map(RowGroupMetaData::columns)
    {
        let found = column
            .statistics()
            .is_some_and(|found| found.min_bytes_opt().or(found.max_bytes_opt()).is_some());
        if found || column.column_index_offset().is_some() {
            bounded.insert(column.column_path().string());
        }
    }
    bounded
}

#[tokio::test]
async fn parquet_files_of_sql_have_no_bounds_of_floats() {
    let files = Files::of(&table_of([1.0, f32::NAN, 1.0]));
    let context = session(true);
    let [source, target, folder] =
        ["t.tfrecord", "copy.parquet", "by_g/"].map(|name| files.path(name));
    let rows = format!(
        "SELECT id, g, x, l, struct(x AS f, id AS i) AS s, x::DOUBLE AS d FROM '{}'",
        source.display()
    );
    batches(
        &context,
        &format!("COPY ({rows}) TO '{}'", target.display()),
    )
    .await;
    assert_eq!(
        bounded_columns(&target),
        ["g", "id", "s.i"].map(str::to_owned).into()
    );
    let partitioned = format!(
        "COPY ({rows}) TO '{}' STORED AS PARQUET PARTITIONED BY (g)",
        folder.display()
    );
    batches(&context, &partitioned).await;
    let written: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!written.is_empty());
    for folder in written {
        assert_eq!(
            bounded_columns(&folder.join("part-00000.parquet")),
            ["id", "s.i"].map(str::to_owned).into()
        );
    }
    // DataFusion has no option for a column with a dot in its name alone.
    let dotted = files.path("dotted.parquet");
    batches(
        &context,
        &format!(
            "COPY (SELECT id, x AS \"x.y\" FROM '{}') TO '{}'",
            source.display(),
            dotted.display()
        ),
    )
    .await;
    assert_eq!(bounded_columns(&dotted), BTreeSet::new());
    let (table, inserted) = (
        files.path("inserted"),
        format!("SELECT id, x FROM '{}'", source.display()),
    );
    std::fs::create_dir(&table).unwrap();
    let location = table.display();
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, x REAL) STORED AS PARQUET LOCATION '{location}/'"
    );
    batches(&context, &create).await;
    batches(&context, &format!("INSERT INTO t {inserted}")).await;
    let written: Vec<_> = std::fs::read_dir(&table)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(
        written
            .iter()
            .map(|path| bounded_columns(path))
            .collect::<Vec<_>>(),
        [["id".to_owned()].into()]
    );
}

#[tokio::test]
async fn bloom_filters_have_both_zeros_and_the_nan_that_readers_look_up() {
    let files = Files::of(&table_of([
        1.0,
        -0.0,
        2.0,
        1.0,
        special(1),
        1.0,
        0.0,
        5.0,
        6.0,
    ]));
    let properties = parquet::file::properties::ReaderProperties::builder()
        .set_read_bloom_filter(true)
        .build();
    let options = parquet::file::serialized_reader::ReadOptionsBuilder::new()
        .with_reader_properties(properties)
        .build();
    let file = File::open(files.path("t.parquet")).unwrap();
    let reader =
        parquet::file::reader::SerializedFileReader::new_with_options(file, options).unwrap();
    let mut found = Vec::new();
    for group in 0..3 {
        let group = parquet::file::reader::FileReader::get_row_group(&reader, group).unwrap();
        let mut columns = group.metadata().columns().iter();
        let x = columns
            .position(|column| column.column_path().string() == "x")
            .unwrap();
        let filter = group.get_column_bloom_filter(x).unwrap().clone();
        found.push([0.0_f32, -0.0, f32::NAN].map(|value| filter.check(&value)));
    }
    assert_eq!(
        found,
        [
            [true, true, false],
            [false, false, true],
            [true, true, false]
        ]
    );
}

#[test]
fn records_whose_keys_are_equal_floats_are_partners() {
    let [one, other] = [[-0.0, special(1), 2.0], [0.0, special(0), 2.0]]
        .map(|values| Files::of(&table_of(values)));
    let [one, other] =
        [one, other].map(|files| (files.path("t.tfrecord").display().to_string(), files));
    let run = tfarrow(&["diff", &one.0, &other.0, "--on", "x", "--tolerance", "0"]);
    assert!(run.stdout.ends_with("\nequal\n"), "{run:?}");
    // The values of partners are compared by their bits.
    let run = tfarrow(&["diff", &one.0, &other.0, "--on", "x"]);
    assert!(
        run.stdout.contains("1 record equal, 2 different"),
        "{run:?}"
    );
}
