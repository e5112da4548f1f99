-- Prices more than three standard deviations above the mean, and the floats that are no numbers at all. Two
-- statements, parted by a semicolon.
WITH facts AS (SELECT avg(price) AS mean, stddev(price) AS deviation FROM 'testdata/shards/')
SELECT photographs.city, photographs.price
FROM 'testdata/shards/' AS photographs, facts
WHERE photographs.price > facts.mean + 3 * facts.deviation
ORDER BY photographs.price DESC;

SELECT count(*) AS records, count(*) FILTER (WHERE isnan(f[1])) AS nan
FROM 'testdata/numbers.tfrecord';
