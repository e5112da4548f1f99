//! Members that may begin inside of the current gzip member, and the output that is held back until
//! that is settled.
//!
//! ```text
//! stored  │ member A ................ 1f 8b 08 ...................... │ ...
//!                                     └ inflates to a record's header
//!
//! 1. A contains these bytes as data, in a stored block, which the decoder copies byte for byte.
//!    The decoder of A outputs 1f for the input 1f: the place becomes a Doubt, and output is held.
//! 2. A was truncated, and member B begins here.
//!    The decoder of A outputs nothing, or another byte: A is damaged (TRUNCATED_MEMBER), B is read next.
//! ```
//!
//! A doubt is settled when A ends correctly or has read far beyond the place (case 1: the held
//! output is returned), or when A turns out to be damaged. Then [`HeldOutput::find_next_member`]
//! inflates the stored bytes from the place on as members of their own, and takes case 2 if that
//! explains them at least as well: the held output after the place is dropped, and reading
//! continues at B.

use std::collections::VecDeque;

use flate2::{Decompress, FlushDecompress, Status};

use super::{
    input::copy,
    members::{MemberBuffer, WINDOW_BITS, begins_with_magic},
};

/// Number of compressed bytes after which a doubt is settled in favour of the current member. A
/// truncated stored block takes up to 64 KiB of the bytes after it, and the decoder may accept
/// further bytes for a while.
const DOUBTFUL: u64 = 128 << 10;
/// Number of decompressed bytes after which a doubt is settled in favour of the current member, and
/// largest step of decompression.
pub(super) const HELD: usize = 1 << 20;
/// Number of bytes that are decompressed at once while output is held, or members are tried.
pub(super) const STEP: usize = 64 << 10;
/// Work of starting to inflate a member, in compressed bytes.
const BEGINNING: u64 = 1 << 10;
/// Number of decompressed bytes whose work equals that of one compressed byte.
const INFLATED: u64 = 64;

/// A possible member inside of the current one: in a stored block, or before the current one has
/// output.
#[derive(Clone, Copy)]
struct Doubt {
    /// The offset of its first byte in the file.
    place: u64,
    /// Number of held bytes that were output before it.
    held: usize,
}

/// Decompressed bytes that are not returned yet, and the places that put them in doubt.
#[derive(Default)]
pub(super) struct HeldOutput {
    /// The bytes. Those before the first doubt are certain.
    pub(super) bytes: Vec<u8>,
    /// The doubts in ascending order.
    doubts: VecDeque<Doubt>,
    /// Work of inflating bytes again so far, in compressed bytes.
    work: u64,
}

/// The end of a damaged member.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MemberEnd {
    /// The file ends inside of the member.
    Truncated,
    /// The data is complete, and the checksum or the length after it does not match.
    Trailer,
    /// The data does not inflate.
    Corrupt,
}

impl HeldOutput {
    /// Returns whether neither bytes are held nor doubts open.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.doubts.is_empty()
    }

    /// Returns whether a doubt is open.
    pub(super) fn is_in_doubt(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// The first place in doubt: stored bytes from there on may have to be read again.
    pub(super) fn first_place(&self) -> Option<u64> {
        self.doubts.front().map(|doubt| doubt.place)
    }

    /// Opens a doubt at a place.
    pub(super) fn add_doubt(&mut self, place: u64) {
        self.doubts.push_back(Doubt {
            place,
            held: self.bytes.len(),
        });
    }

    /// Settles all doubts in favour of the current member.
    pub(super) fn clear_doubts(&mut self) {
        self.doubts.clear();
    }

    /// Settles the doubts that the current member has passed by far, in its favour. `place` is the
    /// current one.
    pub(super) fn clear_far_doubts(&mut self, place: u64) {
        while let Some(doubt) = self.doubts.front() {
            if place - doubt.place <= DOUBTFUL && self.bytes.len() - doubt.held <= HELD {
                break;
            }
            self.doubts.pop_front();
        }
    }

    /// Moves bytes that are certain to `out`. Returns their number.
    pub(super) fn take_certain(&mut self, out: &mut [u8]) -> usize {
        let certain = self
            .doubts
            .front()
            .map_or(self.bytes.len(), |doubt| doubt.held);
        let count = copy(self.bytes.get(..certain).unwrap_or_default(), out);
        self.bytes.drain(..count);
        self.doubts.iter_mut().for_each(|doubt| doubt.held -= count);
        count
    }

    /// Settles the doubts of a damaged member. Returns the place of the first possible member that
    /// explains the bytes; the output after it is dropped. `None` if the bytes belong to the
    /// current member. `most_work` bounds the work on data with many false starts of members, in
    /// the complete file.
    pub(super) fn find_next_member(
        &mut self,
        stored: &MemberBuffer,
        end: MemberEnd,
        most_work: u64,
    ) -> Option<u64> {
        for doubt in std::mem::take(&mut self.doubts) {
            if self.work > most_work {
                return None;
            }
            let bytes = stored.since(doubt.place);
            if self.is_next_member(doubt, bytes, end) {
                self.work += bytes.len() as u64;
                self.bytes.truncate(doubt.held);
                return Some(doubt.place);
            }
        }
        None
    }

    /// Returns whether a possible member, which `stored` begins with, is the next one and not data
    /// of the current one: no other bytes of the current member follow it.
    fn is_next_member(&mut self, doubt: Doubt, stored: &[u8], end: MemberEnd) -> bool {
        let stored = try_members(stored);
        self.work += stored.work;
        match (stored.end, end) {
            (TriedEnd::Followed, _) => false,
            // Both inflate to the end. A file that ends within both is probably still being
            // written, unless a complete member begins here.
            (TriedEnd::Reached, MemberEnd::Truncated) => stored.complete > 0,
            (TriedEnd::Reached, MemberEnd::Trailer | MemberEnd::Corrupt) => true,
            // The possible member is damaged. It is not taken for the next one if the current
            // member is only truncated, or failed only at its end.
            (TriedEnd::Damaged, MemberEnd::Truncated | MemberEnd::Trailer) => false,
            // If the current member contains the other, it decompresses to more of it than can be
            // read from the stored bytes, since the data may be spread over several blocks.
            (TriedEnd::Damaged, MemberEnd::Corrupt) => {
                let inflated = try_members(self.bytes.get(doubt.held..).unwrap_or_default());
                self.work += inflated.work;
                inflated.complete <= stored.complete && inflated.taken <= stored.taken
            }
        }
    }
}

/// The result of inflating bytes as gzip members.
struct Tried {
    end: TriedEnd,
    /// Number of complete members.
    complete: u64,
    /// Number of bytes that they take, with those of a damaged one up to its damage.
    taken: u64,
    /// The work, in compressed bytes.
    work: u64,
}

/// The end of bytes that were inflated as gzip members.
enum TriedEnd {
    /// All bytes belong to valid members, the last of which may be incomplete.
    Reached,
    /// Other bytes follow a complete member.
    Followed,
    /// A member does not inflate.
    Damaged,
}

/// Inflates the members at the start of `bytes`, one after the other.
fn try_members(bytes: &[u8]) -> Tried {
    let mut out = vec![0; STEP];
    let mut complete = 0;
    let mut taken = 0;
    let mut work = 0;
    loop {
        let mut engine = Decompress::new_gzip(WINDOW_BITS);
        let ended = loop {
            let before_in = engine.total_in();
            let before_out = engine.total_out();
            let waiting = bytes
                .get((taken + before_in) as usize..)
                .unwrap_or_default();
            match engine.decompress(waiting, &mut out, FlushDecompress::None) {
                Ok(Status::StreamEnd) => break None,
                Ok(_) if engine.total_in() > before_in || engine.total_out() > before_out => {}
                Ok(_) => break Some(TriedEnd::Reached),
                Err(_) => break Some(TriedEnd::Damaged),
            }
        };
        taken += engine.total_in();
        work += BEGINNING + engine.total_in() + engine.total_out() / INFLATED;
        complete += u64::from(ended.is_none());
        let rest = bytes.get(taken as usize..).unwrap_or_default();
        let end = match ended {
            None if rest.is_empty() => Some(TriedEnd::Reached),
            None if !begins_with_magic(rest) => Some(TriedEnd::Followed),
            ended => ended,
        };
        if let Some(end) = end {
            return Tried {
                end,
                complete,
                taken,
                work,
            };
        }
    }
}
