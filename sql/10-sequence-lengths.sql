-- How long the sequences of tf.SequenceExample records are: a feature list is a list of steps, each a list.
SELECT id, array_length(frame) AS steps, cardinality(frame) AS floats, array_length(token) AS words
FROM 'testdata/sequence.tfrecord'
ORDER BY id NULLS LAST;
