"""From LIBSVM text to arrays: reading, labels, scaling, order."""
