//! The threads of a pass over a data set, and the tasks that they share: the shards of a scan, or
//! the outputs of a conversion.
//!
//! ```text
//! thread 1: task 0 ─▶ task 2 ─▶ task 3 ──────────┐
//! thread 2: task 1 ──────────────▶ helps with 3 ──┴▶ end
//! ```
//!
//! Each thread begins tasks of its own, in their order, and then helps with the tasks that have not
//! ended, the largest first, so that one large task keeps all cores busy. A task is made when it
//! begins and dropped when it ends: a data set may have hundreds of thousands of shards.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    mem,
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};

use tfarrow_dataset::internals::Lock;

/// Work that any number of threads share.
pub trait Task: Send + Sync {
    /// The size of the task. Threads without a task of their own help with large ones first.
    fn bytes(&self) -> u64;
}

/// The tasks of a pass, some of which have begun.
pub struct Crew<'a, T: ?Sized, E> {
    begin: &'a Begin<'a, T, E>,
    tasks: Lock<Tasks<T>>,
}

/// Makes the task of this number; `None` if there are no more tasks.
pub type Begin<'a, T, E> = dyn Fn(usize) -> Result<Option<Arc<T>>, E> + Sync + 'a;

struct Tasks<T: ?Sized> {
    /// The number of the next task that begins; `None` if all have begun.
    next: Option<usize>,
    /// The tasks that have begun and not ended.
    open: BTreeMap<OpenKey, Arc<T>>,
}

/// The size and the number of an open task.
type OpenKey = (Reverse<u64>, usize);

/// A thread of a crew.
#[derive(Debug, Default)]
pub struct Member {
    /// The task of other threads that this thread helped with last.
    helped: Option<OpenKey>,
}

impl<'a, T: Task + ?Sized, E> Crew<'a, T, E> {
    /// Creates a crew for the tasks that `begin` makes, one at a time, numbered from 0.
    pub fn new(begin: &'a Begin<'a, T, E>) -> Self {
        Self {
            begin,
            tasks: Lock::new(Tasks {
                next: Some(0),
                open: BTreeMap::new(),
            }),
        }
    }

    /// The next task of a thread and its number: one that the thread begins, or one that it helps
    /// with; `None` if all tasks have begun, and the thread has helped with all that are open.
    ///
    /// # Errors
    /// An error of `begin`. The task has then ended.
    pub fn next(&self, member: &mut Member) -> Result<Option<(usize, Arc<T>)>, E> {
        let mut tasks = self.tasks.lock();
        if let Some(number) = tasks.next {
            tasks.next = Some(number + 1);
            // A task is made under the lock, so that no thread leaves before it can help.
            match (self.begin)(number)? {
                Some(task) => {
                    tasks
                        .open
                        .insert((Reverse(task.bytes()), number), Arc::clone(&task));
                    return Ok(Some((number, task)));
                }
                None => tasks.next = None,
            }
        }
        let after = member.helped.map_or(Unbounded, Excluded);
        let Some((key, task)) = tasks.open.range((after, Unbounded)).next() else {
            return Ok(None);
        };
        member.helped = Some(*key);
        Ok(Some((key.1, Arc::clone(task))))
    }

    /// Ends a task, so that no other thread begins to help with it.
    pub fn end(&self, number: usize, task: &T) {
        self.tasks
            .lock()
            .open
            .remove(&(Reverse(task.bytes()), number));
    }

    /// Ends the crew: no other task begins. Returns the open tasks.
    pub fn dissolve(&self) -> impl Iterator<Item = Arc<T>> + use<T, E> {
        let mut tasks = self.tasks.lock();
        tasks.next = None;
        mem::take(&mut tasks.open).into_values()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use tfarrow_dataset::internals::on_threads;

    use super::*;

    /// A task of some steps, and the tasks that exist.
    struct Steps<'l> {
        bytes: u64,
        left: AtomicUsize,
        live: &'l AtomicUsize,
    }

    impl Task for Steps<'_> {
        fn bytes(&self) -> u64 {
            self.bytes
        }
    }

    impl Drop for Steps<'_> {
        fn drop(&mut self) {
            self.live.fetch_sub(1, SeqCst);
        }
    }

    #[test]
    fn each_step_is_done_once_and_tasks_are_dropped() {
        let live = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let begin = |number: usize| -> Result<_, ()> {
            if number >= 1000 {
                return Ok(None);
            }
            most.fetch_max(live.fetch_add(1, SeqCst) + 1, SeqCst);
            Ok(Some(Arc::new(Steps {
                bytes: number as u64 % 7,
                left: AtomicUsize::new(number % 5),
                live: &live,
            })))
        };
        let crew = Crew::new(&begin);
        let done = on_threads(4, || {
            let mut member = Member::default();
            let mut done = 0;
            while let Ok(Some((number, task))) = crew.next(&mut member) {
                while task
                    .left
                    .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                    .is_ok()
                {
                    done += 1;
                }
                crew.end(number, &task);
            }
            done
        });
        assert_eq!(done.into_iter().sum::<usize>(), 2000);
        assert_eq!(live.load(SeqCst), 0);
        assert!(
            (1..=4).contains(&most.load(SeqCst)),
            "{most:?} tasks at once"
        );
    }

    #[test]
    fn a_thread_helps_with_the_largest_task_first_and_with_each_once() {
        let live = AtomicUsize::new(3);
        let begin = |number: usize| -> Result<_, ()> {
            let bytes = [5, 9, 7].get(number).copied();
            Ok(bytes.map(|bytes| {
                Arc::new(Steps {
                    bytes,
                    left: AtomicUsize::new(1),
                    live: &live,
                })
            }))
        };
        let crew = Crew::new(&begin);
        let mut other = Member::default();
        let own: Vec<_> = (0..3)
            .map(|_| crew.next(&mut other).unwrap().unwrap().0)
            .collect();
        assert_eq!(own, [0, 1, 2]);
        let mut helper = Member::default();
        let helped: Vec<_> =
            std::iter::from_fn(|| Some(crew.next(&mut helper).unwrap()?.0)).collect();
        assert_eq!(helped, [1, 2, 0]);
    }

    #[test]
    fn no_task_begins_after_the_end_of_a_crew() {
        let live = AtomicUsize::new(1000);
        let begin = |number: usize| match number {
            7 => Err("seven"),
            _ => Ok(Some(Arc::new(Steps {
                bytes: 1,
                left: AtomicUsize::new(1),
                live: &live,
            }))),
        };
        let crew = Crew::new(&begin);
        let mut member = Member::default();
        let mut began = 0;
        let error = loop {
            match crew.next(&mut member) {
                Ok(_) => began += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((began, error), (7, "seven"));
        assert_eq!(crew.dissolve().count(), 7);
        assert!(crew.next(&mut member).unwrap().is_none());
    }
}
