//! Clusters whose processes prove who they are.

use crate::{
    certificates::write_certificates,
    processes::{Cluster, Run, local, program},
};

#[test]
fn rows_with_tls_are_those_of_one_process() {
    let cluster = Cluster::start_with_tls(2);
    // Executors fetch rows from each other, and the client from both.
    let query =
        "SELECT city, count(*), sum(label) FROM 'testdata/shards/' GROUP BY city ORDER BY city";
    assert_eq!(cluster.sql(&[query]), local(&[query]));
}

#[test]
fn clients_without_the_certificate_of_the_cluster_are_refused() {
    let cluster = Cluster::start_with_tls(0);
    let other = cluster.folder.path().join("other");
    write_certificates(&other);
    let tls = ["--cluster-tls", other.to_str().unwrap()];
    for tls in [&[][..], &tls] {
        let args = [&["sql", "--cluster", &cluster.address], tls, &["SELECT 1"]].concat();
        let run = Run::of(program(&args).output().unwrap());
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(
            run.stderr.starts_with(&format!(
                "tfarrow: no scheduler answers at {}",
                cluster.address
            )),
            "{run:?}"
        );
    }
}
