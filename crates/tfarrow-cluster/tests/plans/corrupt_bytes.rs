//! Bytes that are no plan, or the plan of another version.

use std::sync::{Arc, LazyLock};

use datafusion::{error::Result, physical_plan::ExecutionPlan};
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use proptest::prelude::{any, proptest};

use crate::common::{codec, planned, session, testdata};

/// The bytes of the scan of a query, as the codec writes them.
fn scan() -> Vec<u8> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let source = testdata("ragged.tfrecord");
    let query = format!(
        "CREATE EXTERNAL TABLE t (ints INT[], words VARCHAR[], part INT DEFAULT 3) STORED AS TFRECORD LOCATION '{source}'; \
         SELECT words, part FROM t WHERE ints[1] > 2 LIMIT 5"
    );
    let plan = runtime.block_on(planned(&session(), &query)).unwrap();
    leaf_bytes(plan)
}

/// The bytes of the scan below a plan.
fn leaf_bytes(plan: Arc<dyn ExecutionPlan>) -> Vec<u8> {
    match plan.children().first() {
        Some(input) => leaf_bytes(Arc::clone(input)),
        None => {
            let mut bytes = Vec::new();
            codec()
                .try_encode(plan, &mut bytes, &DefaultPhysicalProtoConverter {})
                .unwrap();
            bytes
        }
    }
}

fn decoded(bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
    codec().try_decode(
        bytes,
        &[],
        &session().task_ctx(),
        &DefaultPhysicalProtoConverter {},
    )
}

#[test]
fn another_version_is_refused_by_name() {
    let bytes = scan();
    assert!(decoded(&bytes).is_ok());
    let version = env!("CARGO_PKG_VERSION");
    let at = bytes
        .windows(version.len())
        .position(|window| window == version.as_bytes())
        .unwrap();
    let mut other = bytes;
    other[at] = b'x';
    let error = decoded(&other).unwrap_err().to_string();
    assert!(
        error.contains(&format!("x{}", &version[1..])) && error.contains("one version"),
        "{error}"
    );
}

#[test]
fn each_shorter_message_is_an_error_or_a_plan() {
    let bytes = scan();
    for end in 0..bytes.len() {
        let _ = decoded(&bytes[..end]);
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_an_error_or_a_plan(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)) {
        static SCAN: LazyLock<Vec<u8>> = LazyLock::new(scan);
        let mut bytes = SCAN.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len() - 1) + 1;
            bytes[at] = byte;
        }
        let _ = decoded(&bytes);
    }
}
