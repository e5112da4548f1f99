-- Reproducible train-test split, by a hash of the contents of a record.
SELECT split, count(*) AS records, round(avg(price), 2) AS mean
FROM (
  SELECT CASE WHEN substr(md5("image/encoded"), 1, 1) IN ('0', '1', '2') THEN 'test' ELSE 'train' END AS split, price
  FROM 'testdata/shards/'
)
GROUP BY split
ORDER BY split;
