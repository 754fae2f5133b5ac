//! What a scenario plays on: an instance in front of a simulated provider, a browser, a language.
use crate::{
    chrome::{Browser, Script},
    program::{Home, Instance, Provider},
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
};

/// How many browsers may run at a time.
pub(crate) const SEATS: usize = 2;

/// The operator's password.
pub(crate) const PASSWORD: &str = "correct horse battery";

static TAKEN: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// The right to run one browser; given back when it is dropped.
struct Seat;

impl Seat {
    fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken >= SEATS;
        let mut taken = LEFT
            .wait_while(taken, is_full)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LEFT.notify_one();
    }
}

/// One scenario's world.
pub(crate) struct Stage {
    pub(crate) browser: Browser,
    pub(crate) instance: Instance,
    pub(crate) provider: Provider,
    pub(crate) language: &'static str,
    pub(crate) script: Script,
    _home: Home,
}

/// Plays a scenario on an instance that begins with that pool document.
pub(crate) fn play(
    language: &'static str,
    script: Script,
    pool: impl FnOnce(&str) -> Option<Value>,
    scenario: impl AsyncFnOnce(&Stage),
) {
    let _seat = Seat::take();
    let provider = Provider::start();
    let home = Home::new();
    if let Some(document) = pool(&provider.sim.base_url()) {
        home.import(&document);
    }
    let instance = home.serve(&[]);
    let runtime = runtime();
    let stage = Stage {
        browser: runtime.block_on(Browser::start(language, script)),
        instance,
        provider,
        language,
        script,
        _home: home,
    };
    runtime.block_on(scenario(&stage));
    drop(stage.browser);
    stage.instance.stop();
}

/// Plays a scenario that needs a browser alone.
pub(crate) fn in_browser(language: &str, script: Script, scenario: impl AsyncFnOnce(&Browser)) {
    let _seat = Seat::take();
    let runtime = runtime();
    let browser = runtime.block_on(Browser::start(language, script));
    runtime.block_on(scenario(&browser));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

impl Stage {
    /// The address of a page.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.instance.address)
    }

    pub(crate) async fn open(&self, path: &str) {
        self.browser.open(&self.address(path)).await;
    }

    /// The message of that key in the scenario's language, up to its first variable part.
    pub(crate) fn words(&self, key: &str) -> String {
        let place = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("locales")
            .join(self.language);
        let files = fs::read_dir(place).unwrap();
        let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        let start = format!("{key} = ");
        let found: Vec<String> = texts
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|line| Some(line.strip_prefix(&start)?.to_owned()))
            .collect();
        assert_eq!(found.len(), 1, "{key}");
        let fixed = found[0].split('{').next().unwrap_or_default().trim();
        assert!(!fixed.is_empty(), "{key} begins with a variable part");
        fixed.to_owned()
    }

    /// Waits until that element says what the message says.
    pub(crate) async fn says(&self, css: &str, key: &str) -> String {
        self.browser.text(css, &self.words(key)).await
    }

    /// Gives the instance its first password.
    pub(crate) async fn choose_password(&self) {
        let browser = &self.browser;
        self.open("/").await;
        browser.at("/setup/password").await;
        self.says("h1", "setup-password-title").await;
        browser.fill("#password", PASSWORD).await;
        browser.fill("#repeated", PASSWORD).await;
        browser
            .press("form[action='/setup/password'] .is-primary")
            .await;
    }
}
