//! Comparing two records feature by feature, whatever their wire encodings, and the keys by which
//! records are paired.
//!
//! The keys of both records share one set of numbers, so that features are paired by number:
//!
//! ```text
//! left record    a = [1, 2]   b = "x"                      number:  0    1    2
//! right record   c = [0.5]    a = [1, 3]                   left:    a    b    -
//!                                                          right:   a    -    c
//! differences    a: values 2 and 3 at index 1;   b: only left;   c: only right
//! ```
//!
//! The order of features, packed and unpacked lists, and other forms of the same message make no
//! difference. Features whose bytes are equal are not decoded.
//!
//! | file | contains |
//! |---|---|
//! | `differ.rs` | the comparison of two records |
//! | `key.rs` | the key of a record: the values of some of its features |
//! | `tolerance.rs` | the comparison of floats that may differ |
//! | `found.rs` | the places of the features of a record |
//! | `values.rs` | the decoded values of a feature |

mod differ;
mod found;
mod key;
mod tolerance;
mod values;

pub use self::{
    differ::{Differ, Difference, DifferenceKind, Incomparable},
    key::{KeyReader, RecordKey},
    tolerance::Tolerance,
    values::FeatureValue,
};
