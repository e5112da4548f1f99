//! Processes that end while a query runs.

use std::{
    process::{Child, Command, Stdio},
    time::Instant,
};

use nix::sys::signal::Signal;

use crate::processes::{Cluster, Run, SOON, local};

/// A query with some seconds of work in each of 64 files, in three stages.
struct LongQuery {
    text: String,
}

impl LongQuery {
    fn new(cluster: &Cluster) -> Self {
        let folder = cluster.folder.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let source = crate::processes::root().join("testdata/shards/train-00000-of-00004.tfrecord");
        for file in 0..64 {
            std::fs::copy(&source, folder.join(format!("{file:02}.tfrecord"))).unwrap();
        }
        let work = "levenshtein(repeat(city, 150), repeat(reverse(city), 150))";
        let text =
            format!("SELECT label, count(*), sum({work}) FROM '{}/' GROUP BY label ORDER BY label", folder.display());
        Self { text }
    }

    fn args(&self) -> [&str; 3] {
        ["--format", "csv", &self.text]
    }
}

/// A client that runs, and is killed at the end of a test.
fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(client: Child) -> Run {
    Run::of(client.wait_with_output().unwrap())
}

#[test]
fn a_killed_executor_changes_no_row() {
    let mut cluster = Cluster::start(2);
    let query = LongQuery::new(&cluster);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    cluster.executors.remove(0);
    assert_eq!(ended(client), local(&query.args()));
}

#[test]
fn a_frozen_executor_changes_no_row() {
    let cluster = Cluster::start(2);
    let query = LongQuery::new(&cluster);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    cluster.executors[0].signal(Signal::SIGSTOP);
    let run = ended(client);
    cluster.executors[0].signal(Signal::SIGCONT);
    assert_eq!(run, local(&query.args()));
}

#[test]
fn a_client_that_is_killed_leaves_no_job() {
    let cluster = Cluster::start(1);
    let query = LongQuery::new(&cluster);
    let mut client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    client.kill().unwrap();
    client.wait().unwrap();
    cluster.scheduler.wait_for("is gone: the job is cancelled");
    // The core of the executor is free again.
    let query = "SELECT count(*) FROM 'testdata/shards/'";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
}

#[test]
fn ctrl_c_cancels_the_job() {
    let cluster = Cluster::start(1);
    let query = LongQuery::new(&cluster);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    let id = nix::unistd::Pid::from_raw(client.id().try_into().unwrap());
    nix::sys::signal::kill(id, Signal::SIGINT).unwrap();
    assert_eq!(ended(client).status, Some(130));
    let begin = Instant::now();
    let query = "SELECT count(*) FROM 'testdata/shards/'";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
    // The scheduler would cancel a job without a client after 8 s.
    assert!(begin.elapsed().as_secs() < 8, "{:?}", begin.elapsed());
}

#[test]
fn without_executors_or_scheduler_the_query_fails() {
    let mut cluster = Cluster::start(1);
    let query = LongQuery::new(&cluster);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    cluster.executors.clear();
    let begin = Instant::now();
    let run = ended(client);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());

    cluster.add_executor(&[]);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(1);
    cluster.scheduler.child.kill().unwrap();
    let run = ended(client);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains(&cluster.address), "{run:?}");
}

#[test]
fn a_scheduler_that_is_started_again_has_lost_the_query() {
    let mut cluster = Cluster::start(1);
    let query = LongQuery::new(&cluster);
    let client = spawn(cluster.client(&query.args()));
    cluster.wait_for_results(0);
    cluster.restart_scheduler();
    // The client may see the end of the first scheduler.
    let run = ended(client);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains(&format!("the scheduler at {}", cluster.address)), "{run:?}");
    // The executor finds the second one.
    let query = "SELECT count(*) FROM 'testdata/shards/'";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
}
