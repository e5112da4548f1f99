//! Statistics of rows in memory, such as those of a query.
//!
//! ```text
//! RecordBatch ─▶ records, as a conversion to TFRecord would write them ─▶ Summary, StatisticsObserver
//! ```

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{
    Encoder, Limits, RecordType, Records, Summary, VerifyCrc, WriterBuilder,
    schema::{RECORD_TYPE, without_record_type},
    schema_of_rows,
};
use tfarrow_dataset::{DamageReport, Error, Result};
use tfarrow_scan::{Inferred, RowLosses};

use super::{Statistics, StatisticsObserver};

/// The name of the rows in messages.
const ROWS: &str = "query";

/// Accumulates the statistics of rows, batch by batch. Columns that no record can hold are left
/// out, and values are changed where they must be, as those of Parquet files. Raw records, messages
/// and lists of examples have no statistics, so that their columns are summarized as those of
/// Examples.
#[derive(Debug)]
pub struct RowStatistics {
    encoder: Encoder,
    /// The frames of the records of a batch.
    frames: Vec<u8>,
    summary: Summary,
    observer: StatisticsObserver,
    losses: RowLosses,
}

impl RowStatistics {
    /// Creates the statistics of no rows. All batches have this schema.
    ///
    /// # Errors
    /// A schema of SequenceExamples that no such records can have.
    pub fn new(schema: SchemaRef, limits: Limits) -> Result<Self> {
        let built = WriterBuilder::new()
            .with_lossy(true)
            .build_partial_encoder(features_of(&schema));
        let (encoder, left_out) = built.map_err(codec_error)?;
        let losses = RowLosses {
            left_out: left_out.iter().map(ToString::to_string).collect(),
            ..RowLosses::default()
        };
        let summary = Summary::with_limits(0, limits);
        Ok(Self {
            encoder,
            frames: Vec::new(),
            summary,
            observer: StatisticsObserver::default(),
            losses,
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// A row that exceeds a limit of records, or names that exceed those of the limits.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let first = self.summary.records();
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        self.encoder
            .encode(batch, &mut frames)
            .map_err(codec_error)?;
        let records = Records::from_rows(frames, first).map_err(codec_error)?;
        self.summary
            .observe_with(&records, VerifyCrc::Never, &mut self.observer)
            .map_err(codec_error)?;
        self.frames = records.reclaim().unwrap_or_default();
        Ok(())
    }

    /// Returns the statistics of all rows.
    pub fn finish(self) -> Statistics {
        let Self {
            encoder,
            summary,
            observer,
            mut losses,
            ..
        } = self;
        for (column, change, times) in encoder.losses() {
            *losses
                .changed
                .entry(format!("column {column:?}: {change}"))
                .or_default() += times;
        }
        let names = vec![ROWS.to_owned()];
        let skipped = DamageReport::default();
        let inferred = Inferred {
            summary,
            names,
            sampled: None,
            skipped,
            losses,
            is_events: false,
        };
        Statistics::merge(inferred, vec![observer], 1)
    }
}

/// The schema of rows as records with features.
fn features_of(schema: &SchemaRef) -> SchemaRef {
    let schema = schema_of_rows(schema);
    match schema
        .metadata()
        .get(RECORD_TYPE)
        .and_then(|name| RecordType::from_name(name))
    {
        Some(RecordType::Message | RecordType::Raw | RecordType::ExampleList) => {
            without_record_type(&schema)
        }
        _ => schema,
    }
}

fn codec_error(error: tfarrow_codec::Error) -> Error {
    Error::codec(ROWS, error)
}
