#!/usr/bin/env bash
# Runs fuzz targets, each for so many seconds, and says how many inputs each was given: run.sh SECONDS [TARGET..]
# Needs cargo-fuzz. Corpora stay in fuzz/corpus; they begin with TensorFlow's own files.
set -euo pipefail
cd "$(dirname "$0")"
seconds=$1
shift
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml | grep -v '^tfarrow')
export RUSTC_BOOTSTRAP=1
for target in "$@"; do
    mkdir -p "corpus/$target"
    find ../testdata -name '*.tfrecord*' -size -64k -exec cp -n {} "corpus/$target/" \; 2>/dev/null || true
    cargo fuzz run -s none "$target" -- -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 -timeout=20 -rss_limit_mb=2048 2>&1 |
        grep -E 'stat::number_of_executed_units|SUMMARY|artifact|ERROR' | sed "s/^/$target: /"
done
