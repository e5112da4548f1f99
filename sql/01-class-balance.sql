-- Records per class, and the share of each class.
SELECT label, count(*) AS records, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent
FROM 'testdata/shards/*.tfrecord'
GROUP BY label
ORDER BY label;
