-- How long the sequences of tf.SequenceExample records are: a feature list is a list of steps, each a list.
SELECT id, cardinality(frame) AS frames, array_length(frame, 1) AS steps, array_length(flatten(frame)) AS "values"
FROM 'testdata/sequence.tfrecord'
ORDER BY id NULLS LAST;
