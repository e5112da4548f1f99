-- Number of photographs and mean price per tag: unnest turns a list into rows.
SELECT tag, count(*) AS photographs, round(avg(price), 2) AS mean
FROM (SELECT unnest(tags) AS tag, price FROM 'testdata/shards/')
GROUP BY tag
ORDER BY photographs DESC, tag;
