-- The two dearest photographs of each city: a window ranks them.
SELECT city, place, price
FROM (
  SELECT city, price, row_number() OVER (PARTITION BY city ORDER BY price DESC) AS place
  FROM 'testdata/shards/'
)
WHERE place <= 2
ORDER BY city, place;
