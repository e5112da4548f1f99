//! What all records of a shard have besides their own bytes.

use std::sync::Arc;

/// Features that all records of a shard have besides their own.
///
/// ```
/// use tfarrow_codec::{Records, SharedFeatures, SharedValue, Summary, VerifyCrc};
/// # fn main() -> tfarrow_codec::Result<()> {
/// // Two `tf.Example` messages without a feature.
/// let records = Records::from_payloads([&b""[..], b""])?;
/// let label = SharedFeatures::new([("label", SharedValue::Int64(7))]);
/// let mut summary = Summary::new(0);
/// summary.observe(&records.with_shared_features(&label), VerifyCrc::Never)?;
/// let label = summary.features().next().unwrap();
/// assert_eq!((label.name.as_str(), label.present), ("label", 2));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedFeatures {
    /// An `Example` of these features; `None` if there are none.
    example: Option<Arc<[u8]>>,
}

impl SharedFeatures {
    /// The features of an `Example`, which has some.
    pub(crate) fn of_example(example: Vec<u8>) -> Self {
        Self {
            example: Some(example.into()),
        }
    }

    /// Returns whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.example.is_none()
    }

    /// An `Example` of these features; empty if there are none.
    pub(crate) fn example(&self) -> &[u8] {
        self.example.as_deref().unwrap_or_default()
    }
}
