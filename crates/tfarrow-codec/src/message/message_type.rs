//! The type of messages, and its place in the metadata of a schema.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_schema::{Schema, SchemaRef};
use base64::{Engine, engine::general_purpose::STANDARD};
use prost_reflect::{
    MessageDescriptor,
    prost::Message,
    prost_types::{FileDescriptorProto, FileDescriptorSet},
};

use super::{descriptor_set::descriptor_pool, fields, similar_names::unmark_similar_names};
use crate::{
    Error, ErrorKind, Limits, RecordType, Result,
    schema::{DESCRIPTORS, MESSAGE, RECORD_TYPE},
};

/// A protobuf message type with its descriptors.
///
/// ```
/// use prost_reflect::DescriptorPool;
/// use tfarrow_codec::{Limits, MessageType};
/// # fn main() -> tfarrow_codec::Result<()> {
/// let files = DescriptorPool::global().encode_to_vec();
/// let message = MessageType::parse(&files, "google.protobuf.Timestamp")?;
/// let schema = message.schema(&Limits::default())?;
/// assert_eq!(schema.field(0).name(), "seconds");
/// // The schema has the descriptors in its metadata.
/// assert_eq!(MessageType::of_schema(&schema)?.map(|message| message.name().to_owned()).as_deref(), Some(message.name()));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MessageType {
    descriptor: MessageDescriptor,
}

impl MessageType {
    /// Creates the type of a message descriptor.
    pub fn new(descriptor: MessageDescriptor) -> Self {
        Self { descriptor }
    }

    /// Finds the message `name`, such as `waymo.open_dataset.Scenario`, in the bytes of a
    /// `google.protobuf.FileDescriptorSet`.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptors`] for bytes that are no valid set of descriptors, or that do not
    /// have the message.
    pub fn parse(descriptors: &[u8], name: &str) -> Result<Self> {
        let invalid = |reason: String| Error::usage(ErrorKind::Descriptors(reason));
        let pool = descriptor_pool(descriptors).map_err(|error| {
            invalid(format!(
                "the descriptors of {name:?} are not valid: {error}"
            ))
        })?;
        match pool.get_message_by_name(name) {
            Some(descriptor) => Ok(Self { descriptor }),
            None => Err(invalid(format!("the descriptors have no message {name:?}"))),
        }
    }

    /// Returns the type of the messages that a schema describes, from its metadata; `None` if its
    /// records are no messages of this kind.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptors`] for metadata that is not valid.
    pub fn of_schema(schema: &Schema) -> Result<Option<Self>> {
        let Some(name) = schema.metadata().get(MESSAGE) else {
            return Ok(None);
        };
        let descriptors = schema
            .metadata()
            .get(DESCRIPTORS)
            .map(String::as_str)
            .unwrap_or_default();
        let descriptors = STANDARD.decode(descriptors).map_err(|error| {
            Error::usage(ErrorKind::Descriptors(format!(
                "the metadata {DESCRIPTORS} of the schema is not valid: {error}"
            )))
        })?;
        Self::parse(&descriptors, name).map(Some)
    }

    /// Returns the full name of the message.
    pub fn name(&self) -> &str {
        self.descriptor.full_name()
    }

    /// Returns the descriptor of the message.
    pub fn descriptor(&self) -> &MessageDescriptor {
        &self.descriptor
    }

    /// Returns the schema of the columns of the message, with the descriptors in its metadata.
    ///
    /// # Errors
    /// [`ErrorKind::ManyNames`] for a message of more columns than [`Limits::features`] allows,
    /// those of nested messages included; [`ErrorKind::Unsupported`] for a message without fields.
    pub fn schema(&self, limits: &Limits) -> Result<SchemaRef> {
        let fields = fields::of_message(&self.descriptor, limits)?;
        if fields.is_empty() {
            let reason = format!(
                "the message {} has no fields, and so no columns",
                self.name()
            );
            return Err(Error::usage(ErrorKind::unsupported(reason)));
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, self.metadata())))
    }

    /// Returns the metadata of a schema of these messages: the record type, the name of the
    /// message, and the files that define it.
    pub fn metadata(&self) -> HashMap<String, String> {
        HashMap::from([
            (
                RECORD_TYPE.to_owned(),
                RecordType::Message.name().to_owned(),
            ),
            (MESSAGE.to_owned(), self.name().to_owned()),
            (
                DESCRIPTORS.to_owned(),
                STANDARD.encode(self.file_descriptor_set().encode_to_vec()),
            ),
        ])
    }

    /// Returns the file that defines the message and the files that it imports, each after its own
    /// imports. Comments are left out.
    fn file_descriptor_set(&self) -> FileDescriptorSet {
        let mut files = Vec::new();
        let mut seen = HashSet::new();
        // A file is taken from the stack before its imports, and once more after them. Chains of
        // imports may be long.
        let mut stack = vec![(self.descriptor.parent_file(), false)];
        while let Some((file, is_after_imports)) = stack.pop() {
            if is_after_imports {
                let mut file = FileDescriptorProto {
                    source_code_info: None,
                    ..file.file_descriptor_proto().clone()
                };
                unmark_similar_names(&mut file);
                files.push(file);
            } else if seen.insert(file.name().to_owned()) {
                let imports: Vec<_> = file.dependencies().map(|import| (import, false)).collect();
                stack.push((file, true));
                stack.extend(imports.into_iter().rev());
            }
        }
        FileDescriptorSet { file: files }
    }
}
