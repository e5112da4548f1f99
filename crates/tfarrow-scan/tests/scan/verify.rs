//! Verification: the faults of a data set.

use std::{fs, ops::ControlFlow};

use tfarrow_codec::OnError;
use tfarrow_dataset::{FaultKind, ReadOptions, resolve};
use tfarrow_scan::{VerifyOptions, verify};

use crate::frames;

#[test]
fn faults_have_the_order_of_the_data_set_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..5000_u32).map(|i| i.to_le_bytes().repeat(20)).collect();
    let sound = frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for shard in 0..4 {
        let mut bytes = sound.clone();
        for fault in 0..20 {
            let at = (fault * 7919 + shard * 131) * 37 % bytes.len();
            bytes[at] ^= 1;
        }
        fs::write(folder.path().join(format!("{shard}.tfrecord")), bytes).unwrap();
    }
    let shards = resolve(&[folder.path()]).unwrap();
    let find = |jobs, chunk_bytes, most| {
        let read = ReadOptions {
            chunk_bytes,
            on_error: OnError::Skip,
            ..ReadOptions::default()
        };
        let options = VerifyOptions {
            threads: jobs,
            read,
            max_faults: most,
            ..VerifyOptions::default()
        };
        verify(shards.clone(), &options, &|_, _| ControlFlow::Continue(())).unwrap()
    };
    let (one, all) = (find(1, 1 << 20, 1000), find(8, 5000, 1000));
    let places = |faults: &[tfarrow_dataset::Fault]| {
        faults
            .iter()
            .map(|f| (f.shard, f.record, f.offset, f.bytes, f.error.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(one.damage.faults()), places(all.damage.faults()));
    assert!(
        one.damage
            .faults()
            .is_sorted_by_key(|fault| (fault.shard, fault.offset))
    );
    assert_eq!(
        (one.records, one.bytes, one.damage.by_kind()),
        (all.records, all.bytes, all.damage.by_kind())
    );
    assert!(
        one.damage.by_kind()[&FaultKind::Length] > 0 && one.damage.by_kind()[&FaultKind::Data] > 0
    );
    let total: u64 = one.damage.by_kind().values().sum();
    assert_eq!(total, one.damage.faults().len() as u64);
    // The first faults are kept, and all are counted.
    let few = find(8, 5000, 7);
    assert_eq!(
        places(few.damage.faults()),
        &places(one.damage.faults())[..7]
    );
    assert_eq!(few.damage.by_kind(), one.damage.by_kind());
}
