//! Multipart forms, as far as a provider needs to look into them.
use bytes::Bytes;
use memchr::memmem;

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    pub(super) content: Bytes,
}

/// A form's parts in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form(pub(super) Vec<Part>);

impl Form {
    /// Takes a form apart; `None` if it is none, or is cut short.
    pub(super) fn parse(content_type: &str, body: &Bytes) -> Option<Self> {
        let delimiter = format!("\r\n--{}", boundary(content_type)?);
        // The first delimiter has no line end before it.
        let first = delimiter.get(2..)?;
        if !body.starts_with(first.as_bytes()) {
            return None;
        }
        let mut rest = body.slice(first.len()..);
        let mut parts = Vec::new();
        loop {
            if rest.starts_with(b"--") {
                return Some(Self(parts));
            }
            let end = memmem::find(&rest, delimiter.as_bytes())?;
            // The line of the delimiter ends before the part begins.
            if end < 2 {
                return None;
            }
            parts.push(part(&rest.slice(2..end))?);
            rest = rest.slice(end + delimiter.len()..);
        }
    }

    /// The text of a field.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let part = self.0.iter().find(|p| p.name == name)?;
        Some(String::from_utf8_lossy(&part.content).into_owned())
    }

    /// The first part that is a file.
    pub(super) fn file(&self) -> Option<&Part> {
        self.0.iter().find(|p| p.filename.is_some())
    }
}

fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameter(parameters, "boundary")
}

/// A parameter's value without its quotes.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split(';').find_map(|p| {
        let (found, value) = p.split_once('=')?;
        found
            .trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().trim_matches('"'))
    })
}

fn part(raw: &Bytes) -> Option<Part> {
    let end = memmem::find(raw, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(raw.get(..end)?).into_owned();
    let disposition = head
        .lines()
        .find(|l| l.to_ascii_lowercase().starts_with("content-disposition:"))?;
    Some(Part {
        name: parameter(disposition, "name")?.to_owned(),
        filename: parameter(disposition, "filename").map(str::to_owned),
        content: raw.slice(end + 4..),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
        --b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
        Content-Type: text/plain\r\n\r\nx\r\n--\r\ny\r\n--b--\r\n";

    fn check(content_type: &str, body: &str, expect: Option<(&str, &str)>) {
        let form = Form::parse(content_type, &Bytes::copy_from_slice(body.as_bytes()));
        let got = form.map(|f| {
            let file = f
                .file()
                .map(|p| String::from_utf8_lossy(&p.content).into_owned());
            (
                f.field("purpose").unwrap_or_default(),
                file.unwrap_or_default(),
            )
        });
        assert_eq!(got, expect.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn forms_are_taken_apart_by_their_boundary() {
        let expect = Some(("batch", "x\r\n--\r\ny"));
        check("multipart/form-data; boundary=b", BODY, expect);
        check(
            "Multipart/Form-Data; charset=utf-8; Boundary=\"b\"",
            BODY,
            expect,
        );
    }

    #[test]
    fn what_is_no_form_is_refused() {
        check("application/json", BODY, None);
        check("multipart/form-data", BODY, None);
        check("multipart/form-data; boundary=c", BODY, None);
        check(
            "multipart/form-data; boundary=b",
            &BODY[..BODY.len() - 9],
            None,
        );
        check("multipart/form-data; boundary=b", "--b\r\nx\r\n--b--", None);
        check("multipart/form-data; boundary=b", "--b\r\n--b--", None);
    }
}
