//! Reading the protobuf messages `tf.Example` and `tf.SequenceExample` without decoding their
//! values.
//!
//! ```text
//! record ─▶ walk ─▶ Visitor          one call for each feature, with the bytes of its value
//!           │ └ keys: which feature has this key?
//!           └ wire: tags, varints, lengths
//! ```
//!
//! | visitor | is used for |
//! |---|---|
//! | `TapeVisitor` (`tape.rs`) | decoding: it notes where the value of each column is |
//! | [`Validator`] (`validate.rs`) | checking that a record parses |
//! | `Walk` (`infer/record.rs`) | inference |
//! | `Reading` (`diff.rs`) | comparison of records |

pub(crate) mod keys;
pub(crate) mod list;
mod parse_error;
mod shared_value;
pub(crate) mod tape;
mod validate;
pub(crate) mod walk;
pub(crate) mod wire;

pub use self::{shared_value::SharedValue, validate::Validator};
