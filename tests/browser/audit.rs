//! What holds for every page: it can be read and used by everybody at every width, the browser has
//! nothing to complain about, and no other host is asked for anything.
use crate::{
    chrome::{Browser, Script},
    stage::{Stage, in_browser},
    vendor::AXE,
};
use serde_json::{Value, json};

const CHECK: &str = include_str!("check.js");

/// A desktop and a phone.
const SIZES: [(u32, u32); 2] = [(1440, 900), (390, 844)];

/// What a page can look like.
pub(crate) const THEMES: [&str; 2] = ["light", "dark"];

/// How many requests a first look at a page may take.
const REQUESTS: usize = 6;

/// What is done on a page before it is looked at.
#[derive(Clone, Debug)]
pub(crate) enum First {
    Nothing,
    /// Its form is sent as it is, past the browser's own checks.
    Send,
    /// A text is typed into that field, its form is sent, and that comes.
    Type {
        field: &'static str,
        text: String,
        then: &'static str,
    },
    /// That is pressed, and that comes.
    Press {
        button: &'static str,
        then: &'static str,
    },
    /// Everything that folds is unfolded.
    Unfold,
}

/// A page to look at.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) path: String,
    pub(crate) first: First,
    /// The status of what is looked at.
    pub(crate) status: u16,
}

/// Looks at a page in that theme, wide and narrow: in the first theme it comes on a desktop, in the
/// other one on a phone. Gives what is wrong.
pub(crate) async fn faults(stage: &Stage, visit: &Visit, theme: &str) -> Vec<String> {
    let browser = &stage.browser;
    let language = stage.language;
    let mut sizes = SIZES;
    if theme != THEMES[0] {
        sizes.reverse();
    }
    browser.resize(sizes[0]).await;
    let mut found = load(stage, visit, theme).await;
    let document = format!("html[lang='{language}'][data-theme='{theme}']");
    browser.find(&document).await;
    browser.script(AXE).await;
    for size in sizes {
        browser.resize(size).await;
        if matches!(visit.first, First::Unfold) {
            browser.script(UNFOLD).await;
        }
        // A theme changes nothing but colours, and everything else was looked at in the first.
        let seen = check(browser, size.0, theme != THEMES[0]).await;
        found.extend(seen.into_iter().map(|fault| format!("{size:?} {fault}")));
    }
    let Visit { path, first, .. } = visit;
    let place = |fault| format!("{path} {first:?} {language} {theme}: {fault}");
    found.into_iter().map(place).collect()
}

const UNFOLD: &str = "for (const part of document.querySelectorAll('details')) part.open = true;";

/// What is wrong with the page as it stands.
async fn check(browser: &Browser, width: u32, only_colours: bool) -> Vec<String> {
    let arguments = vec![json!(width), json!(only_colours)];
    let found = browser.client.execute_async(CHECK, arguments).await;
    let found = found.unwrap();
    let lines = found.as_array().unwrap().iter();
    lines
        .map(|line| line.as_str().unwrap().to_owned())
        .collect()
}

/// Opens the page. Gives what is wrong with the way it came.
async fn load(stage: &Stage, visit: &Visit, theme: &str) -> Vec<String> {
    let browser = &stage.browser;
    let cookie = json!({"name": "fairlane_theme", "value": theme, "url": stage.address("/")});
    browser.devtools("Network.setCookie", cookie).await;
    browser.log("performance").await;
    browser.log("browser").await;
    stage.open(&visit.path).await;
    match &visit.first {
        First::Nothing | First::Unfold => (),
        First::Send => {
            browser.script(SEND).await;
            browser.find("[role='alert'] li").await;
        }
        First::Type { field, text, then } => {
            browser.fill(field, text).await;
            let send = format!("form:has({field}) .actions .is-primary");
            browser.press(&send).await;
            browser.find(then).await;
        }
        First::Press { button, then } => {
            browser.press(button).await;
            browser.find(then).await;
        }
    }
    let events = browser.log("performance").await;
    let mut faults = traffic(stage, visit, &events);
    let complaints = browser.log("browser").await;
    faults.extend(
        complaints
            .iter()
            .filter_map(|entry| complaint(visit, entry)),
    );
    faults
}

const SEND: &str = "document.querySelector('main form[method=post]:not(#clear)').submit();";

/// What the network shows.
fn traffic(stage: &Stage, visit: &Visit, events: &[Value]) -> Vec<String> {
    let events: Vec<Value> = events
        .iter()
        .map(|entry| serde_json::from_str(entry["message"].as_str().unwrap()).unwrap())
        .collect();
    let of = |method: &'static str| {
        let messages = events.iter().map(|event| &event["message"]);
        let chosen = messages.filter(move |message| message["method"] == method);
        chosen.map(|message| &message["params"])
    };
    let home = stage.address("/");
    // What a browser draws on a field of its own is "asked for" inside of it.
    let is_inside = |request: &&Value| request["url"].as_str().unwrap().starts_with("data:");
    let asked: Vec<&Value> = of("Network.requestWillBeSent")
        .map(|sent| &sent["request"])
        .filter(|request| !is_inside(request))
        .collect();
    let mut faults: Vec<String> = asked
        .iter()
        .map(|request| request["url"].as_str().unwrap())
        .filter(|url| !url.starts_with(&home))
        .map(|url| format!("it asked for {url}"))
        .collect();
    // The live part goes on asking.
    let is_tick = |request: &&&Value| request["headers"].get("X-Shown-Version").is_some();
    let requests = asked.iter().filter(|request| !is_tick(request)).count();
    if requests == 0 || (matches!(visit.first, First::Nothing) && requests > REQUESTS) {
        faults.push(format!("it took {requests} requests"));
    }
    let mut answers = of("Network.responseReceived");
    let status = answers.rfind(|got| got["type"] == "Document");
    let status = status.map(|got| &got["response"]["status"]);
    if status != Some(&json!(visit.status)) {
        faults.push(format!("it came with status {status:?}"));
    }
    faults
}

/// What the browser has to say, unless it only repeats the status that is expected.
fn complaint(visit: &Visit, entry: &Value) -> Option<String> {
    let level = entry["level"].as_str()?;
    let message = entry["message"].as_str()?;
    let address = visit.path.split('?').next()?;
    let is_status = visit.status >= 400
        && message.contains(address)
        && message.contains(&format!("a status of {}", visit.status));
    let is_quiet = is_status || !["WARNING", "SEVERE"].contains(&level);
    (!is_quiet).then(|| format!("the browser says {level} {message}"))
}

#[test]
fn what_is_wrong_with_a_page_is_found() {
    let page = "<!DOCTYPE html><html lang=en><title>t</title><main><h1>h</h1><p>text</p></main>";
    let cases = [
        ("", ""),
        ("<p style=font-size:11px>small</p>", "text of 11 px"),
        ("<div style=width:2000px>wide</div>", "overflows sideways"),
        (
            "<button style=padding:0;border:0;height:20px;width:90px>b</button>",
            "a target of 90 by 20",
        ),
        ("<a href=x>alone</a>", "a target of"),
        ("<p>In a sentence, <a href=x>a link</a> is small.</p>", ""),
        ("<p style=color:#999>pale</p>", "color-contrast"),
        ("<input style=height:40px;width:90px>", "label at input"),
    ];
    in_browser("en", Script::On, async |browser| {
        for (part, expected) in cases {
            let text = page.replace("</main>", &format!("{part}</main>"));
            browser.open("about:blank").await;
            let write = "document.open(); document.write(arguments[0]); document.close();";
            browser
                .client
                .execute(write, vec![json!(text)])
                .await
                .unwrap();
            browser.script(AXE).await;
            browser.resize(SIZES[1]).await;
            let found = check(browser, SIZES[1].0, false).await;
            let is_as_expected = match expected {
                "" => found.is_empty(),
                _ => found.iter().any(|fault| fault.contains(expected)),
            };
            assert!(is_as_expected, "{part}: {found:?}");
        }
    });
}
