-- What the photographs of each city cost. A folder is a source too; its name ends in a slash.
SELECT city, count(*) AS records, round(avg(price), 2) AS mean, round(median(price), 2) AS median, max(price) AS dearest
FROM 'testdata/shards/'
GROUP BY city
ORDER BY mean DESC;
