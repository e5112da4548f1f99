//! Object stores: objects by URL, read and written through a blocking interface.
//!
//! ```text
//! URL ─▶ Location ─▶ store ─┬▶ Object ─▶ Read        parts are requested ahead of the reader
//!          credentials      └▶ upload ◀─ File        in parts if the file is large
//!          client
//! ```
//!
//! All calls block, as those for files do. The requests run on a small runtime of their own, in
//! `runtime`.
//!
//! Each process has its own runtime, clients and permits for uploads, so that a forked child can
//! use the objects that its parent has found.

mod client;
mod credentials;
pub(crate) mod location;
pub(crate) mod object;
mod runtime;
pub(crate) mod upload;

pub(crate) use runtime::wait;

/// Number of bytes of one request: so many that the time for a request does not matter.
const PART: u64 = 8 << 20;
/// Number of requests for one object, or one upload, that run at the same time.
const AHEAD: usize = 4;
/// Number of objects whose format, or existence, is determined at the same time.
pub(crate) const OBJECTS_AT_ONCE: usize = 16;
