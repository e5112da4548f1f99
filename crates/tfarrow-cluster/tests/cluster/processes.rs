//! A scheduler and executors as processes, and clients.

use std::{
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tfarrow_testkit::signals::restore_signals;

use crate::certificates::write_certificates;

/// Time for anything that a process should do soon, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The program, with defaults of no user. It runs in the root of the repository.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfarrow-cluster"));
    command
        .args(args)
        .current_dir(root())
        .env_remove("CLICOLOR_FORCE")
        .env("TFARROW_CONFIG", "")
        .env("TFARROW_PAGER", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    restore_signals(&mut command);
    command
}

/// A process that is killed at the end of a test.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The lines of its standard error.
    pub(crate) lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line with this text.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + SOON;
        let mut seen = Vec::new();
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {text:?} in {seen:#?}");
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(id, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scheduler with executors of one core each.
pub(crate) struct Cluster {
    pub(crate) scheduler: Process,
    pub(crate) executors: Vec<Process>,
    /// The port at which each executor is asked for rows.
    pub(crate) ports: Vec<u16>,
    pub(crate) address: String,
    pub(crate) folder: TempDir,
    /// The folder with the certificates of all processes, if they use TLS.
    tls: Option<PathBuf>,
    /// Number of executors that were started.
    started: usize,
}

impl Cluster {
    /// Starts a cluster, and waits for its executors.
    pub(crate) fn start(executors: usize) -> Self {
        Self::start_in(TempDir::new().unwrap(), executors, None)
    }

    /// Starts a cluster whose processes use TLS.
    pub(crate) fn start_with_tls(executors: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let tls = folder.path().join("tls");
        write_certificates(&tls);
        Self::start_in(folder, executors, Some(tls))
    }

    fn start_in(folder: TempDir, executors: usize, tls: Option<PathBuf>) -> Self {
        let scheduler = started_scheduler("127.0.0.1:0", tls.as_deref());
        let ready = scheduler.wait_for("listens on ");
        let address = ready.rsplit(' ').next().unwrap().to_owned();
        let mut cluster = Self {
            scheduler,
            executors: Vec::new(),
            ports: Vec::new(),
            address,
            folder,
            tls,
            started: 0,
        };
        for _ in 0..executors {
            cluster.add_executor(&[]);
        }
        cluster
    }

    /// Kills the scheduler, and starts another one with the same address.
    pub(crate) fn restart_scheduler(&mut self) {
        self.scheduler.child.kill().unwrap();
        self.scheduler.child.wait().unwrap();
        self.scheduler = started_scheduler(&self.address, self.tls.as_deref());
        self.scheduler.wait_for("listens on ");
    }

    /// Starts an executor, and waits for it.
    pub(crate) fn add_executor(&mut self, args: &[&str]) {
        let work_dir = self.work_dir(self.started);
        self.started += 1;
        // A port that is free now.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = program(&["executor", "--scheduler", &self.address, "--cores", "1"]);
        command.arg("--port").arg(port.to_string());
        command
            .arg("--work-dir")
            .arg(work_dir)
            .args(args)
            .env("RUST_LOG", "info");
        self.tls
            .iter()
            .for_each(|tls| _ = command.arg("--tls").arg(tls));
        let executor = Process::start(command);
        executor.wait_for("Starting poll work loop");
        wait_for_port(port);
        self.executors.push(executor);
        self.ports.push(port);
    }

    /// The folder of the executor with this number, in the order in which they were started.
    pub(crate) fn work_dir(&self, executor: usize) -> PathBuf {
        self.folder.path().join(executor.to_string())
    }

    /// A client, not yet run.
    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = program(&["sql", "--cluster", &self.address]);
        self.tls
            .iter()
            .for_each(|tls| _ = command.arg("--cluster-tls").arg(tls));
        command.args(args);
        command
    }

    /// Runs a query on the cluster.
    pub(crate) fn sql(&self, args: &[&str]) -> Run {
        Run::of(self.client(args).output().unwrap())
    }

    /// Waits until an executor has written a result of a task.
    pub(crate) fn wait_for_results(&self, executor: usize) {
        let deadline = Instant::now() + SOON;
        let folder = self.work_dir(executor);
        while !has_files(&folder) {
            assert!(
                Instant::now() < deadline,
                "no results in {}",
                folder.display()
            );
            thread::yield_now();
        }
    }
}

/// Waits until a process listens at a port: an executor asks for work before it does.
fn wait_for_port(port: u16) {
    let deadline = Instant::now() + SOON;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "no process listens at {port}");
        thread::yield_now();
    }
}

fn started_scheduler(bind: &str, tls: Option<&Path>) -> Process {
    let mut command = program(&["scheduler", "--bind", bind]);
    tls.iter().for_each(|tls| _ = command.arg("--tls").arg(tls));
    Process::start(command)
}

fn has_files(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.is_file() || has_files(&path))
}

/// The exit status and the output of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            status: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The output with its lines sorted, for queries that do not define the order of their rows.
    pub(crate) fn sorted(mut self) -> Self {
        let mut lines: Vec<_> = self.stdout.lines().collect();
        lines.sort_unstable();
        self.stdout = lines.join("\n");
        self
    }
}

/// Runs a query in one process.
pub(crate) fn local(args: &[&str]) -> Run {
    Run::of(program(&[&["sql"], args].concat()).output().unwrap())
}
