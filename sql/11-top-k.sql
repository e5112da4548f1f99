-- The five most expensive photographs. Only the requested columns are decoded.
SELECT price, city, tags
FROM 'testdata/shards/'
ORDER BY price DESC
LIMIT 5;
