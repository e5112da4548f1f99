//! tfarrow-convert
