-- One data set of which one shard is plain, one gzip and one zlib: told by content, never by name.
SELECT count(*) AS records, sum(cardinality(ints)) AS integers, max(array_max(ints)) AS largest
FROM 'testdata/compressed/*-of-00003*';
