//! Runs the program in a directory of its own, with an environment of its own.
//!
//! Invariant: every process started here is ended through its handle at the latest when the test
//! ends, however it ends.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot run the program has failed"
)]

use fairlane::sim::{Config, Sim, SimHandle};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

/// What has not come by then will not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// The client key of [`pool`].
pub(crate) const KEY: &str = "fl-client-key-of-the-shell-0001";

/// The upstream secret of [`pool`].
pub(crate) const SECRET: &str = "sk-upstream-secret-of-the-shell-0001";

/// A pool of one account at that base URL, with one key.
pub(crate) fn pool(base_url: &str) -> Value {
    json!({
        "endpoints": [{"name": "sim", "base_url": base_url,
                       "protocols": ["openai", "anthropic", "gemini"]}],
        "accounts": [{"name": "one", "stream_limit": 0, "create_limit": 0}],
        "credentials": [{"name": "one", "secret": SECRET, "accounts": ["one"],
                         "endpoints": ["sim"]}],
        "keys": [{"name": "test", "secret": KEY}],
    })
}

/// A directory with a database in it.
pub(crate) struct Home(tempfile::TempDir);

/// How a run ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.path().join("fairlane.db")
    }

    fn command(&self, arguments: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlane"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("FAIRLANE_DB", self.db())
            .env("FAIRLANE_LISTEN", "127.0.0.1:0")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, &[], "")
    }

    /// Runs a command to its end, with those variables and that on its standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], env: &[(&str, &str)], stdin: &str) -> Ran {
        let mut child = Owned(self.command(arguments, env).spawn().unwrap());
        let mut input = child.0.stdin.take().unwrap();
        // A command that does not read it closes it.
        drop(input.write_all(stdin.as_bytes()));
        drop(input);
        let mut stderr = child.0.stderr.take().unwrap();
        let errors = thread::spawn(move || text(&mut stderr));
        let out = text(child.0.stdout.as_mut().unwrap());
        let code = child.0.wait().unwrap().code();
        let err = errors.join().unwrap();
        Ran { code, out, err }
    }

    /// Loads a document; it must be accepted.
    pub(crate) fn import(&self, document: &Value) {
        let ran = self.run_with(&["import", "-"], &[], &document.to_string());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    /// What `export` prints.
    pub(crate) fn export(&self, arguments: &[&str]) -> String {
        let ran = self.run(&[&["export"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    }

    /// Starts an instance and waits until it says that it is ready.
    pub(crate) fn serve(&self, env: &[(&str, &str)]) -> Instance {
        Instance::start(&mut self.command(&["serve"], env))
    }
}

fn text(from: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A process that ends with its handle.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself, which is the wish.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A running instance.
pub(crate) struct Instance {
    pub(crate) address: SocketAddr,
    child: Owned,
    log: Arc<Log>,
    reader: JoinHandle<()>,
}

/// What an instance has written on standard error so far.
#[derive(Default)]
struct Log {
    text: Mutex<String>,
    grown: Condvar,
}

impl Log {
    fn add(&self, line: &str) {
        let mut text = self.text.lock().unwrap();
        *text += line;
        text.push('\n');
        self.grown.notify_all();
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.text.lock().unwrap())
    }
}

impl Instance {
    fn start(command: &mut Command) -> Self {
        let mut child = Owned(command.stdin(Stdio::null()).spawn().unwrap());
        let stderr = child.0.stderr.take().unwrap();
        let (found, address) = mpsc::channel();
        let log = Arc::new(Log::default());
        let read = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Only the first one is waited for.
                    let _ = found.send(address);
                }
                read.add(&line);
            }
        });
        let Ok(address) = address.recv_timeout(PATIENCE) else {
            drop(child);
            reader.join().unwrap();
            panic!("not ready: {}", log.take());
        };
        Self {
            address,
            child,
            log,
            reader,
        }
    }

    /// Waits until there is something in the log that `find` looks for.
    pub(crate) fn logged<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let mut text = self.log.text.lock().unwrap();
        loop {
            if let Some(found) = find(&text) {
                return found;
            }
            let (grown, timeout) = self.log.grown.wait_timeout(text, PATIENCE).unwrap();
            text = grown;
            assert!(!timeout.timed_out(), "waited in vain: {text}");
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; gives what it wrote on standard error and standard output.
    pub(crate) fn ended(mut self) -> (ExitStatus, String, String) {
        let out = text(self.child.0.stdout.as_mut().unwrap());
        let status = self.child.0.wait().unwrap();
        self.reader.join().unwrap();
        let log = self.log.take();
        assert!(!log.contains("panicked"), "{log}");
        (status, log, out)
    }

    /// Stops it; it must exit 0. Gives what it wrote on standard error.
    pub(crate) fn stop(self) -> String {
        self.signal("-TERM");
        let (status, log, out) = self.ended();
        assert_eq!((status.code(), &*out), (Some(0), ""), "{log}");
        log
    }

    /// A chat request with that key; status and everything that came.
    pub(crate) fn chat(&self, key: &str) -> (u16, String) {
        let body = r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a b"}]}"#;
        self.ask("POST /v1/chat/completions", key, body)
    }

    /// Any request, alone on its connection.
    pub(crate) fn ask(&self, line: &str, key: &str, body: &str) -> (u16, String) {
        let mut stream = self.begin(line, key, body);
        let mut got = Vec::new();
        let ended = stream.read_to_end(&mut got).map_err(|e| e.kind());
        let is_stuck = matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut));
        // A cut connection is an end like another, and leaves what came before.
        assert!(!is_stuck, "no end: {}", String::from_utf8_lossy(&got));
        let got = String::from_utf8_lossy(&got).into_owned();
        let status = got.split(' ').nth(1).and_then(|s| s.parse().ok());
        (status.unwrap_or(0), got)
    }

    /// The connection of a request that was sent.
    pub(crate) fn begin(&self, line: &str, key: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    }
}

/// Where an instance listens, out of the line that says so.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("address=http")?;
    let (_, rest) = rest.split_once("://")?;
    rest.split(' ').next()?.parse().ok()
}

/// A simulated provider on a runtime of its own.
pub(crate) struct Provider {
    pub(crate) sim: SimHandle,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let sim = runtime.block_on(Sim::start(Config::recording())).unwrap();
        Self { sim, runtime }
    }
}

/// Every file below `path` with its bytes.
pub(crate) fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}
