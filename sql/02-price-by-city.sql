-- Prices of the photographs in each city. A folder is a source; its name ends in a slash.
SELECT city, count(*) AS records, round(avg(price), 2) AS mean, round(median(price), 2) AS median, max(price) AS dearest
FROM 'testdata/shards/'
GROUP BY city
ORDER BY mean DESC;
