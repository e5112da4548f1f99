//! Fields of one message whose names differ only in case or underscores, such as `value` and
//! `Value`. Protobuf's compilers accept them; `prost-reflect` refuses the whole set. In its
//! descriptors, such fields have their numbers after their names.

use std::collections::HashSet;

use prost_reflect::{
    FieldDescriptor,
    prost_types::{DescriptorProto, FileDescriptorProto},
};

/// The character between the name and the number, which no name has.
const MARK: char = '#';

/// Adds numbers to the names of similar fields of a file. Returns whether there are any.
pub(super) fn mark_similar_names(file: &mut FileDescriptorProto) -> bool {
    let mut marks = false;
    for message in &mut file.message_type {
        marks |= mark_message(message);
    }
    marks
}

fn mark_message(message: &mut DescriptorProto) -> bool {
    let mut seen = HashSet::new();
    let mut marks = false;
    for field in &mut message.field {
        let name = field.name().replace('_', "").to_ascii_lowercase();
        if !seen.insert(name) {
            let marked = format!("{}{MARK}{}", field.name(), field.number());
            // The names of fields in JSON follow from their names, and are not used.
            field.json_name = Some(marked.clone());
            field.name = Some(marked);
            marks = true;
        }
    }
    for nested in &mut message.nested_type {
        marks |= mark_message(nested);
    }
    marks
}

/// Removes the numbers that [`mark_similar_names`] has added.
pub(super) fn unmark_similar_names(file: &mut FileDescriptorProto) {
    file.message_type.iter_mut().for_each(unmark_message);
}

fn unmark_message(message: &mut DescriptorProto) {
    for field in &mut message.field {
        if let Some((name, _)) = field.name().split_once(MARK) {
            field.name = Some(name.to_owned());
            field.json_name = None;
        }
    }
    message.nested_type.iter_mut().for_each(unmark_message);
}

/// The name of a field in its definition.
pub(super) fn name_of(field: &FieldDescriptor) -> &str {
    field
        .name()
        .split_once(MARK)
        .map_or(field.name(), |(name, _)| name)
}
