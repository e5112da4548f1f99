//! Processes that end while a query runs.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Instant,
};

use nix::sys::signal::Signal;

use crate::processes::{Cluster, Run, SOON, local};

/// How often a name is repeated in the work for each row, which grows with the square: programs of
/// the dev profile are slow.
const REPEATS: u32 = if cfg!(debug_assertions) { 50 } else { 150 };

/// A query with some seconds of work, in 64 tasks: most of the work is left when the first one
/// ends.
struct LongQuery {
    text: String,
    /// The files that it reads.
    folder: PathBuf,
}

impl LongQuery {
    fn new(cluster: &Cluster) -> Self {
        Self::of_tasks(cluster, 64, REPEATS)
    }

    fn of_tasks(cluster: &Cluster, tasks: u32, repeats: u32) -> Self {
        let folder = cluster.folder.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let source = crate::processes::root().join("testdata/shards/train-00000-of-00004.tfrecord");
        for file in 0..64 {
            std::fs::copy(&source, folder.join(format!("{file:02}.tfrecord"))).unwrap();
        }
        let work =
            format!("levenshtein(repeat(city, {repeats}), repeat(reverse(city), {repeats}))");
        let text = format!(
            "SET datafusion.execution.target_partitions = {tasks};
             SELECT label, count(*), sum({work}) FROM '{}/' GROUP BY label ORDER BY label",
            folder.display()
        );
        Self { text, folder }
    }

    /// A client of this query, some of whose tasks on the first executor have ended.
    fn running(cluster: &Cluster) -> (Self, Child) {
        let query = Self::new(cluster);
        let client = spawn(cluster.client(&query.args()));
        cluster.wait_for_results(0);
        (query, client)
    }

    fn args(&self) -> [&str; 3] {
        ["--format", "csv", &self.text]
    }
}

/// A client that runs, and is killed at the end of a test.
fn spawn(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(client: Child) -> Run {
    Run::of(client.wait_with_output().unwrap())
}

#[test]
fn a_killed_executor_changes_no_row() {
    let mut cluster = Cluster::start(2);
    let (query, client) = LongQuery::running(&cluster);
    cluster.executors.remove(0);
    assert_eq!(ended(client), local(&query.args()));
}

#[test]
fn a_frozen_executor_changes_no_row() {
    let cluster = Cluster::start(2);
    let (query, client) = LongQuery::running(&cluster);
    cluster.executors[0].signal(Signal::SIGSTOP);
    let run = ended(client);
    cluster.executors[0].signal(Signal::SIGCONT);
    assert_eq!(run, local(&query.args()));
}

#[test]
fn a_frozen_executor_writes_one_file() {
    let mut cluster = Cluster::start(1);
    let data = LongQuery::new(&cluster);
    let out = cluster.folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let rows = "SELECT label, repeat(city, 10000) AS text FROM";
    let copy = format!(
        "COPY ({rows} '{}/') TO '{}/all.csv'",
        data.folder.display(),
        out.display()
    );
    let client = spawn(cluster.client(&[&copy]));
    let written = || std::fs::read_dir(&out).unwrap().count();
    let begin = Instant::now();
    while written() == 0 {
        assert!(begin.elapsed() < SOON, "nothing is written");
        std::thread::yield_now();
    }
    cluster.executors[0].signal(Signal::SIGSTOP);
    cluster.add_executor(&[]);
    let run = ended(client);
    assert_eq!(run.status, Some(0), "{run:?}");
    cluster.executors[0].signal(Signal::SIGCONT);
    // The first executor ends its attempt as well, and removes its file.
    cluster.executors[0].wait_for("/2.0/0.0] in ");
    let begin = Instant::now();
    while written() != 1 {
        assert!(begin.elapsed() < SOON, "{} files are left", written());
        std::thread::yield_now();
    }
    let text = format!(
        "SELECT count(*) AS n, sum(octet_length(text)) AS bytes FROM '{}/all.csv'",
        out.display()
    );
    let shard = "'testdata/shards/train-00000-of-00004.tfrecord'";
    let expected = format!(
        "SELECT 64 * count(*) AS n, 64 * sum(octet_length(repeat(city, 10000))) AS bytes FROM {shard}"
    );
    assert_eq!(local(&[&text]), local(&[&expected]));
}

#[test]
fn a_client_that_is_killed_leaves_no_job() {
    let cluster = Cluster::start(1);
    let (_, mut client) = LongQuery::running(&cluster);
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
    let (_, client) = LongQuery::running(&cluster);
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
fn ctrl_c_ends_a_long_task() {
    let cluster = Cluster::start(1);
    // One task reads all files, with more work for each of them.
    let query = LongQuery::of_tasks(&cluster, 1, 2 * REPEATS);
    let client = spawn(cluster.client(&query.args()));
    cluster.executors[0].wait_for("Received task: ");
    let id = nix::unistd::Pid::from_raw(client.id().try_into().unwrap());
    nix::sys::signal::kill(id, Signal::SIGINT).unwrap();
    assert_eq!(ended(client).status, Some(130));
    cluster.executors[0].wait_for("the job has ended");
    let query = "SELECT count(*) FROM 'testdata/shards/'";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
}

#[test]
fn an_executor_that_is_asked_to_end() {
    let mut cluster = Cluster::start(1);
    let (query, client) = LongQuery::running(&cluster);
    cluster.add_executor(&[]);
    cluster.wait_for_results(1);
    let executor = cluster.executors.remove(0);
    executor.signal(Signal::SIGTERM);
    assert!(executor.ended().success());
    assert_eq!(std::fs::read_dir(cluster.work_dir(0)).unwrap().count(), 0);
    assert_eq!(ended(client), local(&query.args()));
}

#[test]
fn without_executors_or_scheduler_the_query_fails() {
    let mut cluster = Cluster::start(1);
    let (query, client) = LongQuery::running(&cluster);
    cluster.executors.clear();
    let begin = Instant::now();
    let run = ended(client);
    assert_eq!(run.status, Some(1), "{run:?}");
    // Within 10 s on a machine that is not busy.
    assert!(begin.elapsed().as_secs() < 15, "{:?}", begin.elapsed());

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
    let (_, client) = LongQuery::running(&cluster);
    cluster.restart_scheduler();
    // The client may see the end of the first scheduler.
    let run = ended(client);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(
        run.stderr
            .contains(&format!("the scheduler at {}", cluster.address)),
        "{run:?}"
    );
    // The executor finds the second one.
    let query = "SELECT count(*) FROM 'testdata/shards/'";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
}
