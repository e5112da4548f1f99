//! Columns of protobuf messages of any type.
//!
//! Messages are decoded level by level. A level is all messages of one field in a batch; the first
//! level is the records. `gather` walks the fields of each message of a level once, and collects
//! the values of each field. `arrays` makes an array of each field; for a message field, the
//! collected bodies are the next level.
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
use super::{Result, within};
use crate::{Limits, WireError, example::wire, limits::NESTED_CELLS, message::MessagePlan};

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
    /// Creates a decoder of the columns of `plan`. With `strict`, a field that a message type does
    /// not define is an error.
    pub(crate) fn new(plan: MessagePlan, limits: Limits, strict: bool) -> Self {
        Self {
            plan,
            limits,
            strict,
            foreign: None,
        }
    }

    /// Returns the number of the first field that its message does not define, and the number of
    /// such fields.
    pub(crate) fn foreign(&self) -> Option<(u32, u64)> {
        self.foreign
    }

    /// Checks one message, without counting the fields that its type does not define.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub(crate) fn check(&self, message: &[u8], chunk: &Buffer) -> Result<()> {
        let level = Level {
            bodies: vec![Some(Cow::Borrowed(message))],
            rows: vec![0],
        };
        arrays::of_messages(&self.plan, &level, &mut self.context(1, chunk)).map(drop)
    }

    /// Decodes one message for each row, to an array for each column of the plan. A row without a
    /// message gets nulls and defaults. The messages are part of `chunk`, to which long values of
    /// view arrays refer.
    ///
    /// # Errors
    /// A message that does not parse or exceeds a limit, with its row; and arrays that exceed
    /// Arrow's offsets.
    pub(crate) fn decode(
        &mut self,
        messages: &[Option<&[u8]>],
        chunk: &Buffer,
    ) -> Result<Vec<ArrayRef>> {
        let bodies: Vec<Body<'_>> = messages
            .iter()
            .map(|message| message.map(Cow::Borrowed))
            .collect();
        let rows = (0..messages.len() as u32).collect();
        let mut context = self.context(messages.len(), chunk);
        let arrays = arrays::of_messages(&self.plan, &Level { bodies, rows }, &mut context)?;
        if let Some((field, count)) = context.foreign {
            self.foreign.get_or_insert((field, 0)).1 += count;
        }
        Ok(arrays)
    }

    fn context<'c>(&'c self, rows: usize, chunk: &'c Buffer) -> Context<'c> {
        Context {
            chunk,
            limits: &self.limits,
            strict: self.strict,
            foreign: None,
            cells: Cells::new(rows),
        }
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
    /// The array elements of repeated messages.
    cells: Cells,
}

/// The number of array elements of repeated messages, which take memory also where a message has no
/// value.
struct Cells {
    /// The elements of each row.
    of_rows: Vec<usize>,
    /// The elements of all rows.
    of_batch: usize,
}

impl Cells {
    fn new(rows: usize) -> Self {
        Self {
            of_rows: vec![0; rows],
            of_batch: 0,
        }
    }

    /// Adds a message of `cells` elements in a row.
    ///
    /// # Errors
    /// [`WireError::ManyMessages`] if the row has too many.
    fn add(&mut self, row: u32, cells: usize) -> wire::Result<()> {
        let Some(of_row) = self.of_rows.get_mut(row as usize) else {
            return Ok(());
        };
        *of_row = of_row.saturating_add(cells);
        self.of_batch = self.of_batch.saturating_add(cells);
        if *of_row <= NESTED_CELLS {
            Ok(())
        } else {
            Err(WireError::ManyMessages)
        }
    }

    /// Checks the elements of all rows.
    fn check_batch(&self) -> Result<()> {
        within("messages times columns", self.of_batch, NESTED_CELLS as u64)
    }
}
