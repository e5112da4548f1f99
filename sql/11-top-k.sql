-- The five dearest photographs. Only the columns that are asked for are decoded.
SELECT price, city, tags
FROM 'testdata/shards/'
ORDER BY price DESC
LIMIT 5;
