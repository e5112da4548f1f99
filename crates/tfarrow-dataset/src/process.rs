//! State that belongs to one process, and is made again in a child that a process forks.
//!
//! A forked child has the memory of its parent, and only the thread that called `fork`. In the
//! child, the threads of a runtime of the parent do not exist, a connection of the parent is shared
//! with the parent, and a mutex that another thread held stays locked. State of the whole process
//! is therefore a `static` with a [`PerProcess`].

use std::{iter, mem, process, sync::OnceLock};

/// A value for each process: the first call of [`get`](Self::get) in a process makes it.
///
/// The values are a list, to which each process appends its own. After a fork, the child has a copy
/// of the list with the values of its ancestors, and skips them. A lock is held only while a value
/// is made.
///
/// A value is dropped only by the process that made it. Another process leaks it: a drop could wait
/// for threads that do not exist, or change what the process shares with its parent.
///
/// # Limits
/// If another thread makes the first value of a process at the moment of the fork, `get` blocks in
/// the child forever. Functions that make values should therefore be fast, and locks belong inside
/// of the value.
///
/// If a process gets the id of an ancestor that has ended, it uses the value of that ancestor.
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<Node<T>>>,
}

struct Node<T> {
    /// The id of the process that made the value.
    process: u32,
    value: T,
    /// The value of a child.
    next: OnceLock<Box<Node<T>>>,
}

impl<T> PerProcess<T> {
    /// Creates a list without values.
    pub(crate) const fn new() -> Self {
        Self {
            first: OnceLock::new(),
        }
    }

    /// Returns the value of this process. `make` is called at the first call in a process.
    pub(crate) fn get(&self, make: impl Fn() -> T) -> &T {
        self.get_for(process::id(), make)
    }

    /// Returns the value of this process, if it has been made.
    pub(crate) fn existing(&self) -> Option<&T> {
        self.find(process::id())
    }

    fn get_for(&self, process: u32, make: impl Fn() -> T) -> &T {
        let mut slot = &self.first;
        loop {
            let node = slot.get_or_init(|| {
                Box::new(Node {
                    process,
                    value: make(),
                    next: OnceLock::new(),
                })
            });
            if node.process == process {
                return &node.value;
            }
            slot = &node.next;
        }
    }

    fn find(&self, process: u32) -> Option<&T> {
        let mut nodes = iter::successors(self.first.get(), |node| node.next.get());
        nodes
            .find(|node| node.process == process)
            .map(|node| &node.value)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let own = process::id();
        let mut rest = self.first.take();
        while let Some(node) = rest {
            let Node {
                process,
                value,
                mut next,
            } = *node;
            if process != own {
                mem::forget(value);
            }
            rest = next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use super::*;
    use crate::threads::on_threads;

    #[test]
    fn each_process_has_a_value_of_its_own() {
        let values = PerProcess::new();
        let made = Cell::new(0);
        let value = |process: u32| *values.get_for(process, || made.replace(made.get() + 1));
        assert_eq!([7, 7, 8, 7, 9, 8].map(value), [0, 0, 1, 0, 2, 1]);
        assert_eq!(made.get(), 3, "values that were made");
        assert_eq!(
            [7, 8, 9, 10].map(|process| values.find(process).copied()),
            [Some(0), Some(1), Some(2), None]
        );
    }

    #[test]
    fn the_threads_of_a_process_share_a_value() {
        let values = PerProcess::new();
        let made = AtomicU32::new(0);
        assert_eq!(values.existing(), None);
        let found = on_threads(4, || *values.get(|| made.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(found, [0; 4]);
        assert_eq!(values.existing(), Some(&0));
    }

    #[test]
    fn a_value_of_another_process_is_not_dropped() {
        let values = PerProcess::new();
        let value = Arc::new(());
        let own = process::id();
        for process in [own + 1, own, own + 2] {
            values.get_for(process, || Arc::clone(&value));
        }
        assert_eq!(Arc::strong_count(&value), 4);
        drop(values);
        assert_eq!(Arc::strong_count(&value), 3);
    }
}
