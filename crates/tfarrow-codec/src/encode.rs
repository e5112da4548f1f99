//! Being written.
#![allow(missing_docs)]
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crate::{RecordType, Result};
#[derive(Debug, Default)]
pub struct EncoderBuilder {}
#[derive(Debug)]
pub struct Encoder {}
impl EncoderBuilder {
    pub fn new() -> Self { Self {} }
    pub fn with_record_type(self, _: RecordType) -> Self { self }
    pub fn with_lossy(self, _: bool) -> Self { self }
    pub fn build(self, _: SchemaRef) -> Result<Encoder> { Ok(Encoder {}) }
}
impl Encoder {
    pub fn encode(&mut self, _: &RecordBatch, _: &mut Vec<u8>) -> Result<()> { Ok(()) }
    pub fn record_type(&self) -> RecordType { RecordType::Example }
    pub fn losses(&self) -> impl Iterator<Item = (&str, &str, u64)> { std::iter::empty() }
}
