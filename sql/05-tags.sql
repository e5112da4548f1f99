-- How often each tag is given, and what photographs with it cost: a list taken apart by unnest.
SELECT tag, count(*) AS photographs, round(avg(price), 2) AS mean
FROM (SELECT unnest(tags) AS tag, price FROM 'testdata/shards/')
GROUP BY tag
ORDER BY photographs DESC, tag;
