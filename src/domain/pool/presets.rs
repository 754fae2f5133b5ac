//! Providers that need no typing: their base URLs and the protocols they speak.
use crate::domain::protocol::Protocol;

/// A provider known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderPreset {
    /// The word in document, API and pages.
    pub name: &'static str,
    /// How people write the provider's name.
    pub title: &'static str,
    /// Where it is; `None` where every customer has an own address.
    pub base_url: Option<&'static str>,
    /// What it speaks.
    pub protocols: &'static [Protocol],
}

const fn preset(
    name: &'static str,
    title: &'static str,
    base_url: Option<&'static str>,
    protocols: &'static [Protocol],
) -> ProviderPreset {
    ProviderPreset {
        name,
        title,
        base_url,
        protocols,
    }
}

use Protocol::{Anthropic, FalQueue, Gemini, OpenAi, OpenAiVideos};

/// Every preset, in alphabetical order, `custom` last.
#[rustfmt::skip]
pub const PRESETS: &[ProviderPreset] = &[
    preset("anthropic", "Anthropic", Some("https://api.anthropic.com"), &[Anthropic]),
    preset("azure-openai", "Azure OpenAI", None, &[OpenAi]),
    preset("deepseek", "DeepSeek", Some("https://api.deepseek.com"), &[OpenAi]),
    preset("fal", "FAL", Some("https://queue.fal.run"), &[FalQueue]),
    preset("gemini", "Google Gemini", Some("https://generativelanguage.googleapis.com"), &[Gemini]),
    preset("groq", "Groq", Some("https://api.groq.com/openai"), &[OpenAi]),
    preset("mistral", "Mistral", Some("https://api.mistral.ai"), &[OpenAi]),
    preset("openai", "OpenAI", Some("https://api.openai.com"), &[OpenAi, OpenAiVideos]),
    preset("openrouter", "OpenRouter", Some("https://openrouter.ai/api"), &[OpenAi]),
    preset("together", "Together", Some("https://api.together.xyz"), &[OpenAi]),
    preset("xai", "xAI", Some("https://api.x.ai"), &[OpenAi]),
    preset("custom", "Custom", None, &[]),
];

/// The preset of that name.
pub fn by_name(name: &str) -> Option<&'static ProviderPreset> {
    PRESETS.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pool::BaseUrl;

    #[test]
    fn every_address_is_a_base_url() {
        for preset in PRESETS {
            if let Some(url) = preset.base_url {
                assert!(BaseUrl::parse(url).is_ok(), "{}", preset.name);
                assert!(!preset.protocols.is_empty(), "{}", preset.name);
            }
        }
    }
}
