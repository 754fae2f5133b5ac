//! The ids of what an answer has made.
use super::{
    super::operation::Operation,
    object,
    walk::{Parts, string},
};
use crate::domain::owners::{Object, ObjectKind};

/// The objects that the answer to `operation` says to be there from now on. `body` is the decoded
/// document, or its beginning where it is too long to be kept.
pub fn made(operation: Operation, body: &[u8]) -> Vec<Object> {
    use Operation as O;
    let mut found = Vec::new();
    match operation {
        O::Responses | O::ResponsesCompact => response(body, &mut found),
        O::FileCreate => own_id(body, ObjectKind::File, &mut found),
        O::UploadCreate => own_id(body, ObjectKind::Upload, &mut found),
        O::ConversationCreate => own_id(body, ObjectKind::Conversation, &mut found),
        O::MessageBatchCreate => own_id(body, ObjectKind::MessageBatch, &mut found),
        O::BatchCreate => {
            own_id(body, ObjectKind::Batch, &mut found);
            files_of_batch(body, &mut found);
        }
        O::BatchRetrieve | O::BatchCancel => files_of_batch(body, &mut found),
        O::BatchList => {
            for (key, value) in members(body) {
                if key == b"\"data\"" {
                    Parts::of_array(value).for_each(|b| files_of_batch(b.value, &mut found));
                }
            }
        }
        O::UploadComplete => {
            for (key, value) in members(body) {
                if key == b"\"file\"" {
                    own_id(value, ObjectKind::File, &mut found);
                }
            }
        }
        _ => {}
    }
    found
}

/// The objects that an event of a stream of responses names: its response, and that one's
/// conversation. `data` is the event's data, or its beginning.
pub fn made_in_event(data: &[u8]) -> Vec<Object> {
    let mut found = Vec::new();
    for (key, value) in members(data) {
        if key == b"\"response\"" {
            response(value, &mut found);
        }
    }
    found
}

/// What is not stored cannot be named later, and many clients have nothing stored.
fn response(text: &[u8], found: &mut Vec<Object>) {
    let mut made = [None, None];
    for (key, value) in members(text) {
        match key {
            b"\"id\"" => made[0] = id(value, ObjectKind::Response),
            b"\"conversation\"" => made[1] = conversation(value),
            b"\"store\"" if value == b"false" => return,
            _ => {}
        }
    }
    found.extend(made.into_iter().flatten());
}

/// A conversation is named by its id, or is an object with one.
fn conversation(value: &[u8]) -> Option<Object> {
    let kind = ObjectKind::Conversation;
    let named = members(value).filter(|(key, _)| *key == b"\"id\"");
    let named = named.filter_map(|(_, value)| id(value, kind)).last();
    id(value, kind).or(named)
}

fn files_of_batch(text: &[u8], found: &mut Vec<Object>) {
    let files = members(text)
        .filter(|(key, _)| matches!(*key, b"\"output_file_id\"" | b"\"error_file_id\""));
    found.extend(files.filter_map(|(_, value)| id(value, ObjectKind::File)));
}

fn own_id(text: &[u8], kind: ObjectKind, found: &mut Vec<Object>) {
    let ids = members(text).filter(|(key, _)| *key == b"\"id\"");
    found.extend(ids.filter_map(|(_, value)| id(value, kind)).last());
}

fn members(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    Parts::of_object(text).map(|part| (part.key, part.value))
}

fn id(value: &[u8], kind: ObjectKind) -> Option<Object> {
    object(kind, &string(value)?)
}
