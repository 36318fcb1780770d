"""Output of records: tables, text formats, plots, reports and predictions."""
