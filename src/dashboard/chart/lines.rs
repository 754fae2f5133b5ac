//! Lines over time: one stroke for each stretch without a gap, a dot for a lone point, and at the
//! end of each line its name.
use super::{HEIGHT, scaled, slot};

/// What a line shows.
pub(in crate::dashboard) struct Series {
    /// One value for each step; `None` is a gap.
    pub(in crate::dashboard) values: Vec<Option<u64>>,
    /// The class that colours and dashes it.
    pub(in crate::dashboard) class: &'static str,
    /// What stands at its end.
    pub(in crate::dashboard) label: String,
}

/// One stroke, as the template draws it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dashboard) struct Stroke {
    /// The path.
    pub(in crate::dashboard) path: String,
    pub(in crate::dashboard) class: &'static str,
    /// How it differs: `is-running`, `is-dot` or nothing.
    pub(in crate::dashboard) kind: &'static str,
}

/// A line's name at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dashboard) struct End {
    /// Per cent of the chart's height, from the top.
    pub(in crate::dashboard) y: u32,
    pub(in crate::dashboard) text: String,
    pub(in crate::dashboard) class: &'static str,
}

/// Some lines on one scale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::dashboard) struct Lines {
    pub(in crate::dashboard) strokes: Vec<Stroke>,
    pub(in crate::dashboard) ends: Vec<End>,
    /// The top of the scale.
    pub(in crate::dashboard) top: u64,
}

/// The height of a name, in per cent of the chart's, so that none covers another.
const NAME: u32 = 14;

impl Lines {
    /// Draws the series; their last step is still running.
    pub(in crate::dashboard) fn new(all: Vec<Series>) -> Self {
        let known = all.iter().flat_map(|series| &series.values).flatten();
        let top = known.max().copied().unwrap_or(0);
        let mut lines = Self {
            top,
            ..Self::default()
        };
        for series in all {
            lines.draw(&series);
            let last = series.values.iter().rev().find_map(|value| *value);
            lines.ends.extend(last.map(|value| End {
                y: (HEIGHT - scaled(value, top)) * 100 / HEIGHT,
                text: series.label,
                class: series.class,
            }));
        }
        lines.part_names();
        lines
    }

    fn draw(&mut self, series: &Series) {
        let slot = slot(series.values.len());
        let point = |(n, value): (u32, &Option<u64>)| {
            let y = HEIGHT - scaled((*value)?, self.top);
            Some((n, n * slot + slot / 2, y))
        };
        let points: Vec<Option<(u32, u32, u32)>> = (0..).zip(&series.values).map(point).collect();
        let steps = points.len();
        let mut stroke = |path, kind| {
            self.strokes.push(Stroke {
                path,
                class: series.class,
                kind,
            });
        };
        for run in points.split(Option::is_none) {
            let run: Vec<(u32, u32, u32)> = run.iter().flatten().copied().collect();
            match run.as_slice() {
                [] => (),
                [(_, x, y)] => stroke(format!("M{x} {y}h0"), "is-dot"),
                [whole @ .., (n, x, y)] if *n as usize + 1 == steps => {
                    if whole.len() > 1 {
                        stroke(path(whole), "");
                    }
                    if let Some((_, from_x, from_y)) = whole.last() {
                        stroke(format!("M{from_x} {from_y}L{x} {y}"), "is-running");
                    }
                }
                whole => stroke(path(whole), ""),
            }
        }
    }

    /// Moves names apart that would cover one another.
    fn part_names(&mut self) {
        self.ends.sort_by_key(|end| end.y);
        let mut free = NAME / 2;
        for end in &mut self.ends {
            end.y = end.y.max(free);
            free = end.y + NAME;
        }
        let mut free = 100 - NAME / 2;
        for end in self.ends.iter_mut().rev() {
            end.y = end.y.min(free);
            free = end.y.saturating_sub(NAME);
        }
    }
}

fn path(points: &[(u32, u32, u32)]) -> String {
    let steps = points.iter().map(|(_, x, y)| format!("{x} {y}"));
    format!("M{}", steps.collect::<Vec<_>>().join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[Option<u64>]) -> Series {
        Series {
            values: values.to_vec(),
            class: "line-1",
            label: "a".to_owned(),
        }
    }

    #[track_caller]
    fn check(values: &[Option<u64>], expect: &[(&str, &str)]) {
        let lines = Lines::new(vec![series(values)]);
        let drawn: Vec<_> = lines.strokes.iter().map(|s| (&*s.path, s.kind)).collect();
        assert_eq!(drawn, expect);
    }

    #[test]
    fn a_gap_ends_a_line_and_the_running_step_is_apart() {
        let some = [Some(4), Some(2), None, Some(1), Some(4)];
        check(
            &some,
            &[("M48 0L144 48", ""), ("M336 72L432 0", "is-running")],
        );
        check(
            &[Some(0), Some(4), Some(2)],
            &[("M80 96L240 0", ""), ("M240 0L400 48", "is-running")],
        );
    }

    #[test]
    fn a_lone_point_is_a_dot_and_nothing_draws_nothing() {
        check(&[None, Some(5), None], &[("M240 0h0", "is-dot")]);
        check(&[None, Some(5)], &[("M360 0h0", "is-dot")]);
        check(&[None, None], &[]);
        assert_eq!(Lines::new(vec![series(&[None])]).ends, []);
    }

    #[test]
    fn names_stand_at_their_lines_ends_but_never_on_one_another() {
        let lines = Lines::new(vec![series(&[Some(100)]), series(&[Some(98)])]);
        let places: Vec<_> = lines.ends.iter().map(|end| end.y).collect();
        assert_eq!(places, [7, 21]);
        let low = Lines::new(vec![
            series(&[Some(100), Some(0)]),
            series(&[Some(100), Some(1)]),
        ]);
        let places: Vec<_> = low.ends.iter().map(|end| end.y).collect();
        assert_eq!(places, [79, 93]);
    }
}
