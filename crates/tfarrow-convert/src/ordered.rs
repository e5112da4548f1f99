//! Many workers, one output: pieces are written in the order of the units they come from.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{Error, Result};

/// Something that pieces are written to.
pub(crate) trait Write {
    /// What is written.
    type Piece;

    /// Writes one piece.
    fn write(&mut self, piece: Self::Piece) -> Result<()>;

    /// The bytes that a piece keeps in memory until it is written.
    fn held(piece: &Self::Piece) -> usize;
}

/// Bytes that are held back, by a worker or by all units that are done, before a worker whose turn has not come waits.
const HELD_BYTES: usize = 32 << 20;

/// An output whose pieces come from many units at once.
pub(crate) struct Ordered<W: Write> {
    state: Mutex<State<W>>,
    turn_came: Condvar,
}

struct State<W: Write> {
    /// The unit whose pieces are being written.
    turn: u64,
    /// The pieces of units that were done before their turn came, and the bytes of all.
    done: HashMap<u64, VecDeque<W::Piece>>,
    bytes: usize,
    failed: bool,
    output: W,
}

impl<W: Write> State<W> {
    fn write(&mut self, pieces: &mut VecDeque<W::Piece>) -> Result<()> {
        while let Some(piece) = pieces.pop_front() {
            self.output.write(piece)?;
        }
        Ok(())
    }

    /// Passes the turn on, over units that are done and only wait to be written.
    fn pass(&mut self) -> Result<()> {
        self.turn += 1;
        while let Some(mut pieces) = self.done.remove(&self.turn) {
            self.bytes -= pieces.iter().map(W::held).sum::<usize>();
            self.write(&mut pieces)?;
            self.turn += 1;
        }
        Ok(())
    }
}

impl<W: Write> Ordered<W> {
    pub(crate) fn new(output: W) -> Self {
        let state = State { turn: 0, done: HashMap::new(), bytes: 0, failed: false, output };
        Self { state: Mutex::new(state), turn_came: Condvar::new() }
    }

    /// The place of unit `number` in the output. Each number, from 0 on, must be asked for, and [finished](Ticket::finish).
    pub(crate) fn ticket(&self, number: u64) -> Ticket<'_, W> {
        Ticket { ordered: self, number, pieces: VecDeque::new(), bytes: 0, finished: false }
    }

    /// Tells all that wait for their turn that it will not come.
    pub(crate) fn fail(&self) {
        self.lock().failed = true;
        self.turn_came.notify_all();
    }

    /// Calls `act` with the output itself: to finish it, once all units are.
    pub(crate) fn with_output<T>(&self, act: impl FnOnce(&mut W) -> T) -> T {
        act(&mut self.lock().output)
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A unit's place in an output.
pub(crate) struct Ticket<'o, W: Write> {
    ordered: &'o Ordered<W>,
    number: u64,
    /// What is held back until the turn comes.
    pieces: VecDeque<W::Piece>,
    bytes: usize,
    finished: bool,
}

impl<W: Write> Drop for Ticket<'_, W> {
    /// A unit that is left undone, by an error or a panic, never passes the turn on.
    fn drop(&mut self) {
        if !self.finished {
            self.ordered.fail();
        }
    }
}

impl<W: Write> Ticket<'_, W> {
    /// Writes a piece if it is this unit's turn. Else it is held back, and waited for where too much is held back.
    pub(crate) fn write(&mut self, piece: W::Piece) -> Result<()> {
        self.bytes = self.bytes.saturating_add(W::held(&piece));
        self.pieces.push_back(piece);
        let state = self.ordered.lock();
        if state.turn == self.number || self.bytes > HELD_BYTES { self.drain(state).map(drop) } else { Ok(()) }
    }

    /// Writes what is held back, and gives the turn to the next unit. Where the turn has not come, whoever has it writes,
    /// unless too much is held back.
    pub(crate) fn finish(mut self) -> Result<()> {
        let mut state = self.ordered.lock();
        if state.turn != self.number && !state.failed && state.bytes.saturating_add(self.bytes) <= HELD_BYTES {
            state.bytes += self.bytes;
            state.done.insert(self.number, mem::take(&mut self.pieces));
            self.finished = true;
            return Ok(());
        }
        let mut state = self.drain(state)?;
        state.pass()?;
        self.finished = true;
        self.ordered.turn_came.notify_all();
        Ok(())
    }

    fn drain<'g>(&mut self, state: MutexGuard<'g, State<W>>) -> Result<MutexGuard<'g, State<W>>> {
        let waits = |state: &mut State<W>| state.turn != self.number && !state.failed;
        let mut state = self.ordered.turn_came.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if state.failed {
            return Err(Error::Cancelled);
        }
        state.write(&mut self.pieces)?;
        self.bytes = 0;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Sink(Vec<(u64, usize)>);

    impl Write for Sink {
        type Piece = (u64, usize);

        fn write(&mut self, piece: Self::Piece) -> Result<()> {
            self.0.push(piece);
            Ok(())
        }

        fn held(_: &Self::Piece) -> usize {
            HELD_BYTES / 2
        }
    }

    #[test]
    fn pieces_come_in_the_order_of_their_units() {
        let ordered = Ordered::new(Sink::default());
        let units = Mutex::new(0..50u64);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while let Some(unit) = { units.lock().unwrap().next() } {
                        let mut ticket = ordered.ticket(unit);
                        (0..(unit % 5) as usize).for_each(|i| ticket.write((unit, i)).unwrap());
                        ticket.finish().unwrap();
                    }
                });
            }
        });
        let expect: Vec<_> = (0..50u64).flat_map(|unit| (0..(unit % 5) as usize).map(move |i| (unit, i))).collect();
        ordered.with_output(|sink| assert_eq!(sink.0, expect));
    }

    #[test]
    fn a_failure_wakes_those_who_wait() {
        let ordered = Ordered::new(Sink::default());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut ticket = ordered.ticket(1);
                (0..3).try_for_each(|i| ticket.write((1, i))).and_then(|()| ticket.finish())
            });
            ordered.fail();
            assert!(matches!(waiting.join().unwrap(), Err(Error::Cancelled)));
        });
    }

    #[test]
    fn a_unit_that_is_done_waits_for_nobody() {
        let ordered = Ordered::new(Sink::default());
        let first = ordered.ticket(0);
        for unit in [2, 1] {
            let mut ticket = ordered.ticket(unit);
            ticket.write((unit, 0)).unwrap();
            ticket.finish().unwrap();
        }
        first.finish().unwrap();
        ordered.with_output(|sink| assert_eq!(sink.0, [(1, 0), (2, 0)]));
        let mut last = ordered.ticket(3);
        last.write((3, 0)).unwrap();
        ordered.with_output(|sink| assert_eq!(sink.0.len(), 3));
    }
}
