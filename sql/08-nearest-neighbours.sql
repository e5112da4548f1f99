-- Nearest neighbours of an embedding, which is a list of float32.
WITH dearest AS (SELECT embedding FROM 'testdata/shards/' ORDER BY price DESC LIMIT 1)
SELECT round(array_distance(photographs.embedding, dearest.embedding), 3) AS distance, photographs.city, photographs.price
FROM 'testdata/shards/' AS photographs, dearest
ORDER BY distance
LIMIT 5;
