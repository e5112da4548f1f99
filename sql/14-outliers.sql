-- Prices more than three standard deviations above the mean, and NaN values, in two statements.
WITH facts AS (SELECT avg(price) AS mean, stddev(price) AS deviation FROM 'testdata/shards/')
SELECT photographs.city, photographs.price
FROM 'testdata/shards/' AS photographs, facts
WHERE photographs.price > facts.mean + 3 * facts.deviation
ORDER BY photographs.price DESC;

SELECT count(*) AS records, count(*) FILTER (WHERE isnan(f[1])) AS nan
FROM 'testdata/numbers.tfrecord';
