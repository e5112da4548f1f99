//! The plan of a conversion, which `tfarrow convert --dry-run` prints.

use std::{collections::HashMap, io, path::Path};

use arrow_schema::SchemaRef;
use serde_json::{Value, json};
use tfarrow_convert::{ConversionPlan, PlannedJob, PlannedOutputs, Target, schema_json::type_name};

use crate::{
    schema::outlined,
    text::{Screen, count, escape, plural, pretty_json, size, text_table},
};

/// Returns the plan of a conversion as tables: the outputs with their sources, the columns, and a
/// summary.
pub fn plan_text(plan: &ConversionPlan, screen: Screen) -> String {
    let rows = plan.jobs.iter().map(row).collect();
    let mut text = text_table(
        &["output", "source", "size"],
        &[false, false, true],
        &[],
        rows,
        screen,
    );
    for (columns, of) in tables(plan) {
        let rows = outlined(columns.fields())
            .into_iter()
            .map(|column| vec![column.name, column.data_type]);
        let table = text_table(
            &["column", "type"],
            &[false, false],
            &[],
            rows.collect(),
            screen,
        );
        text.push_str(&format!("\n{of}\n{table}"));
    }
    text.push_str(&format!("\n{}", summary(plan)));
    text
}

/// A job as a row of a table: its outputs, its sources, and the size of the sources.
fn row(job: &PlannedJob) -> Vec<String> {
    let sources: Vec<_> = job
        .sources
        .iter()
        .map(|source| source.path.as_path())
        .collect();
    let bytes = job.sources.iter().map(|source| source.bytes).sum();
    vec![
        first_of(&job.outputs.names()),
        first_of(&sources),
        size(bytes),
    ]
}

/// The first of some paths, and the number of the others.
fn first_of(paths: &[&Path]) -> String {
    let first = paths
        .first()
        .map_or_else(String::new, |path| escape(&path.to_string_lossy()));
    match paths.len() {
        0 | 1 => first,
        many => format!("{first} and {} more", count(many as u64 - 1)),
    }
}

/// The columns of jobs that have the same ones, and a headline.
fn tables(plan: &ConversionPlan) -> Vec<(&SchemaRef, String)> {
    let mut tables: Vec<(&SchemaRef, &PlannedJob, u64)> = Vec::new();
    for job in &plan.jobs {
        let Some(columns) = &job.columns else {
            continue;
        };
        match tables
            .iter_mut()
            .find(|(known, ..)| known.fields() == columns.fields())
        {
            Some((.., jobs)) => *jobs += 1,
            None => tables.push((columns, job, 1)),
        }
    }
    let is_one = tables.len() == 1;
    let mut headed = Vec::with_capacity(tables.len());
    for (columns, first, jobs) in tables {
        let outputs = match (is_one, jobs) {
            (true, _) => String::new(),
            (false, 1) => format!(" of {}", first_of(&first.outputs.names())),
            (false, _) => format!(
                " of {} and {} more",
                first_of(&first.outputs.names()),
                count(jobs - 1)
            ),
        };
        headed.push((columns, format!("columns{outputs}:")));
    }
    headed
}

/// The formats and the sizes, the records that the columns are from, and the outputs that would be
/// replaced.
fn summary(plan: &ConversionPlan) -> String {
    let sources = sources(plan);
    let read = plural(sources.len() as u64, "file");
    let format = match plan.target {
        Target::Parquet => "Parquet",
        Target::TfRecord => "TFRecord",
        Target::Arrow => "Arrow",
    };
    let written = files(plan).map_or_else(
        || format!("{format} files"),
        |files| plural(files, &format!("{format} file")),
    );
    let mut compressions: Vec<_> = plan.jobs.iter().map(|job| job.compression.name()).collect();
    compressions.dedup();
    let mut text = format!(
        "would convert {read} ({}) to {written}, compression {}",
        size(sources.values().sum()),
        compressions.join(", ")
    );
    if let Some(records) = plan.inferred_from {
        let what = if plan.is_sampled {
            "a sample of "
        } else {
            "all "
        };
        text.push_str(&format!(
            "; the columns are those of {what}{}",
            plural(records, "record")
        ));
    }
    if let Some(first) = plan.replaced.first() {
        let replaced = plural(plan.replaced.len() as u64, "file");
        let first = escape(&first.to_string_lossy());
        text.push_str(&format!("; {replaced} would be replaced, such as {first}"));
    }
    text + "; nothing was written"
}

/// The bytes of each source. Splits have the same ones.
fn sources(plan: &ConversionPlan) -> HashMap<&Path, u64> {
    let sources = plan.jobs.iter().flat_map(|job| &job.sources);
    sources
        .map(|source| (source.path.as_path(), source.bytes))
        .collect()
}

/// The number of output files; `None` if it depends on their size.
fn files(plan: &ConversionPlan) -> Option<u64> {
    let mut files = 0;
    for job in &plan.jobs {
        match &job.outputs {
            PlannedOutputs::Files(paths) => files += paths.len() as u64,
            PlannedOutputs::Stream => {}
            PlannedOutputs::Numbered(_) => return None,
        }
    }
    Some(files)
}

/// Returns the plan of a conversion to `dest` as JSON. Columns that all outputs have are those of
/// the plan, and others those of each job.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn plan_json(dest: &Path, plan: &ConversionPlan) -> io::Result<String> {
    let tables = tables(plan);
    let common = tables
        .first()
        .filter(|_| tables.len() == 1)
        .map(|(columns, _)| columns_json(columns));
    let mut jobs = Vec::with_capacity(plan.jobs.len());
    for job in &plan.jobs {
        let mut fields = job_json(job);
        if let (None, Some(columns), Value::Object(fields)) = (&common, &job.columns, &mut fields) {
            fields.insert("columns".to_owned(), columns_json(columns));
        }
        jobs.push(fields);
    }
    let sources = sources(plan);
    pretty_json(&json!({
        "dest": dest.to_string_lossy(),
        "dry_run": true,
        "to": plan.target.name(),
        "shards": sources.len(),
        "files": files(plan),
        "bytes_in": sources.values().sum::<u64>(),
        "jobs": jobs,
        "columns": common,
        "inferred_from": plan.inferred_from,
        "is_sampled": plan.is_sampled,
        "replaced": plan.replaced.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
    }))
}

/// A job without its columns.
fn job_json(job: &PlannedJob) -> Value {
    let mut sources = Vec::with_capacity(job.sources.len());
    for source in &job.sources {
        sources.push(json!({"path": source.path.to_string_lossy(), "bytes": source.bytes}));
    }
    let names = job.outputs.names();
    json!({
        "sources": sources,
        "outputs": names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>(),
        "compression": job.compression.name(),
    })
}

fn columns_json(columns: &SchemaRef) -> Value {
    columns
        .fields()
        .iter()
        .map(|field| json!({"name": field.name(), "type": type_name(field.data_type())}))
        .collect()
}
