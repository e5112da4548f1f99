//! Columns of protobuf messages of any type.
//!
//! Messages are decoded level by level. A level is all messages of one field in a batch; the first level is the records.
//! `gather` walks the fields of each message of a level once, and collects the values of each field. `arrays` makes an
//! array of each field; for a message field, the collected bodies are the next level.
//!
//! ```text
//! records     {a: 1, b: [{c: 2}, {c: 3}]}   {b: [{c: 4}]}
//! level 1     a  1  -      b  2 bodies | 1 body
//! level 2     c  2  3  4
//! ```

mod arrays;
mod gather;

use std::borrow::Cow;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;

use self::gather::{Body, Level};
use super::Result;
use crate::{Limits, message::MessagePlan};

/// Decodes records that are messages of one type.
#[derive(Debug)]
pub(crate) struct MessageDecoder {
    plan: MessagePlan,
    limits: Limits,
    strict: bool,
    /// The first field of a message that its type does not define, and the number of such fields.
    foreign: Option<(u32, u64)>,
}

impl MessageDecoder {
    /// Creates a decoder of the columns of `plan`. With `strict`, a field that a message type does not define is an
    /// error.
    pub(crate) fn new(plan: MessagePlan, limits: Limits, strict: bool) -> Self {
        Self { plan, limits, strict, foreign: None }
    }

    /// Returns the number of the first field that its message does not define, and the number of such fields.
    pub(crate) fn foreign(&self) -> Option<(u32, u64)> {
        self.foreign
    }

    /// Checks one message, without counting the fields that its type does not define.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub(crate) fn check(&self, message: &[u8], chunk: &Buffer) -> Result<()> {
        let level = Level { bodies: vec![Some(Cow::Borrowed(message))], rows: vec![0] };
        let mut context = Context { chunk, limits: &self.limits, strict: self.strict, foreign: None };
        arrays::of_messages(&self.plan, &level, &mut context).map(drop)
    }

    /// Decodes one message for each row, to an array for each column of the plan. A row without a message gets nulls
    /// and defaults. The messages are part of `chunk`, to which long values of view arrays refer.
    ///
    /// # Errors
    /// A message that does not parse or exceeds a limit, with its row; and arrays that exceed Arrow's offsets.
    pub(crate) fn decode(&mut self, messages: &[Option<&[u8]>], chunk: &Buffer) -> Result<Vec<ArrayRef>> {
        let bodies: Vec<Body<'_>> = messages.iter().map(|message| message.map(Cow::Borrowed)).collect();
        let rows = (0..messages.len() as u32).collect();
        let mut context = Context { chunk, limits: &self.limits, strict: self.strict, foreign: None };
        let arrays = arrays::of_messages(&self.plan, &Level { bodies, rows }, &mut context)?;
        if let Some((field, count)) = context.foreign {
            self.foreign.get_or_insert((field, 0)).1 += count;
        }
        Ok(arrays)
    }
}

/// The surroundings of a batch of messages.
struct Context<'c> {
    /// The memory of the records.
    chunk: &'c Buffer,
    limits: &'c Limits,
    /// Whether a field that a message does not define is an error.
    strict: bool,
    /// The first such field, and their number.
    foreign: Option<(u32, u64)>,
}
