//! The rows of a batch: the records that they are decoded from, and the errors of those that are
//! skipped.

use std::{collections::BTreeSet, mem};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;

use super::DecoderOptions;
use crate::{
    Error, ErrorKind, Limits, OnError, RecordType, Records, Result, VerifyCrc, WireError,
    decode::column::ColumnError,
};

/// The rows of the current batch.
#[derive(Debug)]
pub(super) struct BatchRows {
    record_type: RecordType,
    limits: Limits,
    verify_crc: VerifyCrc,
    on_error: OnError,
    /// The index of the record of each row; `None` if every record has a row.
    kept: Option<UInt32Array>,
    /// The rows that are skipped.
    bad: BTreeSet<usize>,
    /// The errors of the records that were skipped, also of earlier batches.
    pub(super) skipped: Vec<Error>,
}

impl BatchRows {
    pub(super) fn new(record_type: RecordType, options: &DecoderOptions) -> Self {
        Self {
            record_type,
            limits: options.limits,
            verify_crc: options.verify_crc,
            on_error: options.on_error,
            kept: None,
            bad: BTreeSet::new(),
            skipped: Vec::new(),
        }
    }

    /// Begins a batch of the records at the indices `kept`, or of all records.
    pub(super) fn begin(&mut self, kept: Option<UInt32Array>) {
        self.kept = kept;
        self.bad.clear();
    }

    /// The number of rows, with those that are skipped.
    pub(super) fn count(&self, records: &Records) -> usize {
        match &self.kept {
            Some(kept) => kept.len(),
            None => records.len(),
        }
    }

    /// The index of the record of each row; `None` if every record has a row.
    pub(super) fn kept(&self) -> Option<&UInt32Array> {
        self.kept.as_ref()
    }

    /// The index of the record of row `row`.
    pub(super) fn record_of(&self, row: usize) -> usize {
        let Some(kept) = &self.kept else {
            return row;
        };
        match kept.values().get(row) {
            Some(record) => *record as usize,
            None => row,
        }
    }

    /// Whether records with errors are skipped.
    pub(super) fn skips(&self) -> bool {
        self.on_error == OnError::Skip
    }

    pub(super) fn is_skipped(&self, row: usize) -> bool {
        self.bad.contains(&row)
    }

    /// Checks the CRC of a record, unless it is checked only if the record does not parse.
    pub(super) fn check_crc(&self, records: &Records, record: usize) -> Result<()> {
        match self.verify_crc {
            VerifyCrc::Always => records.check_crc(record),
            VerifyCrc::OnParseFailure | VerifyCrc::Never => Ok(()),
        }
    }

    /// Checks the CRCs of all rows. Skips those that do not match, if errors are skipped.
    pub(super) fn check_crcs(&mut self, records: &Records) -> Result<()> {
        for row in 0..self.count(records) {
            if let Err(error) = self.check_crc(records, self.record_of(row)) {
                self.skip(row, error)?;
            }
        }
        Ok(())
    }

    /// Skips a row.
    ///
    /// # Errors
    /// `error`, if errors are not skipped, if it is not about one record, or if the row was skipped
    /// before.
    pub(super) fn skip(&mut self, row: usize, error: Error) -> Result<()> {
        if self.on_error == OnError::Fail || !error.is_of_record() || !self.bad.insert(row) {
            return Err(error);
        }
        self.skipped.push(error);
        Ok(())
    }

    /// Returns `batch`, which has all rows, without those that are skipped.
    pub(super) fn without_skipped(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.bad.is_empty() {
            return Ok(batch);
        }
        let keep = BooleanBuffer::collect_bool(batch.num_rows(), |row| !self.is_skipped(row));
        let mut kept = Vec::new();
        for row in keep.set_indices() {
            kept.push(self.record_of(row) as u32);
        }
        self.kept = Some(kept.into());
        Ok(filter_record_batch(&batch, &keep.into())?)
    }

    /// Takes the errors of the records that were skipped.
    pub(super) fn take_skipped(&mut self) -> Vec<Error> {
        mem::take(&mut self.skipped)
    }

    /// Returns the error of a record that does not parse: the error of its CRC, if the CRC is
    /// checked only now and does not match.
    pub(super) fn parse_error(&self, error: WireError, records: &Records, record: usize) -> Error {
        if let Some(error) = self.damage(records, record) {
            return error;
        }
        // An error in an Example of a list is that of the Example.
        let record_type = match self.record_type {
            RecordType::ExampleList => RecordType::Example,
            other => other,
        };
        records.parse_error(error, record, record_type, &self.limits)
    }

    /// Returns the error of the CRC of a record that does not parse, if the CRC is checked only
    /// now.
    fn damage(&self, records: &Records, record: usize) -> Option<Error> {
        match self.verify_crc {
            VerifyCrc::OnParseFailure => records.check_crc(record).err(),
            VerifyCrc::Always | VerifyCrc::Never => None,
        }
    }

    /// Returns the error of a column or batch. It has the position of a record only if it is the
    /// error of a row.
    pub(super) fn error(&self, fault: ColumnError, records: &Records) -> Error {
        match fault {
            ColumnError::Row { row, kind } => self.row_error(row, kind, records),
            ColumnError::Part { row, kind, feature } => {
                let error = self.row_error(row, kind, records);
                match feature {
                    Some(feature) => error.with_feature(&feature),
                    None => error,
                }
            }
            ColumnError::Overflow { what, found, limit } => records.overflow(what, found, limit),
            ColumnError::Arrow(error) => error.into(),
        }
    }

    /// Returns the error that the value of a row does not parse or does not fit, with the position
    /// of its record.
    fn row_error(&self, row: usize, kind: ErrorKind, records: &Records) -> Error {
        let record = self.record_of(row);
        match kind {
            ErrorKind::Wire(error) => self.parse_error(error, records, record),
            ErrorKind::Message { .. } => match self.damage(records, record) {
                Some(error) => error,
                None => records.error(kind, record),
            },
            kind => records.error(kind, record),
        }
    }
}
