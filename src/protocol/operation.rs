//! Operations: what a data-plane request asks for, and what follows from that alone.
//!
//! Invariant: one table states for each operation its name, the leases that it takes, where its
//! model stands and what it does to state upstream; nobody else decides these by looking at paths.

/// Leases that a request takes while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leases {
    /// A slot held until the answer has ended.
    pub stream: bool,
    /// A slot held until upstream has begun to answer.
    pub create: bool,
}

impl Leases {
    /// No slot at all.
    pub const NONE: Self = Self::new(false, false);
    /// Only while upstream starts the work.
    pub const CREATE: Self = Self::new(false, true);
    /// From start to end of the answer.
    pub const STREAM: Self = Self::new(true, false);
    /// Both, as generating operations take them.
    pub const STREAM_AND_CREATE: Self = Self::new(true, true);

    const fn new(stream: bool, create: bool) -> Self {
        Self { stream, create }
    }
}

/// Where an operation's model is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelPlace {
    /// In the body; without one the request is refused.
    Body,
    /// In the body, where it may be left out.
    OptionalBody,
    /// In the path.
    Path,
    /// In the query, which whoever serves the operation reads.
    Query,
    /// Nowhere.
    Nowhere,
}

/// What an operation does to objects that live on with one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Makes an object whose id stands in the answer.
    Makes,
    /// Reads or changes the object whose id stands in the path.
    Uses,
    /// Ends the object whose id stands in the path.
    Ends,
    /// Lists objects.
    Lists,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $leases:ident, $model:ident, $effect:ident;)*) => {
        /// What a data-plane request asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation { $($(#[$doc])* $variant,)* }

        impl Operation {
            /// Every operation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in ledger and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The leases that it takes, unless it merely reattaches.
            pub const fn leases(self) -> Leases {
                match self { $(Self::$variant => Leases::$leases,)* }
            }

            /// Where its model is named.
            pub const fn model_place(self) -> ModelPlace {
                match self { $(Self::$variant => ModelPlace::$model,)* }
            }

            /// What it does to state upstream.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$variant => Effect::$effect,)* }
            }
        }
    };
}

operations! {
    /// `POST /v1/chat/completions`.
    ChatCompletions = "chat.completions", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/completions`.
    Completions = "completions", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/responses`.
    Responses = "responses", STREAM_AND_CREATE, Body, Makes;
    /// `POST /v1/responses/compact`.
    ResponsesCompact = "responses.compact", STREAM_AND_CREATE, Body, Makes;
    /// `POST /v1/responses/input_tokens`.
    ResponsesInputTokens = "responses.input_tokens", NONE, OptionalBody, Nothing;
    /// `GET /v1/realtime`: a session over WebSocket; its model is in the query.
    Realtime = "realtime", STREAM, Query, Nothing;
    /// `GET /v1/responses/{id}`.
    ResponseRetrieve = "responses.retrieve", NONE, Nowhere, Uses;
    /// `DELETE /v1/responses/{id}`.
    ResponseDelete = "responses.delete", NONE, Nowhere, Ends;
    /// `POST /v1/responses/{id}/cancel`.
    ResponseCancel = "responses.cancel", NONE, Nowhere, Uses;
    /// `GET /v1/responses/{id}/input_items`.
    ResponseInputItems = "responses.input_items", NONE, Nowhere, Uses;
    /// `POST /v1/embeddings`.
    Embeddings = "embeddings", CREATE, Body, Nothing;
    /// `POST /v1/moderations`.
    Moderations = "moderations", CREATE, OptionalBody, Nothing;
    /// `POST /v1/images/generations`.
    ImageGenerations = "images.generations", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/images/edits`.
    ImageEdits = "images.edits", STREAM_AND_CREATE, Body, Nothing;
    /// Any other `POST /v1/images/…`.
    Images = "images", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/audio/speech`.
    Speech = "audio.speech", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/audio/transcriptions`.
    Transcriptions = "audio.transcriptions", STREAM_AND_CREATE, Body, Nothing;
    /// Any other `POST /v1/audio/…`.
    Audio = "audio", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/files`.
    FileCreate = "files.create", NONE, Nowhere, Makes;
    /// `GET /v1/files`.
    FileList = "files.list", NONE, Nowhere, Lists;
    /// `GET /v1/files/{id}`.
    FileRetrieve = "files.retrieve", NONE, Nowhere, Uses;
    /// `DELETE /v1/files/{id}`.
    FileDelete = "files.delete", NONE, Nowhere, Ends;
    /// `GET /v1/files/{id}/content`.
    FileContent = "files.content", NONE, Nowhere, Uses;
    /// `POST /v1/uploads`.
    UploadCreate = "uploads.create", NONE, Nowhere, Makes;
    /// `POST /v1/uploads/{id}/parts`.
    UploadPart = "uploads.parts", NONE, Nowhere, Uses;
    /// `POST /v1/uploads/{id}/complete`: the answer names the file that it became.
    UploadComplete = "uploads.complete", NONE, Nowhere, Uses;
    /// `POST /v1/uploads/{id}/cancel`.
    UploadCancel = "uploads.cancel", NONE, Nowhere, Uses;
    /// `POST /v1/batches`.
    BatchCreate = "batches.create", NONE, Nowhere, Makes;
    /// `GET /v1/batches`.
    BatchList = "batches.list", NONE, Nowhere, Lists;
    /// `GET /v1/batches/{id}`.
    BatchRetrieve = "batches.retrieve", NONE, Nowhere, Uses;
    /// `POST /v1/batches/{id}/cancel`.
    BatchCancel = "batches.cancel", NONE, Nowhere, Uses;
    /// `POST /v1/conversations`.
    ConversationCreate = "conversations.create", NONE, Nowhere, Makes;
    /// `GET /v1/conversations/{id}`.
    ConversationRetrieve = "conversations.retrieve", NONE, Nowhere, Uses;
    /// `POST /v1/conversations/{id}`.
    ConversationUpdate = "conversations.update", NONE, Nowhere, Uses;
    /// `DELETE /v1/conversations/{id}`.
    ConversationDelete = "conversations.delete", NONE, Nowhere, Ends;
    /// Reading `/v1/conversations/{id}/items` or one of them.
    ConversationItems = "conversations.items", NONE, Nowhere, Uses;
    /// Adding to `/v1/conversations/{id}/items` or taking one away.
    ConversationItemsChange = "conversations.items.change", NONE, Nowhere, Uses;
    /// `POST /v1/messages`.
    Messages = "messages", STREAM_AND_CREATE, Body, Nothing;
    /// `POST /v1/messages/count_tokens`.
    MessagesCountTokens = "messages.count_tokens", NONE, Body, Nothing;
    /// `POST /v1/messages/batches`.
    MessageBatchCreate = "messages.batches.create", NONE, Nowhere, Makes;
    /// `GET /v1/messages/batches`.
    MessageBatchList = "messages.batches.list", NONE, Nowhere, Lists;
    /// `GET /v1/messages/batches/{id}`.
    MessageBatchRetrieve = "messages.batches.retrieve", NONE, Nowhere, Uses;
    /// `DELETE /v1/messages/batches/{id}`.
    MessageBatchDelete = "messages.batches.delete", NONE, Nowhere, Ends;
    /// `POST /v1/messages/batches/{id}/cancel`.
    MessageBatchCancel = "messages.batches.cancel", NONE, Nowhere, Uses;
    /// `GET /v1/messages/batches/{id}/results`.
    MessageBatchResults = "messages.batches.results", NONE, Nowhere, Uses;
    /// `:generateContent`.
    GenerateContent = "generateContent", STREAM_AND_CREATE, Path, Nothing;
    /// `:streamGenerateContent`.
    StreamGenerateContent = "streamGenerateContent", STREAM_AND_CREATE, Path, Nothing;
    /// `:embedContent`.
    EmbedContent = "embedContent", CREATE, Path, Nothing;
    /// `:batchEmbedContents`.
    BatchEmbedContents = "batchEmbedContents", CREATE, Path, Nothing;
    /// `:predict`.
    Predict = "predict", CREATE, Path, Nothing;
    /// `:countTokens`.
    CountTokens = "countTokens", NONE, Path, Nothing;
}

impl Operation {
    /// The operation of that verb at the end of a Gemini path.
    pub fn from_verb(verb: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|o| matches!(o.model_place(), ModelPlace::Path) && o.name() == verb)
    }

    /// Whether a whole answer must be a JSON document, so that anything else is a failure.
    pub const fn answers_json(self) -> bool {
        !matches!(
            self,
            Self::Speech
                | Self::Transcriptions
                | Self::Audio
                | Self::FileContent
                | Self::MessageBatchResults
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Operation::ALL.iter().map(|o| o.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Operation::ALL.len());
    }

    #[test]
    fn whatever_takes_a_stream_slot_needs_a_model() {
        for operation in Operation::ALL {
            if operation.leases().stream {
                assert!(
                    matches!(
                        operation.model_place(),
                        ModelPlace::Body | ModelPlace::Path | ModelPlace::Query
                    ),
                    "{operation:?}"
                );
            }
        }
    }
}
