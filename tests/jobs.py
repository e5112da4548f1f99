"""Local Ray and Spark jobs over many small shards, for docs/cluster.md: equal answers, and the time of a task. Needs the Python
package with `ray` and `spark`, and a Java runtime; `.ci/run` does not call it.

    python tests/jobs.py [SHARDS]
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import tfarrow

SHARD = Path(__file__).resolve().parent.parent / "testdata/shards/train-00000-of-00004.tfrecord"


def seconds(run):
    begin = time.monotonic()
    return run(), time.monotonic() - begin


def ray_job(data: str, groups: int) -> tuple[int, int]:
    import ray
    import tfarrow.ray

    source = ray.data.read_datasource(tfarrow.ray.datasource(data, columns=["label"]), override_num_blocks=groups)
    return source.count(), source.sum("label")


def spark_job(data: str, groups: int) -> tuple[int, int]:
    import tfarrow.spark
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(tfarrow.spark.TFRecordDataSource)
    reader = spark.read.format("tfrecord").option("columns", "label").option("min_groups", str(groups))
    count, total = reader.load(data).selectExpr("count(*)", "sum(label)").first()
    return count, total


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    folder = Path(tempfile.mkdtemp(prefix="tfarrow-jobs-"))
    for index in range(count):
        shutil.copy(SHARD, folder / f"{index:05}.tfrecord")
    data = f"{folder}/"
    expected, alone = seconds(lambda: tuple(tfarrow.sql(f"SELECT count(*) AS n, sum(label) AS s FROM '{data}'").to_arrow().to_pylist()[0].values()))
    print(f"sql, one process: {alone:.1f} s")
    import ray

    ray.init(num_cpus=2, log_to_driver=False)
    for name, job in [("ray", ray_job), ("spark", spark_job)]:
        job(data, 2)  # starts the workers
        times = {}
        for groups in (2, 8, 1000):
            found, times[groups] = seconds(lambda: job(data, groups))
            assert found == tuple(expected), (found, expected)
            print(f"{name}, {groups} groups: {times[groups]:.1f} s")
        print(f"{name}: {(times[1000] - times[8]) / 992 * 1000:.1f} ms for each further task")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
