-- Join of two data sets: for each label, the number of photographs and of MNIST-like drawings.
SELECT photographs.label, photographs.records, coalesce(drawings.records, 0) AS drawings
FROM (SELECT label, count(*) AS records FROM 'testdata/shards/' GROUP BY label) AS photographs
LEFT JOIN (SELECT label, count(*) AS records FROM 'testdata/tfds/' GROUP BY label) AS drawings
  ON photographs.label = drawings.label
ORDER BY photographs.label;
