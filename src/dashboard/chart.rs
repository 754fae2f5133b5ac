//! Small charts over time, drawn by the server: bars and lines.
//!
//! Rule: the scale begins at zero; what is not known is a gap; what is still being counted is
//! dashed; sizes are attributes, since inline styles are forbidden; colours are classes, so that
//! both themes work.
mod lines;

pub(super) use self::lines::{Lines, Series};

/// The drawing's own units; the page stretches it.
pub(super) const WIDTH: u32 = 480;
pub(super) const HEIGHT: u32 = 96;

/// Room between bars.
const GAP: u32 = 4;

/// One part of a bar, as the template draws it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    /// The class that colours it, which is also the name of its pattern.
    pub(super) class: &'static str,
    /// Whether its step is still being counted.
    pub(super) is_running: bool,
}

/// Bars of stacked counts, one bar for each step of time, the last of which is still running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bars {
    pub(super) parts: Vec<Part>,
    /// The top of the scale.
    pub(super) top: u64,
}

impl Bars {
    /// `steps` has for each step its counts, from the bottom up; `classes` colours them.
    pub(super) fn new<const N: usize>(steps: &[[u64; N]], classes: [&'static str; N]) -> Self {
        let sums = steps.iter().map(|step| step.iter().sum());
        let top = sums.max().unwrap_or(0);
        let slot = slot(steps.len());
        let mut parts = Vec::new();
        for (n, step) in (0..).zip(steps) {
            let mut below = 0;
            for (value, class) in step.iter().zip(classes) {
                let (from, to) = (scaled(below, top), scaled(below + value, top));
                // What is there is seen, however small its share.
                let height = if *value > 0 { (to - from).max(1) } else { 0 };
                if height > 0 {
                    parts.push(Part {
                        x: n * slot + GAP / 2,
                        y: HEIGHT.saturating_sub(from + height),
                        width: slot.saturating_sub(GAP).max(1),
                        height,
                        class,
                        is_running: n as usize + 1 == steps.len(),
                    });
                }
                below += value;
            }
        }
        Self { parts, top }
    }
}

/// The width of one step.
fn slot(steps: usize) -> u32 {
    WIDTH / u32::try_from(steps).unwrap_or(u32::MAX).max(1)
}

fn scaled(value: u64, top: u64) -> u32 {
    let scaled = value.saturating_mul(u64::from(HEIGHT)) / top.max(1);
    u32::try_from(scaled).unwrap_or(HEIGHT)
}

/// A part as a percentage with one digit after the point.
pub(super) fn per_cent(part: u64, all: u64) -> String {
    let mille = part * 1000 / all.max(1);
    format!("{}.{}%", mille / 10, mille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_zero_and_share_one_scale() {
        let bars = Bars::new(&[[4, 0], [0, 0], [1, 1]], ["a", "b"]);
        let drawn: Vec<_> = bars
            .parts
            .iter()
            .map(|p| (p.x, p.y, p.height, p.class, p.is_running))
            .collect();
        let expect = [
            (2, 0, 96, "a", false),
            (322, 72, 24, "a", true),
            (322, 48, 24, "b", true),
        ];
        assert_eq!(drawn, expect);
        assert_eq!(bars.top, 4);
    }

    #[test]
    fn what_is_there_is_seen_and_nothing_draws_nothing() {
        let bars = Bars::new(&[[100_000, 1]], ["a", "b"]);
        assert_eq!(bars.parts.len(), 2);
        assert_eq!(Bars::new::<1>(&[[0]], ["a"]).parts, []);
    }
}
