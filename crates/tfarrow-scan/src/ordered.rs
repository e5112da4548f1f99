//! Ordered output of many workers: pieces are written in the order of their units.
//!
//! The worker of the current unit writes its pieces at once. A worker that is ahead holds its
//! pieces back, and waits only when it holds too many bytes.

use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{Condvar, MutexGuard},
};

use tfarrow_dataset::internals::{Lock, wait_while};

/// An output that pieces are written to.
pub trait PieceSink {
    /// A part of the output.
    type Piece;
    /// An error of writing.
    type Error;

    /// Writes one piece.
    ///
    /// # Errors
    /// The output cannot be written.
    fn write(&mut self, piece: Self::Piece) -> Result<(), Self::Error>;

    /// Bytes of memory that a piece takes until it is written.
    fn held_bytes(piece: &Self::Piece) -> usize;

    /// The error of a worker after the failure of another one.
    fn cancelled() -> Self::Error;
}

/// An output that takes the pieces of many units at once.
pub struct Ordered<W: PieceSink> {
    state: Lock<OrderedState<W>>,
    turn_changed: Condvar,
}

struct OrderedState<W: PieceSink> {
    /// The unit whose pieces are being written.
    turn: u64,
    /// The pieces of units that were finished before their turn, and the bytes of all of them.
    waiting: HashMap<u64, VecDeque<W::Piece>>,
    bytes: usize,
    /// Maximum bytes that a worker, and all finished units together, hold back before a worker
    /// waits for its turn.
    max_held: usize,
    failed: bool,
    output: W,
}

impl<W: PieceSink> OrderedState<W> {
    fn write(&mut self, pieces: &mut VecDeque<W::Piece>) -> Result<(), W::Error> {
        while let Some(piece) = pieces.pop_front() {
            self.output.write(piece)?;
        }
        Ok(())
    }

    /// Gives the turn to the next unit that is not finished. Writes the pieces of the finished
    /// units before it.
    fn advance(&mut self) -> Result<(), W::Error> {
        self.turn += 1;
        while let Some(mut pieces) = self.waiting.remove(&self.turn) {
            self.bytes -= pieces.iter().map(W::held_bytes).sum::<usize>();
            self.write(&mut pieces)?;
            self.turn += 1;
        }
        Ok(())
    }
}

impl<W: PieceSink> Ordered<W> {
    /// Creates an output for units from 0 on. A worker that is ahead, and all finished units
    /// together, hold back at most about `max_held` bytes.
    pub fn new(output: W, max_held: usize) -> Self {
        let state = OrderedState {
            turn: 0,
            waiting: HashMap::new(),
            bytes: 0,
            max_held,
            failed: false,
            output,
        };
        Self {
            state: Lock::new(state),
            turn_changed: Condvar::new(),
        }
    }

    /// The place of unit `number` in the output. Each number, from 0 on, must be taken once and
    /// [finished](Ticket::finish).
    pub fn ticket(&self, number: u64) -> Ticket<'_, W> {
        Ticket {
            ordered: self,
            number,
            pieces: VecDeque::new(),
            bytes: 0,
            finished: false,
        }
    }

    /// Wakes all workers that wait for their turn. They return [`PieceSink::cancelled`].
    pub fn fail(&self) {
        self.state.lock().failed = true;
        self.turn_changed.notify_all();
    }

    /// Calls `act` with the output, such as to complete it after all units are finished.
    pub fn with_output<T>(&self, act: impl FnOnce(&mut W) -> T) -> T {
        act(&mut self.state.lock().output)
    }
}

/// A unit's place in an output.
pub struct Ticket<'o, W: PieceSink> {
    ordered: &'o Ordered<W>,
    number: u64,
    /// Pieces that are held back until the unit's turn, and their bytes.
    pieces: VecDeque<W::Piece>,
    bytes: usize,
    finished: bool,
}

impl<W: PieceSink> Drop for Ticket<'_, W> {
    /// Fails the output if the unit is not finished, because of an error or a panic: the turn would
    /// never change.
    fn drop(&mut self) {
        if !self.finished {
            self.ordered.fail();
        }
    }
}

impl<W: PieceSink> Ticket<'_, W> {
    /// Writes a piece if it is this unit's turn, else holds it back. Waits for the turn if too many
    /// bytes are held back.
    ///
    /// # Errors
    /// Errors of the output, and [`PieceSink::cancelled`].
    pub fn write(&mut self, piece: W::Piece) -> Result<(), W::Error> {
        self.bytes = self.bytes.saturating_add(W::held_bytes(&piece));
        self.pieces.push_back(piece);
        let state = self.ordered.state.lock();
        if state.turn == self.number || self.bytes > state.max_held {
            self.drain(state).map(drop)
        } else {
            Ok(())
        }
    }

    /// Finishes the unit. Before its turn, its pieces are left to the worker whose turn it is,
    /// without waiting, unless too many bytes are held back. Otherwise this writes the pieces and
    /// gives the turn to the next unit.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(mut self) -> Result<(), W::Error> {
        let mut state = self.ordered.state.lock();
        if state.turn != self.number
            && !state.failed
            && state.bytes.saturating_add(self.bytes) <= state.max_held
        {
            state.bytes += self.bytes;
            state
                .waiting
                .insert(self.number, mem::take(&mut self.pieces));
            self.finished = true;
            return Ok(());
        }
        let mut state = self.drain(state)?;
        state.advance()?;
        self.finished = true;
        self.ordered.turn_changed.notify_all();
        Ok(())
    }

    /// Waits for the unit's turn, and writes the pieces that are held back.
    fn drain<'g>(
        &mut self,
        state: MutexGuard<'g, OrderedState<W>>,
    ) -> Result<MutexGuard<'g, OrderedState<W>>, W::Error> {
        let mut state = wait_while(&self.ordered.turn_changed, state, |state| {
            state.turn != self.number && !state.failed
        });
        if state.failed {
            return Err(W::cancelled());
        }
        state.write(&mut self.pieces)?;
        self.bytes = 0;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_HELD: usize = 1 << 20;

    #[derive(Default)]
    struct Sink(Vec<(u64, usize)>);

    impl PieceSink for Sink {
        type Piece = (u64, usize);
        type Error = &'static str;

        fn write(&mut self, piece: Self::Piece) -> Result<(), Self::Error> {
            self.0.push(piece);
            Ok(())
        }

        fn cancelled() -> Self::Error {
            "cancelled"
        }

        fn held_bytes(_: &Self::Piece) -> usize {
            MAX_HELD / 2
        }
    }

    #[test]
    fn pieces_are_written_in_the_order_of_their_units() {
        let ordered = Ordered::new(Sink::default(), MAX_HELD);
        let units = Lock::new(0..50u64);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while let Some(unit) = { units.lock().next() } {
                        let mut ticket = ordered.ticket(unit);
                        (0..(unit % 5) as usize).for_each(|i| ticket.write((unit, i)).unwrap());
                        ticket.finish().unwrap();
                    }
                });
            }
        });
        let expect: Vec<_> = (0..50u64)
            .flat_map(|unit| (0..(unit % 5) as usize).map(move |i| (unit, i)))
            .collect();
        ordered.with_output(|sink| assert_eq!(sink.0, expect));
    }

    #[test]
    fn a_failure_wakes_waiting_workers() {
        let ordered = Ordered::new(Sink::default(), MAX_HELD);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut ticket = ordered.ticket(1);
                (0..3)
                    .try_for_each(|i| ticket.write((1, i)))
                    .and_then(|()| ticket.finish())
            });
            ordered.fail();
            assert_eq!(waiting.join().unwrap(), Err("cancelled"));
        });
    }

    #[test]
    fn a_finished_unit_does_not_wait_for_its_turn() {
        let ordered = Ordered::new(Sink::default(), MAX_HELD);
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
