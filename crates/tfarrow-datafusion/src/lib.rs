//! tfarrow-datafusion
