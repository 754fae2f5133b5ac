//! What an import would do, or did, as rows and sentences.
//!
//! Invariant: of a secret nothing is shown but its last four characters.
use super::pending::Paste;
use crate::{
    dashboard::{live, setup::secret_fault, shell::Shell},
    document::single::Thing,
    domain::{
        pool::document::{Change, ChangeKind, Document, Mistake, Plan},
        secret::Secret,
    },
};
use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

/// Rows that are drawn: enough to read, and a page that stays small.
const ROWS: usize = 200;

/// One thing of the plan.
pub(super) struct Row {
    pub(super) kind: ChangeKind,
    pub(super) token: &'static str,
    pub(super) icon: &'static str,
    pub(super) word: String,
    pub(super) sort: String,
    pub(super) name: Arc<str>,
    pub(super) hint: String,
    /// Where it stands in what was pasted; empty for what is not listed.
    pub(super) place: String,
}

/// A sentence about one place.
pub(super) struct Line {
    pub(super) place: String,
    pub(super) text: String,
    /// Whether the sentence is the reader's own, which speaks English.
    pub(super) is_english: bool,
}

/// A plan as it is shown.
pub(super) struct View {
    pub(super) rows: Vec<Row>,
    /// Rows that are not drawn.
    pub(super) more: usize,
    pub(super) sum: String,
    pub(super) repeats: Vec<Line>,
    pub(super) notes: Vec<Line>,
    /// Client keys that are given a secret.
    pub(super) minted: usize,
    pub(super) is_empty: bool,
    /// Whether something drains or goes because it is not listed.
    pub(super) is_wide: bool,
    /// Names what is shown, so that a plan that differs is told apart.
    pub(super) signature: String,
}

impl View {
    pub(super) fn new(shell: &Shell, paste: &Paste, document: &Document, plan: &Plan) -> Self {
        let repeats = repeats(document);
        let mut rows = rows(shell, document, plan);
        let count = |wanted: &[ChangeKind]| {
            let wanted = |row: &&Row| wanted.contains(&row.kind);
            rows.iter().filter(wanted).count()
        };
        let unlisted = count(&[ChangeKind::Drained, ChangeKind::Removed]);
        let sum = shell
            .t("import-sum")
            .num("added", count(&[ChangeKind::Added]))
            .num(
                "changed",
                count(&[ChangeKind::Changed, ChangeKind::Rotated]),
            )
            .num("unlisted", unlisted)
            .num("unchanged", count(&[ChangeKind::Unchanged]))
            .num("repeated", repeats.len())
            .to_string();
        let signature = signature(&rows);
        let more = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        let is_repeat = |note: &&Mistake| !repeats.iter().any(|(path, _)| *path == note.path);
        let notes = plan.warnings.iter().enumerate();
        let notes = notes
            .filter(|(n, note)| *n < document.warnings.len() || is_repeat(note))
            .map(|(_, note)| note_line(shell, paste, note));
        Self {
            notes: notes.collect(),
            repeats: repeats
                .iter()
                .map(|repeat| repeat_line(shell, repeat))
                .collect(),
            rows,
            more,
            sum,
            minted: plan.minted.len(),
            is_empty: plan.is_empty(),
            is_wide: unlisted > 0,
            signature,
        }
    }
}

/// Everything that changes, and what is listed and does not.
fn rows(shell: &Shell, document: &Document, plan: &Plan) -> Vec<Row> {
    let mut secrets: HashMap<&str, &str> = HashMap::new();
    let mut names: HashMap<&str, &str> = HashMap::new();
    for entry in &document.credentials {
        match (&entry.secret, &entry.name) {
            (Some(secret), _) => secrets.entry(secret.expose()).or_insert(&entry.path),
            (None, Some(name)) => names.entry(name).or_insert(&entry.path),
            (None, None) => continue,
        };
    }
    let endpoints: HashSet<&str> = document.endpoints.iter().map(|e| &*e.name).collect();
    let accounts: HashSet<&str> = document.accounts.iter().map(|a| &*a.name).collect();
    let keys: HashSet<&str> = document.keys.iter().map(|k| &*k.name).collect();
    let mut rows = things(shell, "import-endpoint", &plan.endpoints, |e| {
        (
            String::new(),
            endpoints.contains(&*e.name).then(String::new),
        )
    });
    rows.extend(things(shell, "import-account", &plan.accounts, |a| {
        (String::new(), accounts.contains(&*a.name).then(String::new))
    }));
    rows.extend(things(shell, "import-credential", &plan.credentials, |c| {
        let path = secrets.get(c.secret.expose());
        let path = path.or_else(|| names.get(&*c.name));
        (hint(&c.secret), path.map(|path| place(shell, path)))
    }));
    rows.extend(things(shell, "import-key", &plan.keys, |k| {
        (String::new(), keys.contains(&*k.name).then(String::new))
    }));
    rows
}

/// The rows of one kind; `look` gives the secret's end and the place, if it is listed.
fn things<T: Thing>(
    shell: &Shell,
    sort: &'static str,
    changes: &[Change<T>],
    look: impl Fn(&T) -> (String, Option<String>),
) -> Vec<Row> {
    let row = |change: &Change<T>| {
        let (hint, place) = look(&change.value);
        if change.kind == ChangeKind::Unchanged && place.is_none() {
            return None;
        }
        let (token, icon, word) = words(change.kind);
        Some(Row {
            kind: change.kind,
            token,
            icon,
            word: shell.t(word).to_string(),
            sort: shell.t(sort).to_string(),
            name: Arc::clone(change.value.name()),
            hint,
            place: place.unwrap_or_default(),
        })
    };
    changes.iter().filter_map(row).collect()
}

fn words(kind: ChangeKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ChangeKind::Added => ("ok", "ok", "import-added"),
        ChangeKind::Changed => ("info", "info", "import-changed"),
        ChangeKind::Rotated => ("info", "key", "import-rotated"),
        ChangeKind::Drained => ("warn", "draining", "import-drained"),
        ChangeKind::Removed => ("bad", "disabled", "import-removed"),
        ChangeKind::Unchanged => ("off", "active", "import-unchanged"),
    }
}

fn hint(secret: &Secret) -> String {
    format!("…{}", secret.hint())
}

/// Of all rows, drawn or not. Names that are made up for what is new are made up alike each time.
fn signature(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:?} {} {:?} {}",
            row.kind, row.sort, row.name, row.hint
        );
    }
    live::version(&text)
}

/// Entries whose secret stands earlier already: their place and that of the first.
fn repeats(document: &Document) -> Vec<(&str, &str)> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut repeats = Vec::new();
    for entry in &document.credentials {
        let Some(secret) = &entry.secret else {
            continue;
        };
        match first.get(secret.expose()) {
            Some(earlier) => repeats.push((entry.path.as_str(), *earlier)),
            None => {
                first.insert(secret.expose(), &entry.path);
            }
        }
    }
    repeats
}

fn repeat_line(shell: &Shell, (path, first): &(&str, &str)) -> Line {
    let first = place(shell, first);
    Line {
        place: place(shell, path),
        text: shell.t("import-repeat").text("first", first).to_string(),
        is_english: false,
    }
}

/// A path in the reader's language, where it is that of a line.
fn place(shell: &Shell, path: &str) -> String {
    match line_number(path) {
        Some(number) => shell.t("import-line").num("number", number).to_string(),
        None => path.to_owned(),
    }
}

/// The number of a line of a list; places in a document name a column as well.
fn line_number(path: &str) -> Option<usize> {
    path.strip_prefix("line ")?.parse().ok()
}

/// The line of a list that the path names.
fn list_line<'a>(paste: &'a Paste, path: &str) -> Option<&'a str> {
    if paste.is_document() {
        return None;
    }
    let number = line_number(path)?;
    paste.text().lines().nth(number.checked_sub(1)?)
}

/// The same, in a list of bare secrets: no line of it names columns.
fn bare_line<'a>(paste: &'a Paste, path: &str) -> Option<&'a str> {
    let first = paste.text().lines().find(|line| !line.trim().is_empty())?;
    let names_columns = first.split(',').any(|cell| {
        cell.trim_matches(['"', ' ', '\u{feff}'])
            .eq_ignore_ascii_case("secret")
    });
    if names_columns {
        return None;
    }
    list_line(paste, path)
}

/// Whether a line of a list is a remark.
fn is_comment(line: &str) -> bool {
    line.trim_start_matches('\u{feff}').trim().starts_with('#')
}

/// What is wrong, in the reader's language where the line itself tells.
pub(super) fn mistake_line(shell: &Shell, paste: &Paste, mistake: &Mistake) -> Line {
    let told = bare_line(paste, &mistake.path).and_then(|line| {
        if line.contains(',') {
            return Some(shell.t("import-comma").to_string());
        }
        let error = Secret::clean(line).err()?;
        Some(secret_fault(shell, error))
    });
    line(shell, mistake, told)
}

fn note_line(shell: &Shell, paste: &Paste, note: &Mistake) -> Line {
    let key = if list_line(paste, &note.path).is_some_and(is_comment) {
        Some("import-comment")
    } else {
        bare_line(paste, &note.path).map(|_| "import-cleaned")
    };
    line(shell, note, key.map(|key| shell.t(key).to_string()))
}

fn line(shell: &Shell, note: &Mistake, told: Option<String>) -> Line {
    Line {
        place: place(shell, &note.path),
        is_english: told.is_none(),
        text: told.unwrap_or_else(|| note.what.clone()),
    }
}
