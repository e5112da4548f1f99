//! The declaration of a feature, with the kind and the lengths that `tf.io.FixedLenFeature`,
//! `tf.io.RaggedFeature` and the like distinguish.

use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Role};

/// A feature of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec<'a> {
    pub(super) kind: Kind,
    pub(super) seen: &'a KindSummary,
    /// Whether each record, or each step of a feature list, has a list of values.
    pub(super) always: bool,
}

/// Number of values of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    One,
    Fixed(u64),
    Varying,
}

impl<'a> Spec<'a> {
    /// The declaration of a feature of `records` records.
    ///
    /// # Errors
    /// The feature has no kind, or several; the error is the text of the reason.
    pub(super) fn of(
        feature: &'a FeatureSummary,
        role: Role,
        records: u64,
    ) -> Result<Self, String> {
        let mut kinds = feature.kinds();
        match (kinds.next(), kinds.next()) {
            (None, _) => Err("has no kind anywhere".to_owned()),
            (Some((one, _)), Some((other, _))) => Err(format!(
                "has more than one kind ({}, {})",
                one.name(),
                other.name()
            )),
            (Some((kind, seen)), None) => {
                let always =
                    feature.unset == 0 && (role == Role::Sequence || seen.lists == records);
                Ok(Self { kind, seen, always })
            }
        }
    }

    pub(super) fn lengths(&self) -> Lengths {
        match (self.seen.min_len, self.seen.max_len) {
            (1, 1) => Lengths::One,
            (min, max) if min == max && min > 0 => Lengths::Fixed(min),
            _ => Lengths::Varying,
        }
    }

    /// Whether its values are text.
    pub(super) fn is_text(&self) -> bool {
        self.kind == Kind::Bytes && self.seen.is_text()
    }
}
