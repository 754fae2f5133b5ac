//! The paths under `/v1`, and which methods each of them has.
use crate::{domain::protocol::Protocol, protocol::operation::Operation};
use http::Method;

/// The methods of one path.
#[derive(Debug)]
pub(super) struct Methods {
    read: Option<Operation>,
    post: Option<Operation>,
    delete: Option<Operation>,
    /// What the header `Allow` says of them.
    pub(super) allow: &'static str,
}

impl Methods {
    /// The operation of that method; `HEAD` is `GET` without the body.
    pub(super) fn operation(&self, method: &Method) -> Option<Operation> {
        match *method {
            Method::GET | Method::HEAD => self.read,
            Method::POST => self.post,
            Method::DELETE => self.delete,
            _ => None,
        }
    }
}

const fn post(operation: Operation) -> Methods {
    Methods {
        read: None,
        post: Some(operation),
        delete: None,
        allow: "POST",
    }
}

const fn read(operation: Operation) -> Methods {
    Methods {
        read: Some(operation),
        post: None,
        delete: None,
        allow: "GET, HEAD",
    }
}

const fn read_or_post(read: Operation, post: Operation) -> Methods {
    Methods {
        read: Some(read),
        post: Some(post),
        delete: None,
        allow: "GET, HEAD, POST",
    }
}

const fn read_or_delete(read: Operation, delete: Operation) -> Methods {
    Methods {
        read: Some(read),
        post: None,
        delete: Some(delete),
        allow: "GET, HEAD, DELETE",
    }
}

const fn any(read: Operation, post: Operation, delete: Operation) -> Methods {
    Methods {
        read: Some(read),
        post: Some(post),
        delete: Some(delete),
        allow: "GET, HEAD, POST, DELETE",
    }
}

/// The longest path has this many segments below `/v1`, with one to notice a longer one.
const SEGMENTS: usize = 6;

/// The methods of the path `rest` below `/v1/`, and the id in it that has an owner.
pub(super) fn find(rest: &str, protocol: Protocol) -> Option<(&'static Methods, Option<&str>)> {
    let mut segments = [""; SEGMENTS];
    let mut count = 0;
    for segment in rest.split('/') {
        *segments.get_mut(count)? = segment;
        count += 1;
    }
    let segments = segments.get(..count)?;
    match protocol {
        Protocol::Anthropic => anthropic(segments),
        Protocol::OpenAi => generating(segments)
            .map(|methods| (methods, None))
            .or_else(|| stored(segments)),
        Protocol::OpenAiVideos | Protocol::Gemini | Protocol::FalQueue => None,
    }
}

fn generating(segments: &[&str]) -> Option<&'static Methods> {
    use Operation as O;
    Some(match segments {
        ["chat", "completions"] => const { &post(O::ChatCompletions) },
        ["completions"] => const { &post(O::Completions) },
        ["responses"] => const { &post(O::Responses) },
        ["responses", "compact"] => const { &post(O::ResponsesCompact) },
        ["responses", "input_tokens"] => const { &post(O::ResponsesInputTokens) },
        ["embeddings"] => const { &post(O::Embeddings) },
        ["moderations"] => const { &post(O::Moderations) },
        ["images", "generations"] => const { &post(O::ImageGenerations) },
        ["images", "edits"] => const { &post(O::ImageEdits) },
        ["images", _, ..] => const { &post(O::Images) },
        ["audio", "speech"] => const { &post(O::Speech) },
        ["audio", "transcriptions"] => const { &post(O::Transcriptions) },
        ["audio", _, ..] => const { &post(O::Audio) },
        _ => return None,
    })
}

fn stored<'p>(segments: &[&'p str]) -> Option<(&'static Methods, Option<&'p str>)> {
    use Operation as O;
    Some(match *segments {
        ["responses", id] => (
            const { &read_or_delete(O::ResponseRetrieve, O::ResponseDelete) },
            Some(id),
        ),
        ["responses", id, "cancel"] => (const { &post(O::ResponseCancel) }, Some(id)),
        ["responses", id, "input_items"] => (const { &read(O::ResponseInputItems) }, Some(id)),
        ["files", ..] => return files(segments),
        ["uploads"] => (const { &post(O::UploadCreate) }, None),
        ["uploads", id, "parts"] => (const { &post(O::UploadPart) }, Some(id)),
        ["uploads", id, "complete"] => (const { &post(O::UploadComplete) }, Some(id)),
        ["uploads", id, "cancel"] => (const { &post(O::UploadCancel) }, Some(id)),
        ["batches"] => (const { &read_or_post(O::BatchList, O::BatchCreate) }, None),
        ["batches", id] => (const { &read(O::BatchRetrieve) }, Some(id)),
        ["batches", id, "cancel"] => (const { &post(O::BatchCancel) }, Some(id)),
        ["conversations"] => (const { &post(O::ConversationCreate) }, None),
        ["conversations", id] => (
            const {
                &any(
                    O::ConversationRetrieve,
                    O::ConversationUpdate,
                    O::ConversationDelete,
                )
            },
            Some(id),
        ),
        ["conversations", id, "items"] => (
            const { &read_or_post(O::ConversationItems, O::ConversationItemsChange) },
            Some(id),
        ),
        ["conversations", id, "items", _] => (
            const { &read_or_delete(O::ConversationItems, O::ConversationItemsChange) },
            Some(id),
        ),
        _ => return None,
    })
}

fn files<'p>(segments: &[&'p str]) -> Option<(&'static Methods, Option<&'p str>)> {
    use Operation as O;
    Some(match *segments {
        ["files"] => (const { &read_or_post(O::FileList, O::FileCreate) }, None),
        ["files", id] => (
            const { &read_or_delete(O::FileRetrieve, O::FileDelete) },
            Some(id),
        ),
        ["files", id, "content"] => (const { &read(O::FileContent) }, Some(id)),
        _ => return None,
    })
}

fn anthropic<'p>(segments: &[&'p str]) -> Option<(&'static Methods, Option<&'p str>)> {
    use Operation as O;
    Some(match *segments {
        ["messages"] => (const { &post(O::Messages) }, None),
        ["messages", "count_tokens"] => (const { &post(O::MessagesCountTokens) }, None),
        ["messages", "batches"] => (
            const { &read_or_post(O::MessageBatchList, O::MessageBatchCreate) },
            None,
        ),
        ["messages", "batches", id] => (
            const { &read_or_delete(O::MessageBatchRetrieve, O::MessageBatchDelete) },
            Some(id),
        ),
        ["messages", "batches", id, "cancel"] => (const { &post(O::MessageBatchCancel) }, Some(id)),
        ["messages", "batches", id, "results"] => {
            (const { &read(O::MessageBatchResults) }, Some(id))
        }
        ["files", ..] => return files(segments),
        _ => return None,
    })
}
