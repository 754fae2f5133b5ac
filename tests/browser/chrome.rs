//! One Chromium, driven over the `WebDriver` protocol, with a profile of its own.
//!
//! Invariant: driver and browser end with their handle, also when a test panics, and with the process
//! of the tests, also when that is killed; nothing that was not started here is touched. Whatever is waited for is a condition, for up to [`PATIENCE`].
#![expect(
    clippy::unwrap_used,
    reason = "a test whose browser does not play along has failed"
)]

use fantoccini::{
    Client, ClientBuilder, Locator, elements::Element, wd::WebDriverCompatibleCommand,
};
use serde_json::{Value, json};
use std::{
    fmt::Debug,
    fs,
    future::Future,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// What has not come by then will not come.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks at a condition.
const PERIOD: Duration = Duration::from_millis(25);

/// Chromium may look up no name and reach no host but this one.
const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1440,900",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// Whether pages may run script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    On,
    Off,
}

/// A browser with one window.
pub(crate) struct Browser {
    pub(crate) client: Client,
    // The processes end before their directory does.
    _driver: Driver,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one that asks for pages in `language`.
    pub(crate) async fn start(language: &str, script: Script) -> Self {
        let chromium = installed("chromium");
        let profile = tempfile::tempdir().unwrap();
        let driver = Driver::start(profile.path().into());
        let mut arguments: Vec<_> = ARGUMENTS.map(str::to_owned).into();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let javascript = if script == Script::On { 1 } else { 2 };
        let capabilities = json!({
            "goog:chromeOptions": {
                "binary": chromium,
                "args": arguments,
                "prefs": {
                    "intl.accept_languages": language,
                    "profile.managed_default_content_settings.javascript": javascript,
                },
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": PATIENCE.as_millis(), "pageLoad": PATIENCE.as_millis()},
        });
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities.as_object().cloned().unwrap())
            .connect(&format!("http://127.0.0.1:{}", driver.port))
            .await
            .unwrap();
        Self {
            client,
            _driver: driver,
            _profile: profile,
        }
    }

    pub(crate) async fn open(&self, address: &str) {
        self.client.goto(address).await.unwrap();
    }

    /// Asks until there is an answer.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
    ) -> T {
        let looks = async {
            let mut ticks = tokio::time::interval(PERIOD);
            loop {
                ticks.tick().await;
                if let Some(seen) = look().await {
                    return seen;
                }
            }
        };
        let seen = tokio::time::timeout(PATIENCE, looks).await;
        if let Ok(seen) = seen {
            return seen;
        }
        let url = self.client.current_url().await.unwrap();
        let body = self.client.find(Locator::Css("body")).await.unwrap();
        let text = body.text().await.unwrap();
        panic!("waited in vain for {what} at {url}:\n{text}");
    }

    /// Waits for an element.
    pub(crate) async fn find(&self, css: &str) -> Element {
        self.found(Locator::Css(css)).await
    }

    /// Waits for an element, however it is told from others.
    pub(crate) async fn found(&self, by: Locator<'_>) -> Element {
        let look = async || self.client.find(by).await.ok();
        self.until(&format!("{by:?}"), look).await
    }

    /// Waits for an element whose text has `part` in it, and gives the text.
    pub(crate) async fn text(&self, css: &str, part: &str) -> String {
        let what = format!("{part:?} in {css}");
        let look = async || {
            let element = self.client.find(Locator::Css(css)).await.ok()?;
            let text = element.text().await.ok()?;
            text.contains(part).then_some(text)
        };
        self.until(&what, look).await
    }

    /// Types over what is in a field.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let what = format!("a field {css}");
        let type_over = async || {
            let field = self.client.find(Locator::Css(css)).await.ok()?;
            field.clear().await.ok()?;
            field.send_keys(text).await.ok()
        };
        self.until(&what, type_over).await;
    }

    /// Clicks what can be clicked; what another element covers is tried again.
    pub(crate) async fn click(&self, by: Locator<'_>) {
        let what = format!("something to click: {by:?}");
        let click = async || self.client.find(by).await.ok()?.click().await.ok();
        self.until(&what, click).await;
    }

    pub(crate) async fn press(&self, css: &str) {
        self.click(Locator::Css(css)).await;
    }

    /// Waits until the page at that path is there, whatever its query.
    pub(crate) async fn at(&self, path: &str) {
        let what = format!("the page {path}");
        let look = async || {
            let url = self.client.current_url().await.ok()?;
            (url.path() == path).then_some(())
        };
        self.until(&what, look).await;
    }

    /// The value of an expression in the page.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// A command of the `DevTools` protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.issue("goog/cdp/execute", body).await
    }

    /// Makes the page that large, whatever window it is in.
    pub(crate) async fn resize(&self, (width, height): (u32, u32)) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// What was written to a log since it was last read.
    pub(crate) async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.issue("se/log", json!({"type": kind})).await;
        entries.as_array().cloned().unwrap()
    }

    async fn issue(&self, path: &'static str, body: Value) -> Value {
        let command = Extension { path, body };
        self.client.issue_cmd(command).await.unwrap()
    }
}

/// A command that the standard does not have.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/{}", self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

/// A running chromedriver, and the browser that it starts.
struct Driver {
    child: Child,
    watchdog: Child,
    port: u16,
}

/// Waits for the end of these tests, which closes its standard input however it comes, and then
/// ends the driver's group of processes.
const WATCH: &str = "read -r _; kill -s KILL -- \"-$1\"";

fn watchdog(driver: u32) -> Child {
    Command::new("sh")
        .args(["-c", WATCH, "sh", &driver.to_string()])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Driver {
    fn start(home: PathBuf) -> Self {
        let child = Command::new(installed("chromedriver"))
            .arg("--port=0")
            .env("HOME", home)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let watchdog = watchdog(child.id());
        let mut driver = Self {
            child,
            watchdog,
            port: 0,
        };
        let stdout = driver.child.stdout.take().unwrap();
        let (found, port) = mpsc::channel();
        // It is read to its end, so that the driver never waits for a reader.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(port) = port_in(&line) {
                    // Only the first one is waited for.
                    let _ = found.send(port);
                }
            }
        });
        driver.port = port.recv_timeout(PATIENCE).unwrap();
        driver
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // From here on there is nothing left to watch.
        drop(self.watchdog.kill());
        drop(self.watchdog.wait());
        let family = descendants(self.child.id());
        // Whatever has ended by itself is as wished. The driver is left for last: it waits for its
        // browser, so that nothing of it stays behind.
        drop(
            Command::new("kill")
                .arg("-KILL")
                .args(family.iter().map(u32::to_string))
                .stderr(Stdio::null())
                .status(),
        );
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The port, out of the line that says that the driver is ready.
fn port_in(line: &str) -> Option<u16> {
    let (_, port) = line.split_once("started successfully on port ")?;
    port.trim_end_matches('.').parse().ok()
}

/// The processes below that one, by what the kernel says at this moment.
fn descendants(ancestor: u32) -> Vec<u32> {
    let processes: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, parent(id)?))
        })
        .collect();
    let mut family = vec![ancestor];
    let mut seen = 0;
    while let Some(&one) = family.get(seen) {
        let children = processes.iter().filter(|(_, parent)| *parent == one);
        family.extend(children.map(|(id, _)| *id));
        seen += 1;
    }
    family.split_off(1)
}

fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may hold anything but ends at the last bracket.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// Where a program is.
fn installed(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program));
    found
        .into_iter()
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            panic!(
                "`{program}` is missing, and the tests of the dashboard need it: install chromium, \
             chromium-driver and fonts-noto-cjk (Debian: apt-get install chromium chromium-driver \
             fonts-noto-cjk)"
            )
        })
}
