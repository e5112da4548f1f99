-- Lengths of tf.SequenceExample records: a feature list is a list of steps, and each step is a list.
SELECT id, array_length(frame) AS steps, cardinality(frame) AS floats, array_length(token) AS words
FROM 'testdata/sequence.tfrecord'
ORDER BY id NULLS LAST;
