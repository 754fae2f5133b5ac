//! Protocols: families of request shapes. Which one a request speaks follows from its path.
use std::fmt;

/// A family of request shapes known to the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Chat completions, responses, embeddings, images, audio, files, models.
    OpenAi,
    /// `OpenAI`'s asynchronous video jobs.
    OpenAiVideos,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent` family.
    Gemini,
    /// FAL's queue.
    FalQueue,
}

impl Protocol {
    /// Every protocol, in the order in which lists show them.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiVideos,
        Self::Anthropic,
        Self::Gemini,
        Self::FalQueue,
    ];

    /// The name used in documents, columns and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiVideos => "openai.videos",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::FalQueue => "fal.queue",
        }
    }

    /// The protocol of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Position in [`Self::ALL`], for tables indexed by protocol.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
