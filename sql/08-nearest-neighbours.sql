-- The photographs whose embeddings are nearest to that of the dearest one. An embedding is a list of float32, which
-- the functions for lists take as it is.
WITH dearest AS (SELECT embedding FROM 'testdata/shards/' ORDER BY price DESC LIMIT 1)
SELECT round(array_distance(photographs.embedding, dearest.embedding), 3) AS distance, photographs.city, photographs.price
FROM 'testdata/shards/' AS photographs, dearest
ORDER BY distance
LIMIT 5;
