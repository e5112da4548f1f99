-- One data set with an uncompressed, a gzip and a zlib shard: compression is detected by content.
SELECT count(*) AS records, sum(cardinality(ints)) AS integers, max(array_max(ints)) AS largest
FROM 'testdata/compressed/*-of-00003*';
