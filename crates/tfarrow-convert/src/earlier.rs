//! The policy for outputs of earlier runs.

/// The policy for an output, or a quarantine, that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It is an error at the start of the run.
    Refused,
    /// It is replaced. A quarantine is removed if this run has nothing to quarantine.
    Replaced,
    /// It must be equal to the output of this run, and is not written. A quarantine must have the
    /// same records, in any order.
    Compared,
}
