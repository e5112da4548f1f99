//! The rows of a query for a thread that is not one of its tasks.

use std::{future::Future, sync::mpsc::SyncSender};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{error::DataFusionError, execution::SendableRecordBatchStream};
use futures::StreamExt;

/// What a query sends: its schema, its batches, and its end.
///
/// The end is a message. A sender that is gone without one has panicked, and rows are missing.
#[derive(Debug)]
pub enum RowMessage<E> {
    /// The schema of the batches. The first message of a query that can be planned.
    Schema(SchemaRef),
    /// The next rows.
    Batch(RecordBatch),
    /// There are no more rows. The last message of a query without an error.
    End,
    /// The error of the plan or of its execution. The last message of such a query.
    Failed(E),
}

/// Runs a query, and sends its rows until they end or nobody receives them.
pub async fn send_rows<E: From<DataFusionError>>(
    query: impl Future<Output = Result<SendableRecordBatchStream, E>>,
    messages: SyncSender<RowMessage<E>>,
) {
    let mut rows = match query.await {
        Ok(rows) => rows,
        Err(error) => {
            // Without a receiver, nobody waits for the error.
            let _ = messages.send(RowMessage::Failed(error));
            return;
        }
    };
    if messages.send(RowMessage::Schema(rows.schema())).is_err() {
        return;
    }
    while let Some(batch) = rows.next().await {
        let message = match batch {
            Ok(batch) => RowMessage::Batch(batch),
            Err(error) => RowMessage::Failed(error.into()),
        };
        let is_last = matches!(message, RowMessage::Failed(_));
        if messages.send(message).is_err() || is_last {
            return;
        }
    }
    let _ = messages.send(RowMessage::End);
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, mpsc::sync_channel},
        thread,
    };

    use arrow_array::{ArrayRef, Int64Array};
    use datafusion::{
        common::exec_datafusion_err, error::Result, physical_plan::stream::RecordBatchStreamAdapter,
    };
    use futures::{executor::block_on, stream};

    use super::*;

    /// What a query does after the batches that it has.
    #[derive(Clone, Copy, PartialEq)]
    enum Ending {
        Done,
        Fails,
        Panics,
        /// Panics before there is a stream.
        PanicsInPlan,
    }

    fn batch(row: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![row]));
        RecordBatch::try_from_iter([("x", column)]).unwrap()
    }

    async fn query(batches: i64, ending: Ending) -> Result<SendableRecordBatchStream> {
        assert!(ending != Ending::PanicsInPlan, "a panic in the plan");
        let rows = (0..=batches).filter_map(move |row| match ending {
            _ if row < batches => Some(Ok(batch(row))),
            Ending::Fails => Some(Err(exec_datafusion_err!("a failure"))),
            Ending::Panics => panic!("a panic in the query"),
            Ending::Done | Ending::PanicsInPlan => None,
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            batch(0).schema(),
            stream::iter(rows),
        )))
    }

    /// The messages of a query on a thread of its own, until its sender is gone.
    fn messages(batches: i64, ending: Ending) -> Vec<String> {
        let (sender, receiver) = sync_channel(1);
        let thread = thread::spawn(move || block_on(send_rows(query(batches, ending), sender)));
        let received = receiver.iter().map(|message| match message {
            RowMessage::Schema(_) => "schema".to_owned(),
            RowMessage::Batch(_) => "batch".to_owned(),
            RowMessage::End => "end".to_owned(),
            RowMessage::Failed(DataFusionError::Execution(text)) => text,
            RowMessage::Failed(error) => panic!("{error}"),
        });
        let received = received.collect();
        assert_eq!(
            thread.join().is_err(),
            matches!(ending, Ending::Panics | Ending::PanicsInPlan)
        );
        received
    }

    #[test]
    fn rows_end_with_a_message_unless_the_query_panics() {
        for batches in [0, 1, 2, 5] {
            let rows = vec!["batch"; batches as usize];
            let with = |end: &[&'static str]| [&["schema"], rows.as_slice(), end].concat();
            assert_eq!(messages(batches, Ending::Done), with(&["end"]));
            assert_eq!(messages(batches, Ending::Fails), with(&["a failure"]));
            assert_eq!(messages(batches, Ending::Panics), with(&[]));
        }
        assert!(messages(1, Ending::PanicsInPlan).is_empty());
    }
}
