//! Rules for physical plans over TFRecord.
//!
//! | module | change | when |
//! |---|---|---|
//! | `preserve_order` | scans files as one ordered partition | optimizer rule |
//! | `sorted_files` | removes sorts of files that are sorted already, by indexes | optimizer rule |
//! | `skip_records` | reads nothing for rows that OFFSET skips, by indexes | optimizer rule |
//! | `long_rows` | runs plans over long rows with smaller batches | last optimizer rule |

pub(crate) mod long_rows;
pub(crate) mod pass_through;
pub(crate) mod preserve_order;
pub(crate) mod skip_records;
pub(crate) mod sorted_files;
