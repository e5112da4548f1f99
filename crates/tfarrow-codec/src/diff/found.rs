//! The places of the features of a record.

use crate::example::{
    keys::Keys,
    tape::{Slot, State, slot},
    walk::{self, Side, Visitor},
    wire,
};

/// The features of a record: the place of the message of each key, by map and number.
#[derive(Debug, Default)]
pub(super) struct FoundFeatures {
    /// A slot for each key of each map; `None` for keys that the record does not have.
    pub(super) slots: [Vec<Option<Slot>>; 2],
    /// Messages that come in several pieces.
    pub(super) joined: Vec<u8>,
    /// Whether the record has unknown fields.
    pub(super) has_others: bool,
    /// Whether the record has a name above the limits.
    pub(super) has_excess_names: bool,
}

impl FoundFeatures {
    /// Returns the message of the key of this number, in the record `data`; `None` if the record
    /// does not have it.
    pub(super) fn message<'r>(&'r self, side: Side, id: usize, data: &'r [u8]) -> Option<&'r [u8]> {
        let slot = self.slots[side as usize].get(id).copied().flatten()?;
        Some(slot.body(data, &self.joined))
    }

    /// Walks a record, and replaces the features found before. The features of a record that is
    /// given twice are those of its last entry.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        lists: bool,
        keys: &mut [Keys; 2],
    ) -> wire::Result<()> {
        self.slots.iter_mut().for_each(|slots| slots.fill(None));
        self.joined.clear();
        (self.has_others, self.has_excess_names) = (false, false);
        walk::record(
            data,
            lists,
            &mut Reading {
                found: self,
                keys,
                data,
            },
        )
    }
}

/// Notes the features that a walk visits.
struct Reading<'f, 'a> {
    found: &'f mut FoundFeatures,
    keys: &'f mut [Keys; 2],
    /// The record.
    data: &'a [u8],
}

impl Visitor for Reading<'_, '_> {
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.keys[side as usize]
    }

    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let Some(id) = id.map(|id| id as usize) else {
            self.found.has_excess_names = true;
            return Ok(());
        };
        let slots = &mut self.found.slots[side as usize];
        if slots.len() <= id {
            slots.resize(id + 1, None);
        }
        if let Some(place) = slots.get_mut(id) {
            *place = Some(slot(
                State::Steps,
                value.unwrap_or_default(),
                self.data,
                &mut self.found.joined,
            ));
        }
        Ok(())
    }

    fn foreign(&mut self, _: u32) -> wire::Result<()> {
        self.found.has_others = true;
        Ok(())
    }
}
