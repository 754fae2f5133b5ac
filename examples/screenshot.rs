//! Takes the picture of the README: `cargo build && cargo run --example screenshot [SECONDS]`.
//!
//! It starts `fairlane demo`, lets its traffic run for that long, logs in with a real browser and
//! writes `docs/overview.png`. Demo and browser end with it.
use anyhow::{Context as _, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use chrome::{Browser, Script};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

#[path = "../tests/browser/chrome.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod chrome;

/// Long enough for the charts to have a shape.
const SECONDS: u64 = 150;

const SIZE: (u32, u32) = (1440, 900);

/// What a README may ask its readers to load.
const BYTES: usize = 200_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let seconds = match std::env::args().nth(1) {
        Some(text) => text.parse().context("SECONDS is a whole number")?,
        None => SECONDS,
    };
    let demo = Demo::start()?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let browser = Browser::start("en", Script::On).await;
    let png = picture(&browser, &demo).await?;
    ensure!(png.len() <= BYTES, "the picture takes {} bytes", png.len());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/overview.png");
    std::fs::write(&file, png).with_context(|| file.display().to_string())?;
    println!("{}", file.display());
    Ok(())
}

async fn picture(browser: &Browser, demo: &Demo) -> anyhow::Result<Vec<u8>> {
    let cookie = json!({"name": "fairlane_theme", "value": "light", "url": demo.address});
    browser.devtools("Network.setCookie", cookie).await;
    browser.resize(SIZE).await;
    browser.open(&format!("{}login", demo.address)).await;
    browser.fill("#password", &demo.password).await;
    browser.press("form[action='/login'] .is-primary").await;
    browser.at("/").await;
    // The page as it is once it lives.
    browser.text(".live-word", "Live").await;
    let taken = browser.devtools("Page.captureScreenshot", json!({"format": "png"}));
    let taken = taken.await;
    let data = taken["data"].as_str().context("no picture was taken")?;
    Ok(BASE64_STANDARD.decode(data)?)
}

/// A running demo.
struct Demo {
    child: Child,
    address: String,
    password: String,
}

impl Demo {
    fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?.with_file_name("../fairlane");
        let child = Command::new(&program)
            .args(["demo", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("build it first: {}", program.display()))?;
        let mut demo = Self {
            child,
            address: String::new(),
            password: String::new(),
        };
        let stdout = demo.child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        demo.address = said(&mut lines, "dashboard")?;
        demo.password = said(&mut lines, "password")?;
        // The rest is read, so that the demo never waits for a reader.
        thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(demo)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the demo says under that name.
fn said(lines: &mut Lines<BufReader<ChildStdout>>, name: &str) -> anyhow::Result<String> {
    for line in lines {
        if let Some(value) = line?.trim_start().strip_prefix(name) {
            return Ok(value.trim().to_owned());
        }
    }
    anyhow::bail!("the demo did not say its {name}")
}
