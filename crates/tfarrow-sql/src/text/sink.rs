//! COPY and INSERT to CSV and JSON: the values that results are printed with. DataFusion
//! distributes the rows to files, compresses and uploads them.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::{
    common::{internal_err, runtime::SpawnedTask},
    datasource::{
        file_format::{
            csv::{CsvSerializer, CsvSink},
            json::JsonSink,
            write::{
                BatchSerializer, demux::DemuxedStreamReceiver,
                orchestration::spawn_writer_tasks_and_join,
            },
        },
        physical_plan::{FileSink, FileSinkConfig},
        sink::DataSink,
    },
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{DisplayAs, DisplayFormatType},
};
use object_store::ObjectStore;
use tfarrow_columnar::{JsonRows, with_csv_texts};

/// A sink of CSV or JSON files. The sink of DataFusion has the configuration and the options.
#[derive(Debug)]
pub enum TextSink {
    /// CSV.
    Csv(CsvSink),
    /// JSON, one object a line.
    Json(JsonSink),
}

impl TextSink {
    /// The sink that has the configuration and the options of a sink of DataFusion.
    ///
    /// # Errors
    /// The sink writes another format.
    pub(super) fn of(sink: &dyn DataSink) -> Result<Self> {
        if let Some(csv) = sink.downcast_ref::<CsvSink>() {
            return Ok(Self::Csv(CsvSink::new(
                csv.config().clone(),
                csv.writer_options().clone(),
            )));
        }
        match sink.downcast_ref::<JsonSink>() {
            Some(json) => Ok(Self::Json(JsonSink::new(
                json.config().clone(),
                json.writer_options().clone(),
            ))),
            None => internal_err!("the sink is neither one of CSV nor one of JSON"),
        }
    }
}

impl DisplayAs for TextSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Csv(sink) => sink.fmt_as(format, f),
            Self::Json(sink) => sink.fmt_as(format, f),
        }
    }
}

#[async_trait]
impl FileSink for TextSink {
    fn config(&self) -> &FileSinkConfig {
        match self {
            Self::Csv(sink) => sink.config(),
            Self::Json(sink) => sink.config(),
        }
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        file_stream_rx: DemuxedStreamReceiver,
        object_store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let (serializer, compression, level): (Arc<dyn BatchSerializer>, _, _) = match self {
            Self::Csv(sink) => {
                let options = sink.writer_options();
                let builder = options.writer_options.clone();
                let csv = CsvSerializer::new()
                    .with_header(builder.header())
                    .with_builder(builder);
                (
                    Arc::new(CsvTexts(csv)),
                    options.compression,
                    options.compression_level,
                )
            }
            Self::Json(sink) => {
                let options = sink.writer_options();
                (
                    Arc::new(JsonLines),
                    options.compression,
                    options.compression_level,
                )
            }
        };
        let compression = compression.into();
        spawn_writer_tasks_and_join(
            context,
            serializer,
            compression,
            level,
            object_store,
            demux_task,
            file_stream_rx,
        )
        .await
    }
}

#[async_trait]
impl DataSink for TextSink {
    fn schema(&self) -> &SchemaRef {
        self.config().output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}

/// Writes batches as CSV, with the options of DataFusion.
struct CsvTexts(CsvSerializer);

impl BatchSerializer for CsvTexts {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> Result<Bytes> {
        self.0.serialize(
            with_csv_texts(&batch).map_err(DataFusionError::from)?,
            initial,
        )
    }
}

/// Writes batches as objects of JSON, one a line.
struct JsonLines;

impl BatchSerializer for JsonLines {
    fn serialize(&self, batch: RecordBatch, _: bool) -> Result<Bytes> {
        let rows = JsonRows::new(batch.schema_ref())?;
        let mut lines = Vec::new();
        for row in 0..batch.num_rows() {
            rows.write(&batch, row, &mut lines)?;
            lines.push(b'\n');
        }
        Ok(lines.into())
    }
}
