//! The layout of a table on a screen: which columns it has room for, and their widths.

/// The least width to which text is narrowed.
const NARROWEST: usize = 10;
/// The width up to which a column is not narrowed to show the first number of each of its lists.
const MOST_FIRST: usize = 24;
/// Characters beside the text of a column: a space on either side, and a line.
const BORDER: usize = 3;
/// The width of the column that stands for those left out.
const GAP: usize = 1;

/// The width that a column needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// The width of its name and type.
    pub(super) header: usize,
    /// The width of its widest value.
    pub(super) values: usize,
    /// The width of the widest beginning of a list of numbers: the first one, and the mark of those
    /// that are left out.
    pub(super) first: usize,
    /// Whether its values are numbers, which are never truncated.
    pub(super) is_number: bool,
}

impl Need {
    fn full(self) -> usize {
        self.header.max(self.values)
    }

    fn least(self) -> usize {
        let values = if self.is_number {
            self.values
        } else {
            self.first.min(MOST_FIRST)
        };
        values.max(self.full().min(NARROWEST))
    }
}

/// The columns of a table, and their widths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TableLayout {
    /// The widths of the first columns.
    pub(super) front: Vec<usize>,
    /// The widths of the last columns; empty where no column between is left out.
    pub(super) back: Vec<usize>,
    /// Number of columns between them that are left out.
    pub(super) hidden: usize,
}

impl TableLayout {
    /// The layout of columns with these needs in a line of `room` characters; `None` for any number
    /// of them. Text is narrowed first, the widest columns before others. Then columns in the
    /// middle are left out. The first column is always shown.
    pub(super) fn of(needs: &[Need], room: Option<usize>) -> Self {
        let room = room.unwrap_or(usize::MAX).saturating_sub(1);
        if needs
            .iter()
            .map(|need| need.least() + BORDER)
            .sum::<usize>()
            <= room
        {
            return Self {
                front: narrowed(needs, room),
                back: Vec::new(),
                hidden: 0,
            };
        }
        let room = room.saturating_sub(GAP + BORDER);
        let (front, back) = ends(needs, room);
        let hidden = needs.len() - front - back;
        let shown: Vec<_> = needs
            .iter()
            .take(front)
            .chain(needs.iter().skip(front + hidden))
            .copied()
            .collect();
        let mut front_widths = narrowed(&shown, room);
        let back = front_widths.split_off(front);
        Self {
            front: front_widths,
            back,
            hidden,
        }
    }
}

impl TableLayout {
    /// The widths of all columns that are shown, with that of the gap.
    pub(super) fn widths(&self) -> impl Iterator<Item = usize> {
        self.pick_shown(&self.front, GAP, &self.back)
    }

    /// The items of the columns that are shown, with `gap` in the place of those that are left out.
    pub(super) fn pick<T: Clone>(&self, items: impl Iterator<Item = T>, gap: T) -> Vec<T> {
        let items: Vec<_> = items.collect();
        let (front, rest) = items.split_at(self.front.len().min(items.len()));
        self.pick_shown(front, gap, rest.get(self.hidden..).unwrap_or_default())
            .collect()
    }

    fn pick_shown<T: Clone>(&self, front: &[T], gap: T, back: &[T]) -> impl Iterator<Item = T> {
        let gap = (self.hidden > 0).then_some(gap);
        front.iter().cloned().chain(gap).chain(back.iter().cloned())
    }
}

/// The numbers of columns at the front and at the back that have room together.
fn ends(needs: &[Need], room: usize) -> (usize, usize) {
    let mut front = 0;
    let mut back = 0;
    let mut left = room;
    while front + back < needs.len() {
        let at_front = front <= back;
        let index = if at_front {
            front
        } else {
            needs.len() - 1 - back
        };
        let width = needs.get(index).map_or(0, |need| need.least() + BORDER);
        // The first column is shown where there is no room for any.
        let Some(rest) = left
            .checked_sub(width)
            .or_else(|| (index == 0).then_some(0))
        else {
            break;
        };
        left = rest;
        if at_front { front += 1 } else { back += 1 }
    }
    (front, back)
}

/// The widths of columns that are narrowed to `most` characters, or to what they need at least.
fn narrowed_to(needs: &[Need], most: usize) -> impl Iterator<Item = usize> {
    needs
        .iter()
        .map(move |need| need.full().min(most).max(need.least()))
}

/// The widths of columns, the widest of which are narrowed to one width until all have room.
fn narrowed(needs: &[Need], room: usize) -> Vec<usize> {
    let mut most = needs
        .iter()
        .map(|need| need.full())
        .max()
        .unwrap_or_default();
    while most > NARROWEST
        && narrowed_to(needs, most)
            .map(|width| width + BORDER)
            .sum::<usize>()
            > room
    {
        most -= 1;
    }
    narrowed_to(needs, most).collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest};

    use super::*;

    fn texts(widths: &[usize]) -> Vec<Need> {
        widths
            .iter()
            .map(|width| Need {
                header: 1,
                values: *width,
                first: 0,
                is_number: false,
            })
            .collect()
    }

    fn widths(columns: &[usize], room: usize) -> Vec<usize> {
        let layout = TableLayout::of(&texts(columns), Some(room));
        assert_eq!(layout.hidden, 0);
        layout.front
    }

    #[test]
    fn the_widest_texts_are_narrowed_first() {
        assert_eq!(widths(&[5, 50, 20], 80), [5, 45, 20]);
        assert_eq!(widths(&[5, 50, 50], 60), [5, 22, 22]);
        assert_eq!(widths(&[5, 50, 20], 35), [5, 10, 10]);
        assert_eq!(widths(&[5, 6], 80), [5, 6]);
    }

    #[test]
    fn columns_in_the_middle_are_left_out() {
        let layout = TableLayout::of(&texts(&[10; 8]), Some(60));
        assert_eq!(
            (layout.front, layout.back, layout.hidden),
            (vec![10, 10], vec![10, 10], 4)
        );
        let layout = TableLayout::of(&texts(&[50; 3]), Some(8));
        assert_eq!(
            (layout.front, layout.back, layout.hidden),
            (vec![10], vec![], 2)
        );
    }

    #[test]
    fn numbers_are_not_narrowed() {
        let number = Need {
            header: 30,
            values: 20,
            first: 0,
            is_number: true,
        };
        let layout = TableLayout::of(&[number, texts(&[50])[0]], Some(40));
        assert_eq!((layout.front, layout.hidden), (vec![20, 13], 0));
    }

    proptest! {
        #[test]
        fn tables_fit(columns in vec((0_usize..40, 0_usize..40, any::<bool>()), 1..12), room in 0_usize..200) {
            let need = |(header, values, is_number)| Need { header, values, first: 0, is_number };
            let needs: Vec<_> = columns.into_iter().map(need).collect();
            let TableLayout { front, back, hidden } = TableLayout::of(&needs, Some(room));
            assert_eq!(front.len() + back.len() + hidden, needs.len());
            assert!(hidden > 0 || back.is_empty());
            let gap = if hidden > 0 { GAP + BORDER } else { 0 };
            let total: usize = 1 + gap + front.iter().chain(&back).map(|width| width + BORDER).sum::<usize>();
            assert!(total <= room || front.len() == 1);
            let shown = needs.iter().take(front.len()).chain(&needs[needs.len() - back.len()..]);
            for (need, width) in shown.zip(front.iter().chain(&back)) {
                assert!(*width >= need.least() && *width <= need.full());
                assert!(!need.is_number || *width >= need.values);
            }
            let full: usize = 1 + needs.iter().map(|need| need.full() + BORDER).sum::<usize>();
            assert!(full > room || hidden == 0 && front.iter().zip(&needs).all(|(width, need)| *width == need.full()));
        }
    }
}
