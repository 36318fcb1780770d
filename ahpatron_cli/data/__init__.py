"""Reading data files into arrays: LIBSVM text, tables, labels, scaling, order."""
