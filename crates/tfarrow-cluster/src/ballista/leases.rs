//! The leases of running jobs, which end with their clients.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tfarrow_dataset::internals::Lock;

/// Time after the last request of a client after which its job is cancelled. Clients ask for the
/// state of a job several times a second.
const LEASE: Duration = Duration::from_secs(8);
/// Time without a task that runs or can run after which a job is stuck. It happens after an
/// executor was lost: Ballista 55 then waits for a stage that has no task left, or for a task that
/// has ended.
const STUCK: Duration = Duration::from_secs(5);

/// A lease for each running job, which the client renews by asking for the state of the job.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    by_job: Lock<HashMap<String, Lease>>,
}

/// The lease of a job.
#[derive(Clone, Copy, Debug)]
struct Lease {
    /// The last request of the client.
    renewed: Instant,
    /// The last time at which a task of the job ran or could run.
    proceeded: Instant,
    /// Whether the job was cancelled because it was stuck.
    is_stuck: bool,
}

impl Leases {
    /// Adds the lease of a new job.
    pub(crate) fn grant(&self, job: String, now: Instant) {
        self.by_job.lock().insert(
            job,
            Lease {
                renewed: now,
                proceeded: now,
                is_stuck: false,
            },
        );
    }

    /// Renews the lease of a job, unless the job is stuck. Returns whether it is.
    pub(crate) fn renew(&self, job: &str, now: Instant) -> bool {
        let mut leases = self.by_job.lock();
        let lease = leases.get_mut(job);
        lease.is_some_and(|lease| {
            lease.renewed = now;
            lease.is_stuck
        })
    }

    /// Removes the lease of a job that has ended.
    pub(crate) fn end(&self, job: &str) {
        self.by_job.lock().remove(job);
    }

    /// Removes the leases whose clients are gone, and returns their jobs.
    pub(crate) fn take_expired(&self, now: Instant) -> Vec<String> {
        self.by_job
            .lock()
            .extract_if(|_, lease| now.saturating_duration_since(lease.renewed) >= LEASE)
            .map(|(job, _)| job)
            .collect()
    }

    /// The jobs with a lease.
    pub(crate) fn jobs(&self) -> Vec<String> {
        self.by_job.lock().keys().cloned().collect()
    }

    /// Records whether a job proceeds. Returns `true` once, when it has been stuck for some time.
    pub(crate) fn record(&self, job: &str, proceeds: bool, now: Instant) -> bool {
        let mut leases = self.by_job.lock();
        let Some(lease) = leases.get_mut(job) else {
            return false;
        };
        if proceeds {
            lease.proceeded = now;
        }
        let was_stuck = lease.is_stuck;
        lease.is_stuck |= now.saturating_duration_since(lease.proceeded) >= STUCK;
        lease.is_stuck && !was_stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_expire_unless_they_are_renewed() {
        let leases = Leases::default();
        let begin = Instant::now();
        leases.grant("a".to_owned(), begin);
        leases.grant("b".to_owned(), begin);
        assert!(!leases.renew("b", begin + LEASE / 2));
        assert!(leases.take_expired(begin + LEASE / 2).is_empty());
        assert_eq!(leases.take_expired(begin + LEASE), ["a"]);
        assert_eq!(leases.jobs(), ["b"]);
        leases.end("b");
        assert!(leases.jobs().is_empty());
    }

    #[test]
    fn a_job_is_stuck_after_some_time_without_progress() {
        let leases = Leases::default();
        let begin = Instant::now();
        leases.grant("a".to_owned(), begin);
        assert!(!leases.record("a", true, begin + STUCK));
        assert!(!leases.record("a", false, begin + STUCK * 3 / 2));
        assert!(!leases.renew("a", begin + STUCK * 3 / 2));
        assert!(leases.record("a", false, begin + STUCK * 2));
        assert!(leases.renew("a", begin + STUCK * 2));
        // It is cancelled once.
        assert!(!leases.record("a", false, begin + STUCK * 3));
    }
}
