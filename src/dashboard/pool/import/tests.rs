//! The pages of an import, in every state.
use super::*;
use crate::{digest, domain::pool::document::Tools};

pub(in crate::dashboard::pool) fn samples(
    shell: &Shell,
    contents: &Contents,
) -> Vec<(&'static str, String)> {
    let page = |text: &str, mode| {
        let mut n = 100;
        let mut tools = Tools {
            mint: &mut || {
                n += 1;
                n
            },
            new_secret: &mut || "fl-sample".to_owned(),
            fingerprint: &|secret| digest::sha256(secret.as_bytes()),
            hash_key: &|secret| digest::sha256(secret.as_bytes()),
        };
        let paste = Paste::new(text.to_owned(), "e-1".to_owned(), mode);
        let mut document = paste.document().unwrap();
        let mistakes = std::mem::take(&mut document.mistakes);
        let plan = plan(&document, contents, &mut tools, mode).unwrap();
        let view = View::new(shell, &paste, &document, &plan);
        let lines = mistakes.iter().map(|m| mistake_line(shell, &paste, m));
        let mut form = PastePage::new(shell.clone(), contents, &Typed::default());
        form.mistakes = lines.collect();
        (form, PreviewPage::new(shell.clone(), "x", view), plan)
    };
    let (mut form, preview, _) = page(
        "sk-one-two-three\n#\nsk-one-two-three\n\"sk-4\"\na b\na,b\n",
        Mode::Merge,
    );
    let mut all = vec![("pool/import", form.render().unwrap())];
    form.faults.add("text", shell.t("import-text-empty"));
    form.faults
        .add("endpoint", shell.t("import-endpoint-fault"));
    form.said = Some(shell.t("import-gone").to_string());
    form.view = Some(preview.view);
    all.push(("pool/import", form.render().unwrap()));
    let text = r#"{"accounts":[{"name":"a-2"}],"credentials":[],"keys":[{"name":"k"}]}"#;
    let (_, mut wide, plan) = page(text, Mode::Sync);
    wide.has_changed = true;
    wide.faults
        .add("word", shell.t("import-word-fault").text("word", WORD));
    all.push(("pool/preview", wide.render().unwrap()));
    wide.done = Some(plan.minted);
    all.push(("pool/preview", wide.render().unwrap()));
    let (_, nothing, _) = page(r#"{"endpoints":[]}"#, Mode::Merge);
    all.push(("pool/preview", nothing.render().unwrap()));
    all
}
