-- Missing features and empty lists, which are two different states.
SELECT 'ints' AS feature, count(*) - count(ints) AS missing, count(*) FILTER (WHERE cardinality(ints) = 0) AS empty
FROM 'testdata/ragged.tfrecord'
UNION ALL
SELECT 'floats', count(*) - count(floats), count(*) FILTER (WHERE cardinality(floats) = 0)
FROM 'testdata/ragged.tfrecord'
UNION ALL
SELECT 'words', count(*) - count(words), count(*) FILTER (WHERE cardinality(words) = 0)
FROM 'testdata/ragged.tfrecord'
ORDER BY feature;
