-- How many records each class has, and its share of the data set.
SELECT label, count(*) AS records, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent
FROM 'testdata/shards/*.tfrecord'
GROUP BY label
ORDER BY label;
