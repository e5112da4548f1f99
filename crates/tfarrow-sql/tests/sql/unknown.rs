//! Features that are missing in the sample are reported once, by name.

use tfarrow_datafusion::Notice;

use crate::common::*;

fn folder() -> Folder {
    let folder = Folder::new();
    for shard in 0..3 {
        let record = |i: usize| {
            let mut features = vec![("x", Value::Ints(&[1]))];
            if i > 1200 {
                features.push(("late", Value::Floats(&[2.5])));
            }
            if i == 1999 && shard == 1 {
                features.push(("later", Value::Bytes(&[b"b"])));
            }
            example(&features)
        };
        folder.shard(&format!("s-{shard}"), (0..2000).map(record));
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_features_are_reported_once_per_scan() {
    let folder = folder();
    let (context, notices) = session_with_notices();
    let query = format!("SELECT * FROM '{}'", folder.name("s-*"));
    assert_eq!(
        context
            .sql(&query)
            .await
            .unwrap()
            .collect()
            .await
            .unwrap()
            .iter()
            .map(|b| b.num_rows())
            .sum::<usize>(),
        6000
    );
    let found = notices.lock().unwrap().clone();
    assert_eq!(found.len(), 1, "{found:?}");
    let Notice::UnknownFeatures(unknown) = &found[0] else {
        panic!("{found:?}")
    };
    assert_eq!(unknown.names, ["late", "later"]);
    assert_eq!(
        found[0].to_string(),
        "2 features have no column: \"late\", \"later\"; the schema was inferred from a sample of 3000 records \
         of 3 of 3 shards: SET tfarrow.sample_records = 'all'"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_feature_is_unknown_if_the_sample_is_complete() {
    let folder = folder();
    let (context, notices) = session_with_notices();
    rows(&context, "SET tfarrow.sample_records = 'all'")
        .await
        .unwrap();
    rows(&context, &format!("SELECT * FROM '{}'", folder.name("s-*")))
        .await
        .unwrap();
    assert!(notices.lock().unwrap().is_empty());
}
