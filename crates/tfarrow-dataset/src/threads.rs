//! Threads that share the work of one call.

use std::{
    ops::ControlFlow,
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// An observer of progress, which gets the number of bytes, as they are stored, and of records that
/// were read since its last call. It is called from any thread. [`ControlFlow::Break`] stops the
/// scan.
pub type OnProgress<'a> = dyn Fn(u64, u64) -> ControlFlow<()> + Sync + 'a;

/// Calls `work` on `count` threads at the same time, the calling thread among them, and returns the
/// results.
///
/// A panic of a thread is continued on the calling thread.
pub fn on_threads<T: Send>(count: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let others: Vec<_> = (1..count).map(|_| scope.spawn(&work)).collect();
        let own = work();
        let joined = others
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [own].into_iter().chain(joined).collect()
    })
}

/// Tasks that several threads take, each task once, in order.
#[derive(Debug)]
struct TaskQueue<'a, T> {
    tasks: &'a [T],
    next: AtomicUsize,
}

impl<'a, T> TaskQueue<'a, T> {
    /// Creates a queue of all tasks.
    fn new(tasks: &'a [T]) -> Self {
        Self {
            tasks,
            next: AtomicUsize::new(0),
        }
    }

    /// Takes the next task, and returns it with its index; `None` if all tasks are taken.
    fn take(&self) -> Option<(usize, &'a T)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        Some((index, self.tasks.get(index)?))
    }

    /// Drops the tasks that were not taken yet.
    fn clear(&self) {
        self.next.store(self.tasks.len(), Ordering::Relaxed);
    }
}

/// Calls `work` for each task and its index on up to `threads` threads, and returns the results in
/// the order of the tasks. After an error no further task is begun.
///
/// # Errors
/// The error of the first task, in their order, that failed.
pub fn try_map<T: Sync, R: Send, E: Send>(
    tasks: &[T],
    threads: usize,
    work: impl Fn(usize, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let queue = TaskQueue::new(tasks);
    let of_threads = on_threads(threads.min(tasks.len()), || {
        let mut results = Vec::new();
        while let Some((index, task)) = queue.take() {
            let result = work(index, task);
            if result.is_err() {
                queue.clear();
            }
            results.push((index, result));
        }
        results
    });
    let mut all: Vec<_> = of_threads.into_iter().flatten().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_tasks() {
        let tasks: Vec<_> = (0..100).collect();
        let doubled = try_map(&tasks, 4, |index, task| {
            if index == *task {
                Ok(2 * task)
            } else {
                Err(())
            }
        });
        assert_eq!(doubled, Ok((0..100).map(|task| 2 * task).collect()));
        let failed = try_map(
            &tasks,
            1,
            |index, _| if index < 7 { Ok(()) } else { Err(index) },
        );
        assert_eq!(failed, Err(7));
    }

    #[test]
    fn each_task_is_taken_once() {
        let tasks: Vec<_> = (0..1000).collect();
        let queue = TaskQueue::new(&tasks);
        let taken = on_threads(4, || {
            std::iter::from_fn(|| queue.take()).collect::<Vec<_>>()
        });
        assert_eq!(taken.len(), 4);
        let mut taken: Vec<_> = taken.into_iter().flatten().collect();
        taken.sort();
        assert!(taken.into_iter().eq(tasks.iter().enumerate()));
    }

    #[test]
    fn a_queue_that_is_cleared_has_no_tasks() {
        let queue = TaskQueue::new(&[1, 2, 3]);
        assert_eq!(queue.take(), Some((0, &1)));
        queue.clear();
        assert_eq!(queue.take(), None);
    }

    #[test]
    #[should_panic = "in a thread"]
    fn a_panic_is_continued() {
        on_threads(2, || {
            if thread::current().name().is_none() {
                panic!("in a thread");
            }
        });
    }
}
