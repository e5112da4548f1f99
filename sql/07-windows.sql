-- The two most expensive photographs of each city, ranked by a window function.
SELECT city, place, price
FROM (
  SELECT city, price, row_number() OVER (PARTITION BY city ORDER BY price DESC) AS place
  FROM 'testdata/shards/'
)
WHERE place <= 2
ORDER BY city, place;
