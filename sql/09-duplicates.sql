-- Images that occur more than once, byte for byte.
SELECT md5("image/encoded") AS image, count(*) AS times, count(DISTINCT label) AS labels
FROM 'testdata/shards/'
GROUP BY image
HAVING count(*) > 1
ORDER BY times DESC, image
LIMIT 5;
