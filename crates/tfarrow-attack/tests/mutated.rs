//! Runs every attack on files of TensorFlow, and on changed copies of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{fs, panic, path::Path, sync::LazyLock};

use proptest::{collection::vec, prelude::*};
use tfarrow_attack::ALL;
use tfarrow_testkit::{config, frame, golden};

/// Files of TensorFlow: as streams, and as records with a length before each, which is the input of
/// [`tfarrow_attack::framed`].
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let folders = [
        "",
        "message",
        "corrupt",
        "compressed",
        "example_list",
        "mixed_kinds",
        "wire",
        "wire_bad",
        "wire_disputed",
    ];
    let mut seeds = Vec::new();
    for folder in folders {
        for file in golden::files(&testdata.join(folder)).unwrap() {
            let stream = fs::read(file).unwrap();
            if let Ok(payloads) = frame::read(&stream) {
                for payloads in payloads.chunks(4) {
                    let short = payloads.iter().filter(|payload| payload.len() < 255);
                    seeds.push(
                        short
                            .flat_map(|payload| [&[payload.len() as u8], *payload].concat())
                            .collect(),
                    );
                }
                // One record of any length: 255 stands for all bytes after it.
                let long = payloads.iter().find(|payload| payload.len() >= 255);
                seeds.extend(long.map(|payload| [&[255], *payload].concat()));
            }
            seeds.push(stream);
        }
    }
    seeds
});

#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    /// A part of another seed.
    Splice(prop::sample::Index, prop::sample::Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let odd = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![0, 1, 0x0a, 0x12, 0x1a, 0x7f, 0x80, 0xff])
    ];
    prop_oneof![
        (at(), odd).prop_map(|(at, byte)| Change::Set(at, byte)),
        (at(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (at(), vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), 1..40_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (at(), 1..40_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        (at(), at(), 1..80_usize).prop_map(|(at, seed, count)| Change::Splice(at, seed, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let len = bytes.len().max(1);
    let part = |bytes: &[u8], at: usize, count: usize| {
        bytes
            .iter()
            .skip(at)
            .take(count)
            .copied()
            .collect::<Vec<_>>()
    };
    match change {
        Change::Set(at, byte) => bytes
            .get_mut(at.index(len))
            .into_iter()
            .for_each(|to| *to = *byte),
        Change::Flip(at, bit) => bytes
            .get_mut(at.index(len))
            .into_iter()
            .for_each(|to| *to ^= 1 << bit),
        Change::Insert(at, new) => {
            let at = at.index(len).min(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Remove(at, count) => {
            let at = at.index(len).min(bytes.len());
            bytes.drain(at..bytes.len().min(at + count));
        }
        Change::Repeat(at, count) => {
            let at = at.index(len).min(bytes.len());
            let again = part(bytes, at, *count);
            bytes.splice(at..at, again);
        }
        Change::Splice(at, seed, count) => {
            let at = at.index(len).min(bytes.len());
            let other = seed.get(&SEEDS);
            let from = part(other, at % other.len().max(1), *count);
            bytes.splice(at..at, from);
        }
    }
}

#[test]
fn no_attack_panics_on_files_of_tensorflow() {
    for (name, attack) in ALL {
        for seed in SEEDS.iter() {
            if panic::catch_unwind(|| attack(seed)).is_err() {
                panic!("{name} does not survive {seed:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn no_attack_panics_on_changed_files(seed in any::<prop::sample::Index>(), changes in vec(change(), 1..8)) {
        let mut bytes = seed.get(&SEEDS).clone();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        for (_, attack) in ALL {
            attack(&bytes);
        }
    }
}

/// Inputs for which an attack has failed before. The name of each file begins with the name of the
/// attack.
#[test]
fn inputs_that_failed_before_do_not_fail_again() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corrupt/fuzz");
    let mut attacks = 0;
    for file in fs::read_dir(found).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        let (attack, _) = name.split_once('-').unwrap();
        let (_, attack) = ALL.iter().find(|(known, _)| *known == attack).unwrap();
        attack(&fs::read(file.path()).unwrap());
        attacks += 1;
    }
    assert!(attacks > 0);
}
