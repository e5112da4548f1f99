-- Queries that define the order of their rows completely. SHARDS, RAGGED and SEQUENCE stand for the data sets of
-- tests/side_by_side.rs. Each line is a query.
-- Aggregates.
SELECT count(*), sum(label), round(avg(price), 9), min(city), max("image/height") FROM SHARDS
SELECT city, count(*), round(sum(price), 6), count(DISTINCT label) FROM SHARDS GROUP BY city ORDER BY city
SELECT label, city, count(*) FROM SHARDS GROUP BY GROUPING SETS ((label), (city), ()) ORDER BY 1, 2, 3
SELECT label, median(price), round(stddev(price), 9) FROM SHARDS GROUP BY label HAVING count(*) > 40 ORDER BY label
SELECT min("image/encoded"), max("image/encoded"), sum(octet_length("image/encoded")) FROM SHARDS
-- Joins.
SELECT a.city, b.label, count(*) FROM SHARDS a JOIN SHARDS b ON a.label + 4 = b."image/height" GROUP BY 1, 2 ORDER BY 1, 2
SELECT a.city, b.price FROM SHARDS a LEFT JOIN (SELECT * FROM SHARDS WHERE price > 100) b ON a.price = b.price ORDER BY 2 NULLS LAST, 1 LIMIT 20
SELECT city FROM SHARDS WHERE price IN (SELECT max(price) FROM SHARDS GROUP BY label) ORDER BY city
SELECT count(*) FROM SHARDS a WHERE NOT EXISTS (SELECT 1 FROM SHARDS b WHERE b.price > a.price)
-- Windows.
SELECT city, price, rank() OVER (PARTITION BY city ORDER BY price DESC) AS r FROM SHARDS ORDER BY city, r LIMIT 40
SELECT label, price, sum(price) OVER (PARTITION BY label ORDER BY price ROWS 2 PRECEDING) FROM SHARDS ORDER BY 1, 2
SELECT price, lag(price) OVER (ORDER BY price), ntile(4) OVER (ORDER BY price) FROM SHARDS ORDER BY 1
-- Lists.
SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM SHARDS) GROUP BY tag ORDER BY tag
SELECT ints, words FROM RAGGED WHERE ints[2] > ints[1] OR words[1] < 'c' ORDER BY ints, words
SELECT count(*), max(ints[3]) FROM RAGGED WHERE ints[1] >= 0 AND cardinality(ints) > 2
SELECT cardinality(ints), array_max(ints), ints[1], array_length(words), words FROM RAGGED ORDER BY 1, 2, 3, 4, 5
SELECT array_sort(words), array_distinct(words), array_has(words, 'red') FROM RAGGED ORDER BY 1, 2, 3
SELECT round(array_distance(embedding, embedding), 3), embedding[8] FROM SHARDS ORDER BY 2 LIMIT 9
SELECT id, frame[1], array_length(token), shared, "feature_lists/shared" FROM SEQUENCE ORDER BY 1, 2, 3, 4, 5
-- Filters.
SELECT city, label FROM SHARDS WHERE city LIKE '%o' OR city LIKE 'G_a%' ORDER BY 1, 2
SELECT count(*), count(ints), count(floats), count(words) FROM RAGGED WHERE ints IS NULL OR words IS NOT NULL
SELECT price, city FROM SHARDS WHERE label = 2 AND price BETWEEN 20 AND 40 AND tags[1] IS NOT NULL ORDER BY price
SELECT speaker, token FROM SEQUENCE WHERE speaker IS NOT NULL AND cardinality(token) > 0 ORDER BY speaker
(SELECT city FROM SHARDS EXCEPT SELECT city FROM SHARDS WHERE label = 1) UNION ALL SELECT words[1] FROM RAGGED WHERE words[1] > 'r' ORDER BY 1
