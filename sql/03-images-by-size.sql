-- Image sizes, and the number of bytes that images take. Names with a slash need double quotes.
SELECT "image/height" AS height, "image/width" AS width, count(*) AS images,
       min(octet_length("image/encoded")) AS smallest, max(octet_length("image/encoded")) AS largest
FROM 'testdata/shards/'
GROUP BY height, width
HAVING count(*) >= 10
ORDER BY images DESC, height, width;
