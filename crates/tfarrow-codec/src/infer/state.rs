//! The state of a summary, which processes that observe parts of a data set send to the one that
//! merges them.

use serde::{Deserialize, Serialize};

use super::{FeatureSummary, Summary, counts::RecordCounts};
use crate::{Limits, RecordType, Result, schema::Role};

/// The state of a [`Summary`], which can be serialized. Its limits are not part of it.
///
/// ```
/// use tfarrow_codec::{Limits, Summary};
/// let part = Summary::new(0).state();
/// // The other process:
/// let mut whole = Summary::new(0);
/// whole.merge(&Summary::from_state(part, Limits::default(), None)?)?;
/// # Ok::<(), tfarrow_codec::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryState {
    counts: RecordCounts,
    features: Vec<FeatureSummary>,
}

impl SummaryState {
    /// Returns whether all byte strings of a feature, which is no feature list, are UTF-8.
    pub fn is_utf8(&self, name: &str) -> bool {
        let named =
            |feature: &&FeatureSummary| feature.role == Role::Feature && feature.name == name;
        let kinds = self.features.iter().find(named).map(FeatureSummary::kinds);
        kinds.is_some_and(|mut kinds| kinds.all(|(_, seen)| seen.utf8))
    }

    /// Returns the state as that of records of the shard with this number.
    pub fn of_shard(mut self, shard: u32) -> Self {
        self.counts.set_shard(shard);
        for feature in &mut self.features {
            for kind in feature.kinds.iter_mut().flatten() {
                kind.first.shard = shard;
            }
        }
        self
    }
}

impl Summary {
    /// Returns the state.
    pub fn state(&self) -> SummaryState {
        let mut features: Vec<_> = self
            .all_sides()
            .flat_map(|side| &side.features)
            .cloned()
            .collect();
        // The order in which threads have met them depends on the threads.
        features.sort_by(super::order);
        SummaryState {
            counts: self.counts,
            features,
        }
    }

    /// Creates the summary of a state, with limits for the names. `record_type` is the type that is
    /// [stated](Self::with_record_type).
    ///
    /// # Errors
    /// [`ErrorKind::ManyNames`](crate::ErrorKind::ManyNames) if the names exceed the limits.
    pub fn from_state(
        state: SummaryState,
        limits: Limits,
        record_type: Option<RecordType>,
    ) -> Result<Self> {
        let mut summary = Self::with_limits(0, limits).with_record_type(record_type);
        summary.counts = state.counts;
        for feature in &state.features {
            summary.add_feature(feature);
        }
        summary.check_names()?;
        Ok(summary)
    }

    /// Adds the properties of a feature of another summary.
    pub(super) fn add_feature(&mut self, feature: &FeatureSummary) {
        let [features, lists] = &mut self.sides;
        let side = match feature.role {
            Role::Sequence => lists,
            Role::Examples => &mut self.example_sides[0],
            _ => features,
        };
        let id = side.keys.find(feature.name.as_bytes()).ok().flatten();
        match id.and_then(|id| side.feature(id)) {
            Some(held) => held.merge(feature),
            None => self.counts.traits.overflow = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Records, VerifyCrc};

    #[test]
    fn a_summary_is_restored_from_its_state() {
        // {"x": 1}, a record that does not parse, and {"x": 1} with another name.
        let example = |name: u8| vec![10, 12, 10, 10, 10, 1, name, 18, 5, 26, 3, 10, 1, 1];
        let payloads = [example(b'x'), vec![0xff], example(b'y')];
        let records = Records::from_payloads(payloads.iter().map(Vec::as_slice)).unwrap();
        let mut summary = Summary::new(7);
        summary.observe(&records, VerifyCrc::Always).unwrap();
        let state = summary.state();
        assert_eq!(
            (
                state.counts.records,
                state.counts.unparsable,
                state.features.len()
            ),
            (3, 1, 2)
        );
        let restored = Summary::from_state(state.clone(), Limits::default(), None).unwrap();
        assert_eq!(restored.state(), state);
        let elsewhere = state.clone().of_shard(9);
        assert_eq!(
            elsewhere
                .counts
                .first_unparsable
                .map(|(place, _)| place.shard),
            Some(9)
        );
        let firsts = elsewhere.features.iter().flat_map(FeatureSummary::kinds);
        assert!(firsts.map(|(_, kind)| kind.first.shard).eq([9, 9]));
        let one = Limits {
            features: 1,
            ..Limits::default()
        };
        assert!(Summary::from_state(state, one, None).is_err());
    }
}
