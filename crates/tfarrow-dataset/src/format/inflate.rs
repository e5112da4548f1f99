//! Decompressing gzip and zlib streams, and finding the next gzip member after a damaged one.
//!
//! ```text
//! Inside ─▶ Between ─▶ Ended              a member, after a complete member, at the end
//!   ▲ │        │
//!   │ └──────▶ Broken ─▶ Searching        damage, then stored bytes up to the next member (OnError::Skip)
//!   └────────────┴───────────┘
//! ```
//!
//! A gzip file may have several *members*, one after the other. The decoder of a truncated member
//! continues in the next member, for bytes or for megabytes, before it fails. So the start of a
//! member is searched for while decompressing: see the module `doubts`.

use flate2::{Decompress, FlushDecompress, Status};

use super::{
    doubts::{HELD, HeldOutput, MemberEnd, STEP},
    input::{Failure, StoredInput},
    members::{MAGIC, MemberBuffer, WINDOW_BITS},
};
use crate::{Compression, error::Damage};

/// Largest ratio of the work of inflating bytes again to the number of compressed bytes, beyond
/// [`HARMLESS`].
const AGAIN: u64 = 8;
/// Number of decompressed bytes that any file may have, whatever its compression ratio.
pub(crate) const HARMLESS: u64 = 64 << 20;
/// Messages for errors at the end of a gzip member, each with the number of bytes of the member
/// after the wrong field.
const AT_END: [(&str, usize); 2] = [("incorrect data check", 4), ("incorrect length check", 0)];
/// Message for compressed bytes that do not inflate. The decoder's own message would depend on the
/// sizes of reads.
const CORRUPT: &str = "it does not inflate";
/// Message for a member in which the next one begins.
const TRUNCATED_MEMBER: &str = "truncated member, followed by another member";

/// Decompresses a stream.
pub(crate) struct Inflate {
    engine: Decompress,
    compression: Compression,
    /// The compressed bytes.
    stored: MemberBuffer,
    /// Decompressed bytes that are not returned yet.
    held: HeldOutput,
    state: InflateState,
    /// Damage after the bytes that were decompressed. It is reported after them.
    damage: Option<Damage>,
    /// Number of bytes of a damaged member after the wrong field, if that is at the member's end.
    at_end: Option<usize>,
    /// Largest allowed ratio of decompressed to compressed bytes.
    ratio: u64,
    /// Number of bytes decompressed so far.
    inflated: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum InflateState {
    /// In a gzip member, or in the zlib stream.
    Inside,
    /// After a complete member or stream: the file may end, and in gzip another member may begin.
    Between,
    /// After damage of a gzip stream.
    Broken,
    /// Searching for the next gzip member after damage.
    Searching,
    /// At the end.
    Ended,
}

/// Whether so many decompressed bytes of so many compressed ones are a decompression bomb. `ratio` is
/// their largest allowed ratio.
pub(crate) fn is_bomb(inflated: u64, used: u64, ratio: u64) -> bool {
    inflated > HARMLESS && inflated / ratio.max(1) > used
}

impl Inflate {
    /// Creates a decompressor of a stream of gzip, or else of zlib, that begins with `stored`.
    /// `ratio` is the largest allowed ratio of decompressed to compressed bytes.
    pub(crate) fn new(compression: Compression, stored: &[u8], ratio: usize) -> Self {
        let engine = match compression == Compression::Gzip {
            true => Decompress::new_gzip(WINDOW_BITS),
            false => Decompress::new(true),
        };
        Self {
            engine,
            compression,
            stored: MemberBuffer::new(compression, stored),
            held: HeldOutput::default(),
            state: InflateState::Inside,
            damage: None,
            at_end: None,
            ratio: ratio as u64,
            inflated: 0,
        }
    }

    /// Returns the number of bytes that were read and are not decompressed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.stored.waiting()
    }

    /// Returns whether the stream is inside of a member, so that compressed bytes are expected.
    pub(crate) fn goes_on(&self) -> bool {
        self.state == InflateState::Inside
    }

    /// Decompresses into `out`, which is not empty. Returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// An error of the source, or the damage of the stream.
    pub(crate) fn read(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        loop {
            if self.damage.is_some() {
                self.settle_doubts(input);
            }
            let count = self.held.take_certain(out);
            if count > 0 {
                return Ok(count);
            }
            if let Some(damage) = self.damage.take() {
                let is_gzip = self.compression == Compression::Gzip;
                let goes_on = is_gzip && !matches!(damage, Damage::Bomb { .. });
                self.state = if goes_on {
                    InflateState::Broken
                } else {
                    InflateState::Ended
                };
                return Err(Failure::Damage(damage));
            }
            if !matches!(self.state, InflateState::Inside | InflateState::Between) {
                return Ok(0);
            }
            let at_end =
                self.waiting() == 0 && self.stored.refill(input, self.held.first_place())? == 0;
            if self.state == InflateState::Between {
                self.next_member(at_end, input)?;
                continue;
            }
            // A bomb is detected before memory is allocated for more of it.
            let most = out.len().min(HELD);
            let count = match self.held.is_in_doubt() {
                false => self.step(out.get_mut(..most).unwrap_or_default()),
                true => self.hold(),
            };
            self.inflated += count as u64;
            self.check_ratio(input);
            if count > 0 && self.held.is_empty() {
                return Ok(count);
            }
            // All bytes before the next place where a member may begin are decompressed, and
            // returned or held.
            if count == 0 && self.state == InflateState::Inside && self.damage.is_none() {
                if at_end {
                    self.damage = Some(Damage::Truncated);
                } else if self.stored.is_at_stop() {
                    self.examine_stop(input)?;
                }
            }
        }
    }

    /// Notes a decompression bomb as damage.
    fn check_ratio(&mut self, input: &StoredInput) {
        let used = input.bytes - self.waiting() as u64;
        if is_bomb(self.inflated, used, self.ratio) {
            self.held.clear_doubts();
            self.damage = Some(Damage::Bomb { limit: self.ratio });
        }
    }

    /// Decompresses up to the stop or until `out` is full. Returns the number of bytes in `out`.
    fn step(&mut self, out: &mut [u8]) -> usize {
        let before_in = self.engine.total_in();
        let before_out = self.engine.total_out();
        let waiting = self.stored.current();
        let is_waiting = !waiting.is_empty();
        let status = self.engine.decompress(waiting, out, FlushDecompress::None);
        let taken = (self.engine.total_in() - before_in) as usize;
        let count = (self.engine.total_out() - before_out) as usize;
        match status {
            Ok(Status::StreamEnd) => {
                self.state = InflateState::Between;
                // The member is complete, so that possible members in it were its data.
                self.held.clear_doubts();
            }
            // The decoder makes progress whenever it has input and space. This prevents an endless
            // loop if it does not.
            Ok(Status::Ok | Status::BufError) if taken == 0 && count == 0 && is_waiting => {
                self.damage = Some(Damage::Corrupt(CORRUPT.to_owned()));
            }
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => {
                let at_end = AT_END
                    .into_iter()
                    .find(|(why, _)| error.message() == Some(*why));
                self.at_end = at_end.map(|(_, after)| after);
                self.damage = Some(Damage::Corrupt(
                    at_end.map_or(CORRUPT, |(why, _)| why).to_owned(),
                ));
            }
        }
        self.stored.consume(taken);
        count
    }

    /// Decompresses into the held bytes. Returns their number.
    fn hold(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held.bytes);
        let before = held.len();
        held.resize(before + STEP, 0);
        let count = self.step(held.get_mut(before..).unwrap_or_default());
        held.truncate(before + count);
        self.held.bytes = held;
        self.held.clear_far_doubts(self.stored.place());
        count
    }

    /// Tests whether a member begins at the stop, which is the current place, and whether it is
    /// data of the current one: the decoder, which has returned all output, is given the first
    /// byte, which a stored block outputs.
    ///
    /// # Errors
    /// An error of the source.
    fn examine_stop(&mut self, input: &mut StoredInput) -> Result<(), Failure> {
        if self
            .stored
            .begins_sound_member(input, self.held.first_place())?
        {
            let place = self.stored.place();
            let is_begun = self.engine.total_out() > 0;
            let mut byte = [0];
            self.stored.stop_after_byte();
            let count = self.step(&mut byte);
            let is_inside = self.state == InflateState::Inside;
            if is_begun && is_inside && (count == 0 || byte[0] != MAGIC[0]) {
                // Replaces the decoder's error, since the bytes do not belong to its member.
                self.truncate_member(place);
            } else {
                if is_inside {
                    self.held.add_doubt(place);
                }
                self.held
                    .bytes
                    .extend_from_slice(byte.get(..count).unwrap_or_default());
                self.inflated += count as u64;
            }
        }
        self.stored.find_stop();
        Ok(())
    }

    /// Notes that the current member is truncated, and that another begins at `place`.
    fn truncate_member(&mut self, place: u64) {
        self.stored.rewind(place);
        self.at_end = None;
        self.damage = Some(Damage::Corrupt(TRUNCATED_MEMBER.to_owned()));
    }

    /// Settles the doubts of a damaged member.
    fn settle_doubts(&mut self, input: &StoredInput) {
        let used = input.bytes - self.waiting() as u64;
        let end = match (&self.damage, self.at_end) {
            (Some(Damage::Truncated), _) => MemberEnd::Truncated,
            (_, Some(_)) => MemberEnd::Trailer,
            _ => MemberEnd::Corrupt,
        };
        let most_work = HARMLESS.max(used.saturating_mul(AGAIN));
        if let Some(place) = self.held.find_next_member(&self.stored, end, most_work) {
            self.truncate_member(place);
        }
    }

    /// Copies the bytes after damage as they are stored, up to the next member: one that begins
    /// with a record, or, after a member that was read to its end, any member.
    ///
    /// # Errors
    /// An error of the source.
    pub(crate) fn read_stored(
        &mut self,
        input: &mut StoredInput,
        out: &mut [u8],
    ) -> Result<usize, Failure> {
        match self.state {
            // The following bytes are decompressed by `read`.
            InflateState::Inside | InflateState::Between => return Ok(0),
            InflateState::Broken => {
                self.state = InflateState::Searching;
                if let Some(after) = self.at_end.take()
                    && self.stored.skip_to_member(after, input)?
                {
                    self.begin_member();
                    return Ok(0);
                }
            }
            InflateState::Searching | InflateState::Ended => {}
        }
        let mut count = 0;
        while count < out.len() && (self.waiting() > 0 || self.stored.refill(input, None)? > 0) {
            if self.state == InflateState::Searching
                && self.stored.begins_sound_member(input, None)?
            {
                self.begin_member();
                break;
            }
            count += self
                .stored
                .take_stored(out.get_mut(count..).unwrap_or_default());
        }
        Ok(count)
    }

    /// Starts the gzip member at the current place.
    fn begin_member(&mut self) {
        self.engine = Decompress::new_gzip(WINDOW_BITS);
        (self.state, self.at_end) = (InflateState::Inside, None);
        self.stored.begin();
    }

    /// Starts the gzip member that follows, or ends the stream. Zeros after a zlib stream are
    /// ignored: files may be padded to whole blocks of a disk, and TensorFlow ignores all bytes
    /// there.
    ///
    /// # Errors
    /// An error of the source.
    fn next_member(&mut self, at_end: bool, input: &mut StoredInput) -> Result<(), Failure> {
        if at_end {
            self.state = InflateState::Ended;
            return Ok(());
        }
        if self.compression == Compression::Zlib {
            match self.stored.skip_zeros(input)? {
                true => self.state = InflateState::Ended,
                false => self.damage = Some(Damage::Trailing),
            }
            return Ok(());
        }
        self.stored
            .gather(MAGIC.len(), input, self.held.first_place())?;
        match self.stored.is_magic() {
            true => self.begin_member(),
            false => self.damage = Some(Damage::Trailing),
        }
        Ok(())
    }
}
